"""A store of 500 memories with planted repeats, contradictions, junk and look-alikes.

English, German and Spanish. 20 pairs of look-alikes must not be merged; 40 memories repeat another
one, 20 contradict an older one, and 20 are junk. The others are about different matters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice, product

from pipeline.domain.suggestions import SuggestionKind

SIZE, REPEATS, CONTRADICTIONS, JUNK, LOOK_ALIKES = 500, 40, 20, 20, 20
FIRST_DAY = datetime(2024, 1, 1, 12, tzinfo=UTC)


class Part(StrEnum):
    """Part of a memory in the planted store."""

    PLAIN = "plain"
    REPEAT = "repeat"
    CONTRADICTION = "contradiction"
    JUNK = "junk"
    LOOK_ALIKE = "look-alike"


@dataclass(frozen=True)
class PlantedMemory:
    """One memory. Those with the same `pair` belong together; `merged`: text of both."""

    text: str
    role: Part = Part.PLAIN
    pair: int | None = None
    merged: str | None = None
    subject: str | None = None
    attribute: str | None = None
    said_at: datetime = FIRST_DAY


NAMES = (
    "Maya", "Tom", "Clara", "David", "Eva", "Felix", "Greta", "Hugo", "Ida", "Jonas", "Karla",
    "Leo", "Marta", "Nico", "Olga", "Pablo", "Rosa", "Simon", "Tilda", "Victor",
)  # fmt: skip
CITIES = (
    "Bern", "Porto", "Oslo", "Lyon", "Graz", "Turin", "Malaga", "Bremen", "Dublin", "Gent", "Brno",
    "Split", "Kiel", "Cork", "Nantes", "Bilbao", "Basel", "Ulm", "Pisa", "Vigo",
)  # fmt: skip

# (one wording, another wording) of the same statement.
REWORDED = {
    "en": (
        ("{name} is allergic to {food}", "{name} has an allergy, is allergic to {food}"),
        ("{name} plays the {thing} in an orchestra", "In an orchestra {name} plays the {thing}"),
        ("{name} studied law in {city}", "{name} studied law at university in {city}"),
        ("{name} collects old {thing}s", "{name} collects old {thing}s as a hobby"),
    ),
    "de": (
        ("{name} ist allergisch gegen {food}", "{name} ist stark allergisch gegen {food}"),
        ("{name} spielt {thing} in einem Orchester", "{name} spielt {thing} im Orchester"),
        ("{name} studierte Jura in {city}", "{name} studierte früh schon Jura in {city}"),
    ),
    "es": (
        ("{name} es alérgica al {food}", "{name} es muy alérgica al {food}"),
        ("{name} toca el {thing} en una orquesta", "{name} toca el {thing} en la orquesta"),
        ("{name} estudió derecho en {city}", "{name} estudió la carrera de derecho en {city}"),
    ),
}
FOODS = {
    "en": ("peanuts", "shrimp", "celery", "soy"),
    "de": ("erdnüsse", "sellerie", "soja", "hasel"),
    "es": ("cacahuete", "apio", "marisco", "trigo"),
}
THINGS = {
    "en": ("clarinet", "cello", "trumpet", "harp"),
    "de": ("klarinette", "cello", "trompete", "harfe"),
    "es": ("clarinete", "violonchelo", "trombón", "arpa"),
}
# (earlier, later, both) of a single-valued attribute.
MOVED = {
    "en": ("{name} lives in {a}", "{name} lives in {b}", "{name} lives in {b}, before in {a}"),
    "de": ("{name} wohnt in {a}", "{name} wohnt in {b}", "{name} wohnt in {b}, davor in {a}"),
    "es": ("{name} vive en {a}", "{name} vive en {b}", "{name} vive en {b}, antes en {a}"),
}
EMPTY = {
    "en": (
        "User said hello", "User says thanks", "User wishes a good day", "User is testing the chat",
        "User is glad about the answer", "User asks to go on", "User typed something by accident",
    ),
    "de": (
        "Nutzer sagt danke", "Nutzer begrüßt den Assistenten", "Nutzer probiert den Chat aus",
        "Nutzer wünscht einen schönen Abend", "Nutzer freut sich über die Antwort",
        "Nutzer bittet darum weiterzumachen", "Nutzer hat sich vertippt",
    ),
    "es": (
        "Usuario dice gracias", "Usuario saluda", "Usuario prueba el chat",
        "Usuario desea buenas noches", "Usuario pide continuar", "Usuario se alegra",
    ),
}  # fmt: skip
# Pairs of statements that look alike and differ; the last value is the merge that a careless model
# could propose.
ALIKE = (
    ("Anna has a cat named Mino", "Anne has a cat named Mino", "Anna has a cat named Mino"),
    ("Jan was born on 3 May 1990", "Jan was born on 4 May 1990", "Jan was born on 3 May 1990"),
    ("Lea's flat is number 14", "Lea's flat is number 41", "Lea's flat is number 14 or 41"),
    ("Paul likes strong coffee", "Paul no longer likes strong coffee", "Paul likes strong coffee"),
    ("The gym opens on Monday", "The gym opens on Tuesday", "The gym opens on Monday and Tuesday"),
    ("Mia ran 10 km on Sunday", "Mia ran 12 km on Sunday", "Mia ran 10 km and 12 km on Sunday"),
    ("Kai flew from Rome to Paris", "Kai flew from Rome to Prague", "Kai flew from Rome to Paris"),
    ("Eric's doctor is Dr. Meier", "Erik's doctor is Dr. Meier", "Erik's doctor is Dr. Meier"),
    ("Zoe paid 20 euros to Finn", "Zoe paid 25 euros to Finn", "Zoe paid 20 and 25 euros to Finn"),
    ("Max does not eat pork", "Max does eat pork", "Max does not eat pork"),
    ("Uwe fährt einen roten Opel seit 2015", "Uwe fährt einen roten Opel seit 2016",
     "Uwe fährt einen roten Opel seit 2015"),
    ("Britta arbeitet dienstags im Laden", "Britta arbeitet donnerstags im Laden",
     "Britta arbeitet dienstags und donnerstags im Laden"),
    ("Ute mag kalte Milch", "Ute mag keine kalte Milch", "Ute mag kalte Milch"),
    ("Der Termin ist am 7. Juli 2025", "Der Termin ist am 8. Juli 2025",
     "Der Termin ist am 7. Juli 2025"),
    ("Heike zahlt 450 Euro Miete", "Heike zahlt 540 Euro Miete", "Heike zahlt 450 Euro Miete"),
    ("Luis nació el 2 de abril de 1988", "Luis nació el 2 de abril de 1989",
     "Luis nació el 2 de abril de 1988"),
    ("Marina come carne", "Marina no come carne", "Marina come carne"),
    ("Julia viajó a Sevilla en 2019", "Julio viajó a Sevilla en 2019",
     "Julia viajó a Sevilla en 2019"),
    ("El tren sale a las 9", "El tren sale a las 10", "El tren sale a las 9 y a las 10"),
    ("Pedro debe 30 euros a Sara", "Pedro debe 30 euros a Sonia", "Pedro debe 30 euros a Sara"),
)  # fmt: skip
OTHERS = {
    "en": (
        "{name} visited {city} in {year}", "{name} read a novel about {city}",
        "{name}'s cousin works in {city}", "{name} owns a map of {city}",
        "{name} met a baker from {city}", "{name} won a race near {city} in {year}",
    ),
    "de": (
        "{name} besuchte {city} im Jahr {year}", "{name} las ein Buch über {city}",
        "Die Tante von {name} malt in {city}", "{name} kaufte {year} eine Uhr in {city}",
        "{name} kennt einen Koch aus {city}",
    ),
    "es": (
        "{name} visitó {city} en {year}", "{name} leyó una guía de {city}",
        "El tío de {name} pesca en {city}", "{name} compró un cuadro en {city} en {year}",
        "{name} conoce a un pintor de {city}",
    ),
}  # fmt: skip
LANGUAGES = ("en", "de", "es")


def planted() -> list[PlantedMemory]:
    """The 500 memories, in the order in which they were said."""
    special = [*_repeats(), *_contradictions(), *_junk(), *_look_alikes()]
    rest = _others(SIZE - len(special))
    # Pairs are far apart: first halves, other memories, second halves.
    firsts = [m for at, m in enumerate(special) if at % 2 == 0]
    seconds = [m for at, m in enumerate(special) if at % 2]
    middle = list(rest)
    ordered = [*firsts, *middle, *seconds]
    return [
        PlantedMemory(
            m.text, m.role, m.pair, m.merged, m.subject, m.attribute,
            FIRST_DAY + timedelta(hours=7 * at),
        )
        for at, m in enumerate(ordered)
    ]  # fmt: skip


def expected(store: Sequence[PlantedMemory]) -> set[tuple[SuggestionKind, frozenset[str]]]:
    """The right suggestions: kind, and texts of the memories."""
    kinds = {Part.REPEAT: SuggestionKind.COMBINE, Part.CONTRADICTION: SuggestionKind.UPDATE}
    pairs: dict[tuple[Part, int], set[str]] = {}
    right = set()
    for memory in store:
        if memory.role is Part.JUNK:
            right.add((SuggestionKind.DELETE, frozenset({memory.text})))
        elif memory.role in kinds and memory.pair is not None:
            pairs.setdefault((memory.role, memory.pair), set()).add(memory.text)
    return right | {(kinds[role], frozenset(texts)) for (role, _), texts in pairs.items()}


def _repeats() -> Iterator[PlantedMemory]:
    for number in range(REPEATS):
        language = LANGUAGES[number % 3]
        wordings = REWORDED[language][number // 3 % len(REWORDED[language])]
        values = {
            "name": NAMES[number % len(NAMES)],
            "food": FOODS[language][number // 3 % 4],
            "thing": THINGS[language][number // 7 % 4],
            "city": CITIES[(number * 7 + 3) % len(CITIES)],
        }
        first, second = (wording.format(**values) for wording in wordings)
        for text in (first, second):
            yield PlantedMemory(text, Part.REPEAT, number, second)


def _contradictions() -> Iterator[PlantedMemory]:
    for number in range(CONTRADICTIONS):
        name, language = NAMES[number], LANGUAGES[number % 3]
        values = {"name": name, "a": CITIES[number], "b": CITIES[(number + 9) % len(CITIES)]}
        older, newer, both = (text.format(**values) for text in MOVED[language])
        for text in (older, newer):
            yield PlantedMemory(
                text, Part.CONTRADICTION, number, both, subject=name, attribute="residence"
            )


def _junk() -> Iterator[PlantedMemory]:
    texts = [text for language in LANGUAGES for text in EMPTY[language]]
    for text in texts[:JUNK]:
        yield PlantedMemory(text, Part.JUNK)


def _look_alikes() -> Iterator[PlantedMemory]:
    for number, (first, second, merged) in enumerate(ALIKE):
        for text in (first, second):
            yield PlantedMemory(text, Part.LOOK_ALIKE, number, merged)


def _others(count: int) -> Iterator[PlantedMemory]:
    """Different statements about the same persons and places."""
    places = product(range(len(CITIES)), enumerate(NAMES))
    for shift, (at, name) in islice(places, count):
        language = LANGUAGES[(at + shift) % 3]
        shapes = OTHERS[language]
        city = CITIES[(at + 3 * shift + 1) % len(CITIES)]
        year = 2000 + (at * 5 + shift) % 23
        shape = shapes[(at + shift // 3) % len(shapes)]
        yield PlantedMemory(shape.format(name=name, city=city, year=year))
