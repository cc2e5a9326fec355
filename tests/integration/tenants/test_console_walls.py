"""Tenant isolation of the console: each of its routes, with ids of another tenant, with each right,
without a session and without the session's CSRF token.

Each route has a case below; a route without one fails `test_every_route_has_a_case`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field, replace
from uuid import uuid4

import httpx
import pytest
from fastapi.routing import iter_route_contexts

from api.app import create_app
from pipeline.domain.tenants import Access
from pipeline.settings import Settings
from pipeline.stores import Ledger
from tests.integration.api.test_across import WORD, Holding, Tenant, furnish, owned, rows
from tests.support.api_service import Service, serving
from tests.support.console_client import Browser, browsing, text_of

READ, WRITE, ADMIN = Access


@dataclass(frozen=True)
class PageCase:
    """The scope that a page or form needs (None: no session), with its query or fields.

    `{name}` in a value stands for an id of the tenant.
    """

    needs: Access | None
    values: dict[str, str] = field(default_factory=dict)


EVENT = "/console/events/{event_id}"
MEMORY = "/console/memories/{memory_id}"
NODE = "/console/graph/{node_id}"
REPLAY = "/console/replays/{replay_id}"
WEBHOOK = "/console/webhooks/{webhook_id}"
SUGGESTION = "/console/inbox/suggestions/{suggestion_id}/{action}"
RECEIVER = {"url": "https://hooks.example.org/", "name": "door", "event_types": "memory_add"}
SURE = {"sure": "1"}
CASES: dict[tuple[str, str], list[PageCase]] = {
    ("GET", "/console"): [PageCase(None)],
    ("GET", "/console/"): [PageCase(None)],
    ("GET", "/console/static/{name:path}"): [PageCase(None)],
    ("GET", "/console/sign-in"): [PageCase(None)],
    ("POST", "/console/sign-in"): [PageCase(None)],
    ("GET", "/console/{path:path}"): [PageCase(None)],
    ("GET", "/console/enter/{token}"): [PageCase(None)],
    ("POST", "/console/enter/{token}"): [PageCase(None)],
    ("POST", "/console/sign-out"): [PageCase(READ)],
    ("GET", "/console/live"): [PageCase(READ)],
    ("GET", "/console/events"): [PageCase(READ), PageCase(READ, {"user_id": "maya"})],
    ("GET", EVENT): [PageCase(READ)],
    ("GET", EVENT + "/stream"): [PageCase(READ)],
    ("POST", EVENT + "/cancel"): [PageCase(WRITE)],
    ("POST", EVENT + "/retry"): [
        PageCase(WRITE),
        PageCase(WRITE, {"content": "I moved to Lima."}),
        PageCase(WRITE, {"dry_run": "1"}),
    ],
    ("GET", EVENT + "/undo"): [PageCase(WRITE)],
    ("POST", EVENT + "/undo"): [PageCase(WRITE), PageCase(WRITE, {"confirmed": "1"})],
    ("GET", "/console/memories"): [
        PageCase(READ),
        PageCase(READ, {"user_id": "maya"}),
        PageCase(READ, {"user_id": "maya", "as_of": "2100-01-01"}),
        PageCase(READ, {"valid_at": "2100-01-01", "show_superseded": "true"}),
    ],
    ("GET", MEMORY): [PageCase(READ), PageCase(READ, {"as_of": "2100-01-01"})],
    ("POST", MEMORY + "/edit"): [PageCase(WRITE, {"text": "Mine now."})],
    ("POST", MEMORY + "/pin"): [PageCase(WRITE, {"pinned": "1"})],
    ("POST", MEMORY + "/restore"): [PageCase(WRITE, {"version": "1"})],
    ("POST", MEMORY + "/delete"): [PageCase(WRITE)],
    ("POST", MEMORY + "/feedback"): [PageCase(WRITE, {"feedback": "POSITIVE"})],
    ("GET", "/console/search"): [
        PageCase(READ),
        PageCase(READ, {"q": "Lima", "user_id": "maya"}),
        PageCase(READ, {"q": "Lima", "other": "home", "user_id": "maya", "turns": "1"}),
        PageCase(READ, {"q": "Lima", "user_id": "maya", "why": "{memory_id}"}),
    ],
    ("GET", "/console/inbox"): [
        PageCase(READ, {"kind": kind, "state": state})
        for kind in ("suggestions", "conflicts", "curator")
        for state in ("OPEN", "")
    ],
    ("POST", "/console/inbox/decide"): [
        PageCase(WRITE, {"action": action, "ids": "{suggestion_id}"})
        for action in ("accept", "reject", "dismiss")
    ],
    ("POST", SUGGESTION): [PageCase(WRITE)],
    ("POST", "/console/inbox/conflicts/{conflict_id}"): [PageCase(WRITE, {"keep": "both"})],
    ("POST", "/console/inbox/curator"): [PageCase(WRITE, {"agent_id": "mine"})],
    ("POST", "/console/inbox/curator/{curator_run_id}/cancel"): [PageCase(WRITE)],
    ("GET", "/console/users"): [
        PageCase(READ),
        PageCase(READ, {"kind": "user"}),
        PageCase(READ, {"part": "maya"}),
    ],
    ("GET", "/console/graph"): [
        PageCase(READ),
        PageCase(READ, {"user_id": "maya"}),
        PageCase(READ, {"user_id": "maya", "entity": "me", "as_of": "2100-01-01"}),
    ],
    ("GET", NODE): [PageCase(READ)],
    ("POST", NODE + "/rename"): [PageCase(WRITE, {"name": "mine"})],
    ("POST", NODE + "/merge"): [PageCase(WRITE, {"into": "{node_id}"})],
    ("POST", NODE + "/split"): [PageCase(WRITE)],
    ("POST", NODE + "/delete"): [PageCase(WRITE, SURE)],
    ("GET", "/console/failures"): [PageCase(READ)],
    ("POST", "/console/failures/retry"): [PageCase(WRITE, {"code": "CANCELLED"})],
    ("GET", "/console/webhooks"): [PageCase(READ)],
    ("POST", "/console/webhooks"): [PageCase(WRITE, RECEIVER)],
    ("GET", WEBHOOK): [PageCase(READ)],
    ("POST", WEBHOOK + "/active"): [PageCase(WRITE, {"on": "1"})],
    ("POST", WEBHOOK + "/delete"): [PageCase(WRITE, SURE)],
    ("POST", WEBHOOK + "/deliveries/{delivery_id}"): [PageCase(WRITE)],
    ("GET", "/console/costs"): [PageCase(READ), PageCase(READ, {"user_id": "maya"})],
    ("GET", "/console/health"): [PageCase(READ)],
    ("GET", "/console/replays"): [PageCase(READ)],
    ("POST", "/console/replays"): [PageCase(WRITE, {"agent_id": "mine"})],
    ("GET", REPLAY): [PageCase(READ)],
    ("POST", REPLAY + "/switch"): [PageCase(WRITE, {"force": "1"})],
    ("POST", REPLAY + "/discard"): [PageCase(WRITE)],
    ("GET", "/console/verify"): [PageCase(ADMIN), PageCase(ADMIN, {"check": "1"})],
    ("GET", "/console/erasures"): [PageCase(READ)],
    ("POST", "/console/erasures"): [PageCase(WRITE, SURE | {"agent_id": "mine"})],
    ("GET", "/console/erasures/{event_id}"): [PageCase(READ)],
    ("GET", "/console/audit"): [PageCase(ADMIN), PageCase(ADMIN, {"key_id": "{key_id}"})],
    ("GET", "/console/trends"): [PageCase(READ, {"span": span}) for span in ("hour", "week")],
    ("POST", "/console/views"): [
        PageCase(WRITE, {"name": "mine", "path": "/events", "query": "user_id=jon"})
    ],
    ("POST", "/console/views/{view_id}/delete"): [PageCase(WRITE)],
    ("POST", "/console/costs/budget"): [PageCase(ADMIN, {"project_tokens": "1000"})],
    ("POST", "/console/inbox/schedule"): [PageCase(ADMIN, {"every_hours": "24"})],
    ("POST", "/console/user-tokens/origins"): [PageCase(ADMIN, {"origins": "https://x.org"})],
    ("GET", "/console/user-tokens"): [PageCase(READ), PageCase(READ, {"user_id": "maya"})],
    ("POST", "/console/user-tokens"): [PageCase(WRITE, {"user_id": "jon", "rights": "read"})],
    ("POST", "/console/user-tokens/{token_id}/revoke"): [PageCase(WRITE)],
    ("GET", "/console/admin"): [PageCase(ADMIN)],
    ("POST", "/console/admin/keys"): [PageCase(ADMIN, {"name": "door", "scope": "read"})],
    ("POST", "/console/admin/keys/{key_id}/revoke"): [PageCase(ADMIN)],
    ("POST", "/console/admin/members"): [
        PageCase(ADMIN, {"email": "me@example.org", "role": "READER"})
    ],
    ("POST", "/console/admin/members/remove"): [PageCase(ADMIN, {"email": "none@example.org"})],
    ("POST", "/console/admin/projects"): [PageCase(ADMIN, {"name": "mine"})],
    ("GET", "/console/playground"): [PageCase(READ)],
    ("POST", "/console/playground"): [PageCase(WRITE, {"conversation": "I moved to Lima."})],
}
EACH = pytest.mark.parametrize(
    ("method", "path", "case"),
    [(*route, case) for route, cases in CASES.items() for case in cases],
    ids=[f"{m} {p} {n}" for (m, p), cases in CASES.items() for n, _ in enumerate(cases, 1)],
)
UNUSED = {"name": "console.css", "path": "nowhere", "token": "none", "action": "reject"}


@dataclass
class Siege:
    """Two tenants of one server: the intruder's browsers, by right, and the ledger's rows.

    `watching`: the victim's browser.
    """

    service: Service
    victim: Tenant
    intruder: Tenant
    browsers: dict[Access, Browser]
    anonymous: Browser
    watching: Browser
    before: dict[str, set[str]]
    owned: dict[str, int]

    async def send(
        self, browser: Browser, method: str, path: str, case: PageCase, ids: Holding
    ) -> httpx.Response:
        """Get the page, or send the form, with these ids."""
        given = asdict(ids) | UNUSED
        values = {name: value.format(**given) for name, value in case.values.items()}
        address = path.replace(":path", "").format(**given)
        if method == "GET":
            return await browser.get(address, **values)
        return await browser.send(address, **values)

    async def holds(self) -> None:
        """Check that no row of the victim was changed, and that none was added."""
        await self.service.engine.drain()
        now = await rows(self.service.engine.ledger)
        changed = {name: count - now[name] for name, count in self.before.items()}
        assert {name: lost for name, lost in changed.items() if lost} == {}
        assert await owned(self.service.engine.ledger, self.victim) == self.owned


@pytest.fixture(scope="module")
async def siege(module_ledger: Ledger) -> AsyncIterator[Siege]:
    async with serving(module_ledger, sync_wait_s=0.01) as service, AsyncExitStack() as stack:
        victim = await furnish(service, "victim", f"I live in {WORD}.")
        before = await rows(module_ledger)
        intruder = await furnish(service, "intruder", "I live in Oslo.")
        enter = stack.enter_async_context
        browsers = {a: await enter(browsing(service.app, intruder.keys[a])) for a in Access}
        anonymous = await enter(browsing(service.app))
        watching = await enter(browsing(service.app, victim.keys[READ]))
        mine = await owned(module_ledger, victim)
        yield Siege(service, victim, intruder, browsers, anonymous, watching, before, mine)


def test_every_route_has_a_case() -> None:
    served = {
        (method, context.path)
        for context in iter_route_contexts(create_app(Settings()).routes)
        for method in context.methods or ()
        if method != "HEAD" and (context.path or "").startswith("/console")
    }
    assert served == set(CASES)


@EACH
async def test_no_page_shows_or_changes_anothers_data(
    siege: Siege, method: str, path: str, case: PageCase
) -> None:
    if path.endswith("sign-out"):
        return
    mine, theirs = siege.intruder.holding, siege.victim.holding
    browser = siege.browsers[ADMIN]
    used = path + " ".join(case.values.values())
    named = [name for name in re.findall(r"{(\w+)", used) if name in asdict(mine)]
    answer = await siege.send(browser, method, path, case, theirs)
    assert answer.status_code < 500 or answer.status_code == 501, answer.text
    shown = answer.text
    for name in named:  # the page may repeat the id that it was asked for
        shown = shown.replace(str(asdict(theirs)[name]), "").replace(
            str(asdict(theirs)[name])[:8], ""
        )
    assert not [it for it in (WORD, *asdict(theirs).values()) if it in shown], answer.text
    if named:
        made_up = {name: str(uuid4()) for name in named}
        unknown = await siege.send(browser, method, path, case, replace(theirs, **made_up))
        assert answer.status_code == unknown.status_code
        if re.search(r"{(?!name|token}|action)", path):
            assert answer.status_code == 404
    await siege.holds()


async def test_a_page_part_that_consoles_share_stays_in_its_project(siege: Siege) -> None:
    update = {"HX-Request": "true"}
    theirs = (await siege.watching.client.get("/console/live", headers=update)).text
    mine = (await siege.browsers[READ].client.get("/console/live", headers=update)).text
    assert siege.victim.holding.event_id in theirs
    assert siege.intruder.holding.event_id in mine
    assert not [it for it in (WORD, *asdict(siege.victim.holding).values()) if it in mine]
    await siege.holds()


@EACH
async def test_a_session_does_what_its_key_may_and_no_more(
    siege: Siege, method: str, path: str, case: PageCase
) -> None:
    own = siege.intruder.holding
    # A form that changes something gets unknown ids, so that nothing is changed.
    ids = own if method == "GET" else replace(own, **{name: str(uuid4()) for name in asdict(own)})
    anonymous = await siege.send(siege.anonymous, method, path, case, ids)
    if case.needs is None:
        assert anonymous.status_code in (200, 303, 401, 404)
        return
    assert anonymous.status_code == (303 if method == "GET" else 401)
    if path.endswith("sign-out"):
        return
    for access, browser in siege.browsers.items():
        answer = await siege.send(browser, method, path, case, ids)
        if access.allows(case.needs):
            assert answer.status_code not in (401, 403, 500), answer.text
        else:
            assert answer.status_code == 403
            assert f"scope {case.needs}" in text_of(answer)


@EACH
async def test_a_form_without_the_sessions_token_changes_nothing(
    siege: Siege, method: str, path: str, case: PageCase
) -> None:
    if method == "GET" or case.needs is None:
        return
    browser = siege.browsers[ADMIN]
    for csrf in ("", "0" * 64, siege.browsers[WRITE].csrf):
        given = asdict(siege.intruder.holding) | UNUSED
        values = {name: value.format(**given) for name, value in case.values.items()}
        answer = await browser.send(path.format(**given), csrf=csrf, **values)
        assert answer.status_code == 403, answer.text
        assert "does not belong to your session" in text_of(answer)
