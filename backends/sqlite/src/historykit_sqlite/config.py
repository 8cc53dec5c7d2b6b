"""The settings of the SQLite backend."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from os import PathLike
from typing import Literal

from historykit.errors import ConfigError

__all__ = ["SQLiteConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SQLiteConfig:
    """Where a history lives, and how safely. Raises `ConfigError` for a setting that is wrong."""

    path: str | PathLike[str]
    """The file, in a directory that exists.

    A relative path counts from the working directory of the moment in which the store is made, and
    one that begins with ``~`` from a user's home. A file or a directory without write access opens
    for reading."""

    create: bool = True
    """Whether a file that is not there is made. Without it, opening is an error that names it."""

    synchronous: Literal["full", "normal"] = "full"
    """What a write waits for before it returns.

    "full": for the disk, so that it survives a power loss. "normal": for the operating system, so
    that it survives the end of the process, killed or not; faster, and a power loss may cost the
    latest writes, though never a part of one."""

    busy_timeout: float = 5.0
    """How many seconds a call waits for other connections before it fails as unavailable."""

    migrate: bool = False
    """Whether opening may upgrade a file that an older version wrote.

    Older versions cannot open it afterwards. A new file is set up without asking."""

    def __post_init__(self) -> None:
        path = os.fspath(self.path)
        if path in ("", ":memory:"):
            raise ConfigError(
                f"path of the sqlite backend must name a file, not {path!r}; "
                "a history in memory is the backend 'memory'",
                field="path",
            )
        if "\0" in path:
            raise ConfigError("path of the sqlite backend must not contain NUL", field="path")
        if self.synchronous not in ("full", "normal"):
            raise ConfigError(
                f"synchronous of the sqlite backend must be 'full' or 'normal', "
                f"not {self.synchronous!r}",
                field="synchronous",
            )
        if not 0 <= self.busy_timeout < math.inf:
            raise ConfigError(
                f"busy_timeout of the sqlite backend must be 0 or more seconds, "
                f"not {self.busy_timeout}",
                field="busy_timeout",
            )
