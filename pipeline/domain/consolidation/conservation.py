"""Conservation: check that a model's UPDATE or DELETE destroys nothing. Pure functions.

    UPDATE   keeps each name, number and date of the memory, unless the fact takes it back or puts
             another value of the same class in its place, one for one. In a slot with one value, or
             without slots in a text of mostly the same words, the new value replaces the old one as
             a whole, of any class, and all else that the memory says stays. An addition ("also")
             replaces nothing, and neither does another value of a many-valued attribute; the name
             that a memory opens with is its subject and stays. The fact's own values are kept, too.
    DELETE   needs a fact that takes the memory back ("no longer", "cancelled") in words that cover
             it, or another text of the same decision that gives its slot another value, or that
             keeps its values and most of its words. A request to forget takes back.
    both     need a fact about the same matter: the same slot, and without slots a common word
             besides the subject, a near meaning, or a new text with words of the old one. A memory
             without any name, number or date is updated by a text with a third of its words. A fact
             about a relative of the user never changes a memory about the user.
    forget   A request to forget rarely has the slot of the memory, so its words decide, at any
             time of the memory. It must name each word, name, number and date that goes. It
             names no memory in another tense, no possession if it speaks of a wish, and no present
             role if it speaks of a former one: see pipeline/text/statements/standing.
    past     A fact about the past never changes a memory about the present, nor the reverse, unless
             the fact names what the memory says: see pipeline/text/times/past.

Slots that no model gave are read from the words, see pipeline/text/statements/stated_slots.

The checks prove no truth; they refuse what is plainly a loss. What they refuse is not applied.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.domain.consolidation.objections import Loss, Objection
from pipeline.domain.consolidation.replaced_values import (
    companions_of_value,
    gives_another_value,
    is_companion,
    lost_parts,
    opens,
    parts,
    replaced,
    without_relative,
)
from pipeline.text.edit_distance import one_letter_apart
from pipeline.text.equality import exact_words
from pipeline.text.statements import polarity, several, slots
from pipeline.text.statements.endings import is_requested
from pipeline.text.statements.forget_requests import asks_to_forget, forgotten_matter
from pipeline.text.statements.relatives import has_word, relative
from pipeline.text.statements.slots import Cardinality
from pipeline.text.statements.standing import states_another
from pipeline.text.statements.stated_slots import of_other_subjects, same_slot, stated_slot
from pipeline.text.statements.values import Stated, Value, ValueKind, stated
from pipeline.text.terms import fold, terms
from pipeline.text.times.past import is_past

# Least cosine at which a fact and a memory without a common word are about the same matter.
NEAR = 0.6
# Least share of the words about a memory's matter in a new text that shows the same matter.
SAME_WORDS = 1 / 3
# Share of a memory's words, without values, that a new text exceeds if it replaces a value.
SAME_WORDS_TO_REPLACE = 0.5
# Least share of a memory's words that a successor has, if the fact does not take the memory back.
KEPT_WORDS = 0.5

# Share of a memory's words that a take-back must cover, to delete it.
COVERED = 0.5

# Terms that say nothing about the matter of a statement.
_GENERAL_WORDS = """
    user assistant person like love enjoy prefer want plan have own get go make do say be new now
    mag liebt hat haben besitzt gern nutzer benutzer neue neuen jetzt
    usuario gusta encanta tiene posee quiere prefiere ahora nuevo nueva
    用户 喜欢 拥有 现在
"""
_GENERAL = frozenset(terms(_GENERAL_WORDS))
# The user as the subject of a statement, without a name.
THE_USER = re.compile(
    r"^(?:(?:(?:the )?user|you|(?:der |die )?(?:be)?nutzer(?:in)?|du|(?:el |la )?usuari[oa]|tú)\b"
    r"|l['’]utilisat(?:eur|rice)\b|用户|你)",
    re.IGNORECASE,
)
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
# Words of a time of day.
_CLOCK = re.compile(r"\b(?:half|quarter) (?:past|to)\b|\bo['’]clock\b|\bUhr\b", re.IGNORECASE)
# Names that are no names by themselves.
TITLES = frozenset(("dr", "prof", "mr", "mrs", "ms", "herr", "frau", "señor", "señora"))
_NAMED = frozenset(terms("named called namens heißt genannt llamado llamada 叫"))


@dataclass(frozen=True, slots=True)
class Replacement:
    """A change of a memory that a fact would cause.

    `old`: the memory's text. `new`: its text after an UPDATE, None for a DELETE. `successors` and
    `added`: the texts that other decisions on the same fact give to memories, and add as memories.
    `old_slot` and `fact_slot`: the attributes they are about, if they are known; `cardinality`:
    what is known about them beside the table. `similarity`: their cosine, or 0 if it is not known.
    """

    old: str
    new: str | None
    fact: str
    successors: Sequence[str] = ()
    added: Sequence[str] = ()
    old_slot: str | None = None
    fact_slot: str | None = None
    cardinality: Cardinality | None = None
    similarity: float = 0.0

    @property
    def is_one_of_many(self) -> bool:
        """True if the fact gives one more value of an attribute that can have several."""
        if polarity.takes_back(self.fact):
            return False
        moves = bool(self.new) and _moves_in_time(self.old, self.new or "")
        if self.without_slots:
            has_several = several.has_several(self.old) or several.lists(self.old)
            return has_several and not moves and not _is_of_same_object(self.old, self.fact)
        same = self.old_slot == self.fact_slot
        has_several = same and slots.many_valued(self.fact_slot, self.cardinality)
        # Another date of an attribute with several values is another value: trips, medications.
        return has_several and not (moves and polarity.moves(self.fact))

    @property
    def without_slots(self) -> bool:
        """True if the words have to show whether both are about one attribute."""
        return not (self.old_slot and self.fact_slot)

    def with_stated_slots(self) -> Replacement:
        """The change with the slots that the words state, if no model gave it both.

        The new text is in the words of the memory more often than the fact. Two stated slots show
        another matter only if their subjects differ; if their attributes differ, the words of the
        texts decide, as if no slot were known.
        """
        if asks_to_forget(self.fact):
            same = self.old_slot == self.fact_slot
            return self if same else replace(self, old_slot=None, fact_slot=None)
        if not self.without_slots:
            return self
        old = self.old_slot or stated_slot(self.old)
        fact = self.fact_slot or stated_slot(self.fact)
        new = stated_slot(self.new) if self.new else fact
        if old is None:
            return self
        if fact is not None and of_other_subjects(old, fact):
            return replace(self, old_slot=old, fact_slot=fact)
        same = any(other is not None and same_slot(old, other) for other in (new, fact))
        # "User's friend is Lena" names one of several, "User's best friend" the only one.
        one_word = "_" not in old.rpartition(slots.SEPARATOR)[2]
        if not same or (one_word and several.has_several(self.old) and not slots.is_listed(old)):
            return self
        return replace(self, old_slot=old, fact_slot=old)


def objection(change: Replacement) -> Objection | None:
    """The reason to refuse a change, or None if it loses nothing."""
    change = change.with_stated_slots()
    completes = change.new is not None and keeps_all(change.old, change.new)
    if not completes and is_of_another_time(change):
        return Objection(Loss.OTHER_TIME)
    if not completes and not same_matter(change):
        return Objection(Loss.OTHER_MATTER)
    if not completes and asks_to_forget(change.fact):
        return _objection_to_forget(change)
    if change.new is not None and not _takes_back(change, change.new):
        missing = _missing(change, change.new)
        return Objection(Loss.VALUES, missing) if missing else None
    return _objection_to_delete(change) if change.new is None else None


def is_of_another_time(change: Replacement) -> bool:
    """Tell if of fact and memory one is about a time that is over, and the other is about now.

    "User used to live in Oslo" takes "User lives in Oslo" back: it names the same value. A request
    to forget is about any time.
    """
    if asks_to_forget(change.fact) or is_past(change.old) == is_past(change.fact):
        return False
    values = [value for value in stated(change.old).values if not value.leads]
    if values:
        return not all(map(stated(change.fact).keeps, values))
    about = matter(change.old)
    return not about or len(about & matter(change.fact)) <= COVERED * len(about)


def _objection_to_forget(change: Replacement) -> Objection | None:
    """The reason to refuse what a model does for a request to forget.

    All that goes must be what the request names. In a slot with one value, the request names the
    value by the slot; what the memory says beside it stays.
    """
    request, new = forgotten_matter(change.fact) or "", change.new or ""
    if change.new is None and is_requested(change.fact, change.old):
        return None
    if states_another(request, change.old):
        return Objection(Loss.UNSTATED)
    # An UPDATE may drop what is named, and say nothing else.
    denied = polarity.negates(request if change.new is None else new)
    if denied != polarity.negates(change.old):
        return Objection(Loss.UNSTATED)
    if change.new is None and _says_more(request, change.old, change.old_slot):
        return Objection(Loss.UNSTATED)
    if _same_single_slot(change) and not _names_another(change):
        unnamed = lost_parts(change.old, f"{request} {new}")
    else:
        after = stated(f"{change.fact} {new}")
        values = [value.text for value in stated(change.old).values if not after.keeps(value)]
        unnamed = (*values, *lost_words(change.old, f"{request} {new}"))
    return Objection(Loss.VALUES, tuple(dict.fromkeys(unnamed))) if unnamed else None


def _says_more(request: str, old: str, slot: str | None) -> bool:
    """Tell if a request names more than a memory says: it is about another one.

    The words of the memory's attribute do not count.
    """
    about = stated(f"{old} {slot or ''}")
    more = [value for value in stated(request).values if not about.keeps(value)]
    return bool(more or lost_words(request, f"{old} {slot or ''}"))


def _takes_back(change: Replacement, new: str) -> bool:
    """Tell if an UPDATE only says that the memory is no longer so, as a DELETE could."""
    return (
        polarity.takes_back(change.fact)
        and polarity.takes_back(new)
        and all(map(stated(new).keeps, stated(change.fact).values))
        and not _names_another(change)
        and (_same_single_slot(change) or _covers(change.fact, change.old))
        and not lost_parts(change.old, new)
    )


def _is_of_same_object(old: str, fact: str) -> bool:
    """Tell if a fact names the object of a statement without names: the banjo that a plan names."""
    if any(not value.leads and value.kind is not ValueKind.DATE for value in stated(old).values):
        return False
    about = matter(several.without_predicate(old))
    return bool(about) and about <= matter(fact)


def _moves_in_time(old: str, new: str) -> bool:
    """Tell if a new text differs from a statement in its dates and times alone."""
    after, old, new = stated(new), _CLOCK.sub("", old), _CLOCK.sub("", new)
    values = stated(old).values
    names = [value for value in values if value.kind is ValueKind.NAME]
    dates = [value for value in values if value.kind is ValueKind.DATE]
    moved = any(not after.keeps(value) for value in dates)
    return moved and _without_values(old) == _without_values(new) and all(map(after.keeps, names))


def _missing(change: Replacement, new: str) -> tuple[str, ...]:
    """Values of the memory and of the fact that an UPDATE would lose."""
    cause = change.fact if _may_replace(change, new) else ""
    one_value = _is_one_value(change, new)
    after = stated(new)
    of_fact = [
        value.text
        for value in stated(change.fact).values
        if not after.keeps(value)
        and not (one_value and opens(change.fact, value))
        and not _negated(value, change.fact)
        and not polarity.puts_aside(change.fact, value.text)
    ]
    adds = change.is_one_of_many or polarity.adds(change.fact)
    of_list = lost_words(change.old, new) if adds else ()
    old = without_relative(change.old, new) if one_value else change.old
    of_memory = lost(old, new, cause, one_value=one_value)
    return tuple(dict.fromkeys([*of_memory, *of_list, *of_fact]))


def _may_replace(change: Replacement, new: str) -> bool:
    """Tell if a value of the fact can take the place of one of the memory.

    Not if the attribute has several values. Without slots the new text must have most of the
    memory's other words, or be near: the name of a coach is not replaced by the name of a club. If
    it has another date and another name, it is about another occasion.
    """
    if change.is_one_of_many:
        return False
    if change.old_slot is not None and change.old_slot == change.fact_slot:
        return True
    if _is_another_occasion(change.old, new):
        return False
    if change.similarity >= NEAR:
        return True
    about = _without_values(change.old)
    return len(about & matter(new)) > SAME_WORDS_TO_REPLACE * len(about) or not about


def _is_one_value(change: Replacement, new: str) -> bool:
    """Tell if the new text gives another value to the attribute that the memory is about."""
    if not gives_another_value(change.old, new, change.fact):
        return False
    cause, after = stated(change.fact), stated(new)
    if not change.without_slots:
        companions = companions_of_value(change.old)
        return _same_single_slot(change) and all(map(after.keeps, companions))
    return (
        _same_frame(change.old, new)
        and not change.is_one_of_many
        and not _is_another_occasion(change.old, new)
        and not any(
            _is_misspelt(value, cause)
            or (is_companion(value, change.old) and not after.keeps(value))
            for value in stated(change.old).values
        )
    )


def _same_frame(old: str, new: str) -> bool:
    """Tell if a new text has most of the words around the value of a memory.

    "User lives in Oslo" and "User lives on a boat" have the same frame.
    """
    main = parts(old).main
    if about := _without_values(main):
        return len(about & matter(new)) > SAME_WORDS_TO_REPLACE * len(about)
    # "User is on the Pro plan" has general words alone.
    general = set(terms(THE_USER.sub("", main)))
    general -= {term for value in stated(main).values for term in terms(value.text)}
    return bool(general) and general <= set(terms(new))


def _is_another_occasion(old: str, new: str) -> bool:
    """Tell if a text has neither the date of a statement nor another value of it."""
    after = stated(new)
    kinds = {
        value.kind is ValueKind.DATE
        for value in stated(old).values
        if not value.leads and not after.keeps(value)
    }
    return kinds == {True, False}


def _objection_to_delete(change: Replacement) -> Objection | None:
    stated_back = polarity.takes_back(change.fact) and not _names_another(change)
    if stated_back and (_same_single_slot(change) or _covers(change.fact, change.old)):
        return None
    if any(_replaces_value(change, text) for text in (*change.successors, *change.added)):
        return None
    merged = [text for text in change.successors if share_of_words(change.old, text) >= KEPT_WORDS]
    losses = [lost(change.old, text, "") for text in merged]
    if not losses:
        return Objection(Loss.UNSTATED)
    least = min(losses, key=len)
    return Objection(Loss.VALUES, least) if least else None


def _replaces_value(change: Replacement, new: str) -> bool:
    """Tell if a text gives another value to the memory's slot, and keeps all else it says."""
    return (
        _same_single_slot(change)
        and gives_another_value(change.old, new, change.fact)
        and not lost(change.old, new, change.fact, one_value=True)
    )


def _same_single_slot(change: Replacement) -> bool:
    """Tell if fact and memory are about the same attribute, and it is no list of values."""
    same = change.old_slot is not None and change.old_slot == change.fact_slot
    return same and not slots.many_valued(change.old_slot, change.cardinality)


def _names_another(change: Replacement) -> bool:
    """Tell if the fact names other values than the memory, of the same class, and none of it."""
    old = stated(change.old)
    values = [value for value in stated(change.fact).values if not value.leads]
    classes = {value.kind for value in old.values if not value.leads}
    return any(value.kind in classes for value in values) and not any(map(old.keeps, values))


def _covers(fact: str, old: str) -> bool:
    """Tell if a take-back is about the memory: it has its values, or most of its other words."""
    values = [value for value in stated(old).values if not value.leads]
    named = [stated(fact).keeps(value) for value in values]
    if values and all(named):
        return True
    # "No longer takes Ramipril" leaves the rest of "takes Metformin and Ramipril".
    pairs = zip(values, named, strict=True)
    names = {keeps for value, keeps in pairs if value.kind is ValueKind.NAME}
    if len(names) > 1:
        return False
    about = _without_values(old) - _NAMED
    return not about or len(about & matter(fact)) > COVERED * len(about)


def _without_values(text: str) -> set[str]:
    """The words that a statement is about, without its names, numbers and dates."""
    values = [value.text for value in stated(text).values]
    # Pairs of characters across the border of a value are no words.
    text = _without(text, [value for value in values if _IDEOGRAPH.search(value)])
    return matter(text) - {term for value in values for term in terms(value)}


def lost(old: str, new: str, fact: str, *, one_value: bool = False) -> tuple[str, ...]:
    """Names, numbers and dates of `old` that `new` lacks and that the fact does not replace.

    The fact replaces a value by another one of its class, which it states and which `new` has and
    `old` has not, one for one. A value that the fact itself states must stay, unless the fact
    negates it or names it as the former one. The leading name is never replaced, and no name by one
    that differs in a single letter, unless the fact puts the former aside.

    `one_value`: the fact gives another value to the slot of `old`. Then the old value goes as a
    whole, and the other parts of `old` keep their words.
    """
    before, after, cause = stated(old), stated(new), stated(fact)
    missing = [value for value in before.values if not after.keeps(value)]
    free = Counter(
        value.kind
        for value in cause.values
        if after.keeps(value)
        and not before.keeps(value)
        and not polarity.adds(fact)
        and not _completes(value, before, after)
    )
    matched, gone, affirmed = [], [], []
    for value in missing:
        if not value.leads and cause.keeps(value) and _negated(value, fact):
            continue
        stays = cause.keeps(value) and not polarity.puts_aside(fact, value.text)
        misspelt = not one_value and _is_misspelt(value, cause)
        aside = polarity.puts_aside(fact, value.text)
        if value.leads or stays or (misspelt and not aside):
            affirmed.append(value)
        elif free[value.kind]:
            free[value.kind] -= 1
            matched.append(value)
        else:
            gone.append(value)
    if one_value:
        went = replaced(old, [*matched, *gone], matched)
        gone = [value for value in gone if value not in went]
    refused = {*affirmed, *gone}
    parts = lost_parts(old, new) if one_value else ()
    return (*(value.text for value in missing if value in refused), *parts)


def _completes(value: Value, before: Stated, after: Stated) -> bool:
    """Tell if a name has a kept name in it: "Katarzyna Nowak" replaces nothing but "Katarzyna"."""
    words = set(value.key.split())
    names = [own for own in before.of(value.kind) if after.keeps(own) and own.key not in TITLES]
    return any(words > set(own.key.split()) for own in names)


def lost_words(old: str, new: str) -> tuple[str, ...]:
    """Words about the matter of `old` that `new` lacks, as they are written."""
    gone = matter(old) - matter(new)
    return tuple(word for word in re.findall(r"\w+", old) if not gone.isdisjoint(terms(word)))


def _is_misspelt(value: Value, cause: Stated) -> bool:
    """Tell if the fact has a name one letter apart: two persons, or a mistake in typing."""
    if value.kind is not ValueKind.NAME:
        return False
    return any(one_letter_apart(value.key, other.key) for other in cause.of(ValueKind.NAME))


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
        and (set(terms(old)) <= set(terms(new)) or _only_inserts(old, new))
        and polarity.takes_back(old) == polarity.takes_back(new)
    )


def _only_inserts(old: str, new: str) -> bool:
    """Tell if a text without spaces between words is completed: its characters stay, in order."""
    if not _IDEOGRAPH.search(old):
        return False
    rest = iter(fold(new))
    return all(char in rest for char in fold(old) if char.isalnum())


def same_statement(first: str, other: str) -> bool:
    """Tell if two texts state the same in the same words: safe to merge without a model.

    Another word or sign, also a small one such as "had" or a minus, and another value make two
    statements of them, however similar they are. See `exact_words`.
    """
    return exact_words(first) == exact_words(other) and (
        _keys(stated(first).values) == _keys(stated(other).values)
    )


def _keys(values: Sequence[Value]) -> set[tuple[ValueKind, str]]:
    return {(value.kind, value.key) for value in values}


def matter(text: str) -> set[str]:
    """The terms that a statement is about: no leading name, numbers or general words."""
    leading = " ".join(value.text for value in stated(text).values if value.leads)
    words = set(terms(_without(fold(text), [leading]))) - _GENERAL
    return {word for word in words if not word.isdigit()}


def _without(text: str, names: Sequence[str]) -> str:
    for name in names:
        if name:
            text = text.replace(name, " ").replace(fold(name), " ")
    return text


def is_of_another_subject(change: Replacement) -> bool:
    """Tell if fact and memory are about different persons or things, by their names."""
    return _other_subject(change) or _of_relative(change)


def _other_subject(change: Replacement) -> bool:
    """Tell if fact and memory open with different names, and neither has the other's."""
    leading = [value for value in stated(change.old).values if value.leads]
    of_fact = [value for value in stated(change.fact).values if value.leads]
    if not leading or not of_fact:
        return False
    return not (stated(change.fact).keeps(leading[0]) or stated(change.old).keeps(of_fact[0]))


def _of_relative(change: Replacement) -> bool:
    """Tell if one is about a relative of the user, and the other about the user alone."""
    person, other = relative(change.fact), relative(change.old)
    if bool(person) is bool(other):
        return False
    text = change.old if person else change.fact
    return bool(THE_USER.match(text)) and not has_word(text, person or other or "")


def same_matter(change: Replacement) -> bool:
    """Tell if fact and memory have the same slot, or without slots share words or are near."""
    if change.old_slot and change.fact_slot:
        return change.old_slot == change.fact_slot
    if is_of_another_subject(change):
        return False
    if change.similarity >= NEAR or (change.new and _same_frame(change.old, change.new)):
        return True
    about = matter(change.old)
    # Nothing else protects a statement without values: "takes lisinopril", "takes metformin".
    protected = change.new is None or any(not value.leads for value in stated(change.old).values)
    protected = protected or polarity.takes_back(change.fact)
    if protected and not about.isdisjoint(matter(change.fact)):
        return True
    return bool(about) and len(about & matter(change.new or "")) >= SAME_WORDS * len(about)


def same_attribute(old: str, new: str) -> bool:
    """Tell if an edited text is about the attribute that its former text is about.

    It has the same subject and at least half of the words about the matter, without values.
    """
    subjects = [value.key for value in stated(old).values if value.leads]
    others = [value.key for value in stated(new).values if value.leads]
    if subjects and others and subjects != others:
        return False
    about = _without_values(old)
    return len(about & matter(new)) >= KEPT_WORDS * len(about) if about else keeps_all(old, new)


def share_of_words(old: str, new: str) -> float:
    """Share of the memory's terms that a text has."""
    words = set(terms(old))
    return len(words & set(terms(new))) / len(words) if words else 1.0
