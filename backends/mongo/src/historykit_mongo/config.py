"""The settings of the MongoDB backend."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from historykit.errors import ConfigError
from historykit.redaction import redacted_repr

__all__ = ["MongoConfig"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MongoConfig:
    """Where a history lives, and who talks to it. Raises `ConfigError` for a wrong setting."""

    url: str = "mongodb://localhost:27017"
    """The connection string, with credentials and options as MongoDB's drivers take them.

    Its options go before `timeout`. Not used where a `client` is given."""

    database: str = "historykit"
    """The database. It is made at first use."""

    collection: str = "history"
    """The collection that holds all sessions with their messages. It is made at first use."""

    driver: Literal["pymongo", "motor"] = "pymongo"
    """Whose client to make. Motor is the extra ``historykit-mongo[motor]``."""

    client: Any = field(default=None, repr=False, metadata={"secret": True})
    """A client of the caller's own, of either driver, which is used and never closed.

    It belongs to the event loop on which it is used first, as the drivers have it."""

    timeout: float = 10.0
    """How many seconds a call waits for the server before it fails as unavailable."""

    __repr__ = redacted_repr

    def __post_init__(self) -> None:
        if not self.url.startswith(("mongodb://", "mongodb+srv://")):
            raise ConfigError(
                "url of the mongo backend must begin with mongodb:// or mongodb+srv://", field="url"
            )
        for name in ("database", "collection"):
            value = getattr(self, name)
            if not value or "\0" in value or "$" in value or value.startswith("system."):
                raise ConfigError(
                    f"{name} of the mongo backend must be a name that MongoDB takes, not {value!r}",
                    field=name,
                )
        if self.driver not in ("pymongo", "motor"):
            raise ConfigError(
                f"driver of the mongo backend must be 'pymongo' or 'motor', not {self.driver!r}",
                field="driver",
            )
        if not 0 < self.timeout < math.inf:
            raise ConfigError(
                f"timeout of the mongo backend must be more than 0 seconds, not {self.timeout}",
                field="timeout",
            )
