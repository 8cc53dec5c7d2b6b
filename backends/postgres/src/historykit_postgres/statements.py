"""The statements that append messages, and the arguments for them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final
from zlib import crc32

from historykit.planning import INSTRUCTION_ROLES
from historykit.records import AppendRequest, MessageDraft
from historykit.session_records import MAIN_STREAM
from historykit_postgres.names import digest
from historykit_postgres.ranges import within

__all__ = [
    "INSTRUCTIONS",
    "RECENT",
    "append_arguments",
    "append_statement",
    "insert_arguments",
    "insert_statement",
    "marks",
]

RECENT: Final = 16
"""So many marks of message ids are kept in a session's row."""

SLOTS: Final = (2, 8)
"""For batches up to these sizes, statements have a parameter for each field of each message, which
is a third faster than arrays of any length."""

FIELDS: Final = {
    "id": "text",
    "role": "text",
    "created_at": "bigint",
    "turn_start": "boolean",
    "digest": "bytea",
    "body": "bytea",
    "extra": "bytea",
}
"""The columns of a message that come from its draft, with their types."""

NOTHING: Final = (None,) * len(FIELDS)

MOST_TRIMMED: Final = 100
"""Where retention has to remove more than so many messages, it is done by the second way."""

INSTRUCTIONS: Final = ", ".join(f"'{role}'" for role in sorted(INSTRUCTION_ROLES))

SESSION: Final = "(SELECT id FROM seen)"
STREAM: Final = within(SESSION, "$2")
UP_TO_WANTED: Final = within(SESSION, "$2", last="(SELECT sequence FROM wanted)")
CUT: Final = within(SESSION, "$2", "(SELECT first FROM cut)", "(SELECT last FROM cut)")

LIVE: Final = "coalesce((s.live ->> $2::text)::bigint, 0) + $5::bigint"

CHANGES: Final = f"""
    version = s.version + 1,
    next_sequence = s.next_sequence + $5::bigint,
    updated_at = $3::bigint,
    last_message_at = coalesce($4::bigint, s.last_message_at),
    recent = ($6::text[] || s.recent)[:{RECENT}],
    largest = greatest(s.largest, $7::bigint),
"""
ADDED: Final = f"live = s.live || jsonb_build_object($2::text, {LIVE})"
CONDITIONS: Final = "s.memory_enabled AND NOT s.recent && $6::text[]"
RESULT: Final = "s.id, s.incarnation, s.version, s.next_sequence - $5::bigint AS first"

EXTEND: Final = f"""
UPDATE {{sessions}} AS s SET {CHANGES} %s
WHERE s.key = $1 AND {CONDITIONS}
  AND ($8::text IS NULL OR s.incarnation = $8::text)
  AND ($9::bigint IS NULL OR s.version = $9::bigint)
  AND %s
RETURNING {RESULT}
"""
EXTEND_ARGUMENTS: Final = 9

CREATE: Final = f"""
INSERT INTO {{sessions}} AS s (
    key, updated_at, last_message_at, version, next_sequence, recent, largest, live,
    memory_enabled, incarnation, namespace, user_id, session_id, agent_id, status, created_at
)
VALUES (
    $1, $3::bigint, $4::bigint, 1, 1 + $5::bigint, $6::text[], $7::bigint,
    jsonb_build_object($2::text, $5::bigint),
    true, $8, $10, $11, $12, $13, $14, $15
)
ON CONFLICT (key) DO UPDATE SET {CHANGES} %s
WHERE {CONDITIONS} AND ($9::bigint IS NULL OR s.version = $9::bigint) AND %s
RETURNING {RESULT}
"""
CREATE_ARGUMENTS: Final = 15

# What goes is found before the lock, in the state that the statement sees; so the lock must find
# that state, and no other, in the row. `excess` is small unless there is much to remove at once.
TRIM: Final = f"""
seen AS MATERIALIZED (
    SELECT s.id, s.version, {LIVE} - $retained::bigint AS excess FROM {{sessions}} AS s
    WHERE s.key = $1
), wanted AS MATERIALIZED (
    SELECT sequence FROM (
        SELECT sequence FROM {{messages}}
        WHERE {STREAM} AND (SELECT excess FROM seen) BETWEEN 1 AND {MOST_TRIMMED}
        ORDER BY sequence LIMIT {MOST_TRIMMED + 1}
    ) AS oldest
    LIMIT 1 OFFSET greatest((SELECT excess FROM seen), 0)
), cut AS MATERIALIZED (
    SELECT (SELECT sequence + (role IN ({INSTRUCTIONS}))::integer FROM {{messages}}
            WHERE {STREAM} ORDER BY sequence LIMIT 1) AS first,
           (SELECT sequence - 1 FROM {{messages}}
            WHERE {UP_TO_WANTED} AND turn_start ORDER BY sequence DESC LIMIT 1) AS last
), gone AS MATERIALIZED (
    SELECT count(*) AS number FROM {{messages}} WHERE {CUT}
)
"""
REMOVE: Final = f"removed AS (DELETE FROM {{messages}} WHERE {CUT} AND EXISTS (SELECT FROM head))"
TRIMMED: Final = f"""
    live = s.live || jsonb_build_object($2::text, {LIVE} - (SELECT number FROM gone)),
    trimmed = s.trimmed || jsonb_build_object(
        $2::text, coalesce((s.trimmed ->> $2::text)::bigint, 0) + (SELECT number FROM gone)
    )
"""
AS_SEEN: Final = f"""
EXISTS (SELECT FROM seen WHERE id = s.id AND version = s.version AND excess <= {MOST_TRIMMED})
"""


@cache
def append_statement(size: int, *, creating: bool, trimming: bool = False) -> str:
    """Return the statement that appends a batch of that size, to be executed alone.

    It locks the session's row, decides by what is in it, takes numbers and inserts the messages at
    these. Conditions on anything else would be judged by the state before the wait for the lock.
    Where a condition fails, it does nothing and returns no row.

    With `trimming` it also removes what retention does not keep, for a batch that is kept whole.
    """
    head, arguments = (CREATE, CREATE_ARGUMENTS) if creating else (EXTEND, EXTEND_ARGUMENTS)
    if trimming:
        arguments += 1
        trim = TRIM.replace("$retained", f"${arguments}")
        parts = [trim, f"head AS ({head % (TRIMMED, AS_SEEN)})", REMOVE]
    else:
        parts = [f"head AS ({head % (ADDED, 'true')})"]
    source = f"head, {_source(size, arguments)}"
    parts.append(f"stored AS ({_insert('head.id', '$2', 'head.first', source)})")
    return f"WITH {', '.join(parts)}\nSELECT incarnation, version, first FROM head"


@cache
def insert_statement(size: int) -> str:
    """Return the statement that inserts a batch of that size: session, stream, first sequence."""
    return _insert("$1::bigint", "$2::text", "$3::bigint", _source(size, 3))


def append_arguments(request: AppendRequest, *, creating: bool) -> list[object]:
    """Return the arguments of an `append_statement`."""
    key, drafts = request.key, request.drafts
    arguments: list[object] = [
        digest(key),
        request.stream,
        request.now,
        drafts[-1].created_at if request.stream == MAIN_STREAM else None,
        len(drafts),
        marks(drafts),
        max([len(draft.body) for draft in drafts]),
        request.new_incarnation if creating else request.incarnation,
        request.expected_version,
    ]
    if creating:
        fields = request.create
        created_at = request.now if fields.created_at is None else fields.created_at
        arguments += (key.namespace, key.user_id, key.session_id)
        arguments += (fields.agent_id, fields.status, created_at)
    if request.retention is not None:
        arguments.append(request.retention.max_messages)
    arguments += insert_arguments(drafts)
    return arguments


def insert_arguments(drafts: Sequence[MessageDraft]) -> list[object]:
    """Return the arguments for a batch: those at the end of a statement."""
    rows: list[tuple[object, ...]] = [
        (each.id, each.role, each.created_at, each.turn_start, each.digest, each.body, each.extra)
        for each in drafts
    ]
    slots = _slots(len(rows))
    if slots is None:
        return [list(column) for column in zip(*rows, strict=True)]
    return [value for row in rows for value in row] + [*NOTHING] * (slots - len(rows))


def marks(drafts: Sequence[MessageDraft]) -> list[str]:
    """Return the marks of the newest drafts, the newest first.

    A mark that is known only says to look closer: so it may be short.
    """
    return [f"{crc32(draft.id.encode()):08x}" for draft in drafts[: -RECENT - 1 : -1]]


def _insert(session: str, stream: str, first: str, source: str) -> str:
    return f"""
INSERT INTO {{messages}} (session, stream, sequence, {", ".join(FIELDS)})
SELECT {session}, {stream}, {first} + d.place - 1, {", ".join(f"d.{name}" for name in FIELDS)}
FROM {source}
"""


def _source(size: int, arguments: int) -> str:
    """Return what drafts are selected from, whose arguments come behind so many others."""
    columns = f"d ({', '.join(FIELDS)}, place)"
    slots = _slots(size)
    if slots is None:
        arrays = (f"${arguments + n}::{type}[]" for n, type in enumerate(FIELDS.values(), 1))
        return f"unnest({', '.join(arrays)}) WITH ORDINALITY AS {columns}"
    rows = (_slot(arguments + slot * len(FIELDS), slot + 1) for slot in range(slots))
    return f"(VALUES {', '.join(rows)}) AS {columns} WHERE d.id IS NOT NULL"


def _slot(arguments: int, place: int) -> str:
    fields = (f"${arguments + n}::{type}" for n, type in enumerate(FIELDS.values(), 1))
    return f"({', '.join(fields)}, {place})"


def _slots(size: int) -> int | None:
    return next((slots for slots in SLOTS if size <= slots), None)
