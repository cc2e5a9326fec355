"""PgBouncer in front of PostgreSQL, from Debian's package `pgbouncer`."""

from __future__ import annotations

import os
import pwd
import shutil
from pathlib import Path
from typing import ClassVar, Literal

from sqlalchemy import make_url

from deploy.stack.command import Command
from deploy.stack.failure import StackError
from deploy.stack.ports import HOST
from deploy.stack.postgres import PROTOCOL_3
from deploy.stack.server import Server, exchange, own_environment

USER = "nobody"  # PgBouncer refuses to run as root
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
        if os.geteuid() == 0:
            uid = pwd.getpwnam(USER).pw_uid
            for path in (folder, users, config):
                os.chown(path, uid, -1)

    def command(self) -> Command:
        """Command line of the pooler."""
        argv = [self._program, str(self.layout.root / "pgbouncer" / "pgbouncer.ini")]
        user = "self"
        if os.geteuid() == 0:
            entry = pwd.getpwnam(USER)
            user = f"{entry.pw_uid}:{entry.pw_gid}"
            self.layout.root.chmod(self.layout.root.stat().st_mode | 0o011)
        return Command(tuple(argv), own_environment(), cwd=Path("/"), user=user)

    def ready(self) -> bool:
        """True if it answers the start of a session."""
        names = f"user\0{self._target.username}\0database\0{self._target.database}\0\0".encode()
        packet = (8 + len(names)).to_bytes(4, "big") + PROTOCOL_3.to_bytes(4, "big") + names
        return exchange(self.port, packet, enough=1)[:1] == b"R"
