"""The class for the author of a backend whose server is reached through a network."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, ClassVar

import pytest
import pytest_asyncio

from historykit.store import HistoryStore
from historykit.testing.conformance import STORE_NAMES, StoreConformance
from historykit.testing.proxy import TcpProxy
from historykit.testing.subject import StoreSubject
from historykit.testing.suite.network import NetworkTests

__all__ = ["NetworkConformance"]


class NetworkConformance(
    NetworkTests, StoreConformance, open_names=STORE_NAMES | {"address", "proxied_config"}
):
    """The suite for what a store makes of a bad network, and of a good one: it counts round trips.

    Derive a class as from `HistoryConformance`. `address` is the setting that names one server, as
    a URL with host and port; through it the suite puts a proxy before the server. Where that is not
    enough, as for short timeouts, override the fixture `proxied_config`::

        class TestAcmeNetwork(NetworkConformance):
            backend, config = "acme", {"url": "acme://localhost:9000"}

            @pytest.fixture
            def proxied_config(self, backend_config, proxy):
                return {"url": proxy.route(backend_config["url"]), "timeout": 2}
    """

    address: ClassVar[str] = "url"

    @pytest_asyncio.fixture(loop_scope="function")
    async def proxy(self, subject: StoreSubject) -> AsyncIterator[TcpProxy]:
        """A proxy to the server, which lets everything pass."""
        async with TcpProxy.to(getattr(subject.config, self.address)) as proxy:
            yield proxy

    @pytest.fixture
    def proxied_config(self, subject: StoreSubject, proxy: TcpProxy) -> object:
        """The configuration with the proxy's address. Override it where that is not enough."""
        config: Any = subject.config
        return replace(config, **{self.address: proxy.route(getattr(config, self.address))})

    @pytest_asyncio.fixture(loop_scope="function")
    async def far(
        self, subject: StoreSubject, store: HistoryStore, proxied_config: object
    ) -> AsyncIterator[HistoryStore]:
        """A store like `store` whose server is behind the proxy."""
        config = StoreSubject(subject.spec, proxied_config).config
        async with subject.spec.make_store(config, clock=subject.clock) as far:
            yield far
