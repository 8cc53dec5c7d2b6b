"""What the blocking classes have in common: how they call the asynchronous ones."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from historykit import catalogue, session_runs
from historykit import history as histories
from historykit.pages import Page
from historykit.sync.portal import Portal

if TYPE_CHECKING:
    from historykit.sync import calls

__all__ = ["AgentFace", "Face", "HistoryFace", "SessionFace"]

T = TypeVar("T")


class Face(ABC):
    """Something blocking that stands for something asynchronous, and has its attributes.

    `_shown` turns what a call gives into what blocks, where it is one of these classes.
    """

    _ATTRIBUTES: ClassVar[frozenset[str]] = frozenset()
    """The names of the attributes that are those of the asynchronous object."""

    _target: Any

    @property
    @abstractmethod
    def _portal(self) -> Portal: ...

    @abstractmethod
    def _shown(self, result: Any) -> Any: ...

    def _call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        function = getattr(self._target, name)
        return self._shown(self._portal.call(function, *map(_bare, args), **_all_bare(kwargs)))

    def _direct(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        function = getattr(self._target, name)
        return self._shown(function(*map(_bare, args), **_all_bare(kwargs)))

    def __repr__(self) -> str:
        return repr(self._target)

    if not TYPE_CHECKING:  # which would allow any name

        def __getattr__(self, name: str) -> Any:
            if name not in self._ATTRIBUTES:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return getattr(self._target, name)

        def __setattr__(self, name: str, value: Any) -> None:
            if name in self._ATTRIBUTES:
                setattr(self._target, name, value)
            else:
                super().__setattr__(name, value)


class HistoryFace(Face):
    """The part of the blocking `History` that is no call of the asynchronous one.

    It is made of an asynchronous history, which it has for itself, and opens and closes that as a
    context manager.
    """

    def __init__(self, history: histories.History) -> None:
        self._target: histories.History = history
        self._own_portal = Portal(history.aclose)

    @property
    def _portal(self) -> Portal:
        return self._own_portal

    def open(self) -> Self:
        """Open the store and return the history itself."""
        self._portal.call(self._target.open)
        return self

    def close(self) -> None:
        """Close the store and end the thread, if they are this history's own.

        Closing twice does nothing.
        """
        if self._target._closes_store:
            self._portal.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def call(self, function: Callable[..., Awaitable[T]], /, *args: Any, **kwargs: Any) -> T:
        """Return what an async function returns that needs the loop of this history.

        As in ``history.call(agent.run, "Hello", session=AgentSession(session_id="s1"))``, for an
        agent with a provider of this history. Sessions and histories that block are handed to it as
        the asynchronous ones that they stand for. Raises `TypeError` for what is no async function,
        as a run with `stream=True`: what comes in pieces stays on its loop.
        """
        _check_function(function)
        call: Callable[..., Awaitable[T]] = _awaited
        return self._portal.call(call, function, *map(_bare, args), **_all_bare(kwargs))

    @cached_property
    def Session(self) -> type[calls.Session]:
        """The class of the sessions of this history: `historykit.sync.Session`, bound to it."""
        from historykit.sync import calls

        bound = {"context": self, "__doc__": calls.Session.__doc__}
        return type("Session", (calls.Session,), bound)

    def _shown(self, result: Any) -> Any:
        from historykit.sync import calls

        if isinstance(result, catalogue.Session):
            return self.Session._of(result)
        if isinstance(result, histories.History):
            view = calls.History(result)
            view._own_portal = self._own_portal
            return view
        if isinstance(result, session_runs.BoundAgent):
            return calls.BoundAgent(self, result)
        if isinstance(result, Page):
            return Page(
                [self._shown(each) for each in result],
                result.page_number,
                result.page_total,
                result.total,
                complete=result.complete,
                hits=result.hits,
            )
        return result


class SessionFace(Face):
    """The part of the blocking `Session` that is no call of the asynchronous one.

    `context` is the history that the class is bound to; without one, every call is a
    `ResourceError`.
    """

    context: ClassVar[HistoryFace | None] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._target: catalogue.Session = self._target_class()(*args, **kwargs)

    @classmethod
    def _of(cls, target: catalogue.Session) -> Self:
        session = cls.__new__(cls)
        session._target = target
        return session

    @classmethod
    def _target_class(cls) -> type[catalogue.Session]:
        return catalogue.Session if cls.context is None else cls.context._target.Session

    @classmethod
    def _history(cls) -> HistoryFace:
        if cls.context is None:
            catalogue.Session._history()  # which says what is missing
        assert cls.context is not None
        return cls.context

    @property
    def _portal(self) -> Portal:
        return self._history()._portal

    def _shown(self, result: Any) -> Any:
        if result is self._target:
            return self
        return self._of(result) if isinstance(result, catalogue.Session) else result

    @classmethod
    def _call_class(cls, name: str, /, *args: Any, **kwargs: Any) -> Any:
        history = cls._history()
        function = getattr(cls._target_class(), name)
        result = history._portal.call(function, *map(_bare, args), **_all_bare(kwargs))
        return history._shown(result)

    @classmethod
    def _direct_class(cls, name: str, /, *args: Any, **kwargs: Any) -> Any:
        return cls._of(getattr(cls._target_class(), name)(*args, **kwargs))

    @classmethod
    def _iterate_class(cls, name: str, /, *args: Any, **kwargs: Any) -> Iterator[Any]:
        history = cls._history()
        items = getattr(cls._target_class(), name)(*map(_bare, args), **_all_bare(kwargs))
        return map(history._shown, history._portal.iterate(items))


class AgentFace(Face):
    """The part of the blocking `BoundAgent` that is no call of the asynchronous one."""

    def __init__(self, history: HistoryFace, target: session_runs.BoundAgent) -> None:
        self._target: session_runs.BoundAgent = target
        self._history = history

    @property
    def _portal(self) -> Portal:
        return self._history._portal

    def _shown(self, result: Any) -> Any:
        return self._history._shown(result)


def _check_function(function: object) -> None:
    if callable(function):
        return
    if inspect.iscoroutine(function):
        function.close()  # which would warn that nobody awaited it
    raise TypeError(
        "history.call takes an async function and its arguments, not what it returned "
        f"({type(function).__name__}); as in history.call(agent.run, query)"
    )


async def _awaited(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    made = function(*args, **kwargs)
    if not inspect.isawaitable(made):
        pieces = "; historykit.sync does not stream" if hasattr(made, "__aiter__") else ""
        raise TypeError(
            f"history.call runs async functions, and {getattr(function, '__qualname__', function)} "
            f"returned {type(made).__name__}{pieces}"
        )
    return await made


def _bare(value: Any) -> Any:
    return value._target if isinstance(value, Face) else value


def _all_bare(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _bare(value) for name, value in values.items()}
