"""Servers in containers, by testcontainers."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tests.services.processes import wait_until
from tests.services.service import Image, Service

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

__all__ = ["contained", "why_not"]

PATIENCE = 60.0
"""Seconds after which a server that does not answer is held to have failed."""


def why_not() -> str | None:
    """Return the reason why there can be no container, None if there can."""
    if find_spec("testcontainers") is None:
        return "testcontainers is not installed (dependency group docker)"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        reason = _failed_ping()
        gc.collect()  # where no daemon listens, docker forgets to close its sockets
    return reason


def _failed_ping() -> str | None:
    from testcontainers.core.docker_client import DockerClient

    try:
        client = DockerClient().client
        client.ping()
        client.close()
    except Exception as error:  # of docker, requests or the socket
        return f"no Docker daemon answers ({type(error).__name__})"
    return None


@contextmanager
def contained(service: Service, image: Image) -> Iterator[str]:
    """Start a container of the service, and yield the URL of the server in it, which answers.

    Raises `RuntimeError` where the image cannot be had or the server does not start.
    """
    # The reaper of containers is one more image to be had; ours are removed here.
    os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")
    from testcontainers.core.container import DockerContainer

    container = DockerContainer(image.name).with_exposed_ports(image.port)
    for name, value in image.environment.items():
        container.with_env(name, value)
    if image.command is not None:
        container.with_command(image.command)
    try:
        container.start()
    except Exception as error:  # of docker, which has many
        raise RuntimeError(f"no container of the image {image.name}: {error}") from error
    try:
        url = image.url.format(
            host=container.get_container_host_ip(), port=container.get_exposed_port(image.port)
        )
        _wait(service, image, url, container)
        yield url
    finally:
        container.stop()
        container.get_docker_client().client.close()


def _wait(service: Service, image: Image, url: str, container: DockerContainer) -> None:
    try:
        wait_until(lambda: service.describe(url), failed=lambda: None, seconds=PATIENCE)
        if image.prepare is not None:
            image.prepare(url)
    except Exception as error:
        raise RuntimeError(
            f"the server in a container of {image.name} did not start: {error}\n{_logs(container)}"
        ) from error


def _logs(container: DockerContainer) -> str:
    logs = container.get_logs()
    text = b"".join(logs).decode(errors="replace")
    return "\n".join(text.splitlines()[-30:])
