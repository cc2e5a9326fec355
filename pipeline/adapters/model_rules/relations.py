"""Relations, and rules for the predicates that state them, as data.

A predicate is in the third person, affirmed and without its date; that of an attribute starts with
"'s". In `RULES` the first match wins.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.adapters.model_rules import words as w
from pipeline.domain.facts import FactKind


class RelationKind(NamedTuple):
    """A relation. `far`: kind of the entity that it leads to.

    `single`: a new value replaces the old one. `listed`: each item of a list is a value.
    """

    kind: FactKind = FactKind.OTHER
    far: str = "thing"
    single: bool = False
    listed: bool = False


class Rule(NamedTuple):
    """A rule: a form of predicates.

    `relation`: "" for a statement without a slot. Its value is group x, or groups named after
    relations; group what ends its name. `written`: template of the canonical predicate; "" keeps
    the words. `aside`: words before the date, in brackets; also without one if it ends in "!".
    `needs`: see `statements`. `positive`: False for "hates".
    """

    relation: str
    pattern: str
    written: str = ""
    aside: str = ""
    needs: str = ""
    positive: bool = True


DETAIL, WORK, HEALTH = FactKind.PERSONAL_DETAIL, FactKind.WORK, FactKind.HEALTH
TASTE, PLAN, DOES = FactKind.PREFERENCE, FactKind.PLAN, FactKind.ACTIVITY
# Relations by name, or by the word before a noun: has_sister, favourite_colour, scheduled_exam.
RELATIONS = {
    "named": RelationKind(DETAIL, "name", single=True),
    "has_birthday": RelationKind(DETAIL, "date", single=True),
    "is_from": RelationKind(DETAIL, "place", single=True),
    "lives_in": RelationKind(DETAIL, "place", single=True),
    "is_aged": RelationKind(DETAIL, "age", single=True),
    "speaks": RelationKind(DETAIL, "language", listed=True),
    "owns": RelationKind(DETAIL, listed=True),
    "drives": RelationKind(DETAIL, "vehicle", single=True),
    "attribute": RelationKind(DETAIL, single=True),
    "relationship_status": RelationKind(FactKind.RELATIONSHIP, "status", single=True),
    "has": RelationKind(FactKind.RELATIONSHIP, "person"),
    "works": RelationKind(WORK),
    "works_as": RelationKind(WORK, "occupation", single=True),
    "works_at": RelationKind(WORK, "organization", single=True),
    "works_in": RelationKind(WORK, "field"),
    "left": RelationKind(WORK),
    "allergic_to": RelationKind(HEALTH, "substance", listed=True),
    "has_condition": RelationKind(HEALTH, "condition", listed=True),
    "smokes": RelationKind(HEALTH),
    "likes": RelationKind(TASTE, "interest", listed=True),
    "prefers": RelationKind(TASTE, "interest"),
    "favourite": RelationKind(TASTE, single=True),
    "follows_diet": RelationKind(TASTE, "diet", single=True),
    "eats": RelationKind(TASTE, "food", listed=True),
    "drinks": RelationKind(TASTE, "drink", listed=True),
    "plans": RelationKind(PLAN, "event"),
    "wants": RelationKind(PLAN, "goal"),
    "scheduled": RelationKind(PLAN, "date", single=True),
    "plays": RelationKind(DOES, "activity", listed=True),
    "learns": RelationKind(DOES, "subject", listed=True),
    "is": RelationKind(listed=True),
}
# Relations that a negative statement of a relation ends, if others than its own.
ENDS = {
    "owns": frozenset({"owns", "drives"}),
    "drives": frozenset({"owns", "drives"}),
    "works": frozenset({"works", "works_as", "works_at", "works_in"}),
    "left": frozenset({"works_at", "lives_in", "learns"}),
}


def relation_of(name: str) -> RelationKind:
    """The relation of a name, or of the word before its noun."""
    known = RELATIONS.get(name) or RELATIONS.get(name.partition("_")[0], RelationKind())
    return known._replace(single=True) if name.removeprefix("has_") in w.SINGLE_KIN else known


X, Y = r"(?P<x>.+)", r"(?P<x>(?!(?:to be|that|not|it|this|your|how|what|why)\b).+)"
A = rf"(?:an?|their|his|her|the|some|any|all|{w.COUNT})"
HELD = rf"(?:(?:an?|any|one|{w.COUNT}|(?:their|his|her) own) .+)"
# "By trade", "at heart", "with pride" and "at 9" name no employer.
AT = (
    rf"(?: (?:at|for|(?:with|by)(?= (?:the )?{w.CAP})) (?P<works_at>(?!(?:the moment|heart|night"
    r"|\d+)\b).+?))?"
)
JOB = (
    r"(?P<works_as>(?:an? |the |head of |chief ).+?"
    rf"|(?:[\w-]+ ){{0,3}}?{w.JOBS}|[a-z]+ist|[a-z]+er)"
)
ORG = r"(?P<works_at>.+?)(?: as (?P<works_as>.+))?"
# "Moved to tears", "to the couch", "to Monday" and "to a bigger flat" name no place.
PLACE = (
    rf"(?P<x>(?!an? |their |another|different|bigger|smaller|tears\b|\w+day\b|the (?!{w.CAP}))"
    rf"[^,]+?(?:, {w.CAP}[^,]*)?)(?:,? not .+| (?:to|for|because|when|where|after|with) .+)?"
)
TONGUE = r"(?:both |some |a little |a bit of |fluent |basic |only )*"
NO_NAME = rf"(?!(?:{w.NATIONALITY}|{w.TRAITS}|{w.DIETS}|{w.NOT_NAMES})\b)"
MOVING = "(?:flying|travelling|traveling|going|moving|driving|heading|relocating)"


RULES: tuple[Rule, ...] = (
    # Attributes, origin, residence
    Rule("named", rf"'s (?:full )?name is (?P<x>{w.NAME})(?:,? not .+)?", "'s name is {x}"),
    Rule("has_birthday", r"'s birthday is", "'s birthday is {x}", needs="day"),
    Rule("has", rf"'s (?P<what>{w.KIN}) is (?:called |named )?{NO_NAME}(?P<x>{w.NAME})",
         "'s {what} is {x}"),
    Rule("owns", rf"'s (?P<pet>(?:\w+ )?{w.PETS}) is (?:called|named) (?P<x>{w.NAME})",
         "has a{pet} named {x}"),
    Rule("owns", rf"'s (?P<x>(?:\w+ )?{w.PETS}(?: {w.CAP})?) (?:has )?(?:died|passed away)",
         "'s {x} died", positive=False),
    Rule("favourite", r"'s (?:new |current )?favourite (?P<what>(?:\w+ ){0,2}?\w+)"
         rf" (?:is|are|has always been) {Y}"),
    Rule("attribute", rf"'s (?:new |current )?(?P<what>{w.ATTRIBUTES}) (?:is|are|has always been)"
         rf" {Y}"),
    Rule("scheduled", r"'s (?P<what>(?!birthday (?:is|starts)\b)"
         r"(?:[\w .&-]|'(?!s (?!(?:is|starts|begins|leaves|ends)\b)))+?)"
         r" (?:is|starts|begins|leaves|ends)",
         "'s {what} is", needs="dated"),
    Rule("is_from", r"(?:is (?:originally )?|comes |hails )from (?P<x>[^,]+(?:, [^,]+)?)",
         "is from {x}"),
    Rule("lives_in", rf"(?:moved|relocated)(?: back)?(?: over)?(?P<from> from [^,]+?)? to {PLACE}",
         "lives in {x}", "moved{from}", needs="person"),
    Rule("lives_in", rf"(?:lives|is living|resides|is (?:now )?based) (?P<prep>in|at) {X}",
         "lives{prep} {x}", needs="person"),
    # Work, diet, health
    Rule("works_as", rf"(?:works|is working|is employed) as {JOB}{AT}", "works{as}{at}"),
    Rule("works_at", rf"(?:(?:works|is working) (?:at|for)|is employed (?:at|by)) {ORG}",
         "works{as}{at}"),
    Rule("works_in", rf"(?:works|is working) in {X}", "works in {x}"),
    Rule("works_as", rf"(?:started|got|found|took|accepted|landed|has) (?:{A} )?(?:\w+ )?"
         rf"(?:job|position|role|work|working)(?: as {JOB})?{AT}", "works{as}{at}", "started",
         needs="job"),
    Rule("works_as", r"(?:got|was) promoted to (?:be )?(?P<works_as>.+)", "works{as}", "promoted!"),
    Rule("works", rf"(?:quit|left|lost|resigned from) {A} (?:old )?(?:job|position)(?: as {JOB})?"
         rf"{AT}", "no longer works{as}{at}", "left", needs="job", positive=False),
    Rule("works", rf"(?:quit|left|lost|gave up) {A} job|resigned"
         rf"(?: from {A} (?:job|position))?", positive=False),
    Rule("works", "works", needs="negated"),
    Rule("works", r"(?:is )?(?:retired|unemployed)(?: from .+)?"
         r"|was (?:laid off|fired|made redundant)(?: from (?P<works_at>.+))?", positive=False),
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
    Rule("relationship_status", rf"(?:is|got|became) (?P<x>(?:married|engaged)(?: to .+)?|dating .+"
         rf"|single|divorced|widowed|in a relationship(?: with (?:{w.NAME}|{A} .+))?)(?: again)?",
         "is {x}"),
    Rule("relationship_status", rf"married (?P<x>{w.NAME})", "is married to {x}"),
    Rule("relationship_status", rf"(?:started|is) (?:dating|seeing|going out with) (?P<x>{w.NAME})",
         "is dating {x}"),
    Rule("relationship_status", r"(?P<x>broke up with .+)"),
    Rule("has", rf"has (?:an?|one) (?P<what>{w.KIN}) named (?P<x>{w.NAME})", "'s {what} is {x}"),
    Rule("has", rf"has (?:an?|one) (?P<what>{w.KIN})"),
    # Possessions, plans, aims
    Rule("scheduled", r"has an? (?P<what>.+)", needs="dated held"),
    Rule("owns", rf"(?:has|owns|bought|purchased|rented) (?P<x>{HELD}|their first .+)",
         needs="held"),
    Rule("owns", rf"(?:got|adopted) (?P<x>(?:an?|{w.COUNT}) (?:\w+ ){{0,2}}?"
         rf"(?:{w.PETS}|{w.VEHICLES})s?(?: named {w.NAME})?)"),
    Rule("owns", rf"(?:sold|gave away|got rid of|lost) {A} (?P<x>.+)", needs="held",
         positive=False),
    Rule("drives", r"drives (?P<x>(?:an?|the|their|his|her) (?:[\w-]+ ){0,2}?"
         rf"(?:{w.VEHICLES}\b|{w.CAP}).*)"),
    Rule("plans", r"(?:plans|is planning|intends) to (?P<x>\w+.*)", "plans to {x}"),
    Rule("plans", rf"(?:is going to|will) (?P<x>be (?:\w+ing|married|an? {w.BEINGS})\b.*"
         rf"|(?!{A} |{w.CAP}|(?:be|not|let|try|tell)\b)\w+.*)", "plans to {x}", needs="dated"),
    Rule("plans", rf"is (?P<base>{MOVING}) (?P<x>(?:back |over )?to (?:the )?{w.CAP}.*)",
         "plans to {base} {x}"),
    Rule("plans", rf"(?:booked|is planning) (?P<x>(?:{A}|\w+s) .+)"),
    Rule("plans", r"is (?P<base>(?!hoping|trying|looking|going to be\b)\w+ing)(?: (?P<x>.+))?",
         "plans to {base} {x}", needs="dated"),
    Rule("plans", rf"cancell?ed (?P<x>{A} .+)", positive=False),
    Rule("wants", rf"wants to (?P<x>{w.AIMS}\b.*)"),
    Rule("wants", r"(?:dreams|is dreaming) of (?P<x>\w+ing .+)", "dreams of {x}"),
    Rule("left", rf"(?:left|quit) (?P<x>(?!{A} ).+)", needs="dated", positive=False),
    # Being and doing
    Rule("works_as", rf"is (?P<works_as>an? (?:[\w-]+ ){{0,3}}?{w.JOBS})"
         rf"(?: by (?:trade|profession|training|day|night)(?: and .+)?)?{AT}", "works{as}{at}"),
    Rule("is", rf"is (?P<x>{w.TRAITS}|(?={w.CAP}){w.NATIONALITY}|(?:afraid|scared|proud) of"
         rf" .+|interested in .+|(?:good|bad) at .+|an? (?:[\w-]+ ){{0,2}}?{w.BEINGS}"
         r"(?: (?:of|at|in|from) .+?)?(?: and an? .+)?)"),
    Rule("", "drives", needs="negated"),
    *(Rule(verb, rf"{verb}(?: {X})?") for verb in ("plays", "eats", "drinks", "smokes")),
    Rule("eats", r"(?:is|started) eating (?P<x>\w+ again)", "eats {x}"),
    Rule("", rf"(?P<habit>(?:{w.OFTEN} )?{w.HABITS}(?: .+)?|flies"
         rf"|{w.OFTEN} (?:{w.REGULAR} .+|drinks|smokes)"
         rf"|drives(?: (?:an? (?:\w+ )?{w.PUBLIC}|to|at|in|on|for)\b.*))"
         r"|(?:works|is working) (?:from|with|on|nights|remotely|part|full|freelance)\b.*"
         r"|lives (?:alone|near|on|outside|with|together|next|by)\b.*"),
    Rule("", r"(?:is|was) (?:training for|reading|writing|building|renovating|coaching|raising"
         r"|working on an?|saving for|recovering from|rehearsing) .+"),
    Rule("", rf"(?:is (?:in {w.CAP}.+|on (?:holiday|vacation))|was (?:in|at) .+)", needs="dated"),
    Rule("", r"was born(?: in .+)?|(?:grew up|was raised)(?: (?:in|on|near) .+)?"
         rf"|has been to (?:the )?{w.CAP}.*"),
    Rule("", r"(?P<past>died|passed away)"),
    Rule("", r"(?P<past>\w+)(?: (?P<x>.+))?", needs="event"),
)  # fmt: skip
