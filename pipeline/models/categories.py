"""Categories of memories: the built-in ones, and those that a project or a call defines.

Names and order are those of the Mem0 Platform, so existing filters keep their meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pipeline.domain.events import Instructions

MISC = "misc"
BUILT_IN: Mapping[str, str] = {
    "personal_details": "name, age, home, origin, languages, character",
    "family": "partner, children, parents, relatives, pets",
    "professional_details": "job, employer, career, studies, colleagues",
    "sports": "sport, training, teams",
    "travel": "trips, holidays, places visited or planned",
    "food": "food, drink, diet, restaurants, cooking",
    "music": "songs, bands, instruments, concerts",
    "health": "illness, allergies, medicine, sleep, doctors",
    "technology": "software, devices, programming",
    "hobbies": "what someone does for pleasure",
    "fashion": "clothes, shoes, style",
    "entertainment": "films, series, books, games",
    "milestones": "weddings, births, moves, graduations, promotions",
    "user_preferences": "likes, dislikes, favourites, how to be answered",
    MISC: "anything that fits nowhere else",
}


def offered(instructions: Instructions) -> Mapping[str, str]:
    """The categories that the model may choose from: name and meaning."""
    return BUILT_IN if instructions.categories is None else instructions.categories


def chosen(names: Iterable[str], instructions: Instructions) -> tuple[str, ...]:
    """The offered categories among `names`, without duplicates, spelled as offered.

    Case is ignored; names that were not offered are dropped.
    """
    written = {name.casefold(): name for name in offered(instructions)}
    offered_names = (written.get(name.strip().casefold()) for name in names)
    return tuple(dict.fromkeys(name for name in offered_names if name is not None))
