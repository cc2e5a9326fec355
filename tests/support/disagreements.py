"""Statements that cannot both hold: 30 that nothing decides, and those that something decides."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pipeline.domain.messages import Role

DAY = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Said:
    """One message and the fact in it. `day`: days after the first one."""

    text: str
    speaker: str | None = None
    day: int = 0
    subject: str = "Zoe"
    attribute: str = "residence"
    role: Role = Role.USER
    holds_from: int | None = None

    @property
    def said_at(self) -> datetime:
        return DAY + timedelta(days=self.day)

    @property
    def valid_from(self) -> datetime | None:
        return None if self.holds_from is None else DAY + timedelta(days=self.holds_from)


def _two(first: str, other: str, attribute: str, subject: str = "Zoe") -> tuple[Said, ...]:
    """Two speakers disagree about a third person, on two days."""
    return (
        Said(first, "Anna", 0, subject, attribute),
        Said(other, "Ben", 1, subject, attribute),
    )


def _at_once(first: str, other: str, attribute: str, subject: str = "user") -> tuple[Said, ...]:
    """One speaker, the same time, two events: two imported documents of one day."""
    return (Said(first, None, 0, subject, attribute), Said(other, None, 0, subject, attribute))


UNDECIDED: dict[str, tuple[Said, ...]] = {
    "residence": _two("Zoe lives in Lyon", "Zoe lives in Graz", "residence"),
    "employer": _two("Zoe works for Siemens", "Zoe works for Bosch", "employer"),
    "job": _two("Zoe is a nurse", "Zoe is a pharmacist", "job_title"),
    "birthday": _two("Zoe was born on 3 May 1990", "Zoe was born on 4 May 1990", "birthday"),
    "age": _two("Zoe is 34 years old", "Zoe is 35 years old", "age"),
    "partner": _two("Zoe is married to Tom", "Zoe is married to Max", "partner"),
    "phone": _two("Zoe's number is 555 1234", "Zoe's number is 555 4321", "phone"),
    "email": _two("Zoe writes from zoe@a.example", "Zoe writes from zoe@b.example", "email"),
    "diet": _two("Zoe is a vegan", "Zoe eats fish", "diet"),
    "status": _two("Zoe is single", "Zoe is engaged", "marital_status"),
    "favourite": _two("Zoe's favourite city is Pisa", "Zoe's favourite city is Bari",
                      "favourite_city"),
    "negation": _two("Zoe lives in Lyon", "Zoe does not live in Lyon", "residence"),
    "German residence": _two("Zoe wohnt in Bremen", "Zoe wohnt in Kiel", "residence"),
    "German employer": _two("Zoe arbeitet bei Bosch", "Zoe arbeitet bei Siemens", "employer"),
    "German age": _two("Zoe ist 40 Jahre alt", "Zoe ist 41 Jahre alt", "age"),
    "German birthday": _two("Zoe hat am 7. Juli Geburtstag", "Zoe hat am 8. Juli Geburtstag",
                            "birthday"),
    "Spanish residence": _two("Zoe vive en Sevilla", "Zoe vive en Bilbao", "residence"),
    "Spanish employer": _two("Zoe trabaja en Iberia", "Zoe trabaja en Renfe", "employer"),
    "Spanish age": _two("Zoe tiene 28 años", "Zoe tiene 29 años", "age"),
    "Chinese residence": _two("王芳住在上海", "王芳住在北京", "residence", "王芳"),
    "three speakers": (
        *_two("Zoe lives in Lyon", "Zoe lives in Graz", "residence"),
        Said("Zoe lives in Oslo", "Carl", 2),
    ),
    "a user without a name": (
        Said("Zoe lives in Lyon", None, 0), Said("Zoe lives in Graz", "Ben", 1),
    ),
    "the older statement comes later": (
        Said("Zoe lives in Lyon", "Anna", 5), Said("Zoe lives in Graz", "Ben", 1),
    ),
    "one names a time": (
        Said("Zoe lives in Lyon", "Anna", 0),
        Said("Zoe has lived in Graz since January", "Ben", 1, holds_from=-50),
    ),
    "another person's employer": _two("Uli works for Lidl", "Uli works for Aldi",
                                      "employer", "Uli"),
    "at once: residence": _at_once("User lives in Lyon", "User lives in Graz", "residence"),
    "at once: employer": _at_once("User works for Bosch", "User works for Fiat", "employer"),
    "at once: phone": _at_once("User's number is 555 1", "User's number is 555 2", "phone"),
    "at once: German": _at_once("User wohnt in Kiel", "User wohnt in Ulm", "residence"),
    "at once: Spanish": _at_once("User vive en Vigo", "User vive en Lugo", "residence"),
}  # fmt: skip

DECIDED: dict[str, tuple[Said, ...]] = {
    "one speaker, later": (
        Said("Zoe lives in Lyon", "Anna", 0), Said("Zoe lives in Graz", "Anna", 1),
    ),
    "one user, later": (
        Said("User lives in Lyon", None, 0, "user"), Said("User lives in Graz", None, 1, "user"),
    ),
    "the subject, later": (
        Said("Zoe lives in Lyon", "Anna", 0), Said("Zoe lives in Graz", "Zoe", 1),
    ),
    "the subject by first name": (
        Said("Zoe Lang lives in Lyon", "Anna", 0, "Zoe Lang"),
        Said("Zoe Lang lives in Graz", "Zoe", 1, "Zoe Lang"),
    ),
    "the same value": (
        Said("Zoe lives in Lyon", "Anna", 0), Said("Zoe has her home in Lyon", "Ben", 1),
    ),
    "more detail": (
        Said("Zoe lives in Lyon", "Anna", 0), Said("Zoe lives in Lyon with Tom", "Ben", 1),
    ),
    "another person": (
        Said("Zoe lives in Lyon", "Anna", 0), Said("Uli lives in Graz", "Ben", 1, "Uli"),
    ),
    "another attribute": (
        Said("Zoe lives in Lyon", "Anna", 0),
        Said("Zoe was born in Graz", "Ben", 1, attribute="birthplace"),
    ),
    "many values at a time": (
        Said("Zoe likes tea", "Anna", 0, attribute="likes"),
        Said("Zoe likes jazz", "Ben", 1, attribute="likes"),
    ),
    "an attribute that may have several": (
        Said("Zoe teaches in Lyon", "Anna", 0, attribute="teaches"),
        Said("Zoe teaches in Graz", "Ben", 1, attribute="teaches"),
    ),
    "two times in the world": (
        Said("Zoe has lived in Lyon since 2019", "Anna", 0, holds_from=-2_600),
        Said("Zoe will live in Graz from June", "Ben", 1, holds_from=90),
    ),
    "the assistant": (
        Said("Zoe lives in Lyon", "Anna", 0),
        Said("Zoe lives in Graz", None, 1, role=Role.ASSISTANT),
    ),
    "both take something back": (
        Said("Zoe no longer lives in Lyon", "Anna", 0),
        Said("Zoe no longer lives in Graz", "Ben", 1),
    ),
    "another value taken back": (
        Said("Zoe lives in Lyon", "Anna", 0), Said("Zoe no longer lives in Graz", "Ben", 1),
    ),
    "Chinese, one speaker": (
        Said("王芳住在上海", "Anna", 0, "王芳"), Said("王芳住在北京", "Anna", 1, "王芳"),
    ),
}  # fmt: skip
