"""English verb forms, as far as the rules need them: "live" to "lives", "flying" to "fly"."""

from __future__ import annotations

from pipeline.adapters.model_rules.words import FREQUENCY, words

IRREGULAR_PAST = words(
    "ran went bought got sold gave lost left quit met saw flew drove rode won broke began became"
    " built caught chose came did drank ate fell felt found forgot grew had heard held kept knew"
    " led learnt lent made paid said sang sat sent slept spent spoke stood stole swam taught told"
    " took thought understood woke wore wrote was were brought hid threw drew froze shook"
)
# Verbs that end in -ed but are not past forms.
NOT_PAST = words("need feed breed speed embed exceed succeed proceed bleed seed wed shed weed")
UNCHANGED = words(
    "can cannot could will would should might may must used is has does no the a an never not"
)
THIRD = {"have": "has", "do": "does", "am": "is", "are": "is", "be": "is", "go": "goes"}
THIRD_BACK = {"has": "have", "does": "do", "is": "are", "was": "were", "goes": "go"}
SIBILANTS = ("s", "sh", "ch", "x", "z", "o")

# Gerunds whose base ends in a silent e; others lose -ing and perhaps a doubled letter.
SILENT_E = words(
    "moving taking having making driving hiking leaving coming giving writing riding dancing baking"
    " changing closing using arriving retiring proposing organising organizing celebrating"
    " practising exercising graduating skating cycling juggling saving sharing choosing losing"
    " smoking voting hiking racing cruising relocating separating commuting meditating"
    " scuba-diving diving joking living loving raising renovating skydiving facing"
)
DOUBLED = ("nn", "tt", "pp", "mm", "gg", "bb", "dd", "rr")


def is_past(verb: str) -> bool:
    """True if `verb` is a simple past form, by the list or by -ed."""
    low = verb.lower()
    return low in IRREGULAR_PAST or (low.endswith("ed") and low not in NOT_PAST and len(low) > 3)


def third(verb: str) -> str:
    """The third person singular of a base verb; past forms and modals are unchanged."""
    low = verb.lower()
    if low == "were":
        return "was"
    if low in THIRD:
        return THIRD[low]
    if low in UNCHANGED or is_past(low):
        return low
    if low.endswith("y") and low[-2:-1] not in tuple("aeiou"):
        return low[:-1] + "ies"
    return low + ("es" if low.endswith(SIBILANTS) else "s")


def base(verb: str) -> str:
    """Base of a third person singular: `lives` to `live`, `watches` to `watch`; `is` to `are`."""
    low = verb.lower()
    if low in THIRD_BACK:
        return THIRD_BACK[low]
    if low in UNCHANGED or not low.endswith("s"):
        return low
    if low.endswith("ies") and len(low) > 4:
        return low[:-3] + "y"
    return low[:-2] if low.endswith(("ches", "shes", "sses", "xes")) else low[:-1]


def base_of_gerund(gerund: str) -> str:
    """The base of an -ing form: `flying` to `fly`, `running` to `run`, `moving` to `move`."""
    low = gerund.lower()
    if not low.endswith("ing") or len(low) < 5:
        return low
    stem = low[:-3]
    if low in SILENT_E:
        return stem + "e"
    return stem[:-1] if stem.endswith(DOUBLED) else stem


def in_third_person(predicate: str) -> str:
    """A first-person predicate with its verb in the third person singular.

    "usually go climbing" becomes "usually goes climbing"; "do not eat" becomes "does not eat".
    """
    head, _, rest = predicate.partition(" ")
    if head.lower() in FREQUENCY and rest:
        return f"{head.lower()} {in_third_person(rest)}"
    if head.lower() == "no" and rest.lower().startswith("longer "):
        return f"no longer {in_third_person(rest[7:])}"
    return f"{third(head)} {rest}".strip()
