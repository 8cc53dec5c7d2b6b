"""One turn of a session: what the user says in it, and what an agent answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from historykit.errors import (
    HistoryKitError,
    InvalidRequestError,
    NotFoundError,
    SessionDeletedError,
)
from historykit.execution import ExecutionConfig
from historykit.ids import new_id
from historykit.leases import ENDINGS, LEASE, RunHold, WhenBusy
from historykit.messages import Message
from historykit.providers import BaseContextProvider
from historykit.records import Retention
from historykit.session_bodies import decode_body, encode_body
from historykit.session_messages import SessionMessage
from historykit.session_records import MAIN_STREAM, SessionKey
from historykit.session_states import as_agent_session
from historykit.session_writing import append_messages, change_body
from historykit.sessions import AgentSession
from historykit.statuses import RunStatus
from historykit.store_provider import StoreHistoryProvider

if TYPE_CHECKING:
    from historykit.catalogue import Session

__all__ = ["Turn"]

T = TypeVar("T")

SOURCE_ID: Final = "historykit.session"
"""The source id of the provider that loads the history for an agent that has none."""


class Turn:
    """A run of an agent in a session, which holds the session while it lasts.

    As an asynchronous context manager it claims the session, and at the end lets it go and notes
    how the run went. `say` stores what the user says, `save` what the agent answers: both belong to
    `request_id`. `sequence` is the place of the user's first message, so that the history before it
    can be told from it; None where there is none.

    `agent_id` and `config` are those of the session as it is stored once this turn has it, with
    what was set on the object and not saved yet. `limit` says how the agent is to be run.
    """

    agent_session: AgentSession
    agent_id: str
    config: ExecutionConfig

    def __init__(
        self,
        session: Session,
        *,
        runner: str = "",
        request_id: str | None = None,
        when_busy: WhenBusy = "reject",
        lease: float = LEASE,
        window: Mapping[str, int | None] | None = None,
    ) -> None:
        self.session = session
        self.history = session._bound()
        self.key: SessionKey = session._key()
        self.request_id = request_id or new_id()
        self.sequence: int | None = None
        self.tools: Sequence[Mapping[str, Any]] = ()
        self._runner = runner
        self._when_busy: WhenBusy = when_busy
        self._hold = RunHold(self.history.store, self.key, self.request_id, lease=lease)
        self._time_limit: float | None = None
        self._time_left: float | None = None
        self._timeout: asyncio.Timeout | None = None
        self._window = dict(window or {})
        self._retention: Retention | None = None
        self._offload_data_over: int | None = None

    @property
    def place(self) -> tuple[object, SessionKey]:
        """Where the turn is stored, as providers know it."""
        return self.history.store, self.key

    async def __aenter__(self) -> Self:
        await self._hold.claim(self._when_busy)
        try:
            self._record = await self.history.store.read_session(self.key)
            self._look(decode_body(self._record, self.history.codec))
            self.agent_session = as_agent_session(self.key, self._record, self.history.codec)
            self._state_before = self._state()
            self.agent_session._turn = self
        except BaseException:
            with suppress(HistoryKitError):  # the lease ends by itself, and the error is another
                await ENDINGS.run(self._hold.release())
            raise
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(exc_value, Exception):
            exc_value.add_note(f"in run {self.request_id} of session {self.key.session_id!r}")
        self.agent_session._turn = None  # somebody may have kept it
        await ENDINGS.run(self._end(RunStatus.IDLE if exc_value else RunStatus.COMPLETED))

    def _look(self, body: Mapping[str, Any]) -> None:
        """Note what the session is, whatever the object that stands for it has missed."""
        self._noted = body.get("run_status", RunStatus.IDLE)
        self.agent_id = self._record.agent_id
        self.config = ExecutionConfig.from_dict(body.get("execution_config") or {})
        if self.session.is_modified:
            self.agent_id = self.session.agent_id or self.agent_id
            self.config = self.config.merged(self.session.execution_config or ExecutionConfig())

    def limit(self, config: ExecutionConfig, seconds: float | None) -> None:
        """Take over how the agent is to be run, and how long that may take."""
        self.config = config
        self._time_limit = self._time_left = seconds

    async def say(self, messages: Sequence[Message | Mapping[str, Any]]) -> list[SessionMessage]:
        """Store what the user says, and return it."""
        added = await self.session.add_messages(messages, request_id=self.request_id)
        if added:
            self.sequence = added[0].sequence or None
            self.tools = added[0].tools or ()
        return added

    async def save(self, messages: Sequence[Message]) -> None:
        """Store what the agent answers, all of it or nothing.

        Raises `RunInProgressError` where another run holds the session meanwhile, and
        `SessionDeletedError` where the session was deleted.
        """
        if self._timeout is not None:
            self._timeout.reschedule(None)  # the answer is there, and keeping it is no part of it
        answers = _without_repeats(messages)
        if not answers:
            return
        await self._hold.confirm()
        beside = {"request_id": self.request_id, "agent_id": self._runner}
        try:
            await append_messages(
                self.history,
                self.key,
                answers,
                [beside] * len(answers),
                incarnation=self._record.incarnation,
                retention=self._retention,
                offload_data_over=self._offload_data_over,
            )
        except NotFoundError as error:
            raise SessionDeletedError(
                f"session {self.key.session_id!r} was deleted during run {self.request_id!r}"
            ) from error

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of a run of an `Agent`: those given, over what the config says."""
        kept = self.config.to_api_dict()
        if not kept:
            return dict(given)
        options: dict[str, Any] = {"execution_config": self.config}
        caps = kept.get("executionParams", {}).get("budget", {})
        if "maxIterations" in caps:
            options["max_iterations"] = caps["maxIterations"]
        return {**options, **given}

    async def keep_state(self) -> None:
        """Store the state of the agent's session, where the run has changed it."""
        if self._state() != self._state_before:
            await self.history.save_state(self.agent_session)

    def _state(self) -> tuple[str | None, bytes]:
        session = self.agent_session
        filled = {source: state for source, state in session.state.items() if state}
        return session.service_session_id, encode_body(filled, self.history.codec)

    async def load(self) -> list[Message]:
        """Return the history before this turn, for an agent that does not load it itself."""
        provider = self._provider(SOURCE_ID)
        return await provider.get_messages(self.key.session_id, before=self.sequence)

    def providers(self, given: Sequence[BaseContextProvider]) -> list[BaseContextProvider]:
        """Return the context providers of a run: those of the agent, and one that loads the
        history where none of them does.

        Raises `InvalidRequestError` for one that has a session of this id of another user.
        """
        for provider in given:
            if not isinstance(provider, StoreHistoryProvider) or provider.stream != MAIN_STREAM:
                continue
            store, key = provider._place(self.key.session_id)
            if (store, key) == self.place:
                if provider.max_messages:
                    self._retention = Retention(provider.max_messages)
                self._offload_data_over = provider.offload_data_over
                if provider.load_messages:
                    return list(given)
            elif store is self.history.store and key.namespace == self.key.namespace:
                raise InvalidRequestError(
                    f"the session is one of user {self.key.user_id!r}, and provider "
                    f"{provider.source_id!r} of the agent is for user {key.user_id!r}; give the "
                    "agent the provider of History.as_user"
                )
        return [self._provider(_free(SOURCE_ID, (each.source_id for each in given))), *given]

    async def watch(self, updates: AsyncGenerator[T]) -> AsyncGenerator[T]:
        """Yield what a run yields, as long as the session is held and there is time.

        The hold is not renewed before somebody asks for the next piece, who may never come.
        """
        async with aclosing(updates):
            while True:
                async with self.working():
                    try:
                        update = await anext(updates)
                    except StopAsyncIteration:
                        return
                with self._hold.resting():
                    yield update
                await self._hold.confirm()

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """End the block where the session is lost, or where the agent takes longer than it may.

        Whatever takes a stream's pieces in the meantime does not count.

        Raises `TimeoutError`, `RunInProgressError` and `SessionDeletedError`.
        """
        begun = asyncio.get_running_loop().time()
        with self._hold.watching():
            timeout = self._timeout = asyncio.timeout(self._time_left)
            try:
                async with timeout:
                    yield
            except TimeoutError as error:
                if not timeout.expired():
                    raise
                raise TimeoutError(f"the run took longer than {self._time_limit} s") from error
            finally:
                self._timeout = None
                if self._time_left is not None:
                    self._time_left -= asyncio.get_running_loop().time() - begun

    def _provider(self, source_id: str) -> StoreHistoryProvider:
        history = self.history
        if history.user_id != self.key.user_id:
            history = history.as_user(self.key.user_id)
        return history.provider(source_id, store_inputs=False, store_outputs=False, **self._window)

    async def _end(self, status: RunStatus) -> None:
        # How the run went is known to the caller. If it can't be noted, or the session not let go,
        # the lease ends by itself.
        with suppress(HistoryKitError):
            await self._hold.confirm()
            if self._noted != status:
                await change_body(
                    self.history,
                    self.key,
                    lambda _: {"run_status": status.value},
                    incarnation=self._record.incarnation,
                )
        with suppress(HistoryKitError):
            await self._hold.release()


def _without_repeats(messages: Sequence[Message]) -> list[Message]:
    """Return messages without those that have the id and the content of an earlier one."""
    kept: list[Message] = []
    for message in messages:
        alike = [each.to_dict() for each in kept if each.message_id == message.message_id]
        if message.message_id is None or message.to_dict() not in alike:
            kept.append(message)
    return kept


def _free(name: str, taken: Iterable[str]) -> str:
    names = set(taken)
    while name in names:
        name += "_"
    return name
