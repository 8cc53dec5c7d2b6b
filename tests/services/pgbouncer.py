"""PgBouncer in front of PostgreSQL, in transaction mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.services.postgres import POSTGRES, PostgresServer, connect
from tests.services.processes import HOST, PrivateServer
from tests.services.programs import Program, installed, version_of
from tests.services.service import Service

__all__ = ["PGBOUNCER", "PgBouncerServer"]

SETTINGS = """\
[databases]
postgres = host={host} port={behind} user=postgres

[pgbouncer]
listen_addr = {host}
listen_port = {port}
unix_socket_dir =
auth_type = any
stats_users = postgres
pool_mode = transaction
default_pool_size = 20
max_client_conn = 500
server_round_robin = 1
{more}
"""
"""Connections to the server are used in turns, so that a client has another one in its next
transaction, as on a busy server."""

KNOWS_PREPARED = (1, 21)
"""Since this version it can prepare a statement on each connection that needs it."""


class PgBouncerServer(PrivateServer):
    """A PgBouncer with a PostgreSQL of its own behind it, which prepares statements if it can."""

    user = "nobody"

    def __init__(self, program: Program, *, prepares: bool = True, port: int | None = None) -> None:
        super().__init__(program, port=port)
        self._prepares = prepares
        self._behind = PostgresServer(next(POSTGRES.programs()))

    @property
    def url(self) -> str:
        """How clients name the server."""
        return f"postgresql://postgres@{HOST}:{self.port}/postgres"

    def prepare(self) -> None:
        """Start PostgreSQL, and write the settings."""
        self._behind.__enter__()
        more = ""
        if _numbers(self.program.version) >= KNOWS_PREPARED:
            more = f"max_prepared_statements = {200 * self._prepares}"
        text = SETTINGS.format(host=HOST, port=self.port, behind=self._behind.port, more=more)
        (self.folder / "pgbouncer.ini").write_text(text)

    def command(self) -> Sequence[str | Path]:
        """Return the command that starts the server in the foreground."""
        return [self.program.path, "pgbouncer.ini"]

    def ask(self) -> None:
        """Select, which PostgreSQL answers."""
        with connect(self.url) as connection:
            connection.execute("SELECT 1")

    def close(self) -> None:
        """End both servers, and remove their folders."""
        super().close()
        self._behind.close()


class PgBouncerService(Service):
    """PgBouncer of any version. There is no container of it."""

    def __init__(self) -> None:
        super().__init__("pgbouncer", backend="pgbouncer", image=None)

    def programs(self) -> Iterator[Program]:
        """Yield the executable of the system."""
        for path, origin in installed("pgbouncer", "/usr/sbin"):
            version = version_of(path)
            if version is not None:
                yield Program(path=path, version=version, origin=origin)

    def private(self, program: Program) -> PgBouncerServer:
        """Return a private server, not started."""
        return PgBouncerServer(program)

    def describe(self, url: str) -> str:
        """Return product and version of what answers, and of what is behind it."""
        console = url.rpartition("/")[0] + "/pgbouncer"
        with connect(console) as connection:
            row = connection.execute("SHOW VERSION").fetchone()
        assert row is not None
        return f"{row[0]} before {POSTGRES.describe(url)}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


PGBOUNCER = PgBouncerService()
