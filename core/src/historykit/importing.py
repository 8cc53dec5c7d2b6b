"""Conversations on their way into a store: exports of another store, and chat completions.

A file is read twice. The first time everything in it is checked, and nothing is written if one line
is wrong. The second time it is stored. Importing a file again stores what is missing and nothing
else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, BinaryIO, Final

from historykit.codec import content_digest
from historykit.drafting import draft_messages
from historykit.errors import ConflictError, EncodeError, InvalidRequestError
from historykit.history import History
from historykit.ids import check_id
from historykit.messages import Message
from historykit.planning import INSTRUCTION_ROLES
from historykit.portable import (
    VERSION,
    Conversation,
    ExportedMessage,
    ExportedSession,
    ExportEnd,
    ExportStart,
    Line,
    read_line,
)
from historykit.records import PAGE_MESSAGES, AppendReceipt, MessageDraft, MessagePatch, Window
from historykit.session_records import MAIN_STREAM, SessionDraft, SessionKey, SessionPatch

__all__ = [
    "FileCheck",
    "ImportFailure",
    "ImportReport",
    "Progress",
    "check_conversations",
    "import_conversations",
    "turns",
]

Progress = Callable[[int, int], None]
"""Is told how many messages were stored or found to be there, and of how many."""

BATCH: Final = 100
"""An append of exported messages ends with the turn in which it reaches this number."""


@dataclass(frozen=True, slots=True)
class ImportFailure:
    """A conversation that the store has with other contents; `line` is where it begins."""

    line: int
    session_id: str
    error: ConflictError


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What an import did with the `messages` of a file.

    `added` of them were not in the store before. `failed` were not stored, because the store has
    their conversation with other contents: each such conversation is one of the `failures`, and
    what comes in it before the first difference is stored. The rest was there already.
    """

    conversations: int
    messages: int
    added: int
    failed: int
    failures: tuple[ImportFailure, ...]


async def import_conversations(
    history: History,
    file: BinaryIO,
    *,
    check: FileCheck | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """Store the conversations of a file of `historykit.portable` lines, and say what was new.

    The file is read from its beginning, twice; once, where `check` is what `check_conversations`
    returned for it. A conversation of chat completions goes through the
    history's provider, turn by turn; its id and the number of the turn identify each save, so that
    a repeat stores nothing, from whichever file it comes. A session of an export keeps its user,
    its times and the ids of its messages, which identify them.

    Raises `InvalidRequestError` that names the first wrong line, before anything is written, and
    `StorageError`, after which the import can be repeated. A conversation that the store has with
    other contents is reported among the failures, and the others are stored.
    """
    check = check or await check_conversations(history, file)
    count = _Count(check.messages, progress)
    failures = []
    for number, first, messages in _conversations(file):
        try:
            if isinstance(first, Conversation):
                await _save(history, first, count)
            else:
                await _restore(history, first, messages, count)
        except ConflictError as error:
            failures.append(ImportFailure(number, first.id, error))
    return ImportReport(
        conversations=check.conversations,
        messages=check.messages,
        added=count.added,
        failed=check.messages - count.done,
        failures=tuple(failures),
    )


async def check_conversations(history: History, file: BinaryIO) -> FileCheck:
    """See that each line of a file can be stored, and count what it holds.

    The history need not be open. Raises `InvalidRequestError` that names the first wrong line.
    """
    check, number = FileCheck(history), 0
    for number, line in _lines(file):
        try:
            check.line(line)
        except (EncodeError, TypeError, ValueError) as error:
            raise _at_line(number, error) from error
        await asyncio.sleep(0)
    try:
        check.finish()
    except InvalidRequestError as error:
        raise _at_line(number, error) from None
    return check


def turns(messages: Iterable[Message]) -> list[list[Message]]:
    """Return a conversation cut where the user speaks; what opens it is in the first turn."""
    parts: list[list[Message]] = [[]]
    for message in messages:
        begun = any(other.role not in INSTRUCTION_ROLES for other in parts[-1])
        if message.role == "user" and begun and parts[-1][-1].role != "user":
            parts.append([])
        parts[-1].append(message)
    return parts if parts[0] else []


class FileCheck:
    """Sees that each line can be stored, and that they come in an order that makes sense."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._export: list[int] | None = None
        self.conversations = 0
        self.messages = 0

    def line(self, line: Line) -> None:
        """Raise `InvalidRequestError`, `EncodeError`, `TypeError` or `ValueError`."""
        match line:
            case ExportStart():
                self._start(line)
            case ExportEnd():
                self._end(line)
            case ExportedSession():
                _key(self._history, line)
                self._count(0)
                self.conversations += 1
            case ExportedMessage():
                self._draft(_draft(self._history, line))
                self._count(1)
                self.messages += 1
            case Conversation():
                self._conversation(line)

    def finish(self) -> None:
        """Raise `InvalidRequestError` where the last export has no end."""
        if self._export is not None:
            raise InvalidRequestError(
                "the export is cut off: its last line is missing; export again"
            )

    def _start(self, line: ExportStart) -> None:
        self.finish()
        if line.version > VERSION:
            raise InvalidRequestError(
                f"the export has version {line.version} and this historykit reads up to {VERSION}; "
                "import with a newer historykit"
            )
        self._export = [0, 0]

    def _count(self, kind: int) -> None:
        """Count a session (0) or a message (1) of the export."""
        if self._export is None or (kind == 1 and self._export[0] == 0):
            raise InvalidRequestError(
                "a part of an export without what comes before it; import the whole file"
            )
        self._export[kind] += 1

    def _end(self, line: ExportEnd) -> None:
        if self._export != [line.sessions, line.messages]:
            raise InvalidRequestError(
                "the export is not whole: the numbers in its last line are not those of its lines; "
                "export again"
            )
        self._export = None

    def _conversation(self, conversation: Conversation) -> None:
        self.finish()
        self._history.key(conversation.id)
        for draft in draft_messages(
            conversation.messages, codec=self._history.codec, stream=MAIN_STREAM, now=0
        ):
            self._draft(draft)
        self.conversations += 1
        self.messages += len(conversation.messages)

    def _draft(self, draft: MessageDraft) -> None:
        most = self._history.store.max_body_bytes
        if most is not None and len(draft.body) > most:
            raise InvalidRequestError(
                f"a message takes {len(draft.body)} bytes; the {self._history.store.backend} store "
                f"takes at most {most}. Shorten it"
            )


def _lines(file: BinaryIO) -> Iterator[tuple[int, Line]]:
    """Yield the lines that are not blank, with their numbers."""
    file.seek(0)
    for number, data in enumerate(file, 1):
        if data.strip():
            try:
                line = read_line(data)
            except InvalidRequestError as error:
                raise _at_line(number, error) from error
            yield number, line


def _at_line(number: int, error: Exception) -> InvalidRequestError:
    return InvalidRequestError(f"line {number}: {error}", details={"line": number})


def _key(history: History, session: ExportedSession) -> SessionKey:
    if history.user_id and session.user_id not in ("", history.user_id):
        raise InvalidRequestError(
            f"session {session.id!r} belongs to another user than {history.user_id!r}; import "
            "without naming a user"
        )
    return SessionKey(history.namespace, history.user_id or session.user_id, session.id)


def _draft(history: History, line: ExportedMessage) -> MessageDraft:
    check_id(line.stream, "stream")
    role = Message.from_dict(line.message).role
    if not isinstance(role, str):
        raise InvalidRequestError(f"the role of message {line.id!r} must be text")
    return MessageDraft(
        id=check_id(line.id, "id"),
        role=role,
        body=history.codec.encode(line.message),
        digest=content_digest(line.message),
        created_at=line.created_at,
        turn_start=line.turn_start,
        external=True,
        extra=_closed(line.extra, history),
    )


def _closed(value: Any, history: History) -> bytes | None:
    """Return as bytes what is kept beside a message or a session."""
    return value if value is None or isinstance(value, bytes) else history.codec.encode(value)


@dataclass(slots=True)
class _Count:
    total: int
    progress: Progress | None
    added: int = 0
    done: int = 0

    def advance(self, done: int, *, added: int) -> None:
        self.done += done
        self.added += added
        if self.progress is not None:
            self.progress(self.done, self.total)


def _conversations(
    file: BinaryIO,
) -> Iterator[tuple[int, Conversation | ExportedSession, Iterator[ExportedMessage]]]:
    """Yield each conversation with its line, and the messages that follow it."""
    begun = 0

    def conversation(item: tuple[int, Line]) -> int:
        nonlocal begun
        begun += isinstance(item[1], Conversation | ExportedSession)
        return begun

    for _, lines in groupby(_lines(file), key=conversation):
        number, first = next(lines)
        if isinstance(first, Conversation | ExportedSession):
            yield number, first, (line for _, line in lines if isinstance(line, ExportedMessage))


async def _save(history: History, conversation: Conversation, count: _Count) -> None:
    """Store a conversation through the provider, turn by turn."""
    key, provider = history.key(conversation.id), history.provider()
    draft = SessionDraft(agent_id=conversation.agent)
    before = await history.store.create_session(key, draft, if_exists="return")
    conflict: ConflictError | None = None
    for number, turn in enumerate(turns(conversation.messages)):
        try:
            await provider.save_messages(
                conversation.id, turn, idempotency_key=f"import/{conversation.id}/{number}"
            )
        except ConflictError as error:
            conflict = error
            break
        count.advance(len(turn), added=0)
    after = await history.store.read_session(key)
    count.advance(0, added=after.message_count - before.message_count)
    if conflict is not None:
        raise conflict


async def _restore(
    history: History,
    session: ExportedSession,
    messages: Iterator[ExportedMessage],
    count: _Count,
) -> None:
    """Store a session of an export."""
    key = _key(history, session)
    draft = SessionDraft(
        agent_id=session.agent_id,
        status=session.status,
        labels=frozenset(session.labels),
        body=_closed(session.body, history) or b"",
        created_at=session.created_at,
    )
    record = await history.store.create_session(key, draft, if_exists="return")
    for batch in _batches(messages):
        drafts = [_draft(history, message) for message in batch]
        receipt = await history.store.append(
            key, drafts, stream=batch[0].stream, incarnation=record.incarnation
        )
        await _react(history, key, batch, receipt)
        count.advance(len(batch), added=receipt.stored)
    if record.memory_enabled and not session.memory_enabled:
        # Not before: a session without memory stores no messages.
        await history.store.patch_session(key, SessionPatch(memory_enabled=False))


def _batches(messages: Iterator[ExportedMessage]) -> Iterator[list[ExportedMessage]]:
    """Yield the messages of a stream in whole turns, of which there may be several."""
    batch: list[ExportedMessage] = []
    for message in messages:
        full = (message.turn_start and len(batch) >= BATCH) or len(batch) == PAGE_MESSAGES
        if batch and (full or message.stream != batch[0].stream):
            yield batch
            batch = []
        batch.append(message)
    if batch:
        yield batch


async def _react(
    history: History, key: SessionKey, batch: list[ExportedMessage], receipt: AppendReceipt
) -> None:
    """Give messages their reactions, but for those that were changed in this store."""
    reactions = {message.id: message.reaction for message in batch if message.reaction is not None}
    places = [place for place in receipt.sequences if place is not None]
    if not reactions or not places:
        return
    place, last = min(places) - 1, max(places)
    while place < last:
        window = Window(after=place, limit=last - place)
        page = await history.store.read(key, window, stream=batch[0].stream)
        for row in page.messages:
            if row.id in reactions and row.revision == 0:
                patch = MessagePatch(reaction=reactions[row.id])
                await history.store.update_message(key, row.id, patch)
        place = page.messages[-1].sequence if page.more else last
