"""What a conformance test is about: a backend with its configuration, a namespace and a clock."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from historykit.backends import BackendSpec
from historykit.capabilities import Guarantee
from historykit.config import build_config
from historykit.errors import HistoryKitError
from historykit.history import History
from historykit.records import ServerInfo, StoredMessage, Window
from historykit.session_records import MAIN_STREAM, SessionKey
from historykit.store import HistoryStore
from historykit.testing.rules import Requirement

__all__ = ["ManualClock", "StoreSubject", "read_all"]

START = 1_760_000_000_000_000
"""The time at which the clock of a test stands, in microseconds since 1970: in October 2025."""


@dataclass(slots=True)
class ManualClock:
    """A clock that stands still until it is moved. Calling it returns microseconds since 1970."""

    now: int = START

    def __call__(self) -> int:
        """Return the time."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Move the clock, backwards too."""
        self.now += int(seconds * 1_000_000)


class StoreSubject:
    """A backend under test, as one test sees it.

    It makes stores over one configuration, keys in a namespace of its own, and knows which of them
    are to be removed in the end.
    """

    def __init__(self, spec: BackendSpec, settings: object) -> None:
        self.spec = spec
        self.config = build_config(spec, settings) if isinstance(settings, Mapping) else settings
        self.namespace = f"hk_{secrets.token_hex(4)}"
        self.clock = ManualClock()
        self.claims: frozenset[Requirement] = frozenset()
        self.server: ServerInfo | None = None
        self._keys: set[SessionKey] = set()

    @property
    def declared(self) -> frozenset[Requirement]:
        """All that the backend says it can have."""
        return self.spec.capabilities | self.spec.guarantees

    @property
    def facts(self) -> dict[str, Any]:
        """What a report says about the store that was opened."""
        if self.server is None:
            return {}
        return {
            "server": f"{self.server.product} {self.server.version}",
            "claims": sorted(claim.name for claim in self.claims),
        }

    def key(
        self, session_id: str = "s1", *, user: str = "", namespace: str | None = None
    ) -> SessionKey:
        """Return a key, in the test's own namespace unless another one is named.

        A name that is given is put behind the test's own, so that tests never meet.
        """
        name = self.namespace if namespace is None else f"{self.namespace}{namespace}"
        key = SessionKey(name, user, session_id)
        self._keys.add(key)
        return key

    def store(self) -> HistoryStore:
        """Return another store over the configuration, not opened."""
        return self.spec.make_store(self.config, clock=self.clock)

    def history(self, store: HistoryStore, *, user_id: str = "") -> History:
        """Return the history of the test's namespace in a store."""
        return History(store, namespace=self.namespace, user_id=user_id)

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[HistoryStore]:
        """Open a store, and remove in the end what was written under the keys handed out."""
        async with self.store() as store:
            self.claims = store.capabilities | store.guarantees
            try:
                yield store
            finally:
                await self._clean(store)

    @contextlib.asynccontextmanager
    async def witness(self, store: HistoryStore) -> AsyncIterator[HistoryStore]:
        """Open a second store where the first one claims to share its data, else give the first."""
        if Guarantee.SHARED not in store.guarantees:
            yield store
            return
        async with self.store() as second:
            yield second

    async def messages(
        self, store: HistoryStore, key: SessionKey, *, stream: str = MAIN_STREAM
    ) -> list[StoredMessage]:
        """Return all messages of a stream, as the witness of the store sees them."""
        async with self.witness(store) as witness:
            return await read_all(witness, key, stream=stream)

    async def texts(
        self, store: HistoryStore, key: SessionKey, *, stream: str = MAIN_STREAM
    ) -> list[str]:
        """Return the bodies of all messages of a stream, as text."""
        return [row.body.decode() for row in await self.messages(store, key, stream=stream)]

    def secrets(self) -> list[str]:
        """Return the parts of the configuration that nobody may see."""
        if not is_dataclass(self.config):
            return []
        values = [(each, getattr(self.config, each.name)) for each in fields(self.config)]
        return [
            secret
            for each, value in values
            if isinstance(value, str)
            for secret in _secrets(value, marked=each.metadata.get("secret", False))
        ]

    async def _clean(self, store: HistoryStore) -> None:
        """Remove what was written, as far as that works: whether it does is for other tests."""
        deletions = [store.delete_session(key) for key in self._keys]
        with contextlib.suppress(HistoryKitError):
            await asyncio.gather(*deletions, return_exceptions=True)


async def read_all(
    store: HistoryStore, key: SessionKey, *, stream: str = MAIN_STREAM
) -> list[StoredMessage]:
    """Return all messages of a stream, oldest first, page by page."""
    pages: list[tuple[StoredMessage, ...]] = []
    before: int | None = None
    while True:
        page = await store.read(key, Window(before=before), stream=stream)
        if before is not None and page.messages and page.messages[-1].sequence >= before:
            raise AssertionError(f"a read of what is before {before} returned what is not")
        pages.append(page.messages)
        if not page.more or not page.messages:
            return [row for messages in reversed(pages) for row in messages]
        before = page.messages[0].sequence


def _secrets(value: str, *, marked: bool) -> list[str]:
    if marked:
        return [value]
    user_info, at, _ = value.partition("://")[2].rpartition("@")
    password = user_info.partition(":")[2] if at else ""
    return [password] if password else []
