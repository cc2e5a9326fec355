"""Relations, and rules for the predicates that state them, as data.

A predicate is in the third person, affirmed and without its date; that of an attribute starts with
"'s". In `RULES`, which have the order of the file, the first match wins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pipeline.adapters.model_rules import words as w
from pipeline.domain.facts import FactKind


@dataclass(frozen=True, slots=True)
class Traits:
    """Traits of a relation: a row of relations.toml, where they are explained."""

    kind: FactKind = FactKind.OTHER
    far: str = "thing"
    edge: str | None = None
    label: str | None = None
    single: bool = False
    listed: bool = False
    now: bool = False
    brief: bool = False
    ends: Sequence[str] = ()
    forms: Sequence[str | Mapping[str, Any]] = ()


RELATIONS = {
    name: Traits(**row | {"kind": FactKind(row["kind"])})
    for name, row in w.tables("relations").items()
}


def traits_of(name: str) -> Traits:
    """The traits of a relation; those of has_sister are those of has."""
    return RELATIONS.get(name) or RELATIONS.get(name.partition("_")[0], Traits())


def is_single(name: str) -> bool:
    """True if a new value replaces the old one."""
    return traits_of(name).single or name.removeprefix("has_") in w.SINGLE_KIN


class Rule(NamedTuple):
    """A form of predicates. `relation`: "" for a statement without a slot.

    Its value is group x, or groups named after relations; group what ends its name. `written`:
    template of the canonical predicate; "" keeps the words. `aside`: words before the date, in
    brackets; also without one if it ends in "!". `needs`: see `statements`. `positive`: False for
    "hates".
    """

    relation: str
    pattern: re.Pattern[str]
    written: str = ""
    aside: str = ""
    needs: str = ""
    positive: bool = True


def _rule(relation: str, form: str | Mapping[str, Any]) -> Rule:
    """The rule of a form of a relation."""
    fields = {"form": form} if isinstance(form, str) else dict(form)
    return Rule(relation, re.compile(w.pattern(fields.pop("form")), re.IGNORECASE), **fields)


RULES = tuple(_rule(name, form) for name, traits in RELATIONS.items() for form in traits.forms)
