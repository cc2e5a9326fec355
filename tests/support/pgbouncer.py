"""PgBouncer in front of PostgreSQL, from Debian's package `pgbouncer`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import ClassVar, Literal

from sqlalchemy import make_url

from deploy.stack.command import Command
from deploy.stack.failure import StackError
from deploy.stack.ports import HOST
from deploy.stack.postgres import PROTOCOL_3, choose_user
from deploy.stack.server import Server, exchange, own_environment

CONFIG = """\
[databases]
* = host={host} port={target_port}
[pgbouncer]
listen_addr = {host}
listen_port = {port}
unix_socket_dir =
auth_type = plain
auth_file = {users}
pool_mode = {mode}
max_client_conn = 400
default_pool_size = {size}
ignore_startup_parameters = extra_float_digits
"""


class PgBouncer(Server):
    """A pooler for one server. `size`: sessions that it opens there."""

    name: ClassVar[str] = "pgbouncer"

    def __init__(
        self, root: Path, target: str, *, mode: Literal["session", "transaction"], size: int = 20
    ) -> None:
        super().__init__(root)
        program = shutil.which("pgbouncer")
        if program is None:
            raise StackError("pgbouncer is missing: install Debian's package pgbouncer.")
        self._program = program
        self._target = make_url(target)
        self._mode, self._size = mode, size

    @property
    def url(self) -> str:
        """URL of the database, through the pooler."""
        through = self._target.set(host=HOST, port=self.port)
        return through.render_as_string(hide_password=False)

    def prepare(self) -> None:
        """Write the configuration."""
        folder = self.layout.root / "pgbouncer"
        folder.mkdir(exist_ok=True)
        users, config = folder / "users.txt", folder / "pgbouncer.ini"
        users.write_text(f'"{self._target.username}" "{self._target.password}"\n')
        config.write_text(
            CONFIG.format(
                host=HOST,
                port=self.port,
                target_port=self._target.port,
                users=users,
                mode=self._mode,
                size=self._size,
            )
        )

    def command(self) -> Command:
        """Command line of the pooler."""
        folder = self.layout.root / "pgbouncer"
        # PgBouncer refuses to run as root, as PostgreSQL does.
        user = choose_user(Path(self._program), self.layout.root, folder)
        argv = (self._program, str(folder / "pgbouncer.ini"))
        return Command(argv, own_environment(), cwd=folder, user=user)

    def ready(self) -> bool:
        """True if it answers the start of a session."""
        names = f"user\0{self._target.username}\0database\0{self._target.database}\0\0".encode()
        packet = (8 + len(names)).to_bytes(4, "big") + PROTOCOL_3.to_bytes(4, "big") + names
        return exchange(self.port, packet, enough=1)[:1] == b"R"
