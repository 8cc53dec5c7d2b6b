"""How sessions are found, in one statement that is planned for the very values it looks for."""

from __future__ import annotations

from typing import Final

from historykit.session_records import SessionQuery, SessionSlice
from historykit_postgres.drivers import Driver
from historykit_postgres.names import Names
from historykit_postgres.sessions import RECORDS, session_record

__all__ = ["find_sessions"]

HAS_LABEL: Final = (
    "EXISTS (SELECT FROM {{session_labels}} AS l WHERE l.session = s.id AND l.label = {})"
)
BEHIND: Final = "(s.created_at, s.session_id, s.user_id) < ({}::bigint, {}, {})"
NEWEST_FIRST: Final = "s.created_at DESC, s.session_id DESC, s.user_id DESC"


async def find_sessions(driver: Driver, names: Names, query: SessionQuery) -> SessionSlice:
    """Return one page of the sessions that match."""
    matching = _Conditions()
    for condition, value in _conditions(query):
        matching.add(condition, value)
    where = matching.text
    if query.position is not None:
        matching.add(BEHIND, *query.position)
    page = f"{RECORDS} WHERE {matching.text} ORDER BY {NEWEST_FIRST}"
    limit = matching.parameters(query.limit + 1, query.offset)
    count = f"(SELECT count(*) FROM {{sessions}} AS s WHERE {where})" if query.with_total else "0"
    statement = f"""
SELECT total.number, page.* FROM (SELECT {count} AS number) AS total
LEFT JOIN ({page} LIMIT {limit[0]}::bigint OFFSET {limit[1]}::bigint) AS page ON true
ORDER BY created_at DESC, session_id DESC, user_id DESC
"""
    rows = await driver.fetch_planned(names(statement), *matching.values)
    found = [row[1:] for row in rows if row[1] is not None]
    return SessionSlice(
        records=tuple(session_record(row) for row in found[: query.limit]),
        total=rows[0][0] if query.with_total else None,
        more=len(found) > query.limit,
    )


def _conditions(query: SessionQuery) -> list[tuple[str, object]]:
    fields: list[tuple[str, object]] = [
        ("s.namespace = {}", query.namespace),
        ("s.user_id = {}", query.user_id),
        ("s.agent_id = {}", query.agent_id),
        ("s.status = {}", query.status),
        ("s.memory_enabled = {}::boolean", query.memory_enabled),
        ("s.created_at >= {}::bigint", query.created_from),
        ("s.created_at < {}::bigint", query.created_before),
    ]
    given = [(condition, value) for condition, value in fields if value is not None]
    return given + [(HAS_LABEL, label) for label in sorted(query.labels)]


class _Conditions:
    """Conditions that all hold, with the values of their parameters."""

    def __init__(self) -> None:
        self.values: list[object] = []
        self._conditions: list[str] = []

    def add(self, condition: str, *values: object) -> None:
        """Add a condition, which has braces where its parameters belong."""
        self._conditions.append(condition.format(*self.parameters(*values)))

    def parameters(self, *values: object) -> list[str]:
        """Add values and return the parameters that stand for them."""
        self.values += values
        return [f"${len(self.values) - len(values) + n}" for n in range(1, len(values) + 1)]

    @property
    def text(self) -> str:
        """All conditions."""
        return " AND ".join(self._conditions)
