"""Warnings that point at the line of the application that caused them."""

from __future__ import annotations

import sys
import warnings
from contextvars import ContextVar
from typing import Any, Final, NamedTuple, Self

__all__ = ["Caller", "calling", "warn_caller"]

_OWN: Final = __name__.partition(".")[0]
_LOOP: Final = ("asyncio", "threading", "contextvars")
"""What stands at the bottom of the stack where a task runs that nobody awaits in this thread."""


class Caller(NamedTuple):
    """A line of an application: its file, its number, and the globals of its module."""

    filename: str
    lineno: int
    names: dict[str, Any]

    @classmethod
    def here(cls) -> Self:
        """Return the line outside of historykit that called into it."""
        frame = sys._getframe(1)
        while frame.f_back is not None and _package(frame.f_globals) == _OWN:
            frame = frame.f_back
        return cls(frame.f_code.co_filename, frame.f_lineno, frame.f_globals)


calling: ContextVar[Caller | None] = ContextVar("calling", default=None)
"""The line that waits in another thread for what runs in this context."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn of something that the application did, at its own line.

    The line is where the application calls, or awaits, what warns: however deep that is, and in the
    thread that called where `historykit.sync` runs it in another.
    """
    caller = Caller.here()
    if _package(caller.names) in _LOOP:
        caller = calling.get() or caller
    warnings.warn_explicit(
        message,
        category,
        caller.filename,
        caller.lineno,
        caller.names.get("__name__", "<unknown>"),
        caller.names.setdefault("__warningregistry__", {}),
    )


def _package(names: dict[str, Any]) -> str:
    module: str = names.get("__name__", "")
    return module.partition(".")[0]
