"""A conversation as an agent sees it, and what one run of it gathers."""

from __future__ import annotations

from collections.abc import Container, Mapping, MutableMapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from historykit.messages import Message
from historykit.responses import AgentResponse
from historykit.serialization import deserialize_state, serialize_state
from historykit.session_records import SessionKey

if TYPE_CHECKING:
    from historykit.turns import Turn

__all__ = ["AgentSession", "SessionContext"]


class StoredState(NamedTuple):
    """Which stored state an `AgentSession` began with: of which session, and how old."""

    key: SessionKey
    incarnation: str
    revision: int


class AgentSession:
    """A conversation with an agent: its id, and a state that all context providers share.

    Without a `session_id` it gets a random one. `service_session_id` is the id under which the
    model's service keeps the conversation, where it does (agent_framework Sessions API).
    """

    def __init__(
        self, *, session_id: str | None = None, service_session_id: str | None = None
    ) -> None:
        self._session_id = session_id or _new_session_id()
        self.service_session_id = service_session_id
        self.state: dict[str, Any] = {}
        self._stored: StoredState | None = None
        self._turn: Turn | None = None

    @property
    def session_id(self) -> str:
        """The unique id of the session."""
        return self._session_id

    def to_dict(self, *, strict: bool = False) -> dict[str, Any]:
        """Return the session as plain data, for `from_dict`.

        Values of the state that have `to_dict` become dicts. With `strict` a value that JSON does
        not have is a `TypeError` that names its path; without it, it stays and is warned of.
        """
        return {
            "type": "session",
            "session_id": self._session_id,
            "service_session_id": self.service_session_id,
            "state": {
                key: serialize_state(value, path=f"state.{key}", strict=strict)
                for key, value in self.state.items()
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the session that `to_dict` described; the data is not changed.

        Raises `KeyError` without a ``session_id``; an empty one gives a new id.
        """
        session = cls(
            session_id=data["session_id"], service_session_id=data.get("service_session_id")
        )
        session.state = {
            key: deserialize_state(value, path=f"state.{key}")
            for key, value in data.get("state", {}).items()
        }
        return session

    def __repr__(self) -> str:
        return f"{type(self).__name__}(session_id={self._session_id!r})"


def _new_session_id() -> str:
    from uuid import uuid4  # slow to import, and most sessions come with an id

    return str(uuid4())


class SessionContext:
    """What the context providers of one run add to it, and what came of the run.

    `context_messages` are the messages that each source added, in the order of the first one of
    each; `instructions` and `tools` are what all sources added. `options` are those of the run, to
    look at. `metadata` is for providers to tell each other things. A provider may set `session_id`
    for those after it. `response` is None until the model has answered.

    Containers that are passed filled are kept and not copied (agent_framework Sessions API).
    """

    def __init__(
        self,
        *,
        session_id: str | None = None,
        service_session_id: str | None = None,
        input_messages: list[Message],
        context_messages: dict[str, list[Message]] | None = None,
        instructions: list[str] | None = None,
        tools: list[Any] | None = None,
        options: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        self.service_session_id = service_session_id
        self.input_messages = input_messages
        self.context_messages = context_messages or {}
        self.instructions = instructions or []
        self.tools = tools or []
        self.options = options or {}
        self.metadata = metadata or {}
        self._response: AgentResponse | None = None
        self._carried: dict[object, Any] = {}
        self._turn: Turn | None = None

    @property
    def response(self) -> AgentResponse | None:
        """The answer of the model, once there is one."""
        return self._response

    def extend_messages(self, source: str | object, messages: Sequence[Message]) -> None:
        """Add context messages of a source: a provider, or its source id.

        The messages are copied, with `additional_properties` of their own, where the source is
        noted under ``_attribution``; one that is noted already stays.
        """
        attribution = _attribution(source)
        added = self.context_messages.setdefault(attribution["source_id"], [])
        for message in messages:
            attributed = copy(message)
            properties = {**message.additional_properties}
            properties.setdefault("_attribution", dict(attribution))
            attributed.additional_properties = properties
            added.append(attributed)

    def extend_instructions(self, source_id: str, instructions: str | Sequence[str]) -> None:
        """Add one instruction or several to those of the agent."""
        self.instructions.extend([instructions] if isinstance(instructions, str) else instructions)

    def extend_tools(self, source_id: str, tools: Sequence[Any]) -> None:
        """Add tools for this run.

        A tool whose `additional_properties` is a dict gets the source id there, under
        ``context_source``; the tool itself is changed, not a copy.
        """
        for tool in tools:
            properties = getattr(tool, "additional_properties", None)
            if isinstance(properties, MutableMapping):
                properties["context_source"] = source_id
        self.tools.extend(tools)

    def get_messages(
        self,
        *,
        sources: Container[str] | None = None,
        exclude_sources: Container[str] | None = None,
        include_input: bool = False,
        include_response: bool = False,
    ) -> list[Message]:
        """Return the context messages, then the input, then the response, as far as asked for.

        Only context messages are filtered: to those of `sources`, without `exclude_sources`.
        """
        messages = [
            message
            for source_id, added in self.context_messages.items()
            if (sources is None or source_id in sources)
            and (exclude_sources is None or source_id not in exclude_sources)
            for message in added
        ]
        if include_input:
            messages += self.input_messages
        if include_response and self._response is not None:
            messages += self._response.messages
        return messages


def _attribution(source: str | object) -> dict[str, str]:
    if isinstance(source, str):
        return {"source_id": source}
    source_id: str = cast(Any, source).source_id
    return {"source_id": source_id, "source_type": type(source).__name__}
