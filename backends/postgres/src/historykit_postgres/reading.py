"""How messages are read: one statement for each page."""

from __future__ import annotations

from functools import cache
from typing import Final

from historykit.records import (
    PAGE_BYTES,
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

LARGEST: Final = (1 << 63) - 1
"""The largest integer of a bigint: above every sequence and every time."""

BODY: Final = 3
"""The place of the body among the columns of a message."""

COLUMNS: Final = "sequence, id, role, body, created_at, turn_start, reaction, extra, revision"
"""The columns of a row that `stored` takes."""

# The first row is the session itself, told by having no role.
HEAD: Final = """
WITH head AS MATERIALIZED (
    SELECT id, incarnation, version, epoch FROM {sessions}
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
    statement = names(_read_statement(ascending=window.after is not None, windowed=windowed))
    rows = await driver.fetch(statement, *place(key), stream, bound, window.page)
    if not rows:
        return Slice((), None, 0, 0, False)
    head, *messages = rows
    opening = stored(messages.pop(0)) if messages and messages[0][0] < 0 else None
    more = bool(messages) and messages[-1][BODY] is None
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
def _read_statement(*, ascending: bool, windowed: bool) -> str:
    """Return the statement for one page: those above a bound, or those below it."""
    bound, order = (">", "ASC") if ascending else ("<", "DESC")
    # Behind the last message that fits comes the next one without its body: there is more.
    page = f"""
SELECT sequence, id, role, CASE WHEN fits THEN body END, created_at, turn_start, reaction,
       CASE WHEN fits THEN extra END, revision
FROM (
    SELECT {COLUMNS}, place, above,
           place <= $6::bigint AND (place = 1 OR above + octet_length(body) <= {PAGE_BYTES}) AS fits
    FROM (
        SELECT {COLUMNS}, row_number() OVER nearest AS place,
               sum(octet_length(body)) OVER nearest - octet_length(body) AS above
        FROM (
            SELECT {COLUMNS} {STREAM} AND sequence {bound} $5::bigint
            ORDER BY sequence {order} LIMIT $6::bigint + 1
        ) AS near
        WINDOW nearest AS (ORDER BY sequence {order} ROWS UNBOUNDED PRECEDING)
    ) AS measured
    WHERE place <= 2 OR above <= {PAGE_BYTES}
) AS page
"""
    parts = [HEAD, OPENING, page] if windowed else [HEAD, page]
    return "\nUNION ALL\n".join([parts[0], *(f"({part})" for part in parts[1:])])
