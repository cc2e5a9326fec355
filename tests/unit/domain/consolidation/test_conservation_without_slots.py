"""Conservation of statements without slots: the words show whether both are about one attribute."""

from __future__ import annotations

import pytest

from pipeline.domain.consolidation.conservation import Replacement, objection

UPDATES = [
    ("User works at Google as an engineer.", "User works at Meta as a manager."),
    (
        "User's meeting with Bob is on Monday at 3pm.",
        "User's meeting with Bob is on Tuesday at 4pm.",
    ),
    ("User is a vegetarian.", "User eats meat."),
    ("User is engaged.", "User has been married since May 2026."),
    ("Lena is dating Mark O'Neill.", "Lena is single."),
    ("User plays tennis on Saturdays.", "User plays tennis on Sundays."),
    ("Maya lives in Berlin, Germany.", "Maya moved to Tokyo."),
    ("Maya has lived in Madrid since 2019.", "Maya lives in Bilbao."),
    ("User is on the Pro plan.", "User is on the Enterprise plan."),
    (
        "User's primary programming language is Python.",
        "User's primary programming language is Rust.",
    ),
    ("User's best friend is Lena.", "User's best friend is Omar."),
    ("User's address is 12 Oak Street, York.", "User's address is 99 Pine Avenue, Leeds."),
    ("User's car is a red Toyota Corolla.", "User's car is a delivery van."),
    ("User is studying law at Leiden.", "User is studying at the University of Amsterdam."),
    ("User is in Lisbon until Friday.", "User is back home in Cork."),
    ("User wants to move to Peru in 2027.", "User no longer wants to move abroad."),
    ("Jonas arbeitet bei der Deutschen Bahn.", "Jonas arbeitet selbstständig."),
    ("Das Training ist am Mittwoch um 18 Uhr.", "Das Training ist am Freitag um 17 Uhr."),
    ("Toms Trainer ist Herr Krüger.", "Toms Trainerin ist Frau Sommer."),
    ("El jefe de Marta es Antonio de la Torre.", "La jefa de Marta es Pilar."),
    ("La usuaria sigue una dieta Mediterránea.", "La usuaria es vegana."),
    ("用户最喜欢的书是《红楼梦》。", "用户最喜欢的书是《三体》。"),
    ("例会在星期二9点。", "例会在星期四10点。"),
    ("Kurt plans to learn the banjo in 2026.", "Kurt plays the banjo since April 2026."),
    ("User likes skiing.", "User hates skiing."),
]
CARELESS = [
    ("User lives in Berlin.", "User's brother lives in Oslo.", "User lives in Oslo."),
    ("User's sister lives in Rome.", "User lives in Milan.", "User's sister lives in Milan."),
    ("Tom works at Siemens.", "Tom's wife works at Bosch.", "Tom works at Bosch."),
    ("User is married to Per.", "User's sister is married to Jo.", "User is married to Jo."),
    ("User is vegan.", "User's partner is vegetarian.", "User is vegetarian."),
    ("User's dentist is Dr Hall.", "User's dog's vet is Dr Hale.", "User's dentist is Dr Hale."),
    ("The standup is on Tuesday.", "The retro is on Thursday.", "The standup is on Thursday."),
    (
        "The release is on 4 May.",
        "The review of the release is on 1 May.",
        "The release is on 1 May.",
    ),
    ("User lives in Berlin with Tom.", "User lives in Bonn.", "User lives in Bonn."),
    ("User takes Metformin and Ramipril.", "User takes Aspirin.", "User takes Aspirin."),
    (
        "User takes Metformin and Ramipril.",
        "User no longer takes Ramipril.",
        "User no longer takes Ramipril.",
    ),
    ("User takes Metformin and Ramipril.", "User no longer takes Ramipril.", None),
    ("User's friend is Lena.", "User's friend is Omar.", "User's friend is Omar."),
    ("User plans to learn Welsh.", "User plans to learn Breton.", "User plans to learn Breton."),
    ("User likes skiing.", "User likes sailing.", "User likes sailing."),
    ("User bought a Canon.", "User bought a Nikon.", "User bought a Nikon."),
    ("User's mother is from Riga.", "User is from Oslo.", "User's mother is from Oslo."),
    ("Anna's phone number is 555-0101.", "Ben's phone is 555-0202.", "Anna's phone is 555-0202."),
    ("Annas Chef ist Tom.", "Toms Chef ist Jan.", "Annas Chef ist Jan."),
    ("Ana vive en Lugo.", "La madre de Ana vive en Vigo.", "Ana vive en Vigo."),
    ("用户住在上海。", "用户的妹妹住在成都。", "用户住在成都。"),
]


@pytest.mark.parametrize(("old", "new"), UPDATES)
def test_another_value_of_an_attribute_replaces_the_old_one(old: str, new: str) -> None:
    assert objection(Replacement(old, new, fact=new)) is None


@pytest.mark.parametrize(("old", "fact", "new"), CARELESS)
def test_a_careless_change_is_refused(old: str, fact: str, new: str | None) -> None:
    assert objection(Replacement(old, new, fact=fact)) is not None


def test_a_verb_as_attribute_is_no_plural() -> None:
    slot = "inges sohn thomas · studies"
    old, new = "Inges Sohn Thomas studiert Chemie.", "Inges Sohn Thomas studiert Physik."
    assert objection(Replacement(old, new, fact=new, old_slot=slot, fact_slot=slot)) is None


def test_a_companion_of_the_value_stays_with_slots_too() -> None:
    slot = "maya · residence"
    old, new = "Maya lives in Bern with Tom.", "Maya lives in Porto."
    change = Replacement(old, new, fact=new, old_slot=slot, fact_slot=slot)
    assert objection(change) is not None
