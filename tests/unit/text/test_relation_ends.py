"""Statements that say that a relation is over, and nothing else."""

from __future__ import annotations

import pytest

from pipeline.text.relation_ends import ends_relation, may_end

USER = "User"
ENDS = [
    ("User stopped playing squash.", "plays", USER, "squash"),
    ("User gave up squash.", "plays", USER, "squash"),
    ("User does not play squash any more.", "plays", USER, "squash"),
    ("User no longer plays squash because of a bad knee.", "plays", USER, "squash"),
    ("User sold the canoe.", "owns", USER, "canoe"),
    ("User has sold the canoe to Edda.", "owns", USER, "canoe"),
    ("User gave away the canoe last year.", "owns", USER, "canoe"),
    ("User lost the canoe in March 2026.", "owns", USER, "canoe"),
    ("Edda left the Harbour Choir.", "member_of", "Edda", "Harbour Choir"),
    ("Edda is not a member of the Harbour Choir any more.", "member_of", "Edda", "Harbour Choir"),
    ("Edda resigned from Tidewater.", "works_at", "Edda", "Tidewater"),
    ("Edda no longer works at Tidewater.", "works_at", "Edda", "Tidewater"),
    ("Edda quit Tidewater, and moved to Bergen.", "works_at", "Edda", "Tidewater"),
    ("User and Edda broke up.", "dating", USER, "Edda"),
    ("User and Edda are no longer friends.", "has_friend", "Edda", USER),
    ("Tove and Ingmar are divorced.", "married_to", "Ingmar", "Tove"),
    ("Tove is not allergic to wool.", "allergic_to", "Tove", "wool"),
    ("User does not like figs any more.", "likes", USER, "figs"),
    ("User no longer plans to visit Malta.", "plans_to_visit", USER, "Malta"),
    ("User spielt kein Squash mehr.", "plays", USER, "Squash"),
    ("User hat mit Squash aufgehört.", "plays", USER, "Squash"),
    ("User hat das Kanu verkauft.", "owns", USER, "Kanu"),
    ("Edda hat den Kahn an Tove verkauft.", "owns", "Edda", "Kahn"),
    ("Edda hat bei Tidewater gekündigt.", "works_at", "Edda", "Tidewater"),
    ("Edda arbeitet nicht mehr bei Tidewater.", "works_at", "Edda", "Tidewater"),
    ("Edda und Ingmar haben sich getrennt.", "dating", "Edda", "Ingmar"),
    ("Edda ist aus dem Ruderclub ausgetreten.", "member_of", "Edda", "Ruderclub"),
    ("User ya no juega al pádel.", "plays", USER, "pádel"),
    ("User dejó el pádel.", "plays", USER, "pádel"),
    ("Nerea vendió la canoa.", "owns", "Nerea", "canoa"),
    ("Nerea ya no trabaja en Tidewater.", "works_at", "Nerea", "Tidewater"),
    ("Nerea renunció a Tidewater.", "works_at", "Nerea", "Tidewater"),
    ("Nerea y Íker se separaron.", "dating", "Nerea", "Íker"),
    ("Edda was laid off at Tidewater.", "works_at", "Edda", "Tidewater"),
    ("User returned the canoe.", "owns", USER, "canoe"),
    ("User is done with squash.", "plays", USER, "squash"),
    ("User is not with Edda anymore.", "dating", USER, "Edda"),
    ("User moved out of Bergen.", "lives_in", USER, "Bergen"),
    ("Edda wohnt nicht mehr in Bergen.", "lives_in", "Edda", "Bergen"),
    ("Nerea y Íker ya no son amigos.", "has_friend", "Nerea", "Íker"),
    ("Nerea dejó de estudiar en Lund.", "studies_at", "Nerea", "Lund"),
    ("用户不再打羽毛球。", "plays", "User", "羽毛球"),
    ("用户把帆船卖掉了。", "owns", "User", "帆船"),
    ("何静已从海风辞职。", "works_at", "何静", "海风"),
    ("何静和高远分手了。", "dating", "何静", "高远"),
]
STAYS = [
    ("User plays squash.", "plays", USER, "squash"),
    ("User also stopped by the squash club.", "plays", USER, "squash"),
    ("User has not stopped playing squash.", "plays", USER, "squash"),
    ("User lost a squash match.", "plays", USER, "squash"),
    ("User does not play squash on Sundays.", "plays", USER, "squash"),
    ("Edda no longer plays squash.", "plays", USER, "squash"),
    ("User has not sold the canoe.", "owns", USER, "canoe"),
    ("User sold the canoe trailer.", "owns", USER, "canoe"),
    ("User sold a bike to Edda.", "has_friend", USER, "Edda"),
    ("User sold a bike to Edda.", "owns", USER, "Edda"),
    ("User sold the canoe.", "likes", USER, "canoe"),
    ("User sold the red canoe.", "owns", USER, "canoe"),
    ("User does not like the weather in Bergen.", "lives_in", USER, "Bergen"),
    ("User left the keys in Bergen.", "lives_in", USER, "Bergen"),
    ("User left Bergen.", "likes", USER, "Bergen"),
    ("User left Bergen.", "visited", USER, "Bergen"),
    ("User never lived in Bergen.", "born_in", USER, "Bergen"),
    ("Edda is no longer the boss of Tove.", "has_sister", "Edda", "Tove"),
    ("User no longer works with Edda.", "dating", USER, "Edda"),
    ("Edda left Harbour Choir Bergen.", "lives_in", "Edda", "Bergen"),
    ("Edda resigned as treasurer of the Harbour Choir.", "member_of", "Edda", "Harbour Choir"),
    ("User was fired up by Tidewater.", "works_at", USER, "Tidewater"),
    ("User returned to Bergen.", "lives_in", USER, "Bergen"),
    ("User died laughing in the canoe.", "owns", USER, "canoe"),
    ("User moved out of the flat in Bergen.", "born_in", USER, "Bergen"),
    ("User hat das Kanu nicht verkauft.", "owns", USER, "Kanu"),
    ("User hat das Paddel für das Kanu verkauft.", "owns", USER, "Kanu"),
    ("User mag das Wetter in Bergen nicht.", "lives_in", USER, "Bergen"),
    ("User no vendió la canoa.", "owns", USER, "canoa"),
    ("Nerea no juega al pádel los lunes.", "plays", "Nerea", "pádel"),
    ("用户没有卖掉帆船。", "owns", "User", "帆船"),
    ("用户不喜欢海风的咖啡。", "works_at", "User", "海风"),
]


@pytest.mark.parametrize(("text", "relation", "source", "destination"), ENDS)
def test_a_statement_ends_the_relation_that_it_says_is_over(
    text: str, relation: str, source: str, destination: str
):
    assert ends_relation(text, relation, source, destination)
    assert may_end(text)


@pytest.mark.parametrize(("text", "relation", "source", "destination"), STAYS)
def test_a_statement_of_another_matter_ends_no_relation(
    text: str, relation: str, source: str, destination: str
):
    assert not ends_relation(text, relation, source, destination)
