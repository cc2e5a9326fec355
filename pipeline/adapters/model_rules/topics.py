"""Categories of a fact, by the words in it."""

from __future__ import annotations

import re
from functools import lru_cache

from pipeline.adapters.model_rules.words import words
from pipeline.domain.events import Instructions
from pipeline.models.categories import BUILT_IN, MISC, offered

MOST = 3
# Words of each built-in category, in addition to those of its description.
SAID = {
    "personal_details": words(
        "named called lives live birthday born years old speaks nationality email phone address"
        " introvert extrovert left-handed right-handed"
    ),
    "family": words(
        "wife husband spouse son daughter mother father mum mom dad brother sister cousin aunt"
        " uncle grandmother grandfather niece nephew girlfriend boyfriend dog cat puppy kitten baby"
        " married engaged divorced"
    ),
    "professional_details": words(
        "works work worked company office manager boss engineer teacher developer designer nurse"
        " startup salary university degree studies study student interview team"
    ),
    "sports": words(
        "running runs run marathon football soccer tennis basketball swimming swims yoga gym"
        " cycling climbing hiking skiing surfing volleyball boxing golf"
    ),
    "travel": words("trip travel travels travelled flight flies visit visited vacation hotel tour"),
    "food": words(
        "eats eat vegetarian vegan coffee tea pizza pasta sushi breakfast lunch dinner cheese"
        " chocolate fruit meat fish peanuts gluten wine beer cooks bakes"
    ),
    "music": words(
        "music song jazz rock guitar piano violin drums sings plays album concert band singer"
    ),
    "health": words(
        "allergic allergy allergies diabetic asthma doctor dentist therapist hospital medication"
        " surgery injury pain diet insomnia pregnant"
    ),
    "technology": words(
        "computer laptop phone python javascript code programs programming app server linux mac ai"
    ),
    "hobbies": words(
        "hobby paints painting gardening knitting photography chess pottery collects collecting"
        " reading drawing cooking hiking"
    ),
    "fashion": words("wears wear dress jacket shirt sneakers clothing outfit"),
    "entertainment": words(
        "movie movies film watches watching netflix novel series show game games gaming theatre"
    ),
    "milestones": words(
        "wedding married graduated graduation promoted promotion moved bought anniversary retired"
        " born engaged"
    ),
    "user_preferences": words(
        "likes loves enjoys prefers hates dislikes favourite favorite wants love like prefer"
    ),
}
EMPTY = words(
    "what who whom when where with from that this somebody someone something does else fits nowhere"
    " about their them things thing related other whatever user users"
)


def topics(text: str, instructions: Instructions) -> tuple[str, ...]:
    """Up to MOST of the offered categories that match, in their order.

    `misc` if none matches and it is offered.
    """
    tokens = frozenset(re.findall(r"[\w-]+", text.casefold()))
    matching = [
        name
        for name, meaning in offered(instructions).items()
        if name != MISC and tokens & _vocabulary(name, meaning)
    ]
    if not matching and MISC in offered(instructions):
        return (MISC,)
    return tuple(matching[:MOST])


@lru_cache(maxsize=1_000)
def _vocabulary(name: str, meaning: str) -> frozenset[str]:
    """Words that match the category, singular and plural."""
    described = set(re.findall(r"\w{3,}", f"{name} {meaning}".replace("_", " ").casefold()))
    known = SAID.get(name, frozenset()) if BUILT_IN.get(name) == meaning else frozenset()
    plain = (described - EMPTY) | known
    singular = {word.removesuffix("s") for word in plain if len(word) > 3}
    return frozenset(plain | singular | {word + "s" for word in plain})
