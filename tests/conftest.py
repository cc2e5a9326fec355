"""Real servers for the tests that need them, started once per test process, stopped at its end."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import text
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling, Scheduling

from deploy.stack.servers import Chroma, Postgres, Redis
from pipeline.ledger.engine import SESSION, connect
from pipeline.migrate import migrate
from pipeline.stores import Ledger
from tests.support.bolt_server import ArcadeDB, BoltAddress, package
from tests.support.engine import Engine, build_ledger
from tests.support.recount import drift
from tests.support.shown_states import wrong_marks

TEMPLATE = "memlane_template"
# Folders of the tests that start whole stacks.
STACKS = ("tests/e2e/", "tests/chaos/")
# Seconds for a test of whole stacks, each of which takes up to a minute to start on a slow machine.
STACKS_S = 600
IDLE_LIMIT_MS = "60000"
MEMORY, MEMORY_BYTES = Path("/dev/shm"), 4 * 2**30


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("memlane")
    group.addoption("--answers", type=int, default=1_000, help="random answers of a lossy model")
    group.addoption(
        "--external",
        action="store_true",
        help="the shared stack of tests/e2e uses external PostgreSQL and RabbitMQ, and pgvector",
    )
    group.addoption(
        "--containers",
        action="store_true",
        help="the shared stack of tests/e2e is that of deploy/docker/compose.yaml, in containers",
    )
    group.addoption(
        "--bolt",
        nargs="+",
        metavar="PART",
        help="graph server to test instead of ArcadeDB: URL [USER PASSWORD [DATABASE]]; its data of"
        " Memlane is deleted",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests of whole stacks their time limit, unless they have a limit of their own."""
    for item in items:
        if item.nodeid.startswith(STACKS) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(STACKS_S))


class ModulesWithStacks(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """Scheduling of pytest-xdist: a module with stacks runs in one process, other tests in any.

    So each stack is started once. The modules come first, because they take longest.
    """

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        return module if module.startswith(STACKS) else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """Group tests for `--dist loadgroup`; its own marks have no effect with pytest 9.2.

    Source: https://github.com/pytest-dev/pytest-xdist/issues/1386
    """
    return ModulesWithStacks(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A server for the databases of the tests, in memory where the system has enough for that.

    Every test creates and deletes a thousand files; on ext4 that takes up to 400 ms. Tests hold
    locks while they wait for others, and a busy machine may stop this process for seconds: the
    product's limit of five would end such a transaction.
    """
    in_memory = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_BYTES
    with (
        pytest.MonkeyPatch.context() as patched,
        tempfile.TemporaryDirectory(dir=MEMORY if in_memory else None) as folder,
        Postgres(Path(folder) / "postgres") as server,
    ):
        patched.setitem(SESSION, "idle_in_transaction_session_timeout", IDLE_LIMIT_MS)
        yield server


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    with Redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="session")
def chroma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chroma]:
    with Chroma(tmp_path_factory.mktemp("chroma")) as server:
        yield server


@pytest.fixture(scope="session")
def bolt(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BoltAddress]:
    """A graph server: that of `--bolt`, else an ArcadeDB of the tests, else the test is skipped."""
    if given := request.config.getoption("--bolt"):
        yield BoltAddress(*given)
    elif package() is None:
        pytest.skip("no graph server: the package arcadedb-embedded is not for this platform")
    else:
        with ArcadeDB(tmp_path_factory.mktemp("arcadedb")) as server:
            yield server.address


@pytest.fixture(scope="session")
async def template(postgres: Postgres) -> str:
    """A migrated database to copy: every test gets one of its own.

    Without fsync, a copy of the files takes 40 ms with its removal, instead of 300 ms. A test kills
    PostgreSQL, never the machine: the kernel keeps what was written.
    """
    await _execute(postgres.url, "ALTER SYSTEM SET fsync = off")
    await _execute(postgres.url, "SELECT pg_reload_conf()")
    await _execute(postgres.url, f"CREATE DATABASE {TEMPLATE}")
    engine = connect(_database(postgres.url, TEMPLATE), pool_size=1)
    await migrate(engine)
    await engine.dispose()
    return TEMPLATE


@pytest.fixture
async def database_url(postgres: Postgres, template: str) -> AsyncIterator[str]:
    name = f"test_{uuid4().hex}"
    await _execute(postgres.url, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
    yield _database(postgres.url, name)
    await _execute(postgres.url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
async def ledger(database_url: str) -> AsyncIterator[Ledger]:
    """A ledger for one test; its books and marks must be exact at the end."""
    built = build_ledger(database_url)
    yield built
    wrong = [*await drift(built.engine), *await wrong_marks(built.engine)]
    await built.close()
    assert wrong == []


@pytest.fixture(scope="module")
async def module_ledger(postgres: Postgres, template: str) -> AsyncIterator[Ledger]:
    """One ledger for all tests of a module."""
    name = f"test_{uuid4().hex}"
    await _execute(postgres.url, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
    built = build_ledger(_database(postgres.url, name))
    yield built
    await built.close()
    await _execute(postgres.url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
async def engine(ledger: Ledger) -> Engine:
    """The pipeline in this process: real ledger, fakes for models and vectors, hints by hand."""
    return await Engine.create(ledger)


@pytest.fixture
def project_root() -> Path:
    return Path(__file__).resolve().parent.parent


def _database(url: str, name: str) -> str:
    return url.rpartition("/")[0] + "/" + name


async def _execute(url: str, statement: str) -> None:
    engine = connect(url, pool_size=1)
    async with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        await connection.execute(text(statement))
    await engine.dispose()
