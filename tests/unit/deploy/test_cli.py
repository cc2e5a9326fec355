"""The `memlane` command without a running stack: help, version, doctor, and errors of the API."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from deploy.cli import doctor, events
from deploy.cli.app import app
from deploy.cli.connection import ApiConnection
from deploy.cli.context import Options
from deploy.cli.findings import CheckStatus, show
from deploy.stack import ports
from deploy.stack.failure import StackError
from deploy.stack.layout import PROJECT_ROOT, Layout
from pipeline import __version__
from pipeline.model_settings import LLMSettings, ModelSettings
from pipeline.settings import Settings

PROMISED = (
    *(
        "up",
        "down",
        "status",
        "logs",
        "demo",
        "doctor",
        "repair",
        "reindex",
        "backup",
        "restore",
        "migrate",
    ),
    *("keys list", "keys create", "keys revoke", "keys recover"),
    *("events list", "events show", "events retry"),
    *("replay start", "replay list", "replay show", "replay diff", "replay switch"),
)


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("command", PROMISED)
def test_every_command_explains_itself(command: str) -> None:
    words = command.split()
    line = rf"^│ {words[-1]} +[A-Z]\w+ "
    assert re.search(line, invoke(*words[:-1], "--help"), re.MULTILINE)
    assert f"Usage: memlane {command}" in invoke(*words, "-h")


@pytest.mark.parametrize("command", ["hook", "proxy"])
def test_the_clients_commands_show_their_name_and_the_stacks_address(
    command: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "deploy.cli", command, "--help"],
        cwd=PROJECT_ROOT,
        env=os.environ  # noqa: TID251  of the command
        | {"MEMLANE_DATA_DIR": str(tmp_path), "MEMLANE_PORT": "8123", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.startswith(f"usage: memlane {command} ")
    assert str(tmp_path / "api_key") in done.stdout
    assert "http://127.0.0.1:8123" in done.stdout


def test_a_command_does_not_import_the_modules_of_others() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from deploy.cli.app import app;"
        " CliRunner().invoke(app, ['status', '--help']); print('deploy.cli.stack' in sys.modules,"
        " sorted({'deploy.cli.doctor', 'pipeline.bootstrap', 'alembic'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=PROJECT_ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "True []\n"


def test_a_misspelt_command_names_the_nearest() -> None:
    result = CliRunner().invoke(app, ["stauts"])
    assert result.exit_code == 2
    assert "Did you mean 'status'?" in result.output


def test_the_version_is_that_of_the_package() -> None:
    assert invoke("--version") == f"memlane {__version__}\n"


@pytest.mark.parametrize("arguments", [(), ("some-id", "--user", "maya")])
def test_a_retry_wants_an_id_or_a_filter_and_not_both(arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, ["events", "retry", *arguments])
    assert result.exit_code == 2
    assert "at least one filter" in result.output


# ── the API's errors ─────────────────────────────────────────────────────────────────────────────


def answering(response: httpx.Response) -> ApiConnection:
    return ApiConnection("http://api", "key", transport=httpx.MockTransport(lambda _: response))


@pytest.mark.parametrize(
    ("response", "text"),
    [
        (httpx.Response(404, json={"error": "Event not found."}), "404: Event not found."),
        (httpx.Response(502, text="<html>"), "502: Bad Gateway"),
        (httpx.Response(500, json=["no object"]), "500: Internal Server Error"),
        (httpx.Response(302, headers={"Location": "https://sign.in"}), "302: Found"),
    ],
)
def test_an_error_of_the_api_is_shown_as_it_says(response: httpx.Response, text: str) -> None:
    with answering(response) as api, pytest.raises(StackError) as raised:
        api.get("/v1/event/x/")
    assert str(raised.value) == text


@pytest.mark.parametrize(
    "response", [httpx.Response(200, text="<html>"), httpx.Response(200, json=[1])]
)
def test_a_response_of_another_server_is_one_sentence(response: httpx.Response) -> None:
    with answering(response) as api:
        with pytest.raises(StackError, match=r"http://api is not a Memlane"):
            api.get("/v1/events/")
        with pytest.raises(StackError, match=r"http://api is not a Memlane"):
            api.submit("/v1/transfer/import/", records=[])


@dataclass
class Receiver:
    """A server that answers 404, and the paths that were requested."""

    url: str
    paths: list[str] = field(default_factory=list)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            opened.paths.append(self.path)
            self.send_error(404)

        def do_DELETE(self) -> None:
            self.do_POST()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        opened = Receiver(f"http://127.0.0.1:{server.server_port}")
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield opened
        server.shutdown()
        serving.join()


@pytest.mark.parametrize(
    "words",
    [
        ("replay", "discard", "../entities/user/maya"),
        ("keys", "revoke", "../../v2/entities/user/maya"),
        ("events", "retry", "x/../../entities/user/maya"),
    ],
)
def test_an_id_cannot_lead_a_command_to_another_route(
    words: tuple[str, ...], tmp_path: Path, receiver: Receiver
) -> None:
    """A delete of a replay would become the erasure of a user."""
    (tmp_path / "key").write_text("ml_x")
    CliRunner().invoke(app, ["--url", receiver.url, "--key-file", str(tmp_path / "key"), *words])
    [path] = receiver.paths
    assert "/entities/" not in path
    assert "%2Fentities%2F" in path


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("ml_x")
    options = ["--url", "http://127.0.0.1:9", "--key-file", str(tmp_path / "key")]
    result = CliRunner().invoke(app, [*options, "export", str(tmp_path / "none" / "a.jsonl")])
    assert isinstance(result.exception, StackError)
    assert "cannot be written (No such file or directory)" in str(result.exception)


def test_an_empty_id_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("ml_x")
    options = ["--url", "http://127.0.0.1:9", "--key-file", str(tmp_path / "key")]
    result = CliRunner().invoke(app, [*options, "keys", "revoke", ""])
    assert str(result.exception) == "The id is empty."


def test_a_line_of_an_export_ends_at_a_line_feed_only() -> None:
    texts = ["a\u2028b", "c\u2029d\x85e", "f\x7f😀"]
    lines = [json.dumps({"type": "memory", "text": text}, ensure_ascii=False) for text in texts]
    content = "\n".join(lines).encode()
    pieces = (content[place : place + 3] for place in range(0, len(content), 3))
    with answering(httpx.Response(200, content=pieces)) as api:
        assert list(api.stream("/v1/transfer/export/")) == lines


def test_an_api_out_of_reach_is_named_with_what_to_do() -> None:
    def refuse(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with (
        ApiConnection("http://api:1", "key", transport=httpx.MockTransport(refuse)) as api,
        pytest.raises(StackError, match=r"Nothing answers at http://api:1 .* up`, .* --url"),
    ):
        api.post("/v1/keys/", name="x")
    with pytest.raises(StackError, match="Nothing answers at"):
        ApiConnection("http://[::1", "key")


def test_an_api_on_this_machine_is_called_without_the_proxy_of_the_environment(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with ApiConnection(receiver.url, "key") as api, pytest.raises(StackError, match="404"):
        api.post("/v1/console/links/")
    assert receiver.paths == ["/v1/console/links/"]


def test_a_url_without_its_scheme_is_refused_with_the_scheme() -> None:
    result = CliRunner().invoke(app, ["--url", "127.0.0.1:8000", "events", "list"])
    assert result.exit_code == 2
    assert "http://127.0.0.1:8000" in result.output


def test_an_event_that_waits_is_shown_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    scope: dict[str, str | None] = dict.fromkeys(("user_id", "agent_id", "app_id", "run_id"))
    event: dict[str, Any] = {
        **dict.fromkeys(("code", "error", "note", "graph_status", "completed_at")),
        "id": "an-id",
        "status": "PENDING",
        "payload": scope,
        "results": [],
        "stages": [],
        "created_at": "2026-11-24T12:00:00+00:00",
        "waiting": {"code": "LLM_REJECTED"},
        "usage": {"models": [], "calls": 0, "prompt_tokens": 0, "completion_tokens": 0},
    }
    events.print_event(event)
    assert "  waits for LLM_REJECTED\n" in capsys.readouterr().out


@pytest.mark.parametrize("content", [None, b"\n", b"\xff\xfe", b"ml_a\nml_b\n"])
def test_a_lost_key_is_named_with_its_repair(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "key"
    if content is not None:  # such as after a redirect of a command that failed
        path.write_bytes(content)
    with pytest.raises(StackError, match=rf"No API key at .*`memlane keys recover > {path}`"):
        Options("http://api", path).connect()


# ── doctor ───────────────────────────────────────────────────────────────────────────────────────


def test_a_new_machine_passes_every_check(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "new", port=ports.choose())
    findings = doctor.examine(settings, Layout(settings.data_dir))
    assert [(f.check, f.text) for f in findings if f.status is not CheckStatus.OK] == []
    assert [f.check for f in findings] == [
        *("python", "settings", "data", "stack", "port"),
        *("database", "broker", "vectors", "llm", "embedder"),
    ]
    assert show(findings) == 0
    assert not settings.data_dir.exists()


def test_a_port_in_use_is_a_failure_that_names_its_setting() -> None:
    with socket.create_server((ports.HOST, 0)) as server:
        finding = doctor.check_port(server.getsockname()[1], running=False)
    assert (finding.status, finding.advice) == (
        CheckStatus.FAIL,
        "set MEMLANE_PORT to another one",
    )
    assert show([finding]) == 1


class OneAnswer(BaseHTTPRequestHandler):
    body = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None: ...


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"status": "ok", "version": "0.2.0"}', CheckStatus.OK),
        (b'{"status": "ok"}', CheckStatus.FAIL),
        (b"hello", CheckStatus.FAIL),
        (b"7", CheckStatus.FAIL),
    ],
)
def test_a_port_of_an_api_without_a_stack_is_in_order(body: bytes, status: CheckStatus) -> None:
    """As in a container, where the command runs beside the API."""
    answer = type("Answer", (OneAnswer,), {"body": body})
    with HTTPServer((ports.HOST, 0), answer) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        finding = doctor.check_port(server.server_port, running=False)
    assert finding.status is status
    if status is CheckStatus.OK:
        assert finding.text.endswith("used by an API of Memlane 0.2.0")


def test_a_stack_without_its_key_file_is_a_warning(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    assert doctor.check_key(layout) == []
    layout.env.touch()
    (finding,) = doctor.check_key(layout)
    assert finding.status is CheckStatus.WARN
    assert finding.text.startswith("no key file")
    assert f"`memlane keys recover > {layout.api_key}`" in finding.advice
    layout.api_key.write_text("ml_a_key\n")
    (finding,) = doctor.check_key(layout)
    assert (finding.status, finding.text) == (CheckStatus.OK, f"in {layout.api_key}")


def test_a_data_directory_that_is_a_file_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    finding = doctor.check_data_dir(tmp_path / "file" / "data")
    assert finding.status is CheckStatus.FAIL
    assert "MEMLANE_DATA_DIR" in finding.advice


def test_servers_and_models_that_settings_name_are_probed(tmp_path: Path) -> None:
    nothing = f"127.0.0.1:{ports.choose()}"
    settings = Settings.model_validate(
        {
            "data_dir": tmp_path,
            "database_url": f"postgresql://me:a-secret@{nothing}/db",
            "vectors": "qdrant",
            "llm": LLMSettings(model="bogus/none"),
            "embedder": ModelSettings(model="local/bogus"),
        }
    )
    findings = {f.check: f for f in doctor.examine(settings, Layout(tmp_path))}
    failed = {name for name, f in findings.items() if f.status is CheckStatus.FAIL}
    assert failed >= {"database", "vectors", "llm", "embedder"}
    assert findings["database"].text.startswith(f"MEMLANE_DATABASE_URL ({nothing}): ")
    assert all("a-secret" not in f.text + f.advice for f in findings.values())
    assert all(findings[name].advice for name in failed)
