"""What a store says about itself, and that it leaves to core what is core's."""

from __future__ import annotations

import inspect

import pytest

from historykit.backends import API_VERSIONS
from historykit.capabilities import Guarantee
from historykit.errors import InvalidRequestError, NotFoundError
from historykit.records import Slice, Window
from historykit.store import HistoryStore
from historykit.testing.drafts import draft
from historykit.testing.rules import since
from historykit.testing.subject import StoreSubject

__all__ = ["ContractTests"]

KEPT_BY_CORE = [
    name
    for name, member in vars(HistoryStore).items()
    if inspect.iscoroutinefunction(member) and not name.startswith("_")
]


class ContractTests:
    """The backend as it presents itself."""

    @since("0.1")
    async def test_backend_describes_itself(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """The spec names the backend as the store does, for a version of the API that core
        speaks."""
        assert subject.spec.name == store.backend
        assert subject.spec.api_version in API_VERSIONS
        assert isinstance(store, subject.spec.store())

    @since("0.1")
    async def test_store_claims_what_its_backend_declares(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """An opened store has no capability and no guarantee that its backend does not declare."""
        assert store.capabilities <= subject.spec.capabilities
        assert store.guarantees <= subject.spec.guarantees

    @since("0.1")
    async def test_guarantees_agree_with_each_other(self, store: HistoryStore) -> None:
        """What survives a loss of power or a failover survives the end of the process too."""
        claimed = store.guarantees
        if claimed & {Guarantee.SURVIVES_POWER_LOSS, Guarantee.SURVIVES_FAILOVER}:
            assert Guarantee.SURVIVES_KILL in claimed

    @since("0.1")
    async def test_checks_of_core_are_in_place(self, store: HistoryStore) -> None:
        """A store writes the methods behind the public ones and leaves the public ones alone."""
        for name in KEPT_BY_CORE:
            assert getattr(type(store), name) is getattr(HistoryStore, name), name

    @since("0.1")
    async def test_ping_names_the_server(self, store: HistoryStore) -> None:
        """A ping names the product behind the store and its version."""
        server = await store.ping()
        assert server.product.strip()
        assert server.version.strip()
        assert all(isinstance(value, str) for value in server.settings.values())

    @since("0.1")
    async def test_session_that_is_not_there_reads_as_empty(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A session that does not exist has no messages, no incarnation and version 0."""
        key = subject.key()
        assert await store.read(key) == Slice((), None, 0, 0, False)
        tail = await store.read_tail(key)
        assert (tail.incarnation, tail.version, tail.count, tail.trimmed) == (None, 0, 0, 0)
        assert tail.digests == ()
        with pytest.raises(NotFoundError):
            await store.read_session(key)

    @since("0.1")
    async def test_reading_creates_nothing(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Reading a session that does not exist leaves it that way."""
        key = subject.key()
        await store.read(key)
        await store.read(key, Window(limit=1), stream="audit")
        await store.read_tail(key)
        with pytest.raises(NotFoundError):
            await store.read_session(key)

    @since("0.1")
    async def test_bad_arguments_are_refused_before_anything_is_written(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A request that makes no sense is an InvalidRequestError, and leaves no trace."""
        key = subject.key()
        twice = draft("a", id="x"), draft("b", id="x")
        for drafts, options in [
            ([], {}),
            (twice, {}),
            ([draft(id="")], {}),
            ([draft(id="nul\0")], {}),
            ([draft(id="\ud800")], {}),
            ([draft(id="i" * 257)], {}),
            ([draft()], {"stream": ""}),
            ([draft()], {"stream": "s" * 257}),
            ([draft()], {"expected_version": -1}),
        ]:
            with pytest.raises(InvalidRequestError):
                await store.append(key, drafts, **options)  # type: ignore[arg-type]
        with pytest.raises(NotFoundError):
            await store.read_session(key)
