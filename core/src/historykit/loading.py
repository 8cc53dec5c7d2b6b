"""Histories on their way out of a store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from historykit.bounds import check_bound
from historykit.codec import MessageCodec
from historykit.errors import ConflictError, DecodeError
from historykit.messages import Message
from historykit.planning import INSTRUCTION_ROLES
from historykit.records import PAGE_MESSAGES, Slice, StoredMessage, Window
from historykit.session_records import SessionKey
from historykit.store import HistoryStore

__all__ = ["LoadedHistory", "decode_messages", "load_history"]

ATTEMPTS = 5
"""How often a load begins again because messages were changed while it read its pages."""

TURN_GUESS = 16
"""How many messages to read for each turn that is wanted."""

PORTION = 100
"""How many messages are decoded before others are given the event loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedHistory:
    """What a load returns.

    `messages` are oldest first. `incarnation` names the session's present life, None where there is
    no session; `version` is its version. `skipped` holds an error for each record that a lenient
    load could not read, with its sequence."""

    messages: list[Message]
    incarnation: str | None
    version: int
    skipped: tuple[DecodeError, ...] = ()


async def load_history(
    store: HistoryStore,
    key: SessionKey,
    *,
    codec: MessageCodec,
    stream: str,
    limit: int | None = None,
    turns: int | None = None,
    before: int | None = None,
    strict: bool = True,
) -> LoadedHistory:
    """Return the newest `limit` messages of a stream, or its newest `turns` turns, or all of it.

    With `before`, the stream ends below that sequence. A system message that opens the stream is
    returned beside them. Pages are read from the newest to the oldest, one round trip each; what is
    appended meanwhile is not seen. Where messages were changed or removed meanwhile, the load
    begins again.

    Raises `DecodeError` for a record that cannot be read, unless `strict` is False: then it is left
    out and reported.
    """
    check_bound(limit, "limit")
    check_bound(turns, "turns")
    for _ in range(ATTEMPTS):
        skipped: list[DecodeError] | None = None if strict else []
        loaded = await _load_once(store, key, codec, stream, limit, turns, before, skipped)
        if loaded is not None:
            break
    else:
        raise ConflictError(
            f"session {key.session_id!r} is being edited faster than it can be read; try again"
        )
    newest, parts = loaded
    return LoadedHistory(
        messages=[message for part in reversed(parts) for message in part],
        incarnation=newest.incarnation,
        version=newest.version,
        skipped=tuple(sorted(skipped or (), key=lambda error: error.sequence or 0)),
    )


def decode_messages(
    rows: Iterable[StoredMessage],
    key: SessionKey,
    *,
    codec: MessageCodec,
    skipped: list[DecodeError] | None = None,
) -> list[Message]:
    """Return the messages that stored rows hold.

    Raises `DecodeError` naming session and sequence; with `skipped`, such errors are put there and
    the rows left out.
    """
    messages = []
    decode, adopt, strict = codec.decode, Message._from_decoded, skipped is None
    for row in rows:
        try:
            messages.append(adopt(decode(row.body, strict=strict)))
        except (DecodeError, ValueError, TypeError) as error:
            failure = _unreadable(row, key, error)
            if skipped is None:
                raise failure from error
            skipped.append(failure)
    return messages


def _unreadable(row: StoredMessage, key: SessionKey, error: Exception) -> DecodeError:
    return DecodeError(
        f"message {row.sequence} (id {row.id}) of session {key.session_id!r} cannot be read: "
        f"{error}. History.read with strict=False leaves it out",
        session_id=key.session_id,
        sequence=row.sequence,
    )


async def _load_once(
    store: HistoryStore,
    key: SessionKey,
    codec: MessageCodec,
    stream: str,
    limit: int | None,
    turns: int | None,
    before: int | None,
    skipped: list[DecodeError] | None,
) -> tuple[Slice, list[list[Message]]] | None:
    """Return what the newest page says beside its messages, and the messages of all pages, newest
    first; None if edits came between.

    Each page is decoded before the next is read, which then finds the memory that this one took.
    """
    newest: Slice | None = None
    parts: list[list[Message]] = []
    while True:
        page = await store.read(
            key, Window(limit=_page_limit(limit, turns), before=before), stream=stream
        )
        newest = newest or page._replace(messages=())
        if (page.incarnation, page.epoch) != (newest.incarnation, newest.epoch):
            return None
        rows, opening = _wanted(page, turns)
        if limit is not None:
            limit -= len(page.messages)
        if turns is not None:
            turns -= sum(row.turn_start for row in rows)
        last = not page.more or limit == 0 or turns == 0
        if last and opening is not None:
            rows = (opening, *rows)
        parts.append(await _decoded(rows, key, codec, skipped))
        if last:
            return newest, parts
        before = page.messages[0].sequence
        del page, rows, opening
        await asyncio.sleep(0)  # not every store waits for something when it reads


async def _decoded(
    rows: Sequence[StoredMessage],
    key: SessionKey,
    codec: MessageCodec,
    skipped: list[DecodeError] | None,
) -> list[Message]:
    """Return the messages of one page. That takes milliseconds, and others want the event loop."""
    messages = decode_messages(rows[:PORTION], key, codec=codec, skipped=skipped)
    for begin in range(PORTION, len(rows), PORTION):
        await asyncio.sleep(0)
        portion = rows[begin : begin + PORTION]
        messages += decode_messages(portion, key, codec=codec, skipped=skipped)
    return messages


def _page_limit(rest: int | None, missing: int | None) -> int | None:
    """Return how many messages to ask for: for turns a guess, since their length is not known."""
    if missing is None:
        return rest
    guess = min(missing * TURN_GUESS, PAGE_MESSAGES)
    return guess if rest is None else min(guess, rest)


def _wanted(page: Slice, turns: int | None) -> tuple[Sequence[StoredMessage], StoredMessage | None]:
    """Return what is wanted of a page, at most so many turns, and the opening of its stream."""
    rows = page.messages
    if turns is None:
        return rows, page.opening
    begin = _turns_begin(rows, turns)
    if begin and not page.more and rows[0].role in INSTRUCTION_ROLES:
        return rows[begin:], rows[0]
    return rows[begin:], page.opening


def _turns_begin(rows: Sequence[StoredMessage], turns: int) -> int:
    """Return the index at which the newest `turns` turns begin."""
    starts = [index for index, row in enumerate(rows) if row.turn_start]
    if turns == 0:
        return len(rows)
    return starts[-turns] if len(starts) >= turns else 0
