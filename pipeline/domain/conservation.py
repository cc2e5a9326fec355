"""Conservation: check that a model's UPDATE or DELETE destroys nothing. Pure functions.

    UPDATE   keeps each name, number and date of the memory, unless the fact takes it back or puts
             another value of the same class in its place, one for one. An addition ("also")
             replaces nothing; the name that a memory opens with is its subject and stays.
    DELETE   needs a fact that takes the memory back ("no longer", "cancelled"), or another text of
             the same decision that keeps the memory's values and most of its words.
    both     need a fact about the same matter: the same attribute, a common word besides the
             subject, a near meaning, or a new text with words of the old one.

The checks prove no truth; they refuse what is plainly a loss. What they refuse is not applied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pipeline.text import polarity
from pipeline.text.terms import fold, terms
from pipeline.text.values import Value, ValueKind, stated

# Least cosine at which a fact and a memory without a common word are about the same matter.
NEAR = 0.6
# Least share of the words about a memory's matter in a new text that shows the same matter.
SAME_WORDS = 1 / 3
# Least share of a memory's words that a successor has, if the fact does not take the memory back.
KEPT_WORDS = 0.5

# Terms that say nothing about the matter of a statement.
_GENERAL_WORDS = """
    user assistant person like love enjoy prefer want plan have get go make do say be new now
    mag liebt hat haben gern nutzer benutzer neue neuen jetzt
    usuario gusta encanta tiene quiere prefiere ahora nuevo nueva
    用户 喜欢 现在
"""
_GENERAL = frozenset(terms(_GENERAL_WORDS))


class Loss(StrEnum):
    """Reason why a change of a memory is refused."""

    VALUES = "values"
    UNSTATED = "unstated"
    OTHER_MATTER = "other_matter"


@dataclass(frozen=True, slots=True)
class Objection:
    """A refused change. `values`: the names, numbers and dates that it would lose."""

    loss: Loss
    values: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """A sentence for the receipt."""
        match self.loss:
            case Loss.VALUES:
                return f"It would lose {', '.join(self.values)}."
            case Loss.UNSTATED:
                return "The fact does not take the memory back."
            case Loss.OTHER_MATTER:
                return "The fact is about another matter."


@dataclass(frozen=True, slots=True)
class Replacement:
    """A change of a memory that a fact would cause.

    `old`: the memory's text. `new`: its text after an UPDATE, None for a DELETE. `successors`: the
    texts that other decisions on the same fact store. `same_slot`: fact and memory are about the
    same attribute of the same subject. `similarity`: their cosine, or 0 if it is not known.
    """

    old: str
    new: str | None
    fact: str
    successors: Sequence[str] = ()
    same_slot: bool = False
    similarity: float = 0.0


def objection(change: Replacement) -> Objection | None:
    """The reason to refuse a change, or None if it loses nothing."""
    if change.new is not None and keeps_all(change.old, change.new):
        return None
    if change.new is not None and (missing := lost(change.old, change.new, change.fact)):
        return Objection(Loss.VALUES, missing)
    if not same_matter(change):
        return Objection(Loss.OTHER_MATTER)
    return _objection_to_delete(change) if change.new is None else None


def _objection_to_delete(change: Replacement) -> Objection | None:
    if polarity.takes_back(change.fact):
        return None
    merged = [text for text in change.successors if _share(change.old, text) >= KEPT_WORDS]
    losses = [lost(change.old, text, change.fact) for text in merged]
    if not losses:
        return Objection(Loss.UNSTATED)
    least = min(losses, key=len)
    return Objection(Loss.VALUES, least) if least else None


def lost(old: str, new: str, fact: str) -> tuple[str, ...]:
    """Names, numbers and dates of `old` that `new` lacks and that the fact does not replace.

    The fact replaces a value by another one of its class, which it states and which `new` has and
    `old` has not, one for one. A value that the fact itself states must stay, unless the fact
    negates it or names it as the former one. The leading name is never replaced.
    """
    before, after, cause = stated(old), stated(new), stated(fact)
    missing = [value for value in before.values if not after.keeps(value)]
    if not missing:
        return ()
    free = Counter(
        value.kind
        for value in cause.values
        if after.keeps(value) and not before.keeps(value) and not polarity.adds(fact)
    )
    gone = []
    for value in missing:
        if not value.leads and cause.keeps(value) and _negated(value, fact):
            continue
        former = not cause.keeps(value) or polarity.puts_aside(fact, value.text)
        if value.leads or not former or not free[value.kind]:
            gone.append(value.text)
        else:
            free[value.kind] -= 1
    return tuple(gone)


def _negated(value: Value, fact: str) -> bool:
    """Tell if the clause of the fact that states the value takes something back."""
    return any(
        stated(clause).keeps(value) and polarity.takes_back(clause)
        for clause in polarity.clauses(fact)
    )


def keeps_all(old: str, new: str) -> bool:
    """Tell if `new` has all values and all words of `old`, with the same polarity."""
    return (
        all(stated(new).keeps(value) for value in stated(old).values)
        and set(terms(old)) <= set(terms(new))
        and polarity.takes_back(old) == polarity.takes_back(new)
    )


def same_statement(first: str, other: str) -> bool:
    """Tell if two texts state the same in the same words: safe to merge without a model.

    Differing values, a negation, another subject or a name that is one letter apart make two
    statements of them, however similar they are.
    """
    before, after = stated(first), stated(other)
    return (
        terms(first) == terms(other)
        and polarity.takes_back(first) == polarity.takes_back(other)
        and _keys(before.values) == _keys(after.values)
    )


def _keys(values: Sequence[Value]) -> set[tuple[ValueKind, str]]:
    return {(value.kind, value.key) for value in values}


def matter(text: str, subject: str = "") -> set[str]:
    """The terms that a statement is about: no subject, numbers or general words."""
    leading = " ".join(value.text for value in stated(text).values if value.leads)
    words = set(terms(_without(fold(text), (subject, leading)))) - _GENERAL
    return {word for word in words if not word.isdigit()}


def _without(text: str, names: Sequence[str]) -> str:
    for name in names:
        if name:
            text = text.replace(fold(name), " ")
    return text


def _other_subject(change: Replacement) -> bool:
    """Tell if fact and memory open with different names, and neither has the other's."""
    leading = [value for value in stated(change.old).values if value.leads]
    of_fact = [value for value in stated(change.fact).values if value.leads]
    if not leading or not of_fact:
        return False
    return not (stated(change.fact).keeps(leading[0]) or stated(change.old).keeps(of_fact[0]))


def same_matter(change: Replacement) -> bool:
    """Tell if fact and memory are about the same attribute or share words, or are near."""
    if change.same_slot:
        return True
    if _other_subject(change):
        return False
    if change.similarity >= NEAR:
        return True
    about = matter(change.old)
    if not about.isdisjoint(matter(change.fact)):
        return True
    return bool(about) and len(about & matter(change.new or "")) >= SAME_WORDS * len(about)


def _share(old: str, new: str) -> float:
    """Share of the memory's terms that a text has."""
    words = set(terms(old))
    return len(words & set(terms(new))) / len(words) if words else 1.0
