"""How messages are read: one statement for each page."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final

from historykit.planning import message_not_found
from historykit.records import PAGE_BYTES, TAIL_DIGESTS, Slice, StoredMessage, Tail, Window
from historykit.session_records import SessionKey
from historykit_postgres.drivers import Driver, Row
from historykit_postgres.names import Names, digest
from historykit_postgres.ranges import LARGEST, fitting, within
from historykit_postgres.statements import INSTRUCTIONS

_make = tuple.__new__  # a load makes hundreds; the class's own __new__ takes twice as long

__all__ = ["COLUMNS", "read", "read_message", "read_newest", "read_tail", "stored"]

BODY: Final = 3
"""The place of the body among the columns of a message."""

COLUMNS: Final = "sequence, id, role, body, created_at, turn_start, reaction, extra, revision"
"""The columns of a row that `stored` takes."""

# The first row is the session itself, told by having no role. `small` says that no page can hold
# too many bytes, which is seldom otherwise and takes long to find out message by message.
HEAD: Final = f"""
WITH head AS MATERIALIZED (
    SELECT id, incarnation, version, epoch,
           largest * least($4::bigint, (live ->> $2::text)::bigint) <= {PAGE_BYTES} AS small
    FROM {{sessions}} WHERE key = $1
)
SELECT version AS sequence, incarnation AS id, NULL AS role, NULL::bytea AS body,
       epoch AS created_at, NULL::boolean AS turn_start, NULL AS reaction, NULL::bytea AS extra,
       0 AS revision
FROM head
"""
SESSION: Final = "(SELECT id FROM head)"

# The message that opens the stream, told by a number below 0.
OPENING: Final = f"""
SELECT -sequence, id, role, body, created_at, turn_start, reaction, extra, revision
FROM (
    SELECT {COLUMNS} FROM {{messages}} WHERE {within(SESSION, "$2")} ORDER BY sequence LIMIT 1
) AS first
WHERE role IN ({INSTRUCTIONS})
"""
TAIL: Final = f"""
SELECT s.incarnation, s.version, coalesce((s.live ->> $2::text)::bigint, 0),
       coalesce((s.trimmed ->> $2::text)::bigint, 0), m.digest
FROM {{sessions}} AS s LEFT JOIN LATERAL (
    SELECT sequence, digest FROM {{messages}} WHERE {within("s.id", "$2::text")}
    ORDER BY sequence DESC LIMIT {TAIL_DIGESTS}
) AS m ON true
WHERE s.key = $1
ORDER BY m.sequence
"""
MESSAGE: Final = f"""
SELECT {COLUMNS} FROM {{messages}}
WHERE session = (SELECT id FROM {{sessions}} WHERE key = $1) AND id = $2::text
"""
LAST: Final = f"""
SELECT m.* FROM unnest($1::bytea[]) WITH ORDINALITY AS wanted (key, place)
LEFT JOIN {{sessions}} AS s ON s.key = wanted.key
LEFT JOIN LATERAL (
    SELECT {COLUMNS} FROM {{messages}} WHERE {within("s.id", "$2::text")}
    ORDER BY sequence DESC LIMIT 1
) AS m ON true
ORDER BY wanted.place
"""


async def read(driver: Driver, names: Names, key: SessionKey, window: Window, stream: str) -> Slice:
    """Return one page of a stream."""
    windowed = bool(window.limit) and window.after is None
    if window.after is None:
        bound = LARGEST if window.before is None else fitting(window.before - 1)
    else:
        bound = fitting(window.after + 1)
    statement = names(_read_statement(ascending=window.after is not None, windowed=windowed))
    rows = await driver.fetch(statement, digest(key), stream, bound, window.page)
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
    rows = await driver.fetch(names(TAIL), digest(key), stream)
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


async def read_message(
    driver: Driver, names: Names, key: SessionKey, message_id: str
) -> StoredMessage:
    """Return one message."""
    rows = await driver.fetch(names(MESSAGE), digest(key), message_id)
    if not rows:
        raise message_not_found(key, message_id)
    return stored(rows[0])


async def read_newest(
    driver: Driver, names: Names, keys: Iterable[SessionKey], stream: str
) -> list[StoredMessage | None]:
    """Return the newest message of each session, None where there is none."""
    rows = await driver.fetch(names(LAST), list(map(digest, keys)), stream)
    return [None if row[0] is None else stored(row) for row in rows]


def stored(row: Row) -> StoredMessage:
    """Return the message that a row of `COLUMNS` holds."""
    return _make(StoredMessage, row)


@cache
def _read_statement(*, ascending: bool, windowed: bool) -> str:
    """Return the statement for one page: from a bound on, or up to it."""
    if ascending:
        order, part = "ASC", within(SESSION, "$2", first="$3")
    else:
        order, part = "DESC", within(SESSION, "$2", last="$3")
    near = f"""
SELECT {COLUMNS} FROM {{messages}} WHERE {part} AND %s
ORDER BY sequence {order} LIMIT $4::bigint + 1
"""
    # One message more than the page has says that there are more.
    page = near % "(SELECT small FROM head)"
    # The same where bytes count. The one message more comes without its body.
    measured_page = f"""
SELECT sequence, id, role, CASE WHEN fits THEN body END, created_at, turn_start, reaction,
       CASE WHEN fits THEN extra END, revision
FROM (
    SELECT {COLUMNS}, place, above,
           place <= $4::bigint AND (place = 1 OR above + octet_length(body) <= {PAGE_BYTES}) AS fits
    FROM (
        SELECT {COLUMNS}, row_number() OVER nearest AS place,
               sum(octet_length(body)) OVER nearest - octet_length(body) AS above
        FROM ({near % "NOT (SELECT small FROM head)"}) AS near
        WINDOW nearest AS (ORDER BY sequence {order} ROWS UNBOUNDED PRECEDING)
    ) AS measured
    WHERE place <= 2 OR above <= {PAGE_BYTES}
) AS page
"""
    parts = [f"({OPENING})"] * windowed + [f"({page})", f"({measured_page})"]
    return "\nUNION ALL\n".join([HEAD, *parts])
