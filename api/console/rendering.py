"""Templates of the console: their filters, the navigation, and the security policy of each page.

All values are escaped. Texts of users are shown by the macro `words`, which isolates their
direction, so that they cannot reorder what stands beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context

from api.console.assets import address
from api.console.long_text import characters, is_long, parts_of, short_form
from api.console.session import ConsoleSession, base_of
from api.console.word_marks import diff_parts
from pipeline import __version__
from pipeline.cpu_thread import beside_loop
from pipeline.text.word_diff import DiffBudget

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# With the policy `no-referrer` of other responses, browsers send a form with `Origin: null`. Over
# plain HTTP they do not send `Sec-Fetch-Site` either, so each form looks as if it were forged.
# No other site gets an address, so the token of a one-time link stays with this server.
HEADERS = {"Content-Security-Policy": POLICY, "Referrer-Policy": "same-origin"}
# Characters of a text in a list; its own page shows all.
EXCERPT = 280
MINUTE, HOUR, DAY = 60, 3_600, 86_400


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """An entry of the navigation.

    `key`: with `g`, its keyboard shortcut. `admin`: requires an admin key.
    """

    label: str
    path: str
    key: str
    admin: bool = False


# Pages whose filters can be saved as a view.
SAVED_PATHS = ("/events", "/memories", "/search", "/graph", "/costs", "/trends", "/audit", "/inbox")

MENU: Mapping[str, Sequence[MenuEntry]] = {
    "Watch": (
        MenuEntry("Live", "/live", "l"),
        MenuEntry("Events", "/events", "e"),
        MenuEntry("Failures", "/failures", "f"),
        MenuEntry("Trends", "/trends", "t"),
        MenuEntry("Costs", "/costs", "c"),
        MenuEntry("Health", "/health", "h"),
    ),
    "Memory": (
        MenuEntry("Users", "/users", "o"),
        MenuEntry("Memories", "/memories", "m"),
        MenuEntry("Search", "/search", "s"),
        MenuEntry("Graph", "/graph", "r"),
        MenuEntry("Inbox", "/inbox", "i"),
        MenuEntry("Playground", "/playground", "p"),
    ),
    "Control": (
        MenuEntry("Replays", "/replays", "y"),
        MenuEntry("Webhooks", "/webhooks", "w"),
        MenuEntry("Verify", "/verify", "v", admin=True),
        MenuEntry("Erasures", "/erasures", "x"),
        MenuEntry("User tokens", "/user-tokens", "u"),
        MenuEntry("Audit", "/audit", "d", admin=True),
        MenuEntry("Admin", "/admin", "a", admin=True),
    ),
}


def show(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Render a template. A script that updates a page (htmx) gets only the part named `live`."""
    api = request.app.state.api
    session: ConsoleSession | None = getattr(request.state, "session", None)
    context = {
        "base": base_of(api.settings),
        "session": session,
        "menu": MENU,
        "here": request.url.path.removeprefix("/console"),
        "query": dict(request.query_params),
        "saveable": request.url.path.removeprefix("/console") in SAVED_PATHS,
        # The filters, without a position in the list and without a message.
        "address": merged(dict(request.query_params), {"before": "", "skip": ""}),
        "failed": status >= 400,
        "done": DONE.get(request.query_params.get("done", "")),
        "hint": HINTS.get(request.query_params.get("done", "")),
        "version": __version__,
        # One budget for all differences of the page.
        "diff": partial(diff_parts, budget=DiffBudget()),
        "now": datetime.now(UTC),  # noqa: TID251  for relative times, shown to people only
        **values,
    }
    page = environment().get_template(template)
    if is_update(request) and "live" in page.blocks:
        state = page.new_context(context)
        html = "".join(page.blocks["live"](state))
    else:
        html = page.render(context)
    return HTMLResponse(html, status, headers=HEADERS)


async def show_beside(
    request: Request, template: str, values: Callable[[], Mapping[str, Any]]
) -> HTMLResponse:
    """`show` for a page that may be large: its values are built, and it is rendered, in a thread.

    A page of 1 MB takes 0.1 s of CPU, which would delay every other request of the process.
    """
    return await beside_loop(lambda: show(request, template, **values()))


def is_update(request: Request) -> bool:
    """Tell if a script (htmx) asks for the part of a page that updates itself."""
    return "hx-request" in request.headers


def back(
    request: Request, path: str, /, *, done: str | None = None, **query: str
) -> RedirectResponse:
    """Lead to a page of the console after a form was sent. `done`: a key of DONE."""
    query = query | ({"done": done} if done else {})
    target = base_of(request.app.state.api.settings) + quote(path)
    return RedirectResponse(target + (f"?{urlencode(query)}" if query else ""), status_code=303)


# Messages about a form that was carried out. The address has only their keys.
DONE = {
    "signed-out": "You have signed out.",
    "cancelled": "The event is cancelled; no further model call is made.",
    "edited": "The text is changed; the old one is in the history.",
    "pinned": "No model changes this memory now.",
    "unpinned": "Models may change this memory again.",
    "restored": "The version is restored.",
    "deleted": "The memory is deleted; its history stays.",
    "rated": "The rating is stored.",
    "decided": "The decision is carried out.",
    "resolved": "The conflict is resolved.",
    "started": "It has started.",
    "ended": "The run has ended.",
    "renamed": "The entity is changed.",
    "merged": "The entities are merged.",
    "split": "The merge is taken back.",
    "entity-deleted": "The entity is deleted.",
    "all-retried": "The events are queued again, at the end of the queues of their users.",
    "webhook-deleted": "The webhook is deleted.",
    "due": "The delivery is sent again.",
    "saved": "Saved.",
    "view-saved": "The view is saved; Live lists it.",
    "view-deleted": "The view is deleted.",
    "removed": "The member is removed.",
    "revoked": "The key is revoked; other API processes may accept it for five more seconds.",
    "token-revoked": "The token is revoked; other API processes accept it for 5 s at most.",
    "erased": "Erased: none of it can be read any more. Vectors follow within seconds.",
    "switched": "The memories of the replay are in force.",
    "discarded": "The replay is discarded.",
    "accepted": "Accepted. This page follows the event until it ends.",
    "retried": "The event is queued again, at the end of the queue of its user.",
    "dry-run": "This is a dry run: its receipt shows what would be stored.",
    "undone": "The changes of the event are undone.",
}


# Messages about a request that changed nothing.
HINTS = {
    "only-a-form": "Nothing was sent or changed: that address only takes the form of this page.",
}


@cache
def environment() -> Environment:
    """The templates with their filters."""
    made = Environment(
        loader=PackageLoader("api.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "ago": ago, "ms": duration, "number": number, "usd": usd, "iso": iso, "exact": exact,
        "stamp": stamp, "excerpt": excerpt, "percent": percent, "merge": merged,
        "parts_of": parts_of, "is_long": is_long, "short_form": short_form,
        "characters": characters, "in_use": in_use,
    }  # fmt: skip
    made.globals |= {"url": url, "asset": address}
    return made


@pass_context
def url(context: Context, path: str, **query: object) -> str:
    """Address of a page; values of `query` that are None or empty are left out."""
    given = {name: value for name, value in query.items() if value not in (None, "", False)}
    return str(context["base"]) + quote(path) + (f"?{urlencode(given)}" if given else "")


def merged(query: Mapping[str, str], more: Mapping[str, str]) -> str:
    """The query string of this page with other values."""
    rest = {name: value for name, value in query.items() if name != "done" and value}
    return urlencode({name: value for name, value in (rest | dict(more)).items() if value})


def in_use(names: Sequence[str], query: Mapping[str, str]) -> int:
    """Count these fields that have a value in the query string."""
    return sum(1 for name in names if query.get(name))


def iso(at: datetime, timespec: str = "milliseconds") -> str:
    """A time for the attribute `datetime`."""
    return at.astimezone(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


# A time for an address: a rounded one would lie before the change that it names.
exact = partial(iso, timespec="microseconds")


def stamp(at: datetime) -> str:
    """A time for people, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def ago(at: datetime, now: datetime) -> str:
    """The time since or until a moment, in one unit."""
    seconds = (now - at).total_seconds()
    text = span(abs(seconds))
    return f"in {text}" if seconds < -1 else f"{text} ago" if seconds >= 1 else "now"


def span(seconds: float) -> str:
    """A number of seconds in its largest unit."""
    for unit, size in (("d", DAY), ("h", HOUR), ("min", MINUTE)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def duration(ms: float | timedelta | None) -> str:
    """Milliseconds in a readable unit."""
    if ms is None:
        return "–"
    value = ms.total_seconds() * 1000 if isinstance(ms, timedelta) else ms
    if value < 1_000:
        return f"{value:.0f} ms"
    return f"{value / 1000:.1f} s" if value < 60_000 else span(value / 1000)


def number(value: float | None) -> str:
    """A number with separators; a dash for None."""
    return "–" if value is None else f"{value:,}"


def usd(value: float | None) -> str:
    """A cost in US dollars; a dash if the price is unknown."""
    if value is None:
        return "–"
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.6f}".rstrip("0")


def percent(value: float) -> str:
    """A share as an attribute of an SVG element."""
    return f"{100 * value:.3f}%"


def excerpt(text: str | None, length: int = EXCERPT) -> str:
    """The start of a text."""
    text = text or ""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def page_number(request: Request) -> int:
    """The page of the query string; 1 for anything that is no page."""
    text = request.query_params.get("page", "1")
    return number_in(text, digits=5) or 1


def number_in(text: str, *, digits: int) -> int:
    """The whole number that a text is; 0 for another text, or one with more digits."""
    return int(text) if len(text) <= digits and text.isascii() and text.isdecimal() else 0
