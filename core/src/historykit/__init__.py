"""Storage for the conversation history of AI agents, on the database that you have::

    import historykit
    from historykit import Agent, AgentSession

    async with historykit.open_history("sqlite", path="chat.db") as history:
        agent = Agent(client, name="assistant", context_providers=[history.provider()])
        await agent.run("Hello", session=AgentSession(session_id="s1"))

Everything that an application needs is a name of this package; who writes a backend finds the rest
in `historykit.store`, `historykit.records` and `historykit.plugins`. A name's module is imported
when the name is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from historykit.agent import Agent, SupportsAgentRun
    from historykit.agent_calls import RunRequest
    from historykit.attachments import Attachments, resolve_attachments
    from historykit.capabilities import Capability, Guarantee
    from historykit.catalogue import DeleteResult, Session
    from historykit.clients import ChatClient, ChatOptions
    from historykit.codec import Codec, MessageCodec
    from historykit.config import HistoryConfig, load_config
    from historykit.contents import Content
    from historykit.errors import (
        APIError,
        BackendConflictError,
        BackendError,
        BackendLoadError,
        BackendNotFoundError,
        CapabilityNotSupportedError,
        CodecError,
        ConfigError,
        ConflictError,
        CorruptRecordError,
        DecodeError,
        EncodeError,
        FileUploadError,
        ForbiddenError,
        HistoryKitError,
        IncompatibleBackendError,
        InvalidRequestError,
        NotFoundError,
        ResourceError,
        RunInProgressError,
        SessionDeletedError,
        SessionStateError,
        StorageError,
        StorageUnavailableError,
        StoreClosedError,
        TooLargeError,
        TranscriptDivergedError,
        ValidationError,
        VersionConflictError,
        WrongLoopError,
    )
    from historykit.execution import Budget, ExecutionConfig
    from historykit.history import History, open_history
    from historykit.loading import LoadedHistory
    from historykit.messages import Message
    from historykit.pages import Page, TextHit
    from historykit.plugins import BackendSpec, list_backends, load_backend, register
    from historykit.providers import (
        BaseContextProvider,
        BaseHistoryProvider,
        ContextProvider,
        HistoryProvider,
        InMemoryHistoryProvider,
    )
    from historykit.responses import AgentResponse, AgentResponseUpdate
    from historykit.serialization import OpaqueValue, register_state_type
    from historykit.session_messages import SessionMessage, SessionMessageAttachment
    from historykit.session_runs import BoundAgent, RunResult
    from historykit.sessions import AgentSession, SessionContext
    from historykit.statuses import (
        AttachmentType,
        MessageRole,
        Reaction,
        RunStatus,
        SessionStatus,
    )
    from historykit.store import HistoryStore
    from historykit.store_provider import OwningHistoryProvider, StoreHistoryProvider
    from historykit.streaming import AgentStream

__all__ = [
    "APIError",
    "Agent",
    "AgentResponse",
    "AgentResponseUpdate",
    "AgentSession",
    "AgentStream",
    "AttachmentType",
    "Attachments",
    "BackendConflictError",
    "BackendError",
    "BackendLoadError",
    "BackendNotFoundError",
    "BackendSpec",
    "BaseContextProvider",
    "BaseHistoryProvider",
    "BoundAgent",
    "Budget",
    "Capability",
    "CapabilityNotSupportedError",
    "ChatClient",
    "ChatOptions",
    "Codec",
    "CodecError",
    "ConfigError",
    "ConflictError",
    "Content",
    "ContextProvider",
    "CorruptRecordError",
    "DecodeError",
    "DeleteResult",
    "EncodeError",
    "ExecutionConfig",
    "FileUploadError",
    "ForbiddenError",
    "Guarantee",
    "History",
    "HistoryConfig",
    "HistoryKitError",
    "HistoryProvider",
    "HistoryStore",
    "InMemoryHistoryProvider",
    "IncompatibleBackendError",
    "InvalidRequestError",
    "LoadedHistory",
    "Message",
    "MessageCodec",
    "MessageRole",
    "NotFoundError",
    "OpaqueValue",
    "OwningHistoryProvider",
    "Page",
    "Reaction",
    "ResourceError",
    "RunInProgressError",
    "RunRequest",
    "RunResult",
    "RunStatus",
    "Session",
    "SessionContext",
    "SessionDeletedError",
    "SessionMessage",
    "SessionMessageAttachment",
    "SessionStateError",
    "SessionStatus",
    "StorageError",
    "StorageUnavailableError",
    "StoreClosedError",
    "StoreHistoryProvider",
    "SupportsAgentRun",
    "TextHit",
    "TooLargeError",
    "TranscriptDivergedError",
    "ValidationError",
    "VersionConflictError",
    "WrongLoopError",
    "list_backends",
    "load_backend",
    "load_config",
    "open_history",
    "register",
    "register_state_type",
    "resolve_attachments",
]

_NAMES = {
    "agent": ("Agent", "SupportsAgentRun"),
    "agent_calls": ("RunRequest",),
    "attachments": ("Attachments", "resolve_attachments"),
    "capabilities": ("Capability", "Guarantee"),
    "catalogue": ("DeleteResult", "Session"),
    "clients": ("ChatClient", "ChatOptions"),
    "codec": ("Codec", "MessageCodec"),
    "config": ("HistoryConfig", "load_config"),
    "contents": ("Content",),
    "errors": (
        "APIError",
        "BackendConflictError",
        "BackendError",
        "BackendLoadError",
        "BackendNotFoundError",
        "CapabilityNotSupportedError",
        "CodecError",
        "ConfigError",
        "ConflictError",
        "CorruptRecordError",
        "DecodeError",
        "EncodeError",
        "FileUploadError",
        "ForbiddenError",
        "HistoryKitError",
        "IncompatibleBackendError",
        "InvalidRequestError",
        "NotFoundError",
        "ResourceError",
        "RunInProgressError",
        "SessionDeletedError",
        "SessionStateError",
        "StorageError",
        "StorageUnavailableError",
        "StoreClosedError",
        "TooLargeError",
        "TranscriptDivergedError",
        "ValidationError",
        "VersionConflictError",
        "WrongLoopError",
    ),
    "execution": ("Budget", "ExecutionConfig"),
    "history": ("History", "open_history"),
    "loading": ("LoadedHistory",),
    "messages": ("Message",),
    "pages": ("Page", "TextHit"),
    "plugins": ("BackendSpec", "list_backends", "load_backend", "register"),
    "providers": (
        "BaseContextProvider",
        "BaseHistoryProvider",
        "ContextProvider",
        "HistoryProvider",
        "InMemoryHistoryProvider",
    ),
    "responses": ("AgentResponse", "AgentResponseUpdate"),
    "serialization": ("OpaqueValue", "register_state_type"),
    "session_messages": ("SessionMessage", "SessionMessageAttachment"),
    "session_runs": ("BoundAgent", "RunResult"),
    "sessions": ("AgentSession", "SessionContext"),
    "statuses": ("AttachmentType", "MessageRole", "Reaction", "RunStatus", "SessionStatus"),
    "store": ("HistoryStore",),
    "store_provider": ("OwningHistoryProvider", "StoreHistoryProvider"),
    "streaming": ("AgentStream",),
}
"""The names of this package by the module that they are from: what the imports above say, which
only type checkers and editors follow."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names}

_SUBMODULES = ("chat_completions", "sync")
"""The modules that are found here without being imported by name first, as pages and errors have
them."""

if not TYPE_CHECKING:  # which would allow any name

    def __getattr__(name: str) -> object:
        if name in _SUBMODULES:
            return import_module(f"{__name__}.{name}")
        module = _MODULES.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{module}"), name)
        globals()[name] = value  # found there from now on
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
