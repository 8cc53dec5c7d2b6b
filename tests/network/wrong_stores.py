"""Stores that are wrong about the network: Redis stores, each with one lie."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import Any

from historykit.backends import BackendSpec
from historykit.errors import StorageError
from historykit.ids import new_id
from historykit.plugins import load_backend
from historykit.records import (
    AppendReceipt,
    AppendRequest,
    MessageSelector,
    ReplaceRequest,
    Slice,
    Window,
)
from historykit.session_records import SessionKey
from historykit_redis import RedisConfig, RedisStore

__all__ = ["WRONG_STORES", "spec_of"]

EMPTY = Slice(messages=(), incarnation=None, version=0, epoch=0, more=False)


class AsksBefore(RedisStore):
    """Asks the server how it is before each append."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        await self._ping()
        return await super()._append(request)


class LooksBefore(RedisStore):
    """Reads a session before it reads a page of it."""

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        await self._read_tail(key, stream)
        return await super()._read(key, window, stream)


class ReadsAll(RedisStore):
    """Reads the session before each append to it."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        await super()._read(request.key, Window(), request.stream)
        return await super()._append(request)


class Tears(RedisStore):
    """Appends the messages of a batch one after the other."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        for draft in request.drafts:
            receipt = await super()._append(replace(request, drafts=(draft,)))
        return receipt


class EmptiesBefore(RedisStore):
    """Deletes what it replaces before it stores what takes its place."""

    async def _replace(self, request: ReplaceRequest) -> AppendReceipt:
        everything = MessageSelector(stream=request.stream, first=0)
        await self._delete_messages(request.key, everything, request.now)
        return await super()._replace(
            replace(request, expected_version=request.expected_version + 1)
        )


class Renames(RedisStore):
    """Gives messages ids of its own, other ones each time."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        drafts = tuple(replace(draft, id=new_id()) for draft in request.drafts)
        return await super()._append(replace(request, drafts=drafts))


class Clings(RedisStore):
    """Has a connection besides, which it needs for all it does and never makes again."""

    async def _open(self) -> None:
        await super()._open()
        host, _, port = str(self._config.url).partition("://")[2].partition("/")[0].partition(":")
        self._streams = await asyncio.open_connection(host, int(port))

    async def _close(self) -> None:
        await super()._close()
        self._streams[1].close()
        with contextlib.suppress(ConnectionError):
            await self._streams[1].wait_closed()

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        reader, writer = self._streams
        writer.write(b"PING\r\n")
        if not await reader.readline():
            raise ConnectionError("the connection is lost")
        return await super()._append(request)


class Hides(RedisStore):
    """Answers with an empty history where it gets no answer itself."""

    async def read(self, *arguments: Any, **keywords: Any) -> Slice:
        try:
            return await super().read(*arguments, **keywords)
        except StorageError:
            return EMPTY


class MixesUp(RedisStore):
    """Answers with the page that was read last, whoever asked for it, when it is busy."""

    _last: Slice | None = None

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        last = self._last
        self._last = await super()._read(key, window, stream)
        return last if last and last.messages else self._last


WRONG_STORES: dict[type[RedisStore], tuple[str, ...]] = {
    AsksBefore: (
        "test_save_is_one_round_trip",
        "test_history_is_loaded_in_one_round_trip_for_each_page",
    ),
    LooksBefore: (
        "test_load_is_one_round_trip_for_each_page",
        "test_history_is_loaded_in_one_round_trip_for_each_page",
    ),
    ReadsAll: ("test_save_costs_the_same_on_a_long_session",),
    EmptiesBefore: ("test_replacement_that_is_cut_off_is_whole_or_absent",),
    Tears: ("test_save_that_is_cut_off_is_whole_or_absent",),
    Renames: ("test_save_whose_answer_is_lost_is_stored_once", "test_save_waits_out_a_stall"),
    Clings: ("test_broken_connections_are_replaced", "test_outage_in_the_middle_of_saves"),
    Hides: ("test_outage_in_the_middle_of_saves",),
    MixesUp: ("test_cancelled_calls_on_a_slow_network",),
}
"""The tests that have to refute each."""


def spec_of(store: type[RedisStore]) -> BackendSpec:
    """Return the description of a wrong store's backend."""
    return replace(load_backend("redis"), store=lambda: store, config=lambda: RedisConfig)
