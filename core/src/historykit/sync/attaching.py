"""Attachments without asyncio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from historykit import attachments as asynchronous
from historykit.session_messages import SessionMessageAttachment
from historykit.sync.face import HistoryFace

__all__ = ["resolve_attachments"]


def resolve_attachments(
    context: HistoryFace,
    attachments: Sequence[str | Path | Mapping[str, Any] | SessionMessageAttachment] | None = None,
    files: Sequence[str | Path] | None = None,
    *,
    error_label: str = "",
) -> list[dict[str, Any]]:
    """Return attachments as dicts, storing files.

    See `historykit.resolve_attachments`; `context` is a blocking history.
    """
    return context.call(
        asynchronous.resolve_attachments,
        context._target,
        attachments,
        files,
        error_label=error_label,
    )
