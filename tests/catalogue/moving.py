"""Conversations that move from one store to another, and back."""

from __future__ import annotations

import io

from historykit import Message
from historykit.exporting import export_sessions
from historykit.history import History
from historykit.importing import ImportReport, import_conversations
from historykit.memory import MemoryStore
from historykit.portable import write_line
from historykit.testing.subject import ManualClock
from historykit.testing.suite.isolation import HOSTILE_TEXTS

__all__ = ["Moving"]


class Moving:
    """Whatever goes through the memory store and comes out equal goes from any store to any."""

    async def test_sessions_move_there_and_back(self, history: History, clock: ManualClock) -> None:
        """What was exported, imported into another store, exported from there and imported here
        again is the same to the byte: order, ids, times, reactions, groups of tool calls, odd names
        and all fields of the sessions. Importing it again adds nothing."""
        await fill(history, clock)
        data = await exported(history)
        clock.advance(3600)
        async with History(MemoryStore(clock=clock), namespace="moved") as other:
            assert (await imported(other, data)).failed == 0
            assert await exported(other) == data
        back = History(history.store, namespace="back")
        report = await imported(back, data)
        assert (report.added, report.failed) == (report.messages, 0)
        assert await exported(back) == data
        assert (await imported(back, data)).added == 0
        assert await exported(back) == data


async def fill(history: History, clock: ManualClock) -> None:
    """Store sessions that have all that a session can have."""
    for text in HOSTILE_TEXTS[::4]:
        session = await history.Session(id=text, name=text, agent=text, tags=[text]).save()
        await session.add_message("user", text, request_id=text)
        clock.advance(1)
    owned = history.as_user("ada")
    session = await owned.Session(
        id="s1", metadata={"a.b": 1.5, "$c": None, "d": True}, status="archived"
    ).save()
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": {"wide": 2**70}}
    results = {"type": "function_result", "call_id": "c1", "result": ["\ud800", b"\xff"]}
    turn = [
        Message("user", "Look at this"),
        Message.from_dict({"role": "assistant", "contents": [call]}),
        Message.from_dict({"role": "tool", "contents": [results]}),
        Message("assistant", "Seen", message_id="mine"),
    ]
    added = await session.add_messages(turn)
    await session.react(added[-1].id, "DISLIKE")
    await session.add_message("user", "Thanks", attachments=["https://example.org/a.png"])
    await owned.append("s1", [Message("user", str(n)) for n in range(150)], stream="audit")
    await owned.Session(id="empty", memory_enabled=False).save()


async def exported(history: History) -> bytes:
    return b"".join([write_line(line) async for line in export_sessions(history)])


async def imported(history: History, data: bytes) -> ImportReport:
    return await import_conversations(history, io.BytesIO(data))
