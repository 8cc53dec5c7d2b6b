"""The settings of the backend."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["AcmeConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcmeConfig:
    """Where the files are, and what a write waits for."""

    folder: Path
    """The folder of all sessions. It is created if it is not there."""

    durable: bool = True
    """Whether a write waits for the disk. Without that a loss of power may cost a session."""
