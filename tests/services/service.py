"""What a service is: a kind of server that tests of a backend can run on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from tests.services.processes import PrivateServer
from tests.services.programs import Program

__all__ = ["Image", "Service", "variable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """How a server runs in a container. `url` is made of the host and the port outside."""

    name: str
    port: int
    url: str
    command: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[str], None] | None = None
    """Is called with the URL of a new server that answers."""


class Service(ABC):
    """A kind of server, as ``--backend`` names it. Without an `image` it runs in no container."""

    def __init__(self, name: str, *, backend: str, image: Image | None) -> None:
        self.name = name
        self.backend = backend
        self.image = image

    @abstractmethod
    def programs(self) -> Iterator[Program]:
        """Yield the executables that are there, the best first."""

    @abstractmethod
    def private(self, program: Program) -> PrivateServer:
        """Return a private server, not started."""

    @abstractmethod
    def describe(self, url: str) -> str:
        """Return what answers, as ``Redis 8.2.3``. Raises what the driver raises."""

    @property
    def variable(self) -> str:
        """The environment variable with the URL of the server."""
        return variable(self.backend)

    def a_private_server(self) -> PrivateServer:
        """Return a private server of the first executable, not started.

        Raises `LookupError` where there is none.
        """
        for program in self.programs():
            return self.private(program)
        raise LookupError(
            f"no executable for {self.name} is installed: python3 dev.py test does it, or the "
            "system's package manager"
        )


def variable(backend: str) -> str:
    """Return the environment variable with the URL of a backend's server."""
    return f"HISTORYKIT_TEST_{backend.upper()}_URL"
