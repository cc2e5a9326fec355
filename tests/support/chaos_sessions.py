"""Sessions of the chaos runs beside the chats: temporary runs, erasures, dry runs, the curator.

Session n has four parts. What each must leave:

    guest-n     one ordinary turn, and a temporary run that is ended    the ordinary turn only
    deletia-n   turns of a user who is erased, often in their middle    nothing
    dry-n       a dry run                                               no memory
    curator     a run over the scope of a chat                          suggestions only

The texts that must vanish contain a word that occurs nowhere else.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.support.chaos_ledger import LedgerWindow, holds
from tests.support.chaos_load import API_BACK_WITHIN_S, CUT_OFF, ClientLog, user_of
from tests.support.stack import Stack

TURNS = 3
ERASED_WITHIN_S = 90.0
SEALED_WITHIN_S = 120.0
VANISHED, ERASED = "Vanished", "Deletia"
COLUMNS = """
SELECT table_name, column_name FROM information_schema.columns
WHERE table_schema = 'public' AND table_name <> 'alembic_version'
"""
KEPT = """
SELECT l.user_id, count(*) AS memories FROM memories m JOIN lanes l ON l.id = m.lane_id
WHERE m.state = 'ACTIVE' AND l.run_id IS NULL AND m.text LIKE 'User lives in Keep%'
GROUP BY l.user_id
"""
DRY = """
SELECT count(*) AS memories FROM memories m JOIN lanes l ON l.id = m.lane_id
WHERE l.user_id LIKE 'dry-%'
"""
ORGANIZATIONS = "/api/v1/orgs/organizations/"


@dataclass(slots=True)
class SessionLog:
    """Log of the sessions. `ordinary`: guests whose ordinary turn was accepted."""

    done: int = 0
    ordinary: list[str] = field(default_factory=list)
    erasures: list[str] = field(default_factory=list)
    curator_runs: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class SessionLoad:
    """Clients of `sessions` sessions. Their adds are counted in the log of all clients."""

    def __init__(
        self,
        stack: Stack,
        clients: ClientLog,
        *,
        sessions: int,
        seed: int,
        may_send: Callable[[], Awaitable[None]],
    ) -> None:
        self.log = SessionLog()
        self._clients = clients
        self._sessions = sessions
        self._chance = random.Random(f"{seed}/sessions")
        self._may_send = may_send
        self._repeats = 0
        self._http = httpx.AsyncClient(
            base_url=stack.url, headers={"Authorization": f"Token {stack.key}"}, timeout=30
        )

    async def run(self, stopped: asyncio.Event) -> None:
        """Run the sessions, one after another."""
        for number in range(self._sessions):
            if stopped.is_set():
                return
            await self._temporary(number)
            await self._erased(number)
            await self._add(f"dry-{number}", f"I moved to Dry{number}k.", dry_run=True)
            await self._curate()
            self.log.done += 1

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def seal(self) -> None:
        """Switch tamper evidence on for the project."""
        ids = (await self._answer("GET", "/v1/ping/")).json()
        path = f"{ORGANIZATIONS}{ids['org_id']}/projects/{ids['project_id']}/"
        await self._answer("PATCH", path, tamper_evidence=True)

    async def _temporary(self, number: int) -> None:
        guest, run = f"guest-{number}", f"visit-{number}"
        await self._answer("PUT", f"/v1/runs/{run}/", privacy="temporary")
        if await self._add(guest, f"I moved to Keep{number}k."):
            self.log.ordinary.append(guest)
        for turn in range(TURNS):
            event_id = await self._add(guest, _lost(VANISHED, number, turn), run_id=run)
            await self._maybe_wait(event_id)
        await self._erase("run", run)

    async def _erased(self, number: int) -> None:
        user = f"{ERASED.lower()}-{number}"
        for turn in range(TURNS):
            event_id = await self._add(user, _lost(ERASED, number, turn))
            await self._maybe_wait(event_id)
        await self._erase("user", user)

    async def _erase(self, kind: str, owner_id: str) -> None:
        """An erasure is an event; a request that was cut off may have made one, too."""
        repeats = self._repeats
        self._clients.open += 1
        answer = await self._answer("DELETE", f"/v2/entities/{kind}/{owner_id}/")
        self._clients.accepted += 1
        self._clients.in_doubt += self._repeats - repeats
        self._clients.open -= 1
        self.log.erasures.append(str(answer.json()["event_id"]))

    async def _curate(self) -> None:
        known = [scope for scope, log in self._clients.scopes.items() if log.accepted]
        if not known:
            return
        user = user_of(self._chance.choice(known))
        answer = await self._answer("POST", "/v1/curator/runs/", user_id=user)
        self.log.curator_runs.append(str(answer.json()["id"]))

    async def _maybe_wait(self, event_id: str | None) -> None:
        """Wait for the end of some events, so that sessions end in the middle of others."""
        if event_id and self._chance.random() < 0.5:
            await self._answer("GET", f"/v1/event/{event_id}/?wait=10")

    async def _add(self, user_id: str, text: str, **options: Any) -> str | None:
        """Send an add once; its event id, or None if it is in doubt or was not accepted."""
        await self._may_send()
        body = {"messages": [{"role": "user", "content": text}], "user_id": user_id} | options
        self._clients.open += 1
        try:
            answer = await self._http.post("/v3/memories/add/", json=body)
        except CUT_OFF:
            answer = None
        if answer is not None and answer.status_code == 200:
            self._clients.accepted += 1
        elif answer is None or answer.status_code != 429:
            self._clients.in_doubt += 1
        self._clients.open -= 1
        if answer is None or answer.status_code != 200:
            await self._api_back()
            return None
        return str(answer.json()["event_id"])

    async def _answer(self, method: str, path: str, **body: Any) -> httpx.Response:
        """Send a request that may be repeated until it is answered with 2xx."""
        for _ in range(20):
            try:
                answer = await self._http.request(method, path, json=body or None)
            except CUT_OFF:
                answer = None
            if answer is not None and answer.is_success:
                return answer
            if answer is not None and answer.status_code not in (409, 429, 500, 502, 503):
                break
            self._repeats += 1
            await self._api_back()
        text = answer.text[:200] if answer is not None else "no answer"
        raise AssertionError(f"{method} {path}: {text}")

    async def _api_back(self) -> None:
        async def ready() -> bool:
            try:
                return (await self._http.get("/readyz")).status_code == 200
            except CUT_OFF:
                return False

        assert await holds(ready, within_s=API_BACK_WITHIN_S), "the API did not come back"

    # ── checks ───────────────────────────────────────────────────────────────────────────────────

    async def check(self, window: LedgerWindow) -> dict[str, Any]:
        """Compare the ledger with the log; faults go to `log.wrong`. Returns figures."""
        states = Counter([await self._erasure_state(event_id) for event_id in self.log.erasures])
        if set(states) - {"SUCCEEDED"}:
            self.log.wrong.append(f"erasures: {dict(states)}")
        for place, texts in (await traces(window, (VANISHED, ERASED))).items():
            self.log.wrong.append(f"left in {place}: {texts}")
        memories_of = {row["user_id"]: row["memories"] for row in await window.rows(KEPT)}
        self.log.wrong += [
            f"{guest}: {memories_of.get(guest, 0)} ordinary memories, not 1"
            for guest in self.log.ordinary
            if memories_of.get(guest, 0) != 1
        ]
        [dry] = await window.rows(DRY)
        if dry["memories"]:
            self.log.wrong.append(f"dry runs: {dry['memories']} memories")
        curated = Counter([await self._curator_state(run) for run in self.log.curator_runs])
        if "open" in curated:
            self.log.wrong.append(f"curator runs: {dict(curated)}")
        [summaries] = await window.rows("SELECT count(*) AS count FROM summaries")
        return {
            "sessions": self.log.done,
            "erasures": dict(states),
            "guests_kept": len(self.log.ordinary),
            "curator_runs": dict(curated),
            "summaries": summaries["count"],
        }

    async def check_seals(self) -> dict[str, Any]:
        """Wait until all is sealed, and verify it."""
        result: dict[str, Any] = {}

        async def sealed() -> bool:
            result.update(await self._verified())
            return not result["waiting"] and bool(result["sealed"])

        if not await holds(sealed, within_s=SEALED_WITHIN_S, every_s=1.0):
            self.log.wrong.append(f"not sealed: {result}")
        if not result.get("ok"):
            self.log.wrong.append(f"verify: {result}")
        return {name: result.get(name) for name in ("ok", "sealed", "waiting")}

    async def _verified(self) -> dict[str, Any]:
        """Verify all pages of the project."""
        whole: dict[str, Any] = {"ok": True, "sealed": 0, "waiting": 0, "faults": []}
        cursor: str | None = ""
        while cursor is not None:
            path = "/v1/verify/" + (f"?cursor={cursor}" if cursor else "")
            page = (await self._answer("GET", path)).json()
            whole["ok"] = whole["ok"] and page["ok"]
            for name in ("sealed", "waiting", "faults"):
                whole[name] += page[name]
            cursor = page["next"]
        return whole

    async def _erasure_state(self, event_id: str) -> str:
        status = ""

        async def ended() -> bool:
            nonlocal status
            answer = await self._answer("GET", f"/v1/erasures/{event_id}/")
            status = str(answer.json()["status"])
            return status in ("SUCCEEDED", "FAILED")

        await holds(ended, within_s=ERASED_WITHIN_S, every_s=0.2)
        return status

    async def _curator_state(self, run_id: str) -> str:
        run: dict[str, Any] = {}

        async def ended() -> bool:
            nonlocal run
            run = (await self._answer("GET", f"/v1/curator/runs/{run_id}/")).json()
            return bool(run.get("completed_at"))

        if not await holds(ended, within_s=ERASED_WITHIN_S, every_s=0.2):
            return "open"
        return str(run.get("status"))


def _lost(word: str, number: int, turn: int) -> str:
    return f"I moved to {word}{number}x{turn}k. I like {word.lower()}sport{number}x{turn}k."


async def traces(window: LedgerWindow, words: tuple[str, ...]) -> dict[str, list[str]]:
    """Words in the database in any case, by table and column; bytes are searched as hex too."""
    places: dict[str, list[str]] = {}
    for table, column in await window.rows(COLUMNS):
        for word in words:
            forms = (word.lower(), word.encode().hex(), word.lower().encode().hex())
            query = f"""
                SELECT left(CAST("{column}" AS text), 80) AS text FROM "{table}"
                WHERE lower(CAST("{column}" AS text)) LIKE ANY ($1::text[]) LIMIT 3
            """
            rows = await window.rows(query, [f"%{form}%" for form in forms])
            if rows:
                places.setdefault(f"{table}.{column}", []).extend(row["text"] for row in rows)
    return places
