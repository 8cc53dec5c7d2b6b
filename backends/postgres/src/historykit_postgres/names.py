"""What the tables and indexes are called in the database."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from historykit.session_records import SessionKey
from historykit_postgres.config import PostgresConfig

__all__ = ["Names", "digest", "quoted"]

TABLES: Final = ("sessions", "session_bodies", "session_labels", "messages", "schema_version")
INDEXES: Final = (
    "sessions_by_time",
    "sessions_by_user",
    "sessions_by_agent",
    "sessions_by_status",
    "sessions_by_memory",
    "sessions_by_label",
    "messages_by_turn",
)


class Names:
    """The names of tables and indexes, by what they are called in statements here."""

    def __init__(self, config: PostgresConfig) -> None:
        self.schema = config.schema
        self.prefix = config.table_prefix
        self._tables = {name: self.table(name) for name in TABLES}
        # An index lies in the schema of its table and is not named with it.
        self._indexes = {name: quoted(self.prefix + name) for name in INDEXES}
        self._filled: dict[str, str] = {}

    def __call__(self, statement: str) -> str:
        """Return a statement with the real names for those in braces."""
        filled = self._filled.get(statement)
        if filled is None:
            filled = statement.format(**self._tables, **self._indexes).strip()
            self._filled[statement] = filled
        return filled

    def table(self, name: str) -> str:
        """Return the quoted name of a table."""
        table = quoted(self.prefix + name)
        return table if self.schema is None else f"{quoted(self.schema)}.{table}"

    @property
    def lock(self) -> int:
        """The number of the advisory lock under which the tables are made and changed."""
        digest = blake2b(self.table("sessions").encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True)


def quoted(name: str) -> str:
    """Return a name as it stands in a statement."""
    return '"' + name.replace('"', '""') + '"'


def digest(key: SessionKey) -> bytes:
    """Return the bytes by which a session is found."""
    parts = [part.encode() for part in (key.namespace, key.user_id, key.session_id)]
    lengths = b"".join([len(part).to_bytes(4, "big") for part in parts])
    return blake2b(lengths + b"".join(parts), digest_size=16).digest()
