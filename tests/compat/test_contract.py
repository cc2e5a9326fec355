"""Every documented operation of the Mem0 Platform has the documented shape on a real stack."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import httpx
import jsonschema
import pytest

from tests.compat.contract import OPERATIONS, USER, Operation
from tests.support.stack import Stack

DOCUMENTED = 55
# Differences that are intended or still open; docs/reference/api-compat.md lists them.
DIFFERS = {"POST /v1/summary/"}


class Caller:
    """Client that calls one operation after another, and keeps the ids in the answers."""

    def __init__(self, client: httpx.Client, key: str) -> None:
        self._client = client
        self._key = key
        self.ids: dict[str, str] = {}

    def ask(self, method: str, path: str, *, key: str | None = None, **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Token {key or self._key}"}
        return self._client.request(method, path, headers=headers, **more)

    def prepare(self) -> None:
        ping = self.ask("GET", "/v1/ping/").json()
        self.ids |= {name: ping[name] for name in ("org_id", "project_id")}
        for name, text in (("memory_id", "I live in Porto."), ("other_memory_id", "I like tea.")):
            message = [{"role": "user", "content": text}]
            made = self.ask(
                "POST", "/v3/memories/add/", json={"messages": message, "infer": False} | USER
            ).json()
            self.ids |= {name: made["results"][0]["id"], "event_id": made["event_id"]}

    def fault(self, operation: Operation) -> str:
        """First difference between the answer and its schema; empty if there is none."""
        path, body = self._filled(operation.path), self._filled(json.dumps(operation.body))
        more: dict[str, Any] = {"json": json.loads(body)} if operation.body is not None else {}
        key = self.ids.get("new_key") if "{new_org_id}" in operation.path else None
        answer = self.ask(operation.method, path, params=dict(operation.query), key=key, **more)
        if answer.status_code != operation.status:
            return f"status {answer.status_code}: {answer.text[:200]}"
        value = answer.json()
        checker = jsonschema.Draft202012Validator(
            dict(operation.answer), format_checker=jsonschema.FormatChecker()
        )
        if error := next(checker.iter_errors(value), None):
            return f"{error.json_path}: {error.message[:200]}"
        self._keep(operation, value)
        return ""

    def _filled(self, text: str) -> str:
        for name, value in self.ids.items():
            text = text.replace("{" + name + "}", value)
        return text

    def _keep(self, operation: Operation, value: Any) -> None:
        match operation.method, operation.path:
            case "POST", "/v1/users/":
                self.ids["number"] = str(value["id"])
            case "POST", "/api/v1/orgs/organizations/":
                self.ids |= {"new_org_id": value["org_id"], "new_key": value["key"]}
            case "POST", path if path.endswith("/projects/"):
                self.ids["new_project_id"] = value["project_id"]
            case "POST", path if "/webhooks/" in path:
                self.ids["webhook_id"] = value["webhook_id"]


@pytest.mark.timeout(300)
def test_newest_every_documented_operation_answers_in_its_shape(stack: Stack) -> None:
    faults: dict[str, list[str]] = defaultdict(list)
    with httpx.Client(base_url=stack.url, timeout=120) as client:
        caller = Caller(client, stack.key)
        caller.prepare()
        for operation in OPERATIONS:
            faults[f"{operation.method} {operation.path}"].append(caller.fault(operation))
    wrong = {name: answers for name, answers in faults.items() if any(answers)}
    print(f"\ndocumented operations: {len(faults) - len(wrong)} of {len(faults)} in their shape")
    assert len(faults) == DOCUMENTED
    assert {name: answers for name, answers in wrong.items() if name not in DIFFERS} == {}


def test_newest_a_shape_that_differs_is_found() -> None:
    [ping, *_] = OPERATIONS
    checker = jsonschema.Draft202012Validator(dict(ping.answer))
    assert list(checker.iter_errors({"status": "ok", "org_id": 7, "project_id": "x"}))
