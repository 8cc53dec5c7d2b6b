"""Failures are errors of historykit: never an empty history, never a driver's exception."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from historykit.capabilities import Capability
from historykit.errors import ConflictError, HistoryKitError, StorageError, VersionConflictError
from historykit.session_records import SessionDraft, SessionKey, SessionPatch, SessionQuery
from historykit.store import HistoryStore
from historykit.testing.drafts import draft, drafts, numbered
from historykit.testing.faults import Outage, failing
from historykit.testing.rules import since
from historykit.testing.subject import StoreSubject

__all__ = ["ResilienceTests"]


class ResilienceTests:
    """Outages, drivers that fail, and what they may say."""

    @since("0.1")
    async def test_outage_is_an_error_for_every_call(
        self, subject: StoreSubject, store: HistoryStore, outage: Outage
    ) -> None:
        """While the server cannot be reached every call raises StorageError, whose cause is the
        driver's error; nothing is answered with an empty history."""
        key = subject.key()
        await store.append(key, drafts("m", 3))
        async with outage(store):
            for call in _calls(store, key):
                with pytest.raises(StorageError) as caught:
                    await call()
                assert caught.value.__cause__ is not None

    @since("0.1")
    async def test_store_works_after_an_outage(
        self, subject: StoreSubject, store: HistoryStore, outage: Outage
    ) -> None:
        """When the server is back, so is what was stored, and the store goes on."""
        key = subject.key()
        await store.append(key, drafts("m", 3))
        async with outage(store):
            with pytest.raises(StorageError):
                await store.read(key)
        assert await subject.texts(store, key) == numbered("m", 3)
        await store.append(key, [draft("m 3")])
        assert await subject.texts(store, key) == numbered("m", 4)

    @since("0.1")
    async def test_errors_of_the_driver_are_translated(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Whatever the driver raises arrives as an error of historykit, with it as the cause."""
        key = subject.key()
        for error in (
            ConnectionRefusedError("refused"),
            TimeoutError("too late"),
            OSError(28, "No space left on device"),
            RuntimeError("pool is closed"),
            ValueError("unexpected reply"),
            KeyError("field"),
        ):
            async with failing(store, error):
                for call in _calls(store, key):
                    with pytest.raises(HistoryKitError) as caught:
                        await call()
                    assert caught.value.__cause__ is error

    @since("0.1")
    async def test_secrets_are_shown_nowhere(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """No password of the configuration is in a repr, in what a ping tells, or in an error,
        although the driver's error has it."""
        secrets = subject.secrets()
        server = await store.ping()
        shown = [repr(store), repr(subject.config), repr(server)]
        for said in (repr(subject.config), *secrets):
            async with failing(store, OSError(f"cannot connect to x://user:{said}@host/")):
                with pytest.raises(HistoryKitError) as caught:
                    await store.read(subject.key())
                shown += [str(caught.value), repr(caught.value), repr(caught.value.details)]
        for secret in secrets:
            assert not any(secret in text for text in shown)

    @since("0.1")
    async def test_refused_write_holds_nothing(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """After a write that was refused nothing of it is there, and nothing is locked."""
        key = subject.key()
        await store.append(key, [draft("a", id="m1")])
        for _ in range(3):
            with pytest.raises(VersionConflictError):
                await store.append(key, drafts("lost", 3), expected_version=9)
            with pytest.raises(ConflictError):
                await store.append(key, [draft("lost"), draft("b", id="m1")])
            with pytest.raises(ConflictError):
                await store.create_session(key, SessionDraft())
        async with subject.witness(store) as witness:
            await witness.append(key, [draft("b")])
        assert await subject.texts(store, key) == ["a", "b"]


def _calls(store: HistoryStore, key: SessionKey) -> list[Callable[[], Awaitable[object]]]:
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: store.read(key),
        lambda: store.read_tail(key),
        lambda: store.read_session(key),
        lambda: store.append(key, [draft()]),
        lambda: store.create_session(key, SessionDraft(), if_exists="return"),
        lambda: store.patch_session(key, SessionPatch(status="x")),
        lambda: store.delete_session(key),
        lambda: store.ping(),
    ]
    if Capability.CATALOGUE in store.capabilities:
        calls.append(lambda: store.find_sessions(SessionQuery(namespace=key.namespace)))
    return calls
