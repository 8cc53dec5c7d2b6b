"""The fields of a session as a resource, its dict forms, and what state the object is in."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import KW_ONLY, InitVar, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, Self

from historykit.dict_forms import camel_case, is_same, known_fields
from historykit.errors import (
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    ResourceError,
    SessionStateError,
)
from historykit.execution import ExecutionConfig
from historykit.moments import iso_time
from historykit.session_bodies import (
    Scalar,
    check_metadata,
    check_number_of_labels,
    check_tags,
    decode_body,
)
from historykit.session_records import SessionKey, SessionRecord
from historykit.statuses import RunStatus, SessionStatus

if TYPE_CHECKING:
    from historykit.history import History

__all__ = ["SessionFields", "agent_id_of", "check_text"]

FIELDS_TO_SAVE: Final = (
    "name",
    "description",
    "agent_id",
    "status",
    "memory_enabled",
    "metadata",
    "tags",
    "execution_config",
)
"""The fields that `Session.save` writes."""

SETTABLE: Final = frozenset({*FIELDS_TO_SAVE, "id", "user_id", "path"})
"""The fields that `Session.save` sets; all others are the store's."""


class InHistory:
    """What is bound to a history: a class, or one object of it."""

    context: History | None = None
    """The history that sessions are read from and written to."""


@dataclass(repr=False, eq=False)
class SessionFields(InHistory):
    """What a session is, as plain fields; `Session` adds what can be done with it.

    `name`, `description`, `agent_id`, `status`, `execution_config`, `memory_enabled`, `metadata`
    and `tags` are for the application to set, and are written by `Session.save`. `agent` is the
    agent that the session is with: an object with an `id`, or that id; it goes before `agent_id`.
    `execution_config` takes an `ExecutionConfig` or a dict, also when it is set later. `metadata`
    has texts as keys, and texts, numbers, bools or None as values; `tags` are texts.
    `memory_enabled` False keeps the session and stores no messages.

    The other fields are the store's: `user_id` is who the session belongs to, "" where nobody
    cares; `run_status` is a `RunStatus`; `message_count` counts the messages of the conversation;
    `last_message_preview` is the beginning of the newest one, `last_message_at` when it was
    written; `parent_id` is the session that this one was forked from. Times are in ISO 8601, in
    UTC. They are as they were when the session was read, saved or refreshed. `path` is kept in the
    object only. `context` is the history that the class, or this object alone, is bound to
    (aiXplain session module).
    """

    id: str | None = None
    name: str | None = None
    description: str | None = None
    path: str | None = None
    agent: InitVar[Any] = None
    user_id: str = ""
    agent_id: str = ""
    status: str = SessionStatus.ACTIVE.value
    run_status: str = ""
    message_count: int = 0
    last_message_preview: str | None = None
    last_message_at: str | None = None
    created_at: str = ""
    updated_at: str = ""
    execution_config: ExecutionConfig | None = None
    _: KW_ONLY
    memory_enabled: bool = True
    metadata: dict[str, Scalar] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    parent_id: str | None = None

    def __post_init__(self, agent: Any) -> None:
        if agent is not None and agent != "":
            self.agent_id = agent_id_of(agent)
        self.metadata, self.tags = check_metadata(self.metadata or {}), check_tags(self.tags or ())
        self._record: SessionRecord | None = None
        self._saved: dict[str, Any] | None = None
        self._is_deleted = False

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "execution_config":
            value = ExecutionConfig.coerce(value)
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.id!r}, name={self.name!r})"

    @property
    def is_modified(self) -> bool:
        """Whether the object differs from what was last read or saved; True before either."""
        return self._saved is None or not is_same(self.to_dict(), self._saved)

    @property
    def is_deleted(self) -> bool:
        """Whether the session was deleted through this object."""
        return self._is_deleted

    def to_dict(self) -> dict[str, Any]:
        """Return all fields with names in camelCase, None included.

        ``executionConfig`` is in the form of `ExecutionConfig.to_api_dict`.
        """
        config = self.execution_config
        return {camel_case(name): getattr(self, name) for name in FIELDS} | {
            "executionConfig": None if config is None else config._to_compare(),
            "metadata": check_metadata(self.metadata),
            "tags": check_tags(self.tags),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the session that a dict describes, with names in camelCase or as in Python.

        Other names are left out. Nothing is read: the object is as if it had been constructed.
        """
        return cls(**known_fields(data, FIELDS))

    def build_save_payload(self, **kwargs: Any) -> dict[str, Any]:
        """Return what a client of the service sends to save the session.

        That is ``agentId``, ``name``, ``status`` and ``executionConfig``, as far as they are set.
        """
        config = self.execution_config
        payload = {
            "agentId": self.agent_id or None,
            "name": self.name,
            "status": self.status or None,
            "executionConfig": None if config is None else config.to_api_dict(),
        }
        return {name: value for name, value in payload.items() if value is not None}

    def clone(self, **overrides: Any) -> Self:
        """Return a session of its own with the same fields, without an id and not saved.

        `overrides` are fields to set otherwise. Messages are not part of it: see `Session.fork`.
        """
        values = {name: deepcopy(getattr(self, name)) for name in FIELDS}
        copy = type(self)(**{**values, "id": None, **overrides})
        if "context" in vars(self):
            copy.context = self.context
        return copy

    def _check(self) -> None:
        """Raise `InvalidRequestError` for a field that cannot be saved, and bring them in order.

        A status that was stored by other means may stay.
        """
        stored = None if self._saved is None else self._saved["status"]
        if self.status not in [*SessionStatus, stored]:
            raise InvalidRequestError(
                f"status must be one of {', '.join(SessionStatus)}; not {self.status!r}"
            )
        for name in ("name", "description"):
            if (value := getattr(self, name)) is not None:
                check_text(name, value)
        if not isinstance(self.memory_enabled, bool):
            raise InvalidRequestError(
                f"memory_enabled must be True or False, not {self.memory_enabled!r}"
            )
        if not isinstance(self.agent_id, str):
            raise InvalidRequestError(f"agent_id must be a text, not {self.agent_id!r}")
        self.metadata, self.tags = check_metadata(self.metadata), check_tags(self.tags)
        check_number_of_labels(self.metadata, self.tags)

    def _check_place(self) -> None:
        """Raise `InvalidRequestError` where the object is of another session than was read."""
        if self._record is None or not self.id:
            return
        read = self._record.key
        for name, value in (("id", read.session_id), ("user_id", read.user_id)):
            if getattr(self, name) != value:
                raise InvalidRequestError(
                    f"the {name} of a session stays: {value!r}, not {getattr(self, name)!r}; "
                    "`clone` and `fork` make another session"
                )

    def _changes(self) -> dict[str, Any]:
        """Return the fields to save: those that differ from what was read, or that are set."""
        values = {name: getattr(self, name) for name in FIELDS_TO_SAVE}
        if self._saved is not None:
            now, saved = self.to_dict(), self._saved
            return {
                name: value
                for name, value in values.items()
                if not is_same(now[camel_case(name)], saved[camel_case(name)])
            }
        return {
            name: value
            for name, value in values.items()
            if value is not None and value not in ("", [], {}, True)
        }

    def _adopt(self, record: SessionRecord, preview: str | None, history: History) -> Self:
        """Take over what the store has of the session. Raises `CorruptRecordError`."""
        body = decode_body(record, history.codec)
        self.id, self.user_id = record.key.session_id, record.key.user_id
        self.agent_id, self.status = record.agent_id, record.status
        self.memory_enabled = record.memory_enabled
        self.message_count = record.message_count
        self.created_at, self.updated_at = iso_time(record.created_at), iso_time(record.updated_at)
        last = record.last_message_at
        self.last_message_at = None if last is None else iso_time(last)
        self.last_message_preview = preview
        self.run_status = _run_status(record, body, history.store.now())
        self.name, self.description = body.get("name"), body.get("description")
        self.parent_id = body.get("parent_id")
        self.metadata, self.tags = body.get("metadata", {}), body.get("tags", [])
        self.execution_config = _kept(self.execution_config, body.get("execution_config"))
        self._record, self._saved = record, self.to_dict()
        return self

    @classmethod
    def _history(cls) -> History:
        if cls.context is None:
            raise ResourceError(
                "a context is required for resource operations: use the Session of a history, "
                "history.Session"
            )
        return cls.context

    def _bound(self) -> History:
        """Return the history of the class, or that which the object was bound to."""
        return self.context or self._history()

    def _key(self) -> SessionKey:
        """Return where the session lives.

        Raises `SessionStateError` for an object that stands for no session, and `NotFoundError` for
        the session of somebody else.
        """
        name = type(self).__name__
        if self._is_deleted:
            raise SessionStateError(f"{name} has been deleted and cannot be used for operations.")
        if not self.id and self._saved is None:
            raise SessionStateError(
                f"{name} has not been saved yet. Call .save() first to create the resource."
            )
        if not self.id:
            raise SessionStateError(
                f"{name} has been deleted or is invalid and cannot be used for operations."
            )
        history = self._bound()
        if history.user_id and self.user_id not in ("", history.user_id):
            raise NotFoundError(f"session {self.id!r} not found")
        return SessionKey(history.namespace, history.user_id or self.user_id, self.id)

    def _check_owner(self) -> None:
        """Raise `ForbiddenError` where the session would be saved as somebody else's."""
        user_id = self._bound().user_id
        if user_id and self.user_id not in ("", user_id):
            raise ForbiddenError(
                f"the history is of user {user_id!r}, and the session of {self.user_id!r}; "
                "use history.as_user"
            )


# The class that everybody calls is the one to name where an argument is wrong.
SessionFields.__init__.__qualname__ = "Session.__init__"

FIELDS: Final = tuple(each.name for each in fields(SessionFields))
"""The names of the fields of a session."""


def check_text(name: str, value: object) -> None:
    """Raise `InvalidRequestError` for the value of a field of that name that is no text."""
    if not isinstance(value, str):
        raise InvalidRequestError(f"{name} must be a text, not {type(value).__name__}")


def agent_id_of(agent: Any) -> str:
    """Return the id of an agent, given as that or as an object that has one.

    Raises `ResourceError`.
    """
    if isinstance(agent, str):
        return agent
    agent_id = getattr(agent, "id", None)
    if not agent_id or not isinstance(agent_id, str):
        remedy = "; give it a name= or an id=" if hasattr(agent, "id") else ""
        raise ResourceError(
            f"agent must be a saved Agent (with an id) or an agent id string{remedy}"
        )
    return agent_id


def _kept(
    config: ExecutionConfig | None, stored: Mapping[str, Any] | None
) -> ExecutionConfig | None:
    """Return the config that is stored: the same object where it says the same."""
    if stored is None:
        return None
    with suppress(InvalidRequestError, TypeError):  # of parameters that were changed in place
        if config is not None and is_same(config._to_compare(), stored):
            return config
    return ExecutionConfig.from_dict(stored)


def _run_status(record: SessionRecord, body: Mapping[str, Any], now: int) -> str:
    """Return what a session's run does; one whose lease has ended is over."""
    if record.run_id is not None:
        lasts = (record.run_expires_at or 0) > now
        return (RunStatus.RUNNING if lasts else RunStatus.IDLE).value
    status: str = body.get("run_status", RunStatus.IDLE.value)
    return status
