"""Packages of other projects that use a client of Mem0, each called by a small driver."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.compat.environments import node_with, python_with
from tests.compat.test_clients import CLIENTS, judge

# Packages send telemetry unless it is disabled.
QUIET = {"OTEL_SDK_DISABLED": "true", "HAYSTACK_TELEMETRY_ENABLED": "false"}


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("package", "driver", "checks"),
    [
        ("@mem0/vercel-ai-provider@3.0.2", "vercel_provider.mjs", 5),
        ("@mem0/community@0.0.1", "langchain_memory.mjs", 3),
        ("@mastra/mem0@0.1.4", "mastra.mjs", 2),
        ("@mem0/n8n-nodes-mem0@0.1.4", "n8n_node.mjs", 4),
        ("opencode-mem0-selfhost@0.1.7", "opencode_plugin.mjs", 4),
    ],
    ids=["vercel", "langchain", "mastra", "n8n", "opencode"],
)
def test_the_npm_package(
    package: str, driver: str, checks: int, environment: dict[str, str]
) -> None:
    folder = node_with(package)
    shutil.copy(CLIENTS / "report.mjs", folder)
    script = shutil.copy(CLIENTS / driver, folder)
    done = subprocess.run(
        ["node", script], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    judge(package, done, at_least=checks)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("packages", "driver", "checks"),
    [
        (("mem0-mcp-server==0.2.1", "mcp==1.30.0", "mem0ai==2.2.1"), "mcp_server.py", 9),
        (("mem0-haystack==1.0.0", "haystack-ai==3.4.0", "mem0ai==2.2.1"), "haystack_store.py", 4),
        (
            ("llama-index-memory-mem0==2.1.0", "llama-index-core==0.14.25", "mem0ai==2.2.1"),
            "llama_memory.py",
            3,
        ),
        (("crewai==0.203.2", "mem0ai==0.1.118"), "crew_memory.py", 2),
        (("hermes-agent==0.19.0",), "hermes_memory.py", 5),
    ],
    ids=["mcp-server", "haystack", "llama-index", "crewai", "hermes"],
)
def test_the_python_package(
    packages: tuple[str, ...], driver: str, checks: int, environment: dict[str, str]
) -> None:
    executables = python_with(*packages)
    done = subprocess.run(
        [executables / "python", CLIENTS / driver],
        env=environment | QUIET | {"PYTHONPATH": str(CLIENTS / "redirect")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    judge(packages[0], done, at_least=checks)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("framework", "driver", "checks"),
    [
        (("langgraph==1.2.22",), "langgraph_store.py", 13),
        (("google-adk==2.13.0",), "adk_memory.py", 7),
        (("openai-agents==0.24.0", "httpx==0.28.1"), "agents_session.py", 9),
    ],
    ids=["langgraph", "adk", "openai-agents"],
)
def test_our_client_in_the_framework(
    framework: tuple[str, ...],
    driver: str,
    checks: int,
    environment: dict[str, str],
    project_root: Path,
) -> None:
    executables = python_with(*framework)
    paths = f"{CLIENTS}:{project_root / 'clients/python'}"
    done = subprocess.run(
        [executables / "python", CLIENTS / driver],
        env=environment | QUIET | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    judge(framework[0], done, at_least=checks)
