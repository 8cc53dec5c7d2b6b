"""The state of an agent's session, kept with the session in the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from historykit.codec import MessageCodec
from historykit.errors import NotFoundError, SessionDeletedError, VersionConflictError
from historykit.providers import InMemoryHistoryProvider
from historykit.session_bodies import decode_body, encode_body
from historykit.session_records import SessionDraft, SessionKey, SessionPatch, SessionRecord
from historykit.session_writing import body_patch, change_session, create_or_change
from historykit.sessions import AgentSession, StoredState

if TYPE_CHECKING:
    from historykit.history import History

__all__ = ["as_agent_session", "save_state"]


def as_agent_session(
    key: SessionKey, record: SessionRecord | None, codec: MessageCodec
) -> AgentSession:
    """Return a session for the run of an agent, with the state that a record has.

    Raises `DecodeError` for a record that cannot be read.
    """
    body = codec.decode(record.body, strict=False) if record is not None and record.body else {}
    session = AgentSession(
        session_id=key.session_id, service_session_id=body.get("service_session_id")
    )
    session.state = body.get("state", {})
    if record is not None:
        session._stored = StoredState(key, record.incarnation, body.get("state_revision", 0))
    return session


async def save_state(history: History, session: AgentSession, *, overwrite: bool) -> None:
    """Store the state of a session, if it is still the one that `session` began with."""
    if not isinstance(session, AgentSession):
        raise TypeError(
            f"save_state takes an AgentSession, not {type(session).__name__}; as_agent_session() "
            "of a Session makes one"
        )
    known = session._stored
    key = _key(history, session)
    parts = {
        "state": _kept(session.state) or None,
        "service_session_id": session.service_session_id,
    }

    def change(record: SessionRecord) -> SessionPatch:
        body = decode_body(record, history.codec)
        actual = body.get("state_revision", 0)
        expected = known.revision if known is not None else 0
        if not overwrite and actual != expected:
            raise VersionConflictError(
                f"the state of session {key.session_id!r} was saved {actual} times, not "
                f"{expected}; get the session again, or overwrite the state with overwrite=True",
                expected=expected,
                actual=actual,
            )
        new = {**body, **parts, "state_revision": actual + 1}
        return body_patch(record, body, new, history)

    if known is None:
        draft = SessionDraft(body=encode_body({**parts, "state_revision": 1}, history.codec))
        record = await create_or_change(history, key, draft, change)
    else:
        try:
            record = await change_session(history, key, change, incarnation=known.incarnation)
        except NotFoundError as error:
            raise SessionDeletedError(
                f"session {key.session_id!r} was deleted since it was read; saving its state would "
                "revive it"
            ) from error
    revision = decode_body(record, history.codec)["state_revision"]
    session._stored = StoredState(key, record.incarnation, revision)


def _key(history: History, session: AgentSession) -> SessionKey:
    """Return where the session lives: another user's, where it was found by a search of all."""
    known = session._stored
    own = history.key(session.session_id)
    if known is None or history.user_id or known.key.namespace != own.namespace:
        return own
    return known.key


def _kept(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a state is stored: not the messages of an `InMemoryHistoryProvider`.

    They are the history, which the store has already.
    """
    source_id = InMemoryHistoryProvider.DEFAULT_SOURCE_ID
    in_memory = state.get(source_id)
    if not isinstance(in_memory, Mapping) or "messages" not in in_memory:
        return dict(state)
    rest = {key: value for key, value in in_memory.items() if key != "messages"}
    return {key: rest if key == source_id else value for key, value in state.items()}
