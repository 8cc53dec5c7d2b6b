"""How messages are read: one statement for each page."""

from __future__ import annotations

from functools import cache
from typing import Final

from historykit.records import (
    PAGE_BYTES,
    PAGE_MESSAGES,
    TAIL_DIGESTS,
    SessionKey,
    Slice,
    StoredMessage,
    Tail,
    Window,
)
from historykit_postgres.drivers import Driver, Row
from historykit_postgres.heads import place
from historykit_postgres.names import Names
from historykit_postgres.statements import INSTRUCTIONS

_make = tuple.__new__  # a load makes hundreds; the class's own __new__ takes twice as long

__all__ = ["COLUMNS", "LARGEST", "fitting", "read", "read_tail", "stored"]

BUCKETS: Final = (20, 100, PAGE_MESSAGES)
"""There is a statement for pages of at most so many messages each."""

LARGEST: Final = (1 << 63) - 1
"""The largest integer of a bigint: above every sequence and every time."""

BODY: Final = 3
"""The place of the body among the columns of a message."""

COLUMNS: Final = "sequence, id, role, body, created_at, turn_start, reaction, extra, revision"
"""The columns of a row that `stored` takes."""

# The first row is the session itself, told by having no role. `small` says that no page can hold
# too many bytes, which is seldom otherwise and takes long to find out message by message.
HEAD: Final = f"""
WITH head AS MATERIALIZED (
    SELECT id, incarnation, version, epoch,
           largest * least($6::bigint, (live ->> $4::text)::bigint) <= {PAGE_BYTES} AS small
    FROM {{sessions}}
    WHERE namespace = $1 AND user_id = $2 AND session_id = $3
)
SELECT version AS sequence, incarnation AS id, NULL AS role, NULL::bytea AS body,
       epoch AS created_at, NULL::boolean AS turn_start, NULL AS reaction, NULL::bytea AS extra,
       0 AS revision
FROM head
"""
STREAM: Final = "FROM {messages} WHERE session = (SELECT id FROM head) AND stream = $4"

# The message that opens the stream, told by a number below 0.
OPENING: Final = f"""
SELECT -sequence, id, role, body, created_at, turn_start, reaction, extra, revision
FROM (SELECT {COLUMNS} {STREAM} ORDER BY sequence LIMIT 1) AS first
WHERE role IN ({INSTRUCTIONS})
"""
TAIL: Final = f"""
SELECT s.incarnation, s.version, coalesce((s.live ->> $4::text)::bigint, 0),
       coalesce((s.trimmed ->> $4::text)::bigint, 0), m.digest
FROM {{sessions}} AS s LEFT JOIN LATERAL (
    SELECT sequence, digest FROM {{messages}} WHERE session = s.id AND stream = $4::text
    ORDER BY sequence DESC LIMIT {TAIL_DIGESTS}
) AS m ON true
WHERE s.namespace = $1 AND s.user_id = $2 AND s.session_id = $3
ORDER BY m.sequence
"""


async def read(driver: Driver, names: Names, key: SessionKey, window: Window, stream: str) -> Slice:
    """Return one page of a stream."""
    windowed = bool(window.limit) and window.after is None
    if window.after is None:
        bound = LARGEST if window.before is None else fitting(window.before)
    else:
        bound = fitting(window.after)
    bucket = next(size for size in BUCKETS if window.page <= size)
    statement = names(
        _read_statement(bucket, ascending=window.after is not None, windowed=windowed)
    )
    rows = await driver.fetch(statement, *place(key), stream, bound, window.page)
    if not rows:
        return Slice((), None, 0, 0, False)
    head, *messages = rows
    opening = stored(messages.pop(0)) if messages and messages[0][0] < 0 else None
    more = len(messages) > window.page or (bool(messages) and messages[-1][BODY] is None)
    if more:
        messages.pop()
    if window.after is None:
        messages.reverse()
    if opening is not None:
        opening = opening._replace(sequence=-opening.sequence) if more else None
    page = tuple([_make(StoredMessage, row) for row in messages])
    return Slice(page, head[1], head[0], head[4], more, opening)


async def read_tail(driver: Driver, names: Names, key: SessionKey, stream: str) -> Tail:
    """Return count and digests of a stream's end."""
    rows = await driver.fetch(names(TAIL), *place(key), stream)
    if not rows:
        return Tail(incarnation=None, version=0, count=0, trimmed=0, digests=())
    incarnation, version, count, trimmed, _ = rows[0]
    return Tail(
        incarnation=incarnation,
        version=version,
        count=count,
        trimmed=trimmed,
        digests=tuple(row[-1] for row in rows if row[-1] is not None),
    )


def stored(row: Row) -> StoredMessage:
    """Return the message that a row of `COLUMNS` holds."""
    return _make(StoredMessage, row)


def fitting(number: int) -> int:
    """Return the bigint nearest to a bound: no stored number lies between the two."""
    return max(-LARGEST, min(number, LARGEST))


@cache
def _read_statement(bucket: int, *, ascending: bool, windowed: bool) -> str:
    """Return the statement for a page of at most `bucket`: those above a bound, or those below it.

    Without a number in it, PostgreSQL would expect a tenth of the session, and plan each execution
    anew because a plan for fewer costs less; that takes longer than the reading.
    """
    bound, order = (">", "ASC") if ascending else ("<", "DESC")
    nearest = f"ORDER BY sequence {order}"
    near = f"""
SELECT {COLUMNS} FROM (
    SELECT {COLUMNS} {STREAM} AND sequence {bound} $5::bigint AND %s
    {nearest} LIMIT {bucket + 1}
) AS bucket LIMIT $6::bigint + 1
"""
    # One message more than the page has says that there are more.
    page = near % "(SELECT small FROM head)"
    # The same where bytes count. The one message more comes without its body.
    measured_page = f"""
SELECT sequence, id, role, CASE WHEN fits THEN body END, created_at, turn_start, reaction,
       CASE WHEN fits THEN extra END, revision
FROM (
    SELECT {COLUMNS}, place, above,
           place <= $6::bigint AND (place = 1 OR above + octet_length(body) <= {PAGE_BYTES}) AS fits
    FROM (
        SELECT {COLUMNS}, row_number() OVER nearest AS place,
               sum(octet_length(body)) OVER nearest - octet_length(body) AS above
        FROM ({near % "NOT (SELECT small FROM head)"}) AS near
        WINDOW nearest AS ({nearest} ROWS UNBOUNDED PRECEDING)
    ) AS measured
    WHERE place <= 2 OR above <= {PAGE_BYTES}
) AS page
"""
    parts = [f"({OPENING})"] * windowed + [f"({page})", f"({measured_page})"]
    return "\nUNION ALL\n".join([HEAD, *parts])
