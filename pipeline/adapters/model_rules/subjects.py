"""Turns clauses into facts: the first person becomes the third, and pronouns become names.

    "she lives in Porto", after "my sister Ines"    Ines lives in Porto
    "my dog Rollo swims"                            User has a dog named Rollo

A pronoun without a known person gives no facts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date

from pipeline.adapters.model_rules import words as w
from pipeline.adapters.model_rules.clauses import rewriter, trim
from pipeline.adapters.model_rules.dates import is_ahead, lift
from pipeline.adapters.model_rules.statements import canonical, statement
from pipeline.adapters.model_rules.verbs import in_third_person

# The speaker in the sentences of this module.
USER = "User"
SPEAKER = re.compile(r"(?:I|(?:both of )?[Ww]e(?: both)?) (.+)")
PRONOUN = re.compile(r"(he|she|they|it|his|her|their|its)\b", re.IGNORECASE)
SUBJECT_OF = {"his": "he", "her": "she", "their": "they", "its": "it"}
# Replacements of the first person inside a predicate.
own_words = rewriter(
    (r"\b(?:my|our)\b", "their"), (r"\b(?:mine|ours)\b", "theirs"),
    (r"\b(?:myself|ourselves)\b", "themselves"), (r"\b(?:I|we) (?:am|are)\b", "they are"),
    (r"\bI was\b", "they were"), (r"\b(?:I|we)\b", "they"), (r"\b(?-i:me|us)\b", "them"),
)  # fmt: skip
KIND = rf"(?P<kind>{w.KIN}|(?:\w+ )?{w.PETS})\b"
# A relative or a pet as a subject, "my sister Ines lives ...", and "... with my sister Ines".
RELATIVE = re.compile(rf"{KIND}(?: {w.NAME})?", re.IGNORECASE)
NAMED = re.compile(rf"\b(?:my|our) {KIND},? (?P<name>{w.NAME})(?:, |(?= |$))", re.IGNORECASE)
DIED = re.compile(r" ?(?:has )?(?:died|passed away)\b", re.IGNORECASE)
# A relative or a pet in a fact.
MET = re.compile(
    rf"{USER}(?:'s| (?:has|adopted|got|bought) an?) {KIND}(?: (?:is|named) (?P<name>{w.NAME}))?.*"
)
# "Ramen is my favourite food", "Anna is my sister": written with the owner first.
INVERTED = re.compile(
    rf"^(?!{PRONOUN.pattern}|that|this)(.+?) (is|are) "
    rf"((?:my|our) favourite [\w ]+|(?:my|our|{w.CAP}'s) {w.KIN})$",
    re.IGNORECASE,
)
# "User's sister's name is Ines", "User is Maya", and a name in lower case.
NAME_OF = re.compile(rf"({USER}'s .+)'s name is ")
NO_NAME = rf"(?i:{w.NATIONALITY}|{w.TRAITS}|{w.DIETS}|{w.NOT_NAMES})"
IS_NAME = re.compile(rf"^{USER} is (?!(?:[\w'-]+ ){{0,2}}{NO_NAME}\b)({w.NAME})(?:,.*)?$")
SMALL_NAME = re.compile(
    r"(?<= name is )(?!(?:on|in|at|not|to|the|an?|for|hard|too|so|still)\b|\w+(?:ed|ing)\b)"
    r"[a-z]+(?: [a-z]+)?$"
)
# Subjects that are no names, words about the conversation itself, and these as an object.
NO_ONE = re.compile(
    "(?:every|some|no)(?:one|body)|people|this|that|these|those|there|here|who|what|some|most|many"
    "|all|one|both|each|every|any|only|an?|our|not|never|when|while|as|can|let|just|",
    re.IGNORECASE,
)
TALK = re.compile(
    r"\b(?:your?|yours|this|these|those|its?|(?:some|any|every)thing|stuff|someone)\b"
    r"|\bthe (?:idea|way|sound|look)\b",
    re.IGNORECASE,
)
POINTING = re.compile(
    r"(?:that|how|what|when|if|where|why|him|her|them|there|here|ones?$"
    r"|to (?:know|ask|see|say|hear|thank))\b",
    re.IGNORECASE,
)
# Relations of what is so now: not "I start at Bosch in May".
PRESENT = ("works_as", "works_at", "works_in", "lives_in", "relationship_status", "is_aged")
# Relations of which a statement needs a known subject, as habits do: not "Python is 34".
OF_KNOWN = ("is", "is_aged")


@dataclass(slots=True)
class Listener:
    """The people and pets that one speaker has introduced so far.

    `met`: the last subject that each pronoun can refer to. `names`: subjects that are known.
    """

    day: date
    met: dict[str, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=lambda: {USER})

    def meet(self, fact: str) -> None:
        """Remember the relative or the pet that a fact introduces, under the pronouns for it."""
        match = MET.fullmatch(fact)
        if match:
            noun = match["kind"].lower().split()[-1]
            subject = match["name"] or f"{USER}'s {match['kind']}"
            pronouns = [p for p, nouns in (("she", w.SHE), ("he", w.HE)) if noun in nouns]
            self.met |= dict.fromkeys(pronouns or ["she", "he", "they", "it"], subject)
            self.names.add(subject)

    def facts(self, text: str, when: str = "") -> list[str]:
        """The canonical sentences of a clause in the third person; what they introduce is known."""
        read = statement(text, when)
        if read is None or NO_ONE.fullmatch(read.subject):
            return []
        if TALK.search(read.predicate) and not read.predicate.startswith("'s "):
            return []
        if read.rule.relation in PRESENT and is_ahead(when, self.day):
            return []
        owner, _, noun = read.subject.rpartition("'s ")
        known, happened = read.subject.partition("'s ")[0] in self.names, "past" in read.groups
        if owner and not RELATIVE.fullmatch(noun) and not (happened and known):
            return []
        pointing = not happened and any(map(POINTING.match, filter(None, read.groups.values())))
        fleeting = read.rule.relation in OF_KNOWN or read.groups.get("habit")
        # "Alexa no longer works" is about a thing.
        stated = known or (read.rule.needs != "negated" if read.negated else not fleeting)
        facts = canonical(read) if stated and not pointing else []
        for fact in facts:
            self.meet(fact)
        return facts


def signed(fact: str, name: str) -> str:
    """The fact with the speaker's name."""
    return re.sub(rf"^{USER}\b|\b{USER}(?='s )", lambda _: name, fact)


def in_voice(text: str) -> str:
    """A clause in the third person: "I like my code" is "User likes their code"."""
    match = SPEAKER.fullmatch(text)
    if match is None:
        text = re.sub(r"\b(?:my|our)\b", f"{USER}'s", text, flags=re.IGNORECASE)
        return re.sub(r"\b(?:I|me|we|us)\b", USER, text)
    return f"{USER} {in_third_person(own_words(match[1]))}"


def clause_facts(clause: str, listener: Listener) -> list[str]:
    """The canonical sentences of one clause; people whom it introduces are remembered."""
    text, when = lift(clause, listener.day)
    text = INVERTED.sub(r"\4 \3 \2", trim(text))
    named = [match for match in NAMED.finditer(text) if "'" not in match["name"]]
    roles = [
        f"{USER}'s {match['kind']} is called {match['name']}"
        for match in named
        # A pet that died is not had any more.
        if re.fullmatch(w.KIN, match["kind"]) or not DIED.match(text, match.end())
    ]
    facts = [fact for role in roles for fact in listener.facts(role)]
    if named and named[0].start() == 0 and re.fullmatch(w.KIN, named[0]["kind"]):
        text = f"{named[0]['name']} {text[named[0].end() :].strip()}"
    pronoun = PRONOUN.match(text)
    if pronoun:
        word = pronoun[1].lower()
        owned = "'s" if word in SUBJECT_OF else ""
        text = f"{listener.met.get(SUBJECT_OF.get(word, word), '')}{owned}{text[pronoun.end() :]}"
    text = NAME_OF.sub(r"\1 is called ", SMALL_NAME.sub(lambda m: m[0].title(), in_voice(text)))
    text = IS_NAME.sub(rf"{USER}'s name is \1", text)
    if not named and text.startswith(f"{USER}'s "):
        listener.meet(text)
    return facts + listener.facts(text, when)
