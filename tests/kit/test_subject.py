"""What tests of the suite stand on: keys, secrets, other processes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from historykit.errors import StorageError, StorageUnavailableError
from historykit.memory import MemoryConfig, MemoryStore
from historykit.plugins import BackendSpec
from historykit.records import AppendReceipt, AppendRequest, Slice, Window
from historykit.redaction import secret
from historykit.session_records import SessionKey
from historykit.store import HistoryStore
from historykit.testing import processes, worker
from historykit.testing.drafts import draft, drafts
from historykit.testing.provider_subject import ProviderSubject
from historykit.testing.subject import ManualClock, StoreSubject, read_all
from tests.kit.wrong_providers import RowProvider


@dataclass(frozen=True, slots=True)
class SecretConfig:
    """A configuration with all kinds of secrets."""

    url: str = "x://user:p@ss@host/?a=b"
    plain: str = "x://host/"
    number: int = 1
    key: str = secret(default="hunter2")


class Silent(MemoryStore):
    """A store that cannot be opened."""

    async def _open(self) -> None:
        raise StorageUnavailableError("nobody at home")


def subject_of(
    store: type[HistoryStore] = MemoryStore, settings: object = MemoryConfig()
) -> StoreSubject:
    spec = BackendSpec(name="memory", store=lambda: store, config=lambda: MemoryConfig)
    return StoreSubject(spec, settings)


def test_keys_of_two_tests_never_meet() -> None:
    """Each test has a namespace of its own, also where it names one."""
    first, second = subject_of(), subject_of()
    assert first.key().namespace.startswith("hk_")
    assert first.key() != second.key()
    assert first.key(namespace="x") not in (first.key(), second.key(namespace="x"))


def test_secrets_of_a_configuration_are_known() -> None:
    """A field that is marked and the password of a URL are secrets; what is no dataclass has
    none."""
    assert subject_of(settings=SecretConfig()).secrets() == ["p@ss", "hunter2"]
    assert subject_of(settings=object()).secrets() == []


def test_clock_is_moved_by_hand() -> None:
    """The clock of a test goes forward and back as it is told."""
    clock = ManualClock(now=5)
    clock.advance(0.000002)
    clock.advance(-1)
    assert clock() == 7 - 1_000_000


@pytest.mark.asyncio
async def test_what_a_test_wrote_is_removed() -> None:
    """In the end all sessions are gone whose keys were handed out."""
    subject = subject_of()
    async with subject.opened() as store:
        for key in (subject.key(), subject.key("s2", user="ada", namespace="x")):
            await store.append(key, [draft()])
    assert isinstance(store, MemoryStore)
    assert store._sessions == {}


@pytest.mark.asyncio
async def test_reading_all_ends_where_a_store_goes_round_in_circles() -> None:
    """A store that does not go back is a failure, not a test without an end."""

    class Circle(MemoryStore):
        async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
            page = await super()._read(key, Window(limit=2), stream)
            return page._replace(more=True)

    subject = subject_of(Circle)
    async with subject.opened() as store:
        await store.append(subject.key(), drafts("m", 5))
        with pytest.raises(AssertionError, match="returned what is not"):
            await read_all(store, subject.key())


@pytest.mark.asyncio
async def test_store_that_another_process_cannot_import_is_named() -> None:
    """A class inside of a function is no failure of the store, and the error says what to do."""

    class Local(MemoryStore):
        pass

    subject = subject_of(Local)
    with pytest.raises(AssertionError, match=r"cannot import .*Local.*top of a module"):
        await processes.read(subject, subject.key())


@pytest.mark.asyncio
async def test_process_that_fails_says_why() -> None:
    """What another process complains about is in the error."""
    subject = subject_of(Silent)
    with pytest.raises(AssertionError, match="nobody at home"):
        await processes.read(subject, subject.key())


@pytest.mark.asyncio
async def test_worker_says_what_it_has_done(capsys: pytest.CaptureFixture[str]) -> None:
    """The worker that is to be killed acknowledges batch after batch."""

    class Full(MemoryStore):
        async def _append(self, request: AppendRequest) -> AppendReceipt:
            if request.drafts[0].body.startswith(b"batch 2"):
                raise OSError("No space left on device")
            return await super()._append(request)

    subject = subject_of(Full)
    async with subject.opened() as store:
        with pytest.raises(StorageError):
            await worker.append_forever(store, subject.key())
    assert capsys.readouterr().out == "0\n1\n"


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["aclose", "close"])
async def test_providers_are_closed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that can be closed is closed, whether that is awaited or not."""
    closed = []

    async def aclose(self: RowProvider) -> None:
        closed.append(self)

    def close(self: RowProvider) -> None:
        closed.append(self)

    method = aclose if name == "aclose" else close
    monkeypatch.setattr(RowProvider, name, method, raising=False)
    subject = ProviderSubject(lambda: RowProvider([]), frozenset())
    provider = await subject.provider()
    await subject.close()
    await subject.close()
    assert closed == [provider]
