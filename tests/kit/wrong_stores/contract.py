from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from historykit.capabilities import Capability, Guarantee
from historykit.memory_sessions import MemorySession
from historykit.records import (
    AppendReceipt,
    AppendRequest,
    ServerInfo,
    Slice,
    StoredMessage,
    Window,
)
from historykit.session_records import SessionDraft, SessionKey, SessionSlice
from tests.kit.wrong_stores.lies import Lie, wrong


@wrong("test_backend_describes_itself")
class CallsItselfOtherwise(Lie):
    """Its backend has another name than it has itself."""

    spec_name = "memmory"


@wrong("test_store_claims_what_its_backend_declares", "test_guarantees_agree_with_each_other")
class ClaimsMoreThanItsBackend(Lie):
    """Claims to survive a loss of power, of which its backend says nothing."""

    guarantees = frozenset({Guarantee.SURVIVES_POWER_LOSS})


@wrong(
    "test_second_store_sees_what_was_appended",
    "test_second_store_reads_the_same_order",
    "test_second_store_sees_the_deletion",
    "test_second_store_finds_the_session",
    "test_data_outlives_the_store",
    "test_another_process_reads_the_same",
    "test_acknowledged_batches_survive_a_kill",
    "test_batches_of_several_stores_stay_whole",
    "test_batches_of_several_processes_stay_whole",
)
class ClaimsToShare(Lie):
    """Claims that others see its data, and that the data outlives it."""

    declares = frozenset({*Capability, Guarantee.SHARED, Guarantee.SURVIVES_KILL})
    guarantees = frozenset({Guarantee.SHARED, Guarantee.SURVIVES_KILL})


@wrong(
    "test_checks_of_core_are_in_place",
    "test_bad_arguments_are_refused_before_anything_is_written",
)
class ChecksNothing(Lie):
    """Has an `append` of its own, which takes whatever comes."""

    async def append(self, key: SessionKey, drafts: Any, **options: Any) -> AppendReceipt:
        options.setdefault("stream", "main")
        options.setdefault("incarnation", None)
        options.setdefault("expected_version", None)
        options.setdefault("retention", None)
        options["create"] = options.get("create") or SessionDraft()
        request = AppendRequest(
            key=key, drafts=tuple(drafts), new_incarnation=str(id(drafts)), now=0, **options
        )
        return await self._write("append", self._append, request)


@wrong("test_ping_names_the_server")
class IsNobody(Lie):
    """Does not say which version it is."""

    async def _ping(self) -> ServerInfo:
        return ServerInfo(product="memory", version="")


@wrong("test_session_that_is_not_there_reads_as_empty")
class InventsSessions(Lie):
    """Gives a session that does not exist an incarnation."""

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        page = await super()._read(key, window, stream)
        return page._replace(incarnation=page.incarnation or "")


@wrong("test_reading_creates_nothing", "test_message_that_cannot_be_stored_stops_the_batch")
class MakesWhatItReads(Lie):
    """Makes a session when it is read."""

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        if key not in self._sessions:
            self._sessions[key] = MemorySession.create(key, SessionDraft(), "life", self.now())
        return await super()._read(key, window, stream)


@wrong(
    "test_edits_work_or_are_refused",
    "test_searches_work_or_are_refused",
    "test_runs_work_or_are_refused",
    "test_change_keeps_the_message_in_its_place",
    "test_claim_holds_the_session",
)
class IgnoresWhatItCannotDo(Lie):
    """Declares no capability, and answers those calls with nothing instead of refusing them."""

    declares = frozenset()
    capabilities = frozenset()

    def _require(self, capability: Capability) -> None:
        pass

    async def _update_message(self, *arguments: Any) -> StoredMessage:
        return StoredMessage(1, "", "user", b"", 0, False)

    async def _delete_messages(self, *arguments: Any) -> int:
        return 0

    async def _replace(self, request: Any) -> AppendReceipt:
        return AppendReceipt(incarnation="", version=0, ids=(), sequences=(), stored=0)

    async def _find_sessions(self, query: Any) -> SessionSlice:
        return SessionSlice(records=(), total=0, more=False)

    async def _claim_run(self, key: SessionKey, lease: Any, now: int) -> Any:
        return lease

    async def _renew_run(self, key: SessionKey, lease: Any) -> Any:
        return lease

    async def _release_run(self, key: SessionKey, run_id: str) -> bool:
        return False


@wrong("test_change_keeps_the_message_in_its_place", "test_edits_work_or_are_refused")
class EditsWithoutSayingSo(Lie):
    """Has EDIT and does not declare it."""

    declares = frozenset({Capability.CATALOGUE, Capability.RUNS})
    capabilities = declares

    def _require(self, capability: Capability) -> None:
        pass


@wrong("test_searches_work_or_are_refused", "test_search_finds_the_sessions_of_a_namespace")
class ClaimsToSearch(Lie):
    """Declares CATALOGUE and has no search."""

    async def _find_sessions(self, query: Any) -> SessionSlice:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class TalkativeConfig:
    """A configuration that shows its password."""

    url: str


@wrong("test_secrets_are_shown_nowhere")
class ShowsItsPassword(Lie):
    """Shows the password of its URL in the repr of its configuration."""

    config_class = TalkativeConfig
    settings = {"url": "x://user:hunter2@host/"}  # noqa: RUF012  - a constant
