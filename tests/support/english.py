"""Words that the documentation does not use, with the plain ones.

The list comes from reviews: a search for the usual term finds nothing if a text uses these.
"""

from __future__ import annotations

import re

BANNED: dict[str, str] = {
    r"whoever|whomever": "a client, a worker, a process",
    r"nobody|no ?one": "no client, no worker",
    r"everybody|somebody|anybody": "every client, a person",
    r"anew": "again",
    r"meanwhile": "in the meantime: say what happens at the same time",
    r"of (?:theirs|his|hers)": "its own",
    r"so many": "the number",
    r"what (?:has )?became of|what becomes of": "the result, the receipt",
    r"(?:is|are|was) owed": "is stale, is due",
    r"(?:is|was|are) told": "gets, receives",
    r"for ever": "without a limit",
    r"thereby|whereby|hereby|thereof|whatsoever|henceforth": "a shorter sentence",
    r"be it": "either",
    r"lest": "so that",
    r"upon": "on",
    r"he|she|himself|herself": "the client, the user, it",
}
PATTERN = re.compile(rf"\b(?:{'|'.join(BANNED)})\b", re.IGNORECASE)


def banned_words(text: str) -> list[str]:
    """The banned words of a text, each with its line number."""
    return [
        f"{number}: {match[0]}"
        for number, line in enumerate(text.splitlines(), start=1)
        for match in PATTERN.finditer(line)
    ]
