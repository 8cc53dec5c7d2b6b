"""How messages are changed and removed. Each function is for a transaction."""

from __future__ import annotations

from typing import Final

from historykit.planning import check_version, message_not_found, plan_update
from historykit.records import (
    AppendReceipt,
    MessagePatch,
    MessageSelector,
    ReplaceRequest,
    StoredMessage,
)
from historykit.session_records import MAIN_STREAM, SessionKey
from historykit_postgres.appending import insert_messages
from historykit_postgres.drivers import Driver
from historykit_postgres.heads import find_head, lock_head, write_edited
from historykit_postgres.names import Names
from historykit_postgres.ranges import LARGEST, fitting, within
from historykit_postgres.reading import COLUMNS, stored

__all__ = ["delete_messages", "replace", "update_message"]

BY_ID: Final = f"SELECT {COLUMNS} FROM {{messages}} WHERE session = $1 AND id = $2"
UPDATE: Final = """
UPDATE {messages}
SET body = $3, digest = coalesce($4::bytea, digest), reaction = $5, extra = $6, revision = $7
WHERE session = $1 AND id = $2
"""
DELETE: Final = f"""
WITH deleted AS (
    DELETE FROM {{messages}} WHERE {within("$1", "$2", "$3", "$4")}
    AND ($5::bigint IS NULL OR created_at < $5::bigint) RETURNING 1
)
SELECT count(*) FROM deleted
"""
DELETE_BY_ID: Final = """
WITH deleted AS (
    DELETE FROM {messages} WHERE session = $1 AND id = ANY ($6) AND stream = $2
    AND sequence BETWEEN $3 AND $4 AND ($5::bigint IS NULL OR created_at < $5::bigint) RETURNING 1
)
SELECT count(*) FROM deleted
"""


async def update_message(
    driver: Driver, names: Names, key: SessionKey, message_id: str, patch: MessagePatch, now: int
) -> StoredMessage:
    """Change a message in its place and return it."""
    head = await lock_head(driver, names, key, MAIN_STREAM)
    rows = await driver.fetch(names(BY_ID), head.id, message_id)
    if not rows:
        raise message_not_found(key, message_id)
    changed = plan_update(stored(rows[0]), patch)
    fields = (changed.body, patch.digest, changed.reaction, changed.extra, changed.revision)
    await driver.fetch(names(UPDATE), head.id, message_id, *fields)
    head.largest = max(head.largest, len(changed.body))
    await write_edited(driver, names, head, now=now)
    return changed


async def delete_messages(
    driver: Driver, names: Names, key: SessionKey, selector: MessageSelector, now: int
) -> int:
    """Delete what is selected and return how many messages that were."""
    head = await find_head(driver, names, key, selector.stream)
    if head is None:
        return 0
    before = selector.created_before
    conditions: list[object] = [
        head.id,
        selector.stream,
        fitting(0 if selector.first is None else selector.first),
        fitting(LARGEST if selector.last is None else selector.last),
        None if before is None else fitting(before),
    ]
    statement = DELETE
    if selector.ids is not None:
        statement = DELETE_BY_ID
        conditions.append(list(selector.ids))
    ((deleted,),) = await driver.fetch(names(statement), *conditions)
    if deleted:
        head.live -= deleted
        await write_edited(driver, names, head, now=now)
    return int(deleted)


async def replace(driver: Driver, names: Names, request: ReplaceRequest) -> AppendReceipt:
    """Put other messages in the place of all those of a stream."""
    head = await lock_head(driver, names, request.key, request.stream)
    check_version(request.key, request.expected_version, head.version)
    await driver.fetch(names(DELETE), head.id, request.stream, 0, LARGEST, None)
    head.live = 0
    first = head.next_sequence
    await insert_messages(driver, names, head, request.drafts)
    await write_edited(driver, names, head, now=request.now)
    return AppendReceipt(
        incarnation=head.incarnation,
        version=head.version,
        ids=tuple(draft.id for draft in request.drafts),
        sequences=tuple(range(first, head.next_sequence)),
        stored=len(request.drafts),
    )
