"""Conversations as a resource: found, read, written, deleted (aiXplain session module)."""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Self

from historykit.callers import warn_caller
from historykit.errors import CorruptRecordError
from historykit.ids import check_id
from historykit.pages import Page
from historykit.planning import session_not_found
from historykit.session_bodies import Scalar
from historykit.session_calls import MessageCalls, Place
from historykit.session_copies import fork_session
from historykit.session_fields import check_text
from historykit.session_records import PAGE_SESSIONS, SessionRecord
from historykit.session_rows import rows_between
from historykit.session_saving import SaveCalls
from historykit.session_search import (
    CONDITIONS,
    build_query,
    check_page,
    find_page,
    find_texts,
    meant,
    previews,
    walk,
)
from historykit.session_states import as_agent_session
from historykit.session_writing import read_asked, read_life
from historykit.sessions import AgentSession

__all__ = ["DeleteResult", "Session"]


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """What `Session.delete` did: `messages` counts the messages that were deleted with it."""

    status: str
    completed: bool
    deleted_id: str
    messages: int = 0


class Session(SaveCalls, MessageCalls):
    """A conversation with an agent, as an object of its own.

    It is used through a history, whose `History.Session` is this class bound to it::

        chat = history.Session(agent="helper", name="Carrots")
        await chat.save()
        await chat.add_message("user", "When do I sow carrots?")
        page = await history.Session.search(agent="helper", status="active")

    Its fields are those of `SessionFields`. `SaveCalls` has the calls that save it, `MessageCalls`
    those on its messages: what a provider saves under the session's id is there too, and the other
    way round.

    A history of one user has the sessions of that user, any other one its own ones, which are of no
    user; only its searches span users, and what they find belongs to whom it belonged. The session
    of somebody else is a `NotFoundError`. Without a history, every call is a `ResourceError`.
    """

    @classmethod
    async def get(cls, id: str) -> Self:
        """Return the session with that id: one's own.

        Raises `NotFoundError`, and `CorruptRecordError` for one that cannot be read.
        """
        history = cls._history()
        return await cls._read(await read_asked(history, history.key(id)))

    @classmethod
    async def get_or_create(cls, id: str, **fields: Any) -> Self:
        """Return the session with that id; where there is none, create it with these fields.

        Raises what `save` raises.
        """
        session = cls(id=check_id(id, "id"), **fields)
        session._check()
        session._check_owner()
        record = await cls._history().store.create_session(
            session._key(), session._draft(), if_exists="return"
        )
        return await cls._read(record)

    @classmethod
    async def search(
        cls,
        agent: Any = None,
        status: str | None = None,
        user_id: str | None = None,
        created_after: str | dt.datetime | None = None,
        created_before: str | dt.datetime | None = None,
        memory_enabled: bool | None = None,
        page_number: int = 0,
        page_size: int = 20,
        *,
        metadata: Mapping[str, Scalar] | None = None,
        tags: Sequence[str] | None = None,
        query: str | None = None,
        with_total: bool = True,
        **others: Any,
    ) -> Page[Self]:
        """Return a page of the sessions that meet every condition given, the newest first.

        - `agent` is an agent or its id; "" finds the sessions that are with none.
        - `status` is one of `SessionStatus`.
        - `user_id`: a history of one user searches that user's sessions, any other one those of all
          users, or of this one.
        - `created_after` is included, `created_before` is not: datetimes, or texts in ISO 8601.
          Without a time zone they are in UTC.
        - `memory_enabled` True finds sessions that keep their messages, False the others.
        - `metadata` finds sessions that have all of these values, `tags` those with all of these.
        - `query` finds sessions in whose name or messages the text occurs, in upper or lower case.
          It looks through the 2,000 newest sessions that meet the other conditions, or the first
          100,000 messages of theirs: where that was not all, the page is not `complete`. Its `hits`
          say where the text is.
        - `page_number` counts from 0, `page_size` is 1 to 1000. A page beyond the last one is
          empty.
        - `with_total` False leaves the matches uncounted, which is faster.

        Other keywords have no effect, and a `UserWarning` names them. Needs `Capability.CATALOGUE`.
        Raises `ForbiddenError` for another user than the history's, `InvalidRequestError` for a
        value that nothing can have, and `CorruptRecordError` for a session that cannot be read.
        """
        history = cls._history()
        if others:
            hints = meant(others, ("query", "page_number", "page_size", "with_total"))
            names = ", ".join(others)
            warn_caller(f"search does not know {names}, which had no effect{hints}", UserWarning)
        check_page(page_number, page_size)
        conditions = build_query(
            history,
            agent=agent,
            status=status,
            user_id=user_id,
            created_after=created_after,
            created_before=created_before,
            memory_enabled=memory_enabled,
            metadata=metadata,
            tags=tags,
        )
        paging = {"page_number": page_number, "page_size": page_size}
        if query is None:
            found = await find_page(history, conditions, with_total=with_total, **paging)
        else:
            found = await find_texts(history, conditions, query, **paging)
        total = found.total
        return Page(
            await cls._read_all(found.records),
            page_number,
            None if total is None else max(1, ceil(total / page_size)),
            total,
            complete=found.complete,
            hits=found.hits,
        )

    @classmethod
    async def iterate(
        cls, *, page_size: int = 100, query: str | None = None, **conditions: Any
    ) -> AsyncGenerator[Self, None]:
        """Yield all sessions that a `search` would find, the newest first, however many there are.

        Sessions that are added or deleted meanwhile move none of the others. `conditions` are those
        of `search`; `query` has no bound here. `page_size` is how many are read at once, 500 at
        most. Raises what `search` raises, and `TypeError` for other keywords: what is done with all
        sessions that are found must not be done with more.
        """
        history = cls._history()
        check_page(0, page_size)
        for name in conditions.keys() - CONDITIONS:
            hint = meant([name], ("query", "page_size"))
            raise TypeError(f"iterate() got an unexpected keyword argument {name!r}{hint}")
        wanted = replace(build_query(history, **conditions), limit=min(page_size, PAGE_SESSIONS))
        async with aclosing(walk(history, wanted, query)) as pages:
            async for records in pages:
                for session in await cls._read_all(records):
                    yield session

    async def fork(
        self, *, up_to: Place | None = None, id: str | None = None, name: str | None = None
    ) -> Self:
        """Return a new session with the same fields and a copy of the messages.

        `up_to` is the last message to copy: its sequence, its id, or itself. The session and all
        its messages are there in one step. They keep their times; those that have no id of their
        own get a new one, and reactions are not copied. The new session is active, and its
        `parent_id` is the id of this one. `id` and `name` are the new session's.

        Raises `ConflictError` where there is a session of that id.
        """
        if name is not None:
            check_text("name", name)
        living, history = await self._living(), self._bound()
        last = await self._sequence(up_to)
        rows = await rows_between(history.store, living.key, None, last)
        record = await history.store.read_session(living.key)
        key = await fork_session(history, record, rows, session_id=id, name=name)
        forked = type(self)(id=key.session_id, user_id=key.user_id)
        forked.context = history
        return await forked.refresh()

    async def delete(self) -> DeleteResult:
        """Delete the session with its messages and attachments. The object is of no use afterwards.

        Raises `NotFoundError` where it is gone already, `SessionDeletedError` where it was made
        anew since this object read it, and `SessionStateError` on an object that stands for no
        session.
        """
        key = self._key()
        if self._record is not None:
            await read_life(self._bound(), key, self._record.incarnation)
        receipt = await self._bound()._delete_session(key)
        if not receipt.sessions:
            raise session_not_found(key)
        self.id, self._is_deleted = None, True
        return DeleteResult("SUCCESS", True, key.session_id, receipt.messages)

    def as_agent_session(self) -> AgentSession:
        """Return the session for the run of an agent, with the state that is stored with it.

        The state is as it was when this object was read. `History.save_state` stores it again.
        Raises `SessionStateError` on an object that stands for no session.
        """
        return as_agent_session(self._key(), self._record, self._bound().codec)

    @classmethod
    async def _read(cls, record: SessionRecord) -> Self:
        history = cls._history()
        (preview,) = await previews(history, [record])
        return cls()._adopt(record, preview, history)

    @classmethod
    async def _read_all(cls, records: Sequence[SessionRecord]) -> list[Self]:
        history = cls._history()
        shown = await previews(history, records)
        try:
            pairs = zip(records, shown, strict=True)
            return [cls()._adopt(record, preview, history) for record, preview in pairs]
        except CorruptRecordError as error:
            raise CorruptRecordError(
                f"Failed to parse session: {error}", session_id=error.session_id
            ) from error
