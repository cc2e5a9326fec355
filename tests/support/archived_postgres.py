"""PostgreSQL with an archive of its log, restored to a time as docs/howto/backup.md says."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from deploy.stack.command import Command, run_to_end
from deploy.stack.ports import HOST
from deploy.stack.postgres import USER, Postgres, find_binaries
from deploy.stack.server import own_environment
from deploy.stack.waiting import wait_until

PAGE = Path(__file__).resolve().parents[2] / "docs/howto/backup.md"
RECOVERED_S = 60.0


def documented_settings() -> tuple[str, str]:
    """The two parts of postgresql.conf on the page: to archive, and to restore."""
    section = PAGE.read_text("utf-8").partition("## Point in time")[2]
    archive, restore = re.findall(r"```text\n# postgresql.conf\n(.*?)```", section, re.DOTALL)[:2]
    return str(archive), str(restore)


class ArchivedPostgres(Postgres):
    """A server that archives its log. `archive` and `base` are folders beside its data."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.archive, self.base = self.layout.root / "archive", self.layout.root / "base"

    def _init(self) -> None:
        super()._init()
        self.archive.mkdir()
        self._own(self.archive)
        self._configure(documented_settings()[0])

    def take_base_backup(self) -> None:
        """Copy the server while it runs, with the command of the page."""
        environment = {**own_environment(), "PGPASSWORD": self._password}
        options = ("--checkpoint=fast", f"--pgdata={self.base}")
        server = ("--host", HOST, "--port", str(self.port), "--username", USER)
        argv = (str(find_binaries() / "pg_basebackup"), *options, *server)
        done = run_to_end(Command(argv, environment, self.layout.root, user=self._user))
        assert done.returncode == 0, done.stdout

    def restore_to(self, time: str) -> None:
        """Replace the data of the stopped server by its state at a time, and start it."""
        shutil.rmtree(self._data)
        shutil.copytree(self.base, self._data)
        restore = re.sub("(recovery_target_time = )'.*'", rf"\1'{time}'", documented_settings()[1])
        assert time in restore
        self._configure(restore)
        (self._data / "recovery.signal").touch()
        for path in (self._data, *self._data.rglob("*")):
            self._own(path)
        self.start()

    def _configure(self, settings: str) -> None:
        file = self._data / "postgresql.conf"
        file.write_text(file.read_text("utf-8") + settings.replace("/archive/", f"{self.archive}/"))

    def _own(self, path: Path) -> None:
        """Give a file to the user that runs the server."""
        if ":" in self._user:
            uid, gid = map(int, self._user.split(":"))
            os.chown(path, uid, gid)

    def archived_until(self, file: str) -> None:
        """Wait until a file of the log is in the archive."""
        archived = self.archive / file
        assert wait_until(archived.exists, RECOVERED_S), f"{file} is not archived"
