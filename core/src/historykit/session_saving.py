"""How a session is saved."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Self

from historykit.callers import warn_caller
from historykit.errors import ResourceError
from historykit.execution import ExecutionConfig
from historykit.ids import new_id
from historykit.session_bodies import decode_body, encode_body, labels_of
from historykit.session_fields import FIELDS, SETTABLE, SessionFields, agent_id_of
from historykit.session_records import SessionDraft, SessionKey, SessionPatch, SessionRecord
from historykit.session_search import previews
from historykit.session_writing import body_patch, change_session, create_or_change
from historykit.statuses import SessionStatus
from historykit.suggestions import suggest

__all__ = ["SaveCalls"]

_IN_RECORD: Final = ("agent_id", "status", "memory_enabled")


class SaveCalls(SessionFields):
    """The part of `Session` that saves and refreshes it."""

    def before_save(self, **changes: Any) -> Any:
        """Do something before a save, or in its place: anything but None is what `save` returns.

        `changes` are the arguments of `save`. It may be an async function.
        """

    def after_save(self, result: Any, **changes: Any) -> Any:
        """Do something after a save: anything but None is what `save` returns.

        `result` is the session, or the `ResourceError` that `save` is about to raise. It may be an
        async function.
        """

    async def save(self, *, replace: bool = False, **changes: Any) -> Self:
        """Store the session and return it, with its fields as they are stored then.

        `changes` are fields to set before: ``save(name="Carrots", status="archived")``. Others, and
        those that are the store's, are left out, with a `UserWarning` that names them. A save that
        fails leaves the object as it was before.

        Without an id the session is created, under a new one. Under the id of a session that was
        read, the fields that were set since are changed, and what others changed meanwhile stays.
        Under an id that was never read it is created, or changed where it exists. An execution
        config is merged with the stored one, name by name and cap by cap; with `replace` it takes
        its place.

        Raises `SessionStateError` after `delete`, `InvalidRequestError` for a field that no session
        can have, and for another id than that of the session that was read, `ForbiddenError` for
        the session of another user, `NotFoundError` where the session was deleted, and
        `SessionDeletedError` where it was made anew since.
        """
        given = {"replace": True, **changes} if replace else changes
        result: Self | None = await _awaited(self.before_save(**given))
        if result is not None:
            return result
        try:
            with self._undone_where_it_fails():
                self._set(changes)
                await self._save(replace)
        except ResourceError as error:
            result = await _awaited(self.after_save(error, **given))
            if result is None:
                raise
        else:
            result = await _awaited(self.after_save(self, **given))
        return self if result is None else result

    async def archive(self) -> Self:
        """Save the session with the status "archived" and return it."""
        return await self.save(status=SessionStatus.ARCHIVED.value)

    async def refresh(self) -> Self:
        """Read the session again and return it; what was set and not saved is given up.

        Raises `NotFoundError`.
        """
        return await self._show(await self._bound().store.read_session(self._key()))

    async def _show(self, record: SessionRecord) -> Self:
        """Take over what the store has of the session."""
        history, known = self._bound(), self._record
        preview = self.last_message_preview
        if self._saved is None or known is None or _messages(known) != _messages(record):
            (preview,) = await previews(history, [record])
        return self._adopt(record, preview, history)

    async def _save(self, replace: bool) -> None:
        if self._is_deleted:
            self._key()
        self._check()
        self._check_owner()
        self._check_place()
        if (config := self.execution_config) is not None:
            config.to_api_dict()  # which warns of what is deprecated
        history = self._bound()
        if not self.id:
            key = SessionKey(history.namespace, history.user_id or self.user_id, new_id())
            record = await history.store.create_session(key, self._draft())
        elif self._saved is None or self._record is None:
            change = self._change(replace)
            record = await create_or_change(history, self._key(), self._draft(), change)
        else:
            key, incarnation = self._key(), self._record.incarnation
            change = self._change(replace)
            record = await change_session(history, key, change, incarnation=incarnation)
        await self._show(record)

    def _draft(self) -> SessionDraft:
        """Return the session that is to be created."""
        config = self.execution_config
        body = {
            "name": self.name,
            "description": self.description,
            "metadata": self.metadata or None,
            "tags": self.tags or None,
            "execution_config": None if config is None else config.to_api_dict(),
        }
        return SessionDraft(
            agent_id=self.agent_id,
            status=str(self.status),
            memory_enabled=self.memory_enabled,
            labels=labels_of(body),
            body=encode_body(body, self._bound().codec),
        )

    def _change(self, replace: bool) -> Callable[[SessionRecord], SessionPatch]:
        """Return the change that saves what was set, on what is stored at that time."""
        changes, history = self._changes(), self._bound()
        fields = {name: changes.pop(name) for name in _IN_RECORD if name in changes}

        def change(record: SessionRecord) -> SessionPatch:
            body = decode_body(record, history.codec)
            new = {**body, **changes}
            if "execution_config" in changes:
                new["execution_config"] = _merged(
                    body.get("execution_config"), changes["execution_config"], replace
                )
            patch = body_patch(record, body, new, history) if changes else SessionPatch()
            return dataclasses.replace(patch, **fields)

        return change

    @contextmanager
    def _undone_where_it_fails(self) -> Iterator[None]:
        """Give the fields back what they had, where a save fails."""
        before = {name: getattr(self, name) for name in SETTABLE}
        try:
            yield
        except BaseException:
            vars(self).update(before)
            raise

    def _set(self, changes: Mapping[str, Any]) -> None:
        """Set fields before a save."""
        for name in changes.keys() & SETTABLE:
            setattr(self, name, changes[name])
        if "agent" in changes:
            self.agent_id = agent_id_of(changes["agent"])
        others = changes.keys() - SETTABLE - {"agent"}
        if own := ", ".join(sorted(others.intersection(FIELDS))):
            warn_caller(f"the store sets {own}; what was given had no effect", UserWarning)
        for name in sorted(others.difference(FIELDS)):
            warn_caller(
                f"a session has no {name}, which had no effect; {suggest(name, SETTABLE)}",
                UserWarning,
            )


def _messages(record: SessionRecord) -> tuple[str, int]:
    """Return what is another one when a session's messages are."""
    return record.incarnation, record.version


def _merged(
    stored: Mapping[str, Any] | None, config: ExecutionConfig | None, replace: bool
) -> dict[str, Any] | None:
    """Return the config to store, in the form of the service; None removes it."""
    if config is None:
        return None
    return ExecutionConfig.from_dict(stored or {}).merged(config, replace=replace).to_api_dict()


async def _awaited(value: Any) -> Any:
    """Return what a function gave that may be async."""
    return await value if inspect.isawaitable(value) else value
