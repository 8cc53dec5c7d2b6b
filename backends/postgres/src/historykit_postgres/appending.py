"""How messages are appended: by one statement where that can be, else by several under a lock."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from historykit.planning import Known, plan_append, retention_cut
from historykit.records import AppendReceipt, AppendRequest, MessageDraft
from historykit.session_records import MAIN_STREAM
from historykit_postgres.connections import Connections
from historykit_postgres.drivers import Driver, Row
from historykit_postgres.errors import is_overtaken
from historykit_postgres.heads import Head, find_head, write_head
from historykit_postgres.names import Names
from historykit_postgres.ranges import within
from historykit_postgres.sessions import insert_session
from historykit_postgres.statements import (
    append_arguments,
    append_statement,
    insert_arguments,
    insert_statement,
    marks,
)

__all__ = ["append", "insert_messages"]

KNOWN: Final = "SELECT id, sequence, digest FROM {messages} WHERE session = $1 AND id = ANY ($2)"
STREAM: Final = within("$1", "$2")
OPENING: Final = f"SELECT sequence, role FROM {{messages}} WHERE {STREAM} ORDER BY sequence LIMIT 1"
FROM_OLDEST: Final = f"""
SELECT sequence FROM {{messages}} WHERE {STREAM} ORDER BY sequence LIMIT 1 OFFSET $3
"""
FROM_NEWEST: Final = f"""
SELECT sequence FROM {{messages}} WHERE {STREAM} ORDER BY sequence DESC LIMIT 1 OFFSET $3
"""
TURN_START: Final = f"""
SELECT sequence FROM {{messages}} WHERE {within("$1", "$2", last="$3")} AND turn_start
ORDER BY sequence DESC LIMIT 1
"""
DELETE: Final = f"""
WITH deleted AS (DELETE FROM {{messages}} WHERE {within("$1", "$2", "$3", "$4")} RETURNING 1)
SELECT count(*) FROM deleted
"""


async def append(connections: Connections, names: Names, request: AppendRequest) -> AppendReceipt:
    """Do an append."""
    rows: Sequence[Row] = ()
    size, retention = len(request.drafts), request.retention
    if connections.can_repeat and (retention is None or size < retention.max_messages):
        creating = _may_create(request)
        statement = names(append_statement(size, creating=creating, trimming=retention is not None))
        arguments = append_arguments(request, creating=creating)
        try:
            rows = await connections.run(
                lambda driver: driver.fetch(statement, *arguments), key=request.key
            )
        except Exception as error:
            if not is_overtaken(error):
                raise
    if rows:
        return _receipt(request, rows[0])
    return await connections.transact(
        partial(append_locked, names=names, request=request), key=request.key, repeatable=True
    )


async def append_locked(driver: Driver, names: Names, request: AppendRequest) -> AppendReceipt:
    """Do an append in a transaction: lock the session, look for the ids, decide, write."""
    head, created = await _found_or_new(driver, names, request)
    if created:
        plan = plan_append(request, None, {})
    else:
        plan = plan_append(
            request, head.planned(), await _known(driver, names, head, request.drafts)
        )
    if plan.drafts:
        await insert_messages(driver, names, head, plan.drafts)
        if request.retention is not None:
            await _trim(driver, names, head, request.retention.max_messages)
        await write_head(driver, names, head, now=request.now, marks=marks(plan.drafts))
    return plan.receipt


async def insert_messages(
    driver: Driver, names: Names, head: Head, drafts: Sequence[MessageDraft]
) -> None:
    """Add messages to the end of the head's stream; the head is still to be written."""
    if not drafts:
        return
    statement = names(insert_statement(len(drafts)))
    arguments = insert_arguments(drafts)
    await driver.fetch(statement, head.id, head.stream, head.next_sequence, *arguments)
    head.next_sequence += len(drafts)
    head.live += len(drafts)
    head.largest = max(head.largest, *(len(draft.body) for draft in drafts))
    if head.stream == MAIN_STREAM:
        head.last_message_at = drafts[-1].created_at


async def _found_or_new(driver: Driver, names: Names, request: AppendRequest) -> tuple[Head, bool]:
    """Lock the session of an append, created if it is not there, and return whether it was."""
    while True:
        head = await find_head(driver, names, request.key, request.stream)
        if head is not None:
            return head, False
        plan_append(request, None, {})  # raises where there has to be a session
        head = await insert_session(
            driver,
            names,
            request.key,
            request.create,
            request.new_incarnation,
            request.now,
            stream=request.stream,
        )
        if head is not None:  # nobody else was faster
            return head, True


async def _known(driver: Driver, names: Names, head: Head, drafts: Sequence[MessageDraft]) -> Known:
    """Return sequence and digest of those drafts that are stored, by id."""
    rows = await driver.fetch(names(KNOWN), head.id, [draft.id for draft in drafts])
    return {id: (sequence, digest) for id, sequence, digest in rows}


async def _trim(driver: Driver, names: Names, head: Head, wanted: int) -> None:
    """Remove the oldest turns, as far as `wanted` messages stay."""
    excess = head.live - wanted
    if excess <= 0:
        return
    stream = (head.id, head.stream)
    # The way to the oldest message that is wanted is shorter from one end than from the other.
    statement, step = (FROM_OLDEST, excess) if excess < wanted else (FROM_NEWEST, wanted - 1)
    ((oldest_wanted,),) = await driver.fetch(names(statement), *stream, step)
    starts = await driver.fetch(names(TURN_START), *stream, oldest_wanted)
    ((first, role),) = await driver.fetch(names(OPENING), *stream)
    cut = retention_cut(
        (start for (start,) in starts), oldest_wanted=oldest_wanted, opening=(first, role)
    )
    if cut is not None:
        ((removed,),) = await driver.fetch(names(DELETE), *stream, *cut)
        head.live -= removed
        head.trimmed += removed


def _receipt(request: AppendRequest, row: Row) -> AppendReceipt:
    incarnation, version, first = row
    count = len(request.drafts)
    return AppendReceipt(
        incarnation=incarnation,
        version=version,
        ids=tuple([draft.id for draft in request.drafts]),
        sequences=tuple(range(first, first + count)),
        stored=count,
        created=incarnation == request.new_incarnation,
    )


def _may_create(request: AppendRequest) -> bool:
    """Return whether the one statement may create the session, as plainly as it does."""
    fields = request.create
    return (
        request.incarnation is None
        and not request.expected_version
        and fields.memory_enabled
        and not fields.body
        and not fields.labels
    )
