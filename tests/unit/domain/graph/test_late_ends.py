"""Stored statements that end a relation which arrives after them, and those that end none."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from pipeline.domain.graph.late_ends import LateEnds
from pipeline.domain.graph.values import LaterStatement
from pipeline.text.relations.ends import ENDABLE, MOST_CHARS, said_ends
from tests.unit.domain.graph.graph_stories import Edge, edge

MAY = datetime(2026, 5, 4, tzinfo=UTC)

# One statement for each kind of form.
ENDS = """
User stopped playing squash.                        | User plays squash
User has given up squash.                           | User plays squash
User does not play squash any more.                 | User plays squash
User doesn't play squash anymore.                   | User plays squash
User no longer plays squash!                        | User plays squash
I quit squash.                                      | User plays squash
User sold the canoe.                                | User owns canoe
User has sold the canoe in May 2026.                | User owns canoe
User sold the canoe on 4 May 2026.                  | User owns canoe
User sold the canoe (2026-05-04).                   | User owns canoe
User gave away the canoe.                           | User owns canoe
Edda got rid of the canoe.                          | Edda owns canoe
Edda no longer drives the Volvo.                    | Edda drives Volvo
Edda no longer has the Volvo.                       | Edda owns Volvo
Edda left the Red Foxes on 4 May 2026.              | Edda member_of Red Foxes
Edda hat Tidewater verlassen.                       | Edda works_at Tidewater
Nerea dejó Tidewater.                               | Nerea works_at Tidewater
Nerea vendió el Volvo.                              | Nerea owns Volvo
Edda left the Harbour Choir.                        | Edda member_of Harbour Choir
Edda is no longer a member of the Harbour Choir.    | Edda member_of Harbour Choir
Edda resigned from Tidewater.                       | Edda works_at Tidewater
Edda left Tidewater AG.                             | Edda works_at Tidewater
Edda no longer works for Tidewater.                 | Edda works_at Tidewater
Edda dropped out of Lund University.                | Edda studies_at Lund University
User and Edda broke up.                             | User dating Edda
User and Edda broke up.                             | Edda dating User
User and Edda are no longer friends.                | Edda has_friend User
Tove is not allergic to wool.                       | Tove allergic_to wool
User does not like figs any more.                   | User likes figs
User no longer plans to visit Malta.                | User plans_to_visit Malta
User no longer lives in Bergen.                     | User lives_in Bergen
User moved out of Bergen.                           | User lives_in Bergen
User spielt kein Squash mehr.                       | User plays Squash
User hat mit Squash aufgehört.                      | User plays Squash
User hat das Kanu verkauft.                         | User owns Kanu
Edda hat bei Tidewater gekündigt.                   | Edda works_at Tidewater
Edda arbeitet nicht mehr bei Tidewater.             | Edda works_at Tidewater
Edda und Ingmar haben sich getrennt.                | Edda dating Ingmar
Edda ist aus dem Ruderclub ausgetreten.             | Edda member_of Ruderclub
Edda wohnt nicht mehr in Bergen.                    | Edda lives_in Bergen
User mag keinen Kaffee mehr.                        | User likes Kaffee
User ya no juega al pádel.                          | User plays pádel
Nerea vendió la canoa.                              | Nerea owns canoa
Nerea ya no trabaja en Tidewater.                   | Nerea works_at Tidewater
Nerea y Íker se separaron.                          | Nerea dating Íker
A User ya no le gusta el queso.                     | User likes queso
Nerea ya no vive en Lugo.                           | Nerea lives_in Lugo
用户不再打羽毛球。                                   | User plays 羽毛球
吴梅把帆船卖掉了。                                   | 吴梅 owns 帆船
何静已从海风辞职。                                   | 何静 works_at 海风
何静退出了棋社。                                     | 何静 member_of 棋社
何静和高远分手了。                                   | 高远 dating 何静
用户不再喜欢咖啡了。                                 | User likes 咖啡
"""
# Statements that must end nothing. First: the relation goes on.
STAYS = """
User speaks Spanish without an accent.              | User speaks Spanish
User has no trouble with Spanish.                   | User speaks Spanish
User never speaks Spanish at work.                  | User speaks Spanish
User not only works at Tidewater.                   | User works_at Tidewater
User no longer only works at Tidewater.             | User works_at Tidewater
User no longer works at Tidewater alone.            | User works_at Tidewater
Edda has not left Tidewater.                        | Edda works_at Tidewater
Edda never left Tidewater.                          | Edda works_at Tidewater
Edda hasn't quit Tidewater.                         | Edda works_at Tidewater
Edda might leave Tidewater.                         | Edda works_at Tidewater
Edda could have left Tidewater.                     | Edda works_at Tidewater
Edda would have left Tidewater.                     | Edda works_at Tidewater
Edda wants to leave Tidewater.                      | Edda works_at Tidewater
Edda almost left Tidewater.                         | Edda works_at Tidewater
If Edda left Tidewater.                             | Edda works_at Tidewater
Tove thinks Edda left Tidewater.                    | Edda works_at Tidewater
Edda left Tidewater?                                | Edda works_at Tidewater
Has Edda left Tidewater?                            | Edda works_at Tidewater
When did Edda leave Tidewater?                      | Edda works_at Tidewater
Edda left Tidewater after lunch.                    | Edda works_at Tidewater
Edda left Tidewater when it rained.                 | Edda works_at Tidewater
Edda left Tidewater last year.                      | Edda works_at Tidewater
Edda left Tidewater in March.                       | Edda works_at Tidewater
Edda left Tidewater on Friday.                      | Edda works_at Tidewater
Edda left Tidewater at 6.                           | Edda works_at Tidewater
Edda left Tidewater yesterday.                      | Edda works_at Tidewater
Edda left Tidewater for a minute.                   | Edda works_at Tidewater
Edda left Tidewater, and came back.                 | Edda works_at Tidewater
Edda left Tidewater on 31 June 2026.                | Edda works_at Tidewater
Edda left Tidewater in March 2019.                  | Edda works_at Tidewater
Edda left Tidewater Energy.                         | Edda works_at Tidewater
Edda Berg left Tidewater.                           | Edda works_at Tidewater
Edda left Tidewater.                                | User works_at Tidewater
Edda left Tidewater.                                | Tidewater works_at Edda
Tidewater left Edda.                                | Edda works_at Tidewater
Edda's brother left Tidewater.                      | Edda works_at Tidewater
Edda and Tove left Tidewater.                       | Edda works_at Tidewater
Edda left Bergen.                                   | Edda lives_in Bergen
Edda left the house in Bergen.                      | Edda lives_in Bergen
Edda quit Bergen.                                   | Edda lives_in Bergen
User moved out of the flat in Bergen.               | User lives_in Bergen
Edda left Ingmar.                                   | Edda dating Ingmar
Edda left Ingmar.                                   | Edda married_to Ingmar
Edda left the Harbour Choir early.                  | Edda member_of Harbour Choir
Edda stopped by the Harbour Choir.                  | Edda member_of Harbour Choir
Edda resigned as treasurer of the Harbour Choir.    | Edda member_of Harbour Choir
User lost a squash match.                           | User plays squash
User stopped playing squash on Sundays.             | User plays squash
User stopped playing squash with Edda.              | User plays squash
User does not play squash any more than Edda.       | User plays squash
User does not play squash on Sundays.               | User plays squash
User no longer plays squash badly.                  | User plays squash
User sold a canoe.                                  | User owns canoe
User sold the red canoe.                            | User owns canoe
User sold the canoe trailer.                        | User owns canoe
User has not sold the canoe.                        | User owns canoe
User sold the canoe to Edda in a dream.             | User owns canoe
User wants to have sold the canoe.                  | User owns canoe
User sold the canoe.                                | User likes canoe
User lost the canoe.                                | User owns canoe
User no longer likes figs raw.                      | User likes figs
User does not like the weather in Bergen.           | User lives_in Bergen
Tove is not allergic to wool only.                  | Tove allergic_to wool
Tove is not only allergic to wool.                  | Tove allergic_to wool
User and Edda broke up the fight.                   | User dating Edda
User and Edda never broke up.                       | User dating Edda
User und Edda haben sich in Ulm getrennt.           | User dating Edda
Edda arbeitet nicht nur bei Tidewater.              | Edda works_at Tidewater
Edda arbeitet nicht mehr nur bei Tidewater.         | Edda works_at Tidewater
Edda hat bei Tidewater nicht gekündigt.             | Edda works_at Tidewater
Edda hat bei Tidewater fast gekündigt.              | Edda works_at Tidewater
Hat Edda bei Tidewater gekündigt?                   | Edda works_at Tidewater
Edda könnte Tidewater verlassen.                    | Edda works_at Tidewater
Edda hat Tidewater um sechs verlassen.              | Edda works_at Tidewater
Edda spricht ohne Akzent Spanisch.                  | Edda speaks Spanisch
Wenn Edda Tidewater verlassen hat.                  | Edda works_at Tidewater
User hat das Kanu nicht verkauft.                   | User owns Kanu
User hat das Paddel für das Kanu verkauft.          | User owns Kanu
User hat ein Kanu verkauft.                         | User owns Kanu
User hat Bergen verlassen.                          | User lives_in Bergen
User mag keinen Kaffee mit Milch mehr.              | User likes Kaffee
Nerea no solo trabaja en Tidewater.                 | Nerea works_at Tidewater
Nerea ya no trabaja solo en Tidewater.              | Nerea works_at Tidewater
Nerea no ha dejado Tidewater.                       | Nerea works_at Tidewater
Nerea quiere dejar Tidewater.                       | Nerea works_at Tidewater
Nerea habla español sin acento.                     | Nerea speaks español
¿Nerea dejó Tidewater?                              | Nerea works_at Tidewater
¿Nerea dejó Tidewater                               | Nerea works_at Tidewater
Nerea dejó Tidewater a las seis.                    | Nerea works_at Tidewater
Nerea dejó Lugo.                                    | Nerea lives_in Lugo
Nerea no vendió la canoa.                           | Nerea owns canoa
Nerea vendió una canoa.                             | Nerea owns canoa
Nerea ya no juega al pádel los lunes.               | Nerea plays pádel
Odile ne travaille pas seulement chez Marée.        | Odile works_at Marée
Odile n'a pas quitté Marée.                         | Odile works_at Marée
Odile pourrait quitter Marée.                       | Odile works_at Marée
Odile a quitté Marée après le déjeuner.             | Odile works_at Marée
Odile a-t-elle quitté Marée ?                       | Odile works_at Marée
Odile a quitté Lyon.                                | Odile lives_in Lyon
Odile parle espagnol sans accent.                   | Odile speaks espagnol
Si Odile quittait Marée.                            | Odile works_at Marée
Fabio non lavora solo da Marea.                     | Fabio works_at Marea
Fabio non ha lasciato Marea.                        | Fabio works_at Marea
Fabio potrebbe lasciare Marea.                      | Fabio works_at Marea
Fabio ha lasciato Marea dopo pranzo.                | Fabio works_at Marea
Fabio ha lasciato Marea?                            | Fabio works_at Marea
Fabio ha lasciato Torino.                           | Fabio lives_in Torino
Fabio parla spagnolo senza accento.                 | Fabio speaks spagnolo
用户没有把帆船卖掉。                                 | User owns 帆船
用户想把帆船卖掉。                                   | User owns 帆船
用户不再只在海风工作。                               | User works_at 海风
何静没有从海风辞职。                                 | 何静 works_at 海风
何静从海风辞职了吗？                                 | 何静 works_at 海风
何静离开了海风。                                     | 何静 works_at 海风
何静不再周末打羽毛球。                               | 何静 plays 羽毛球
用户不喜欢海风的咖啡。                               | User likes 咖啡
User no longer drives the Volvo.                    | User owns Volvo
User no longer owns the Volvo.                      | User drives Volvo
User sold the Volvo.                                | User drives Volvo
Edda besitzt den Volvo nicht mehr.                  | Edda drives Volvo
Nerea ya no tiene el Volvo.                         | Nerea drives Volvo
User sold paintings.                                | User owns paintings
User sold Nordlys shares.                           | User owns Nordlys shares
User sold Tidewater.                                | User owns Tidewater
User sold land.                                     | User owns land
User sold a painting.                               | User owns painting
User gave away paintings.                           | User owns paintings
User got rid of paintings.                          | User owns paintings
User hat Gemälde verkauft.                          | User owns Gemälde
User hat Birnen verschenkt.                         | User owns Birnen
Nerea vendió cuadros.                               | Nerea owns cuadros
Nerea ha regalado peras.                            | Nerea owns peras
Edda left the clinic.                               | Edda works_at clinic
Edda left the office.                               | Edda works_at office
Edda left the bank on 4 May 2026.                   | Edda works_at bank
Edda left work.                                     | Edda works_at work
Edda left Work.                                     | Edda works_at work
Edda Left School.                                   | Edda works_at School
EDDA LEFT SCHOOL.                                   | Edda works_at School
Edda left the Rijksmuseum.                          | Edda works_at Rijksmuseum
Edda left the Rijksmuseum on 4 May 2026.            | Edda works_at Rijksmuseum
Edda left the Harbour Hotel.                        | Edda works_at Harbour Hotel
Edda left St. Olav's.                               | Edda works_at St. Olav's
Edda left the gym.                                  | Edda member_of gym
Edda left the chat.                                 | Edda member_of chat
Edda left the Harbour Club.                         | Edda member_of Harbour Club
Edda quit the group.                                | Edda member_of group
Edda hat die Klinik verlassen.                      | Edda works_at Klinik
Edda hat das Büro verlassen.                        | Edda works_at Büro
Edda hat den Ruderclub verlassen.                   | Edda member_of Ruderclub
Nerea dejó la oficina.                              | Nerea works_at oficina
Nerea ha dejado el hospital.                        | Nerea works_at hospital
Nerea dejó el Prado.                                | Nerea works_at Prado
Mine left Tidewater.                                | User works_at Tidewater
Users left Tidewater.                               | User works_at Tidewater
Odile a vendu le bateau.                            | Odile owns bateau
Fabio ha venduto la barca.                          | Fabio owns barca
Inês vendeu o barco.                                | Inês owns barco
Inês deixou a Maré.                                 | Inês works_at Maré
"""


def rows(table: str) -> list[tuple[str, Edge]]:
    pairs = (line.split("|") for line in table.strip().splitlines())
    return [(text.strip(), edge(words.strip())) for text, words in pairs]


def later(text: str, *, since: datetime = MAY, speaker: str | None = None) -> LaterStatement:
    return LaterStatement(text, MAY, since, UUID(int=5), UUID(int=4), speaker)


def ended(statement: LaterStatement, of: Edge) -> bool:
    source, relation, destination = of
    ends = LateEnds([statement]).of(relation, (source, destination))
    return statement in (end.statement for end in ends)


@pytest.mark.parametrize(("text", "over"), rows(ENDS))
def test_a_statement_that_says_only_an_end_ends_the_relation(text: str, over: Edge):
    assert ended(later(text), over)


@pytest.mark.parametrize(("text", "on"), rows(STAYS))
def test_another_statement_ends_nothing(text: str, on: Edge):
    assert not ended(later(text), on)


def test_the_i_of_a_statement_is_the_person_who_said_it():
    statement = later("I left Tidewater.", speaker="Edda")
    assert ended(statement, ("Edda", "works_at", "Tidewater"))
    assert not ended(statement, ("User", "works_at", "Tidewater"))


def test_a_name_without_letters_is_no_name():
    assert not ended(later("User sold the ☂."), ("User", "owns", "☂"))


@pytest.mark.parametrize("relation", ["has_mother", "born_in", "visited", "speaks", "married_to"])
def test_other_relations_have_no_form(relation: str):
    assert relation not in ENDABLE


class Counted(LaterStatement):
    """A statement that counts how often its text is read."""

    reads = 0

    def __getattribute__(self, name: str) -> object:
        if name == "text":
            Counted.reads += 1
        return super().__getattribute__(name)


def test_each_statement_is_read_once_for_any_number_of_relations():
    counts = []
    for size in (20, 40):
        before = Counted.reads
        text = "User sold the canoe and the " * 9
        ends = LateEnds(Counted(text, MAY, MAY, UUID(int=5), UUID(int=4)) for _ in range(size))
        for number in range(size):
            ends.of("owns", ("User", f"canoe {number}"))
        counts.append(Counted.reads - before)
    assert counts == [20, 40]


def test_a_longer_statement_is_not_read():
    assert said_ends(f"User sold the {'x' * (MOST_CHARS - 15)}.")
    assert not said_ends(f"User sold the {'x' * MOST_CHARS}.")
