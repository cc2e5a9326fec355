"""Servers that accept TLS only, with certificates made for the test.

PostgreSQL, Redis and RabbitMQ are Debian's packages `postgresql-15`, `redis-server` and
`rabbitmq-server`: the servers of the local stack are built without TLS.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import ssl
import struct
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from deploy.stack.command import Command
from deploy.stack.failure import StackError
from deploy.stack.layout import write_private
from deploy.stack.ports import HOST
from deploy.stack.postgres import PROTOCOL_3, USER, Postgres
from deploy.stack.server import PROBE_TIMEOUT_S, Server, exchange
from deploy.stack.servers import Redis
from tests.support.rabbitmq import GREETING, METHOD_FRAME, RabbitMQ

DEBIAN_POSTGRES = Path("/usr/lib/postgresql/15/bin")
DAYS = "2"
NAMES = f"subjectAltName=IP:{HOST}\n"


@dataclass(frozen=True, slots=True)
class Certificates:
    """An authority, another one that signed nothing, and the server's certificate and key."""

    folder: Path

    @property
    def authority(self) -> Path:
        return self.folder / "authority.pem"

    @property
    def stranger(self) -> Path:
        return self.folder / "stranger.pem"

    @property
    def certificate(self) -> Path:
        return self.folder / "server.pem"

    @property
    def key(self) -> Path:
        return self.folder / "server.key"


def make_certificates(folder: Path) -> Certificates:
    """Make the files with the program openssl."""
    made = Certificates(folder)
    for name in ("authority", "stranger"):
        _openssl(
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", DAYS),
            *("-subj", f"/CN={name}", "-keyout", str(folder / f"{name}.key")),
            *("-out", str(folder / f"{name}.pem")),
        )
    request, names = folder / "server.csr", folder / "names"
    names.write_text(NAMES)
    _openssl(
        *("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={HOST}"),
        *("-keyout", str(made.key), "-out", str(request)),
    )
    _openssl(
        *("x509", "-req", "-in", str(request), "-days", DAYS, "-CAcreateserial"),
        *("-CA", str(made.authority), "-CAkey", str(folder / "authority.key")),
        *("-extfile", str(names), "-out", str(made.certificate)),
    )
    return made


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


class TlsPostgres(Postgres):
    """PostgreSQL 15 that refuses connections without TLS."""

    def __init__(self, root: Path, certificates: Certificates) -> None:
        super().__init__(root)
        if not (DEBIAN_POSTGRES / "postgres").exists():
            raise StackError(
                f"{DEBIAN_POSTGRES} is missing: install Debian's package postgresql-15."
            )
        self._bin = DEBIAN_POSTGRES
        self._certificates = certificates

    def _init(self) -> None:
        password = self.layout.root / "password"
        data = self.layout.root / "postgres"
        data.mkdir(mode=0o700)
        write_private(password, self._password)
        if ":" in self._user:
            uid, gid = map(int, self._user.split(":"))
            for path in (data, password):
                os.chown(path, uid, gid)
        self._step(
            "initdb",
            *("--username", USER, "--auth", "scram-sha-256", "--encoding", "UTF8"),
            *("--locale", "C.UTF-8", "--pwfile", str(password), "-D", str(data)),
        )
        create = f"CREATE DATABASE {USER}\n"
        self._step("postgres", "--single", "-j", "-D", str(data), "postgres", text=create)
        for source in (self._certificates.certificate, self._certificates.key):
            copied = Path(shutil.copy(source, data))
            copied.chmod(0o600)
            os.chown(copied, data.stat().st_uid, data.stat().st_gid)
        rules = data / "pg_hba.conf"
        rules.write_text(f"hostssl all all {HOST}/32 scram-sha-256\n")

    def command(self) -> Command:
        command = super().command()
        options = {"ssl": "on", "ssl_cert_file": "server.pem", "ssl_key_file": "server.key"}
        settings = [part for pair in options.items() for part in ("-c", "=".join(pair))]
        return replace(command, argv=(*command.argv, *settings))

    def ready(self) -> bool:
        """True if it refuses a connection without TLS."""
        names = f"user\0{USER}\0database\0{USER}\0\0".encode()
        packet = struct.pack("!ii", 8 + len(names), PROTOCOL_3) + names
        return b"no encryption" in exchange(self.port, packet, enough=1_000)


class TlsRedis(Redis):
    """Redis that listens with TLS only."""

    def __init__(self, root: Path, certificates: Certificates) -> None:
        super().__init__(root)
        self._program = shutil.which("redis-server")
        if self._program is None:
            raise StackError("redis-server is missing: install Debian's package redis-server.")
        self._certificates = certificates

    @property
    def url(self) -> str:
        return super().url.replace("redis://", "rediss://")

    def prepare(self) -> None:
        super().prepare()
        file = self.layout.root / "redis" / "redis.conf"
        plain, made = f"port {self.port}\n", self._certificates
        tls = (
            f"port 0\ntls-port {self.port}\ntls-auth-clients no\n"
            f"tls-cert-file {made.certificate}\ntls-key-file {made.key}\n"
            f"tls-ca-cert-file {made.authority}\n"
        )
        file.write_text(file.read_text().replace(plain, tls))

    def command(self) -> Command:
        command = super().command()
        return replace(command, argv=(str(self._program), *command.argv[1:]))

    def ready(self) -> bool:
        """True if it accepts the password over TLS."""
        request = f"AUTH {self._password}\r\nPING\r\n".encode()
        return tls_exchange(self, request).startswith(b"+OK")


class TlsRabbitMQ(RabbitMQ):
    """RabbitMQ that listens with TLS only."""

    def __init__(self, root: Path, certificates: Certificates) -> None:
        super().__init__(root)
        self._certificates = certificates

    @property
    def url(self) -> str:
        return super().url.replace("amqp://", "amqps://")

    def prepare(self) -> None:
        super().prepare()
        file = self.layout.root / "rabbitmq" / "rabbitmq.conf"
        plain, made = f"listeners.tcp.default = {HOST}:{self.port}\n", self._certificates
        tls = (
            f"listeners.tcp = none\nlisteners.ssl.default = {HOST}:{self.port}\n"
            f"ssl_options.cacertfile = {made.authority}\n"
            f"ssl_options.certfile = {made.certificate}\nssl_options.keyfile = {made.key}\n"
            "ssl_options.verify = verify_none\n"
        )
        file.write_text(file.read_text().replace(plain, tls))

    def ready(self) -> bool:
        """True if it answers the greeting of its protocol over TLS."""
        return tls_exchange(self, GREETING)[:1] == METHOD_FRAME


def tls_exchange(server: Server, request: bytes) -> bytes:
    """The first bytes of a server's answer over TLS; empty if there is none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with contextlib.suppress(OSError):
        address = (HOST, server.port)
        with (
            socket.create_connection(address, timeout=PROBE_TIMEOUT_S) as plain,
            context.wrap_socket(plain) as connection,
        ):
            connection.sendall(request)
            return connection.recv(4096)
    return b""
