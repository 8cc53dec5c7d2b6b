"""What is done with messages. Each function runs in the connection's thread, in a transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, Final

from historykit.planning import (
    INSTRUCTION_ROLES,
    cut_page,
    message_not_found,
    plan_append,
    plan_replace,
    plan_update,
    retention_cut,
    session_not_found,
)
from historykit.records import (
    TAIL_DIGESTS,
    AppendReceipt,
    AppendRequest,
    MessageDraft,
    MessagePatch,
    MessageSelector,
    ReplaceRequest,
    Slice,
    StoredMessage,
    Tail,
    Window,
)
from historykit.session_records import MAIN_STREAM, SessionKey
from historykit_sqlite.heads import Head, read_head, write_head
from historykit_sqlite.sessions import insert_session

__all__ = [
    "append",
    "delete_messages",
    "read",
    "read_message",
    "read_newest",
    "read_tail",
    "replace",
    "update_message",
]

LARGEST: Final = (1 << 63) - 1
"""The largest integer of SQLite: above every sequence and every time."""

LIFE: Final = """
SELECT row, incarnation, version, epoch FROM sessions
WHERE namespace = ? AND user_id = ? AND session_id = ?
"""
COLUMNS: Final = "sequence, id, role, body, created_at, turn_start, reaction, extra, revision"

STREAM: Final = "FROM messages WHERE session = ? AND stream = ?"

NEWEST: Final = f"SELECT {COLUMNS} {STREAM} AND sequence < ? ORDER BY sequence DESC LIMIT ?"
OLDEST: Final = f"SELECT {COLUMNS} {STREAM} AND sequence > ? ORDER BY sequence LIMIT ?"
BY_ID: Final = f"SELECT {COLUMNS} FROM messages WHERE session = ? AND id = ?"
IN_SESSION: Final = """session = (
    SELECT row FROM sessions WHERE namespace = ? AND user_id = ? AND session_id = ?
)"""
MESSAGE: Final = f"SELECT {COLUMNS} FROM messages WHERE {IN_SESSION} AND id = ?"
LAST: Final = f"""
SELECT {COLUMNS} FROM messages WHERE {IN_SESSION} AND stream = ? ORDER BY sequence DESC LIMIT 1
"""
DIGESTS: Final = f"SELECT digest {STREAM} ORDER BY sequence DESC LIMIT ?"
NEWEST_TIME: Final = f"SELECT created_at {STREAM} ORDER BY sequence DESC LIMIT 1"
OPENING: Final = f"SELECT sequence, role {STREAM} ORDER BY sequence LIMIT 1"
FROM_OLDEST: Final = f"SELECT sequence {STREAM} ORDER BY sequence LIMIT 1 OFFSET ?"
FROM_NEWEST: Final = f"SELECT sequence {STREAM} ORDER BY sequence DESC LIMIT 1 OFFSET ?"
TURN_START: Final = (
    f"SELECT sequence {STREAM} AND turn_start AND sequence <= ? ORDER BY sequence DESC LIMIT 1"
)
KNOWN: Final = "SELECT sequence, digest FROM messages WHERE session = ? AND id = ?"
INSERT: Final = """
INSERT INTO messages
(session, stream, sequence, id, role, created_at, turn_start, digest, body, extra)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
UPDATE: Final = """
UPDATE messages SET body = ?, digest = coalesce(?, digest), reaction = ?, extra = ?, revision = ?
WHERE session = ? AND id = ?
"""
DELETE_RANGE: Final = f"DELETE {STREAM} AND sequence BETWEEN ? AND ?"
DELETE_SELECTED: Final = f"{DELETE_RANGE} AND created_at < ?"


def append(db: sqlite3.Connection, request: AppendRequest) -> AppendReceipt:
    """Do an append: look at the session's row and for the ids, decide, write."""
    head = read_head(db, request.key)
    if head is None:
        plan = plan_append(request, None, {})
        head = insert_session(
            db, request.key, request.create, plan.receipt.incarnation, request.now
        )
    else:
        plan = plan_append(request, head.planned(), _known(db, head, request.drafts))
    if plan.drafts:
        _insert(db, head, request.stream, plan.drafts)
        if request.retention is not None:
            _trim(db, head, request.stream, request.retention.max_messages)
        write_head(db, head, now=request.now)
    return plan.receipt


def read(db: sqlite3.Connection, key: SessionKey, window: Window, stream: str) -> Slice:
    """Return one page of a stream."""
    session = db.execute(LIFE, (key.namespace, key.user_id, key.session_id)).fetchone()
    if session is None:
        return Slice((), None, 0, 0, False)
    row, incarnation, version, epoch = session
    if window.after is None:
        statement, bound = NEWEST, LARGEST if window.before is None else window.before
    else:
        statement, bound = OLDEST, window.after
    with closing(db.execute(statement, (row, stream, _fitting(bound), window.page + 1))) as rows:
        messages, more = cut_page(_messages(rows), window)
    windowed = more and window.limit and window.after is None
    opening = _opening(db, row, stream) if windowed else None
    return Slice(messages, incarnation, version, epoch, more, opening)


def read_tail(db: sqlite3.Connection, key: SessionKey, stream: str) -> Tail:
    """Return count and digests of a stream's end."""
    head = read_head(db, key)
    if head is None:
        return Tail(incarnation=None, version=0, count=0, trimmed=0, digests=())
    newest_first = db.execute(DIGESTS, (head.row, stream, TAIL_DIGESTS)).fetchall()
    return Tail(
        incarnation=head.incarnation,
        version=head.version,
        count=head.live.get(stream, 0),
        trimmed=head.trimmed.get(stream, 0),
        digests=tuple(digest for (digest,) in reversed(newest_first)),
    )


def read_message(db: sqlite3.Connection, key: SessionKey, message_id: str) -> StoredMessage:
    """Return one message."""
    rows = db.execute(MESSAGE, (key.namespace, key.user_id, key.session_id, message_id)).fetchall()
    for message in _messages(rows):
        return message
    raise message_not_found(key, message_id)


def read_newest(
    db: sqlite3.Connection, keys: Iterable[SessionKey], stream: str
) -> list[StoredMessage | None]:
    """Return the newest message of each session, None where there is none."""
    found = (
        db.execute(LAST, (key.namespace, key.user_id, key.session_id, stream)).fetchall()
        for key in keys
    )
    return [next(_messages(rows), None) for rows in found]


def update_message(
    db: sqlite3.Connection, key: SessionKey, message_id: str, patch: MessagePatch, now: int
) -> StoredMessage:
    """Change a message in its place and return it."""
    head = _existing(db, key)
    row = next(_messages(db.execute(BY_ID, (head.row, message_id)).fetchall()), None)
    if row is None:
        raise message_not_found(key, message_id)
    changed = plan_update(row, patch)
    fields = (changed.body, patch.digest, changed.reaction, changed.extra, changed.revision)
    db.execute(UPDATE, (*fields, head.row, message_id))
    write_head(db, head, now=now, edited=True)
    return changed


def delete_messages(
    db: sqlite3.Connection, key: SessionKey, selector: MessageSelector, now: int
) -> int:
    """Delete what is selected and return how many messages that were."""
    head = read_head(db, key)
    if head is None:
        return 0
    bounds = (
        head.row,
        selector.stream,
        _fitting(0 if selector.first is None else selector.first),
        _fitting(LARGEST if selector.last is None else selector.last),
        _fitting(LARGEST if selector.created_before is None else selector.created_before),
    )
    if selector.ids is None:
        deleted = db.execute(DELETE_SELECTED, bounds).rowcount
    else:
        ids = dict.fromkeys(selector.ids)
        statement = f"{DELETE_SELECTED} AND id = ?"
        deleted = db.executemany(statement, [(*bounds, id) for id in ids]).rowcount
    if deleted:
        head.live[selector.stream] -= deleted
        _note_newest(db, head)
        write_head(db, head, now=now, edited=True)
    return deleted


def replace(db: sqlite3.Connection, request: ReplaceRequest) -> AppendReceipt:
    """Put other messages in the place of all those of a stream."""
    head = _existing(db, request.key)
    db.execute(DELETE_RANGE, (head.row, request.stream, 0, LARGEST))
    elsewhere = _known(db, head, request.drafts).keys()
    receipt = plan_replace(request, head.planned(), elsewhere)
    head.live[request.stream] = 0
    _insert(db, head, request.stream, request.drafts)
    _note_newest(db, head)
    write_head(db, head, now=request.now, edited=True)
    return receipt


def _existing(db: sqlite3.Connection, key: SessionKey) -> Head:
    head = read_head(db, key)
    if head is None:
        raise session_not_found(key)
    return head


def _known(
    db: sqlite3.Connection, head: Head, drafts: Iterable[MessageDraft]
) -> dict[str, tuple[int, bytes]]:
    """Return sequence and digest of those drafts that are stored, by id."""
    found = ((draft.id, db.execute(KNOWN, (head.row, draft.id)).fetchone()) for draft in drafts)
    return {id: row for id, row in found if row is not None}


def _insert(
    db: sqlite3.Connection, head: Head, stream: str, drafts: Sequence[MessageDraft]
) -> None:
    db.executemany(
        INSERT,
        [
            (
                head.row,
                stream,
                sequence,
                draft.id,
                draft.role,
                draft.created_at,
                draft.turn_start,
                draft.digest,
                draft.body,
                draft.extra,
            )
            for sequence, draft in enumerate(drafts, start=head.next_sequence)
        ],
    )
    head.next_sequence += len(drafts)
    head.live[stream] = head.live.get(stream, 0) + len(drafts)
    if stream == MAIN_STREAM and drafts:
        head.last_message_at = drafts[-1].created_at


def _trim(db: sqlite3.Connection, head: Head, stream: str, wanted: int) -> None:
    """Remove the oldest turns, as far as `wanted` messages stay."""
    excess = head.live[stream] - wanted
    if excess <= 0:
        return
    # The way to the oldest message that is wanted is shorter from one end than from the other.
    step = (FROM_OLDEST, excess) if excess < wanted else (FROM_NEWEST, wanted - 1)
    (oldest_wanted,) = db.execute(step[0], (head.row, stream, step[1])).fetchone()
    cut = retention_cut(
        (start for (start,) in db.execute(TURN_START, (head.row, stream, oldest_wanted))),
        oldest_wanted=oldest_wanted,
        opening=db.execute(OPENING, (head.row, stream)).fetchone(),
    )
    if cut is not None:
        removed = db.execute(DELETE_RANGE, (head.row, stream, *cut)).rowcount
        head.live[stream] -= removed
        head.trimmed[stream] = head.trimmed.get(stream, 0) + removed


def _note_newest(db: sqlite3.Connection, head: Head) -> None:
    newest = db.execute(NEWEST_TIME, (head.row, MAIN_STREAM)).fetchone()
    head.last_message_at = None if newest is None else newest[0]


def _opening(db: sqlite3.Connection, session: int, stream: str) -> StoredMessage | None:
    """Return the message that opens the stream if it instructs the model."""
    (first,) = _messages(db.execute(OLDEST, (session, stream, 0, 1)).fetchall())
    return first if first.role in INSTRUCTION_ROLES else None


def _messages(rows: Iterable[tuple[Any, ...]]) -> Iterator[StoredMessage]:
    """Yield the messages that rows of `COLUMNS` hold."""
    make = tuple.__new__  # a load makes hundreds; the class's own __new__ takes twice as long
    for sequence, id, role, body, created_at, turn, reaction, extra, revision in rows:
        values = (sequence, id, role, body, created_at, turn == 1, reaction, extra, revision)
        yield make(StoredMessage, values)


def _fitting(number: int) -> int:
    """Return the integer of SQLite nearest to a bound: no stored number lies between the two."""
    return max(-LARGEST, min(number, LARGEST))
