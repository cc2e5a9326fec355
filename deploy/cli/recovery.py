"""Recovery of a lost admin key, directly in the database."""

from __future__ import annotations

from deploy.stack import ports
from deploy.stack.failure import StackError
from deploy.stack.layout import Layout
from deploy.stack.postgres import Postgres
from deploy.stack.supervisor import is_running
from pipeline.domain.errors import NotFound
from pipeline.domain.tenants import Access
from pipeline.ledger.engine import connect
from pipeline.settings import Settings
from pipeline.tenants.api_keys import ApiKeys
from pipeline.tenants.secret import Secret

NO_DATABASE = "Set MEMLANE_DATABASE_URL, or start the local stack."


async def recover(url: str, name: str) -> str:
    """Create an admin key of the operator's first project in the database and return it.

    Errors: StackError if there is no such project.
    """
    engine = connect(url, pool_size=1, name="memlane recovery")
    try:
        keys = ApiKeys(engine)
        lost = await keys.last_admin()
        _, secret = await keys.make(lost.project.id, name=name, access=Access.ADMIN, by=lost)
    except NotFound as error:
        raise StackError(str(error)) from error
    finally:
        await engine.dispose()
    return secret.key


async def is_valid(url: str, key: str) -> bool:
    """True if the database knows this key, and it is neither revoked nor expired."""
    engine = connect(url, pool_size=1, name="memlane recovery")
    try:
        return bool(await ApiKeys(engine).grants([Secret(key).digest]))
    finally:
        await engine.dispose()


def database_url(configured: Settings, layout: Layout) -> str:
    """URL of the configured database, else of the running local stack's own.

    Errors: StackError if there is neither.
    """
    if configured.database_url is not None:
        return configured.database_url.get_secret_value()
    port = ports.read(layout.ports).get(Postgres.name)
    if port is None or not is_running(layout):
        raise StackError(NO_DATABASE)
    return Postgres(layout.root, port=port).url
