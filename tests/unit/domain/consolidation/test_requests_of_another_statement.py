"""A request to forget one statement deletes no other one of the same words.

Another tense, a wish and not a possession, a former role, one thing and a kind of things.
"""

from __future__ import annotations

import pytest

from pipeline.domain.consolidation.conservation import Replacement, objection
from pipeline.text.statements.endings import is_requested

SLOTS = [(None, None), ("user · x", "user · x")]
ANOTHER = [
    ("User plays the cello.", "User asks to forget that they played the cello."),
    ("User played the cello.", "User asks to forget that they play the cello."),
    ("User teaches chemistry.", "User asks to forget that they taught chemistry."),
    ("User taught chemistry.", "User asks to forget that they teach chemistry."),
    ("User's sister drives a taxi.", "User asks to forget that their sister drove a taxi."),
    (
        "User was a member of Sierra Club.",
        "User asks to forget that they are a member of Sierra Club.",
    ),
    ("User wants to go to Rome.", "User asks to forget that they have been to Rome."),
    ("User smoked.", "User asks to forget that they smoke."),
    ("User visited Japan.", "User asks to forget that they hope to visit Japan."),
    ("User plans to visit Japan.", "User asks to forget that they visited Japan."),
    ("User owns a sauna.", "User asks to forget that they would like a sauna."),
    ("User is considering a sauna.", "User asks to forget that they own a sauna."),
    ("User has cats.", "User asks to forget that they love cats."),
    ("User loves cats.", "User asks to forget that they have cats."),
    ("User's landlord is Mr Fox.", "User asks to forget their previous landlord."),
    ("User's previous landlord is Mr Fox.", "User asks to forget their landlord."),
    ("User's boyfriend's name is Tim.", "User asks to forget their ex-boyfriend's name."),
    ("User's ex-boyfriend's name is Tim.", "User asks to forget their boyfriend's name."),
    ("User's phone number is 555-0134.", "User asks to forget their new phone number."),
    ("User's cars are a Golf and a Polo.", "User asks to forget their car."),
    ("User's cat is Mia.", "User asks to forget their pets."),
    ("User's aunt is Vera.", "User asks to forget their relatives."),
    ("User plays squash.", "User asks to forget their sports."),
    ("Der Nutzer spielt Cello.", "Bitte vergiss, dass ich Cello gespielt habe."),
    ("Der Nutzer hat Cello gespielt.", "Bitte vergiss, dass ich Cello spiele."),
    ("Der Nutzer fährt ein Taxi.", "Bitte vergiss, dass ich ein Taxi fuhr."),
    ("Der Nutzer hat eine Katze.", "Bitte vergiss, dass ich eine Katze hatte."),
    ("Der Nutzer isst Fleisch.", "Bitte vergiss, dass ich Fleisch aß."),
    ("Der Nutzer besitzt eine Sauna.", "Bitte vergiss, dass ich eine Sauna plane."),
    ("Die Chefin des Nutzers ist Frau Fuchs.", "Bitte vergiss meine ehemalige Chefin."),
    ("Die Adresse des Nutzers ist Elmweg 4.", "Bitte vergiss meine alte Adresse."),
    ("La usuaria toca el violonchelo.", "La usuaria pide olvidar que tocaba el violonchelo."),
    ("La usuaria tocaba el violonchelo.", "La usuaria pide olvidar que toca el violonchelo."),
    ("El usuario trabaja en Renfe.", "Olvida que trabajé en Renfe."),
    ("El usuario trabajó en Renfe.", "Olvida que trabajo en Renfe."),
    ("El usuario tiene un gato.", "Olvida que tenía un gato."),
    ("El usuario tiene una beca.", "Olvida que espero una beca."),
    ("El novio de la usuaria es Tim.", "Olvida mi ex."),
    ("La jefa del usuario es Ana.", "Olvida mi antigua jefa."),
    (
        "L'utilisatrice joue du violoncelle.",
        "L'utilisatrice demande d'oublier qu'elle jouait du violoncelle.",
    ),
    (
        "L'utilisatrice jouait du violoncelle.",
        "L'utilisatrice demande d'oublier qu'elle joue du violoncelle.",
    ),
    (
        "L'utilisatrice joue du violoncelle.",
        "L'utilisatrice demande d'oublier qu'elle a joué du violoncelle.",
    ),
    ("L'utilisateur vit à Nantes.", "L'utilisateur demande d'oublier qu'il vivait à Nantes."),
    ("L'utilisateur a un chat.", "L'utilisateur demande d'oublier qu'il avait un chat."),
    (
        "La patronne de l'utilisateur est Ana.",
        "L'utilisateur demande d'oublier son ancienne patronne.",
    ),
    ("用户的妻子是王芳。", "用户要求忘记用户的前妻是王芳。"),
    ("用户的前妻是王芳。", "用户要求忘记用户的妻子是王芳。"),
    ("用户学法语。", "用户要求忘记用户想学法语。"),
    ("用户有猫。", "用户要求忘记用户喜欢猫。"),
]
THE_SAME = [
    ("User plays the cello.", "User asks to forget that they play the cello."),
    ("User played the cello.", "User asks to forget that they played the cello."),
    ("User's sister drives a taxi.", "User asks to forget that their sister drives a taxi."),
    ("User is allergic to wool.", "User asks to forget that they are allergic to wool."),
    ("User was born in Lund.", "User asks to forget that they were born in Lund."),
    ("User is married to Tim.", "User asks to forget that they are married to Tim."),
    ("User is learning Greek.", "User asks to forget that they are learning Greek."),
    ("User has two cats.", "User asks to forget that they have two cats."),
    ("User has two cats.", "User asks to forget that they own two cats."),
    ("User plans to visit Japan.", "User asks to forget that they want to visit Japan."),
    ("User loves opera.", "User asks to forget that they like opera."),
    ("User enjoys opera.", "User asks to forget that they enjoy opera."),
    ("User is 41 years old.", "User asks to forget that they are 41 years old."),
    ("User's ex-wife's name is Ana.", "User asks to forget their ex-wife's name."),
    ("User's previous address is Elm Street 4.", "User asks to forget their previous address."),
    ("User's phone number is 555-0134.", "User asks to forget their phone number."),
    ("User's cars are a Golf and a Polo.", "User asks to forget their cars."),
    ("User moved to Lund.", "User asks to forget that they moved to Lund."),
    ("User sold their flat.", "User asks to forget that they sold their flat."),
    ("User works nights.", "User asks to forget that they work nights."),
    ("Der Nutzer spielt Cello.", "Bitte vergiss, dass ich Cello spiele."),
    ("Der Nutzer hat eine Katze.", "Bitte vergiss, dass ich eine Katze habe."),
    ("Der Nutzer hat in Bern gewohnt.", "Bitte vergiss, dass ich in Bern gewohnt habe."),
    ("Der Nutzer möchte eine Sauna.", "Bitte vergiss, dass ich eine Sauna möchte."),
    ("La usuaria toca el violonchelo.", "La usuaria pide olvidar que toca el violonchelo."),
    ("El usuario trabaja en Renfe.", "Olvida que trabajo en Renfe."),
    ("La usuaria vive en Lugo.", "Olvida que vivo en Lugo."),
    ("La usuaria tocaba el violonchelo.", "La usuaria pide olvidar que tocaba el violonchelo."),
    (
        "L'utilisatrice joue du violoncelle.",
        "L'utilisatrice demande d'oublier qu'elle joue du violoncelle.",
    ),
    ("L'utilisateur vit à Nantes.", "L'utilisateur demande d'oublier qu'il vit à Nantes."),
    ("用户喜欢猫。", "用户要求忘记用户喜欢猫。"),
    ("用户的前妻是王芳。", "用户要求忘记用户的前妻是王芳。"),
]


@pytest.mark.parametrize("slots", SLOTS, ids=["no slots", "one slot"])
@pytest.mark.parametrize(("memory", "request_text"), ANOTHER)
def test_a_request_leaves_another_statement_of_the_same_words(
    memory: str, request_text: str, slots: tuple[str | None, str | None]
) -> None:
    old_slot, fact_slot = slots
    delete = Replacement(memory, None, request_text, old_slot=old_slot, fact_slot=fact_slot,
                         similarity=0.8)  # fmt: skip
    assert objection(delete) is not None
    assert not is_requested(request_text, memory)


@pytest.mark.parametrize("slots", SLOTS, ids=["no slots", "one slot"])
@pytest.mark.parametrize(("memory", "request_text"), THE_SAME)
def test_a_request_deletes_the_statement_in_its_tense_and_role(
    memory: str, request_text: str, slots: tuple[str | None, str | None]
) -> None:
    old_slot, fact_slot = slots
    delete = Replacement(memory, None, request_text, old_slot=old_slot, fact_slot=fact_slot,
                         similarity=0.8)  # fmt: skip
    assert objection(delete) is None


def test_an_update_for_a_request_drops_no_wish_of_the_same_thing() -> None:
    request_text = "User asks to forget that they have a cello."
    old, new = "User wants a cello.", "User wants something."
    assert objection(Replacement(old, new, request_text, similarity=0.8)) is not None
