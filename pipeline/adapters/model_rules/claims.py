"""The table of statements that predicates make, as data; `statements` applies it.

A predicate is in the third person, without its date. In `RULES` the first match wins. In a
template, `{s}` is the subject, `{p}` its possessive ("User's"), `{x}` a captured group, and
`[moved{when}]` an aside that is written only if its date or another optional group is known. An
aside that ends in "!" is always written. A date that the template does not mention is appended.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipeline.adapters.model_rules import words as w
from pipeline.adapters.model_rules.verbs import third


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern of a predicate, and the template of its sentence.

    `needs`: key of a condition in `statements.CONDITIONS`, "" for none. `each`: the group whose
    list ("hiking and chess") gives one sentence for each item.
    """

    pattern: re.Pattern[str]
    template: str
    needs: str = ""
    each: str = ""


CAP = r"(?-i:[A-Z\u00c0-\u00de])[\w'&.-]*"
NAME = rf"{CAP}(?: (?:(?:van|von|de|der|la|del|bin) )*{CAP}){{0,2}}"
DET = r"(?:an?|the|their|his|her|our|some|one)"
# "moved to tears", "to the couch" and "to a bigger flat" are not places.
NO_PLACE = rf"(?!an? |the (?!{CAP})|another|different|their |bigger|smaller|tears\b)"
PLACE = (
    rf"(?P<x>{NO_PLACE}[^,]+?(?:, "
    + CAP + r"[^,]*)?)(?P<tail> (?:to|for|because|when|where|after|with) .+)?"
)  # fmt: skip
ORG = r"(?: (?:at|for|with|by) (?P<org>(?!the moment).+?))?"
JOB = r"as (?P<job>(?:an? |the |head of |chief ).+?|[a-z]+ist|[a-z]+er)"
LIKES = r"(?P<v>likes|loves|enjoys|adores|prefers)"
PET = rf"(?P<kind>(?:\w+ )?{w.PETS})"
CALLED = rf",? (?:named|called|whose name is|by the name of) (?P<n>{NAME})"
JOB_HEAD = rf"(?P<job>an? (?:[\w-]+ ){{0,3}}?(?:{'|'.join(sorted(w.JOBS))}))"
LANGS = w.either(",".join(w.LANGUAGES))
MOVE = "flying|travelling|traveling|going|moving|driving|heading|relocating"
DOING = r"(?P<ger>\w+ing)"
CONDITION = rf"(?:type [12] )?(?:{'|'.join(sorted(w.CONDITIONS))})"
FELLOW = rf"(?P<kin>(?:{w.KIN_SHADE} )?{w.KIN})"
# Verbs after "no longer", as REWRITES produces them.
KEPT_VERBS = (
    "likes|loves|enjoys|adores|prefers|hates|dislikes|lives|works|owns|has|drives|speaks|eats"
    "|drinks|smokes|plays|studies|teaches|uses|runs|goes|wears|believes|wants|plans"
)


def _habit_verbs() -> str:
    return "|".join(sorted({third(verb) for verb in w.HABITS}))


def _rule(pattern: str, template: str, needs: str = "", each: str = "") -> Rule:
    return Rule(re.compile(pattern, re.IGNORECASE), template, needs, each)


# Replacements of different ways to say "not any more", applied before the table.
REWRITES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), new)
    for pattern, new in (
        (r"^(.*?),? (?:any ?more|any longer)$", r"\1 any more"),
        (r"^does not (\w+) (.+) any more$", r"no longer third:\1 \2"),
        (r"^is not (.+) any more$", r"is no longer \1"),
        (r"^cannot stand (.+) any more$", r"can no longer stand \1"),
        (r"^(?:has )?(?:stopped|quit|gave up|given up) (\w+ing)\b ?(.*)$", r"no longer ing:\1 \2"),
        (r"^never (eats|drinks|smokes|drives)\b", r"does not base:\1"),
        (r"^has been (\w+ing)\b", r"is \1"),
        (r"^has been (?=married|vegan|vegetarian|pescatarian|with|a|an)\b", "is "),
        (r"^has (moved|bought|sold|started|joined|adopted|quit|left|lost|retired|graduated|become"
         r"|relocated|visited|given|stopped|finished|completed)\b", r"\1"),
        (r"^does (like|love|enjoy|eat|drink|speak|live|work|have|own)\b", r"third:\1"),
    )
)  # fmt: skip

RULES: tuple[Rule, ...] = (
    # Name and origin
    _rule(r"is (?:originally )?from (?P<x>[^,]+(?:, [^,]+)?)|(?:comes|hails) from (?P<y>.+)",
          "{s} is from {x}{y}"),
    _rule(r"grew up (?P<x>(?:in|on|near) .+)|was raised (?P<y>in .+)", "{s} grew up {x}{y}"),
    _rule(r"was born(?P<x>(?: in .+)?)", "{s} was born{x}"),
    # Residence
    _rule(r"(?:moved|relocated) from (?P<from>[^,]+?) to " + PLACE,
          "{s} lives in {x} [moved from {from}{when}]"),
    _rule(r"(?:moved|relocated)(?: back)?(?: over)? to " + PLACE, "{s} lives in {x} [moved{when}]"),
    _rule(r"(?:lives|is living|resides|is based|is now based) in (?P<x>.+)", "{s} lives in {x}"),
    _rule(r"(?:lives|is living) (?P<x>(?:at|near|on|outside|with|alone|next|together|by)\b.*)",
          "{s} lives {x}"),
    _rule(r"used to live (?P<x>(?:in|at|near|with) .+)", "{s} used to live {x}"),
    # Work
    _rule(rf"(?:works|is working) {JOB}{ORG}", "{s} works {job:as}{org:at}"),
    _rule(r"(?:works|is working) (?:at|for|with) (?P<org>.+?) as (?P<job>.+)",
          "{s} works {job:as}{org:at}"),
    _rule(r"(?:works|is working) (?:at|for) (?P<x>.+)", "{s} works at {x}"),
    _rule(r"is employed (?:at|by) (?P<x>.+)", "{s} works at {x}"),
    _rule(r"(?:works|is working) (?P<x>(?:in|from|with|on|nights|remotely|part|full"
          r"|freelance)\b.*)",
          "{s} works {x}"),
    _rule(rf"(?:started|got|found|took|accepted|landed|has|starts) (?:{DET} )?(?:\w+ )?"
          rf"(?:job|position|role|work|working) {JOB}{ORG}",
          "{s} works {job:as}{org:at} [started{when}]"),
    _rule(rf"(?:started|got|found|took|accepted|landed|has) (?:{DET} )?(?:\w+ )?(?:job|position"
          rf"|work"
          r"|working) (?:at|for|with) (?P<x>.+)", "{s} works at {x} [started{when}]"),
    _rule(r"(?:got|was) promoted to (?:be )?(?P<job>.+)", "{s} works {job:as} [promoted{when}!]"),
    _rule(rf"(?:quit|left|resigned from|lost) (?:{DET} )?(?:old )?(?:job|position) (?:at|with|as)"
          r" (?P<x>.+)", "{s} no longer works {x:at} [left{when}]"),
    _rule(rf"(?P<v>quit|left|lost) (?:{DET} )?(?:old )?job", "{s} {v} their job"),
    _rule(r"retired(?: from .+)?|is (?:now )?retired", "{s} is retired [since{when:bare}]"),
    _rule(rf"is (?:now )?{JOB_HEAD}(?: (?:at|for|with) (?P<org>.+))?",
          "{s} works {job:as}{org:at}"),
    # Diet, allergies, health
    _rule(rf"is (?:now )?(?:an? )?(?P<x>{w.DIETS})",
          "{s} is {x} [since{when:bare}]"),
    _rule(rf"is (?:not|no longer) (?:an? )?(?P<x>{w.DIETS})",
          "{s} is no longer {x} [since{when:bare}]"),
    _rule(r"(?:eats|is eating|started eating) (?P<x>\w+) again", "{s} eats {x} again"),
    _rule(r"is (?:\w+ly )?allergic to (?P<x>.+)|has an? (?:\w+ )?allergy to (?P<y>.+)",
          "{s} is allergic to {x}{y}", each="x"),
    _rule(r"has an? (?:bad |severe |mild )?(?P<x>(?:tree )?\w+) allergy",
          "{s} is allergic to {x:s}"),
    _rule(r"is not allergic to (?P<x>.+)", "{s} is not allergic to {x}"),
    _rule(r"is no longer allergic to (?P<x>.+)", "{s} is no longer allergic to {x}"),
    _rule(rf"has (?:\w+ )??(?P<x>{CONDITION}(?:(?:,| and|, and) {CONDITION})*)", "{s} has {x}",
          each="x"),
    # Likes
    _rule(r"prefers (?P<x>.+?) (?:to|over|rather than) (?P<y>.+)", "{s} prefers {x} over {y}"),
    _rule(rf"{LIKES} (?P<x>.+)", "{s} {v} {x}", each="x"),
    _rule(r"is (?:an? )?(?:(?:big|huge|great) )?(?:fan of|into|keen on|fond of) (?P<x>.+)",
          "{s} likes {x}", each="x"),
    _rule(r"(?P<v>hates|dislikes|detests|despises|cannot stand|does not like|does not enjoy"
          r"|does not love"
          r"|does not care for) (?P<x>.+)", "{s} {v} {x}", each="x"),
    _rule(r"can no longer stand (?P<x>.+)", "{s} can no longer stand {x}", each="x"),
    # Ages, birthdays, languages
    _rule(r"is (?:now )?(?P<x>[1-9]\d?)(?: years old)?|turned (?P<y>[1-9]\d?)(?: years old)?",
          "{s} is {x}{y} years old [since{when:bare}]", needs="known"),
    _rule(rf"(?:speaks|can speak|knows|is fluent in|is learning to speak) (?P<x>(?:both |some "
          rf"|a little"
          rf"|a bit of|fluent |basic )*(?:{LANGS})\b.*)", "{s} speaks {x}", each="x"),
    _rule(r"is studying (?P<x>.+)", "{s} is studying {x} [since{when:bare}]", each="x"),
    _rule(r"(?:is learning|learns|started (?:learning|to learn)) (?P<x>.+)",
          "{s} is learning {x} [since{when:bare}]", each="x"),
    # Family and relationship
    _rule(rf"is (?P<owner>[\w' ]+'s) {FELLOW}", "{owner} {kin} is {s}", needs="named"),
    _rule(rf"has (?:an? |one ){FELLOW}{CALLED}", "{p} {kin} is {n}"),
    _rule(rf"(?:got|is|was) married(?: to (?P<x>{NAME}|.+))?|married (?P<y>{NAME})",
          "{s} is married{x:to}{y:to} [since{when:bare}]"),
    _rule(rf"(?:got|is|was) engaged(?: to (?P<x>{NAME}|.+))?",
          "{s} is engaged{x:to} [since{when:bare}]"),
    _rule(r"(?:got|is|was) (?:now )?(?P<v>divorced|widowed|single)(?: again)?",
          "{s} is {v} [since{when:bare}]"),
    _rule(r"(?:is|started) (?:dating|seeing|going out with) (?P<x>.+)", "{s} is dating {x}"),
    # Possessions
    _rule(rf"(?:has|owns) (?:{DET} )?{PET}{CALLED}", "{s} has {kind:a} named {n}"),
    _rule(rf"(?P<v>got|bought|adopted) (?P<x>(?:an?|{w.COUNT}) (?:\w+ ){{0,2}}{w.PETS}s?)",
          "{s} has {x} [{v}{when}]"),
    _rule(r"has (?P<x>an? .+)", "{s} has {x}", needs="date"),
    _rule(rf"(?P<v>has|owns) (?P<x>(?:an?|{w.COUNT}) .+)", "{s} {v} {x}", needs="held", each="x"),
    _rule(r"drives (?P<x>an? .+)", "{s} drives {x}"),
    _rule(rf"(?P<v>bought|purchased|rented) (?P<x>(?:an?|their first|{w.COUNT}) .+)",
          "{s} {v} {x}"),
    _rule(rf"(?P<v>sold|gave away|got rid of|lost) (?P<x>(?:{DET}|all) .+)", "{s} {v} {x}",
          needs="held"),
    _rule(r"does not (?P<v>have|own) (?P<x>an? .+|any .+)", "{s} does not {v} {x}"),
    # Plans and aims
    _rule(r"(?:is going|plans|is planning|intends) to (?P<x>(?!the\b|an?\b|their\b|"
          r"(?-i:[A-Z]))\w+(?: .+)?)", "{s} plans to {x}", needs="date"),
    _rule(r"(?:plans|is planning|intends) to (?P<x>\w+.*)", "{s} plans to {x}"),
    _rule(r"will (?P<x>(?:be \w+ing )?(?!be\b|not\b|let\b|try\b|tell\b)\w+.*)", "{s} plans to {x}",
          needs="date"),
    _rule(r"is planning (?P<x>an? .+)", "{s} is planning {x}"),
    _rule(rf"(?:booked|has booked) (?P<x>(?:{DET}|\w+) .+)", "{s} booked {x}"),
    _rule(rf"is (?P<ger>{MOVE}) (?P<x>(?:back |over )?to (?:the )?{CAP}.*)",
          "{s} plans to {ger} {x}"),
    _rule(rf"is {DOING}(?P<x>(?: .+)?)", "{s} plans to {ger}{x}", needs="future"),
    _rule(r"cancelled (?P<x>.+)", "{s} cancelled {x}"),
    _rule(rf"wants to (?P<x>{w.AIMS}\b.*)", "{s} wants to {x}"),
    _rule(r"(?:dreams|is dreaming) of (?P<x>\w+ing .+)", "{s} dreams of {x}"),
    # Being
    _rule(r"is (?P<x>in (?-i:[A-Z]).+|on (?:holiday|vacation))", "{s} is {x}", needs="date"),
    _rule(rf"is (?P<x>{w.TRAITS})", "{s} is {x}", needs="known"),
    _rule(r"is (?P<x>(?-i:[A-Z])\w+)", "{s} is {x}", needs="nationality"),
    _rule(r"is (?P<x>(?:afraid|scared|terrified|proud) of .+|interested in .+|good at .+"
          r"|bad at .+)",
          "{s} is {x}"),
    _rule(rf"is (?P<x>an? (?:[\w-]+ ){{0,2}}?{w.BEINGS}(?: (?:of|at|in|from) .+?)?"
          rf"(?: and an? .+)?)",
          "{s} is {x}", needs="known", each="x"),
    _rule(rf"no longer (?P<x>(?:{KEPT_VERBS})\b.*)", "{s} no longer {x} [since{when:bare}]",
          each=""),
    # Doing
    _rule(rf"(?P<x>(?:{'|'.join(sorted(w.FREQUENCY))}) works .+)", "{s} {x}"),
    _rule(r"(?P<x>(?:is |was )?(?:training for|reading|writing|building|renovating|coaching|raising"
          r"|working on an?|saving for|recovering from|rehearsing)\b .+)", "{s} {x}"),
    _rule(r"(?:can |knows how to )?play(?:s)? (?P<x>.+)", "{s} plays {x}", each="x"),
    _rule(r"(?P<x>(?:does not|cannot) (?:eat|drink|smoke|drive|own|use|cook|swim"
          r"|celebrate|fly|watch|wear)\b.*)",
          "{s} {x}"),
    _rule(rf"(?P<x>(?:(?:{'|'.join(sorted(w.FREQUENCY))}) )?(?:{_habit_verbs()})(?: .+)?)",
          "{s} {x}", needs="habit"),
    _rule(r"died|passed away", "{s} died"),
    _rule(r"(?P<x>has been to (?:the )?(?-i:[A-Z]).+)", "{s} {x}"),
    _rule(r"(?P<x>was (?:in|at) (?:the )?.+)", "{s} {x}", needs="date"),
    _rule(r"(?P<x>(?P<past>\w+) .+|(?P<past2>\w+))", "{s} {x}", needs="event"),
    # Last, because it matches much: "I am Maya".
    _rule(rf"is (?P<x>{NAME})", "{p} name is {x}", needs="name"),
)  # fmt: skip

# Capitalised words that are not names: "I'm OK".
NOT_NAMES = w.words(
    "ok okay fine sorry ready back done happy sad tired sure good great busy sick bored lost home"
    " here excited glad confused stuck afraid hungry not batman i english pm am id yes no"
)
# Words about the conversation itself: anywhere, and at the start of an object.
TALK = re.compile(
    r"\b(?:you|your|yours|this|these|those|it|its|something|anything|everything|stuff|someone)\b"
    r"|\bthe (?:idea|way|sound|look)\b",
    re.IGNORECASE,
)
POINTING = re.compile(
    r"(?:that|how|what|when|if|where|why|him|her|them|there|here|to (?:know|ask|see|say|hear"
    r"|thank))\b"
    r"|ones?$",
    re.IGNORECASE,
)
