"""Relations, and rules for the predicates that state them, as data.

A predicate is in the third person, affirmed and without its date; that of an attribute starts with
"'s". In `RULES` the first match wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

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
    pattern: str
    written: str = ""
    aside: str = ""
    needs: str = ""
    positive: bool = True


X = r"(?P<x>.+)"
A = rf"(?:an?|their|his|her|the|some|any|all|{w.COUNT})"
HELD = rf"(?:(?:an?|any|one|{w.COUNT}|(?:their|his|her) (?:own|first)) .+)"
# A proper name with at most one word before it: "Berlin", "the BBC", "downtown Leeds"; or one word
# in lower case. Not "a small flat", "constant fear", "home" or "night".
PROPER = (
    rf"(?:(?:(?!an? |their |his |her )[a-z]+ )?(?-i:[^\W\d_a-z])[^,]*?(?:, {w.CAP})?"
    r"|(?!(?:home|school|bed|work|nights?|weekends|peace|silence|fear|tears|\w+day)\b)(?-i:[a-z])\w+)"
)
AT = (
    rf"(?: (?:at|for|(?:with|by)(?= (?:the )?{w.CAP}))"
    r" (?P<works_at>(?!(?:the moment|heart|night)\b|\d).+?))?"
)
JOB = (
    r"(?P<works_as>(?:an? |the |head of |chief ).+?"
    rf"|(?:[\w-]+ ){{0,3}}?{w.JOBS}|[a-z]+ist|[a-z]+er)"
)
TAIL = r"(?:,? (?:to|for|because|when|where|after|with|at|in|on|near|by|since|alone)\b.*)?"
TONGUE = r"(?:some |a little |a bit of |fluent |basic |only )*"


RULES: tuple[Rule, ...] = (
    # Attributes, origin, residence
    Rule("named", rf"'s (?:full )?name is (?P<x>{w.NAME})", "'s name is {x}"),
    Rule("has_birthday", r"'s birthday is", "'s birthday is {x}", needs="day"),
    Rule("has", rf"'s (?P<what>{w.KIN}) is (?:called |named )?(?!{w.NO_NAME}\b)(?P<x>{w.NAME})",
         "'s {what} is {x}"),
    Rule("owns", rf"'s (?P<pet>(?:\w+ )?{w.PETS}) is (?:called|named) (?P<x>{w.NAME})",
         "has a{pet} named {x}"),
    Rule("owns", rf"'s (?P<x>(?:\w+ )?{w.PETS}(?: {w.CAP})?) (?:has )?(?:died|passed away)",
         "'s {x} died", positive=False),
    Rule("favourite", r"'s (?:new |current )?favourite (?P<what>(?:\w+ ){0,2}?\w+)"
         rf" (?:is|are|has always been) {X}"),
    Rule("attribute", rf"'s (?:new |current )?(?P<what>{w.ATTRIBUTES}) (?:is|are)"
         r" (?P<x>(?!(?:on|in|at|to|by|for|from|with|about|under|near|the same)\b).+)"),
    Rule("scheduled", r"'s (?P<what>(?!(?:.+'s )?birthday (?:is|starts)\b).+?)"
         r" (?:is|starts|begins|leaves|ends)", "'s {what} is", needs="dated"),
    Rule("is_from", rf"(?:is (?:originally )?|comes |hails )from (?P<x>{PROPER})", "is from {x}"),
    Rule("lives_in", rf"(?:moved|relocated)(?: back)?(?: over)?(?P<from> from [^,]+?)? to"
         rf" (?P<x>{PROPER}){TAIL}", "lives in {x}", "moved{from}"),
    Rule("lives_in", rf"lives (?:in|at) (?P<x>(?!home\b)[^,]+?(?:, {w.CAP})?){TAIL}"),
    # Work, diet, health
    Rule("works_as", rf"(?:works|is employed) as {JOB}{AT}", "works{works_as}{works_at}"),
    Rule("works_at", r"(?:works|is employed) (?:at|for|by) (?P<works_at>(?!home\b|night\b).+?)"
         r"(?: as (?P<works_as>.+))?", "works{works_as}{works_at}"),
    Rule("works_in", rf"works in {X}"),
    Rule("works_as", rf"(?:started|got|found|took|accepted|landed|has) (?:{A} )?(?:\w+ )?"
         rf"(?:job|position|role|working)(?: as {JOB})?{AT}", "works{works_as}{works_at}",
         "started", needs="job"),
    Rule("works_as", r"(?:got|was) promoted to (?P<works_as>.+)", "works{works_as}", "promoted!"),
    Rule("works", rf"(?:quit|left|lost|resigned from) {A} (?:job|position)(?: as {JOB})?{AT}",
         "no longer works{works_as}{works_at}", "left", needs="job", positive=False),
    Rule("works", "works", needs="negated"),
    Rule("works", rf"(?:quit|left|lost|gave up|resigned from) {A} (?:job|position)|resigned"
         r"|(?:is )?(?:retired|unemployed)(?: from .+)?"
         r"|was (?:laid off|fired|made redundant)(?: from (?P<works_at>.+))?", needs="recent",
         positive=False),
    Rule("follows_diet", r"(?:is|became|eats|follows) (?:on )?(?:an? )?(?:strict )?"
         rf"(?P<x>{w.DIETS})(?: diet)?", "is {x}"),
    Rule("follows_diet", r"(?:eats|is eating|started eating) (?P<x>meat)(?P<again> again)?",
         "eats {x}{again}"),
    Rule("allergic_to", rf"(?:is (?:\w+ly )?allergic|has an? (?:\w+ )?allergy) to {X}",
         "is allergic to {x}"),
    Rule("allergic_to", r"has an? (?:bad |severe |mild )?(?P<x>(?:tree )?\w+) allergy",
         "is allergic to {x}"),
    Rule("has_condition", rf"(?:has|was diagnosed with) (?:(?!no )\w+ )??(?P<x>{w.CONDITIONS}"
         rf"(?:(?:,| and|, and) {w.CONDITIONS})*)", "has {x}"),
    # Likes, age, languages, family
    Rule("prefers", r"prefers (?P<x>.+? over .+)"),
    Rule("likes", rf"(?:likes|loves|enjoys|adores|prefers) {X}"),
    Rule("likes", rf"is (?:an? )?(?:(?:big|huge|great) )?(?:fan of|into|keen on|fond of) {X}",
         "likes {x}"),
    Rule("likes", rf"(?:hates|dislikes|detests|despises) {X}", positive=False),
    Rule("is_aged", r"(?:is|turned) (?P<x>[1-9]\d?)(?: years old)?", "is {x} years old"),
    Rule("speaks", rf"(?:speaks|is fluent in) (?P<x>{TONGUE}"
         rf"(?:{w.LANGUAGES}\b|(?-i:[A-Z][a-z+#])|sign language\b|{w.COUNT} languages).*)",
         "speaks {x}"),
    Rule("speaks", rf"knows (?P<x>{TONGUE}{w.LANGUAGES}\b.*)", "speaks {x}"),
    Rule("learns", rf"(?:is learning|learns|started (?:learning|to learn)) {X}", "is learning {x}"),
    Rule("learns", rf"(?:is studying|studies) {X}"),
    Rule("relationship_status", rf"(?:is|got) (?P<x>(?:married|engaged)(?: to .+)?|dating .+"
         rf"|single|divorced|widowed|in a relationship(?: with (?:{w.NAME}|{A} .+))?)(?: again)?",
         "is {x}"),
    Rule("relationship_status", r"(?P<x>broke up with .+)"),
    Rule("has", rf"has (?:an?|one) (?P<what>{w.KIN}) named (?P<x>{w.NAME})", "'s {what} is {x}"),
    Rule("has", rf"has (?:an?|one) (?P<what>{w.KIN})"),
    # Possessions, plans, aims
    Rule("scheduled", r"has an? (?P<what>.+)", needs="dated held"),
    Rule("owns", rf"(?:has|owns|bought|purchased|rented) (?P<x>{HELD})", needs="held"),
    Rule("owns", rf"(?:got|adopted) (?P<x>(?:an?|{w.COUNT}) (?:\w+ ){{0,2}}?"
         rf"(?:{w.PETS}|{w.VEHICLES})s?(?: named {w.NAME})?)"),
    Rule("owns", rf"(?:sold|gave away|got rid of|lost) {A} (?P<x>.+)", needs="held",
         positive=False),
    Rule("drives", r"drives (?P<x>(?:an?|the|their|his|her) (?:[\w-]+ ){0,2}?"
         rf"(?:{w.VEHICLES}\b|{w.CAP}).*)"),
    Rule("plans", r"(?:plans|is planning|intends) to (?P<x>\w+.*)", "plans to {x}"),
    Rule("plans", rf"(?:is going to|will) (?P<x>(?!{A} |{w.CAP}|(?:not|let|try|tell)\b"
         r"|be (?!an? |married|\w+ing))\w+.*)", "plans to {x}", needs="dated"),
    Rule("plans", rf"is (?P<base>(?:fly|travell?|go|mov|driv|head)ing)"
         rf" (?P<x>to (?:the )?{w.CAP}.*)", "plans to {base} {x}"),
    Rule("plans", rf"(?:booked|is planning) (?P<x>(?:{A}|\w+s) .+)"),
    Rule("plans", r"is (?P<base>(?!hoping|trying|looking|going to be\b)\w+ing)(?: (?P<x>.+))?",
         "plans to {base} {x}", needs="dated"),
    Rule("plans", rf"cancell?ed (?P<x>{A} .+)", positive=False),
    Rule("wants", r"(?:dreams|is dreaming) of (?P<x>\w+ing .+)", "dreams of {x}"),
    Rule("wants", r"wants to (?P<x>(?!(?:be|know|ask|say|hear|try|do|use|have|make|talk)\b).+)"),
    Rule("left", rf"(?:left|quit) (?P<x>(?!{A} ).+)", needs="dated", positive=False),
    # Being and doing
    Rule("works_as", rf"is (?P<works_as>an? (?:[\w-]+ ){{0,3}}?{w.JOBS}){AT}"
         r"(?: by (?:trade|profession|training|day)(?: and .+)?)?", "works{works_as}{works_at}"),
    Rule("is", rf"is (?P<x>{w.TRAITS}|(?={w.CAP}){w.NATIONALITY}|(?:afraid|scared|proud) of"
         rf" .+|interested in .+|(?:good|bad) at .+|an? (?:[\w-]+ ){{0,2}}?{w.BEINGS}"
         r"(?: (?:of|at|in|from) .+?)?)"),
    Rule("", "drives", needs="negated"),
    *(Rule(verb, rf"{verb}(?: {X})?") for verb in ("plays", "eats", "drinks", "smokes")),
    Rule("", rf"(?P<habit>(?:{w.OFTEN} )?{w.HABITS}(?: .+)?|{w.OFTEN} {w.REGULAR}(?: .+)?"
         r"|drives (?:an? (?:\w+ )?(?:taxi|cab|bus|tram|train|lorry)|to|at|in|on|for)\b.*)"
         r"|works (?:from|with|on|at|for|nights|remotely|part|full|freelance)\b.*"
         r"|lives (?:alone|in|at|near|on|with|together|next|by)\b.*"),
    Rule("", r"(?:is|was) (?:training for|reading|writing|building|renovating|working on|raising"
         r"|saving for|recovering from) .+"),
    Rule("", rf"(?:is|was) (?:in {w.CAP}.+|on (?:holiday|vacation))", needs="dated"),
    Rule("", r"was born(?: in .+)?|(?:grew up|was raised)(?: (?:in|on|near) .+)?"
         rf"|has been to (?:the )?{w.CAP}.*"),
    Rule("", r"(?P<past>died|passed away)"),
    Rule("", r"(?P<past>\w+)(?: (?P<x>.+))?", needs="event"),
)  # fmt: skip
