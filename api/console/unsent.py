"""Forms that changed nothing, such as after the end of a session: their texts are not lost.

The page of the error shows what was written. It offers to send the form again if that can help. A
form without a valid session is offered only if its request proves that it comes from this console:
another site could otherwise prepare a form that a person then sends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import HTTPException, Request

from api.console.forms import Fields, fields_of
from pipeline.domain.errors import InvalidInput

# Prefix of the fields of an unsent form in the form of the sign-in, and the field of its address.
PREFIX, ADDRESS = "unsent.", "unsent"
# Fields that hold what a person has written, with their labels.
TEXTS = {
    "text": "Text",
    "content": "Message",
    "conversation": "Conversation",
    "custom_instructions": "Instructions",
    "reason": "Reason",
    "name": "Name",
    "url": "Address",
    "origins": "Sites",
    "email": "Email",
    "user_id": "User",
}
SECRETS = ("csrf", "token", "key", "next")
# Addresses that take only forms, and the page that has the form.
PAGES = tuple(
    (re.compile(pattern), page)
    for pattern, page in (
        (r"(/events/[^/]+)/(?:cancel|retry)", r"\1"),
        (r"(/memories/[^/]+)/(?:edit|pin|restore|delete|feedback)", r"\1"),
        (r"(/graph/[^/]+)/(?:rename|merge|split|delete)", r"\1"),
        (r"(/webhooks/[^/]+)/(?:active|delete|deliveries/[^/]+)", r"\1"),
        (r"(/replays/[^/]+)/(?:switch|discard)", r"\1"),
        (r"/inbox/conflicts/[^/]+", r"/inbox?kind=conflicts"),
        (r"/inbox/(?:curator(?:/[^/]+/cancel)?|schedule)", r"/inbox?kind=curator"),
        (r"/inbox/(?:decide|suggestions/[^/]+/[^/]+)", r"/inbox"),
        (r"(/failures)/retry", r"\1"),
        (r"(/costs)/budget", r"\1"),
        (r"(/admin)/(?:keys(?:/[^/]+/revoke)?|members(?:/remove)?|projects)", r"\1"),
        (r"(/user-tokens)/(?:origins|[^/]+/revoke)", r"\1"),
        (r"/views(?:/[^/]+/delete)?", r"/live"),
        (r"/sign-out", r"/live"),
    )
)
# Pages whose own address takes a form.
WITH_FORM = re.compile(r"/(?:playground|webhooks|replays|erasures|user-tokens|events/[^/]+/undo)")


def page_with_form(path: str) -> str | None:
    """The page that has the form of an address below the console; None if it takes no form."""
    if WITH_FORM.fullmatch(path):
        return path
    for pattern, page in PAGES:
        if match := pattern.fullmatch(path):
            return match.expand(page)
    return None


@dataclass(frozen=True, slots=True)
class UnsentForm:
    """A form that changed nothing. `path`: its address below the console."""

    path: str
    values: Mapping[str, Sequence[str]]

    @property
    def page(self) -> str:
        """The page that has the form."""
        return page_with_form(self.path) or "/live"

    @property
    def action(self) -> str:
        """The last word of the address, such as `edit`."""
        words = re.findall(r"/([a-z][a-z-]*)(?=/|$)", self.path)
        return words[-1].replace("-", " ") if words else ""

    def pairs(self) -> list[tuple[str, str]]:
        """All fields, in order."""
        return [(name, value) for name, values in self.values.items() for value in values]

    def texts(self) -> list[tuple[str, str]]:
        """The texts that a person has written, with their labels."""
        return [(TEXTS[name], value) for name, value in self.pairs() if name in TEXTS and value]

    def as_fields(self) -> list[tuple[str, str]]:
        """The hidden fields that carry this form through the sign-in."""
        return [(ADDRESS, self.path), *((PREFIX + name, value) for name, value in self.pairs())]


async def unsent_form(request: Request, prefix: str = "/console") -> UnsentForm | None:
    """The form of a request; None if it cannot be read or is no form of this console."""
    path = request.url.path.removeprefix(prefix)
    if request.method != "POST" or page_with_form(path) is None:
        return None
    try:
        fields = await fields_of(request)
    except (HTTPException, InvalidInput):
        return None
    return UnsentForm(path, _without_secrets(fields.values))


def carried_form(fields: Fields) -> UnsentForm | None:
    """The form that the form of the sign-in carries."""
    path = fields.text(ADDRESS)
    if page_with_form(path) is None:
        return None
    values = {
        name.removeprefix(PREFIX): texts
        for name, texts in fields.values.items()
        if name.startswith(PREFIX)
    }
    return UnsentForm(path, _without_secrets(values))


def _without_secrets(values: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    return {name: texts for name, texts in values.items() if name not in SECRETS}
