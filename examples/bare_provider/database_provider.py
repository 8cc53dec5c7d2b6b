"""A history provider with just the two methods, over a table of SQLite.

This is the provider of the agent_framework Sessions API's example, filled in. It needs no store of
historykit: an application that has a table may go on using it. The statements are short, so they
run on the event loop itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from historykit import BaseHistoryProvider, Message

__all__ = ["DatabaseHistoryProvider"]


class DatabaseHistoryProvider(BaseHistoryProvider):
    """Keeps each message as a row of JSON. What JSON cannot hold is a TypeError."""

    def __init__(self, path: Path) -> None:
        super().__init__("db_history")
        self.database = sqlite3.connect(path)
        with self.database:
            self.database.execute(
                "CREATE TABLE IF NOT EXISTS messages "
                "(id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, data TEXT NOT NULL)"
            )
            self.database.execute(
                "CREATE INDEX IF NOT EXISTS messages_by_session ON messages (session_id, id)"
            )

    async def get_messages(self, session_id: str | None, **kwargs: Any) -> list[Message]:
        """Return the messages of a session, oldest first."""
        if not session_id:
            return []
        rows = self.database.execute(
            "SELECT data FROM messages WHERE session_id = ? ORDER BY id", (session_id,)
        )
        return [Message.from_json(data) for (data,) in rows]

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], **kwargs: Any
    ) -> None:
        """Add messages to a session, all of them or none."""
        if not session_id:
            return
        rows = [(session_id, message.to_json()) for message in messages]
        with self.database:
            self.database.executemany("INSERT INTO messages (session_id, data) VALUES (?, ?)", rows)

    def close(self) -> None:
        """Close the database."""
        self.database.close()
