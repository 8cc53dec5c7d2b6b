"""What a store can do, and what it promises."""

from __future__ import annotations

from enum import Enum

__all__ = ["Capability", "Guarantee"]


class Capability(Enum):
    """A group of calls that a store may refuse with `CapabilityNotSupportedError`."""

    EDIT = "edit"
    """Messages can be changed after they were appended: update, delete, replace."""

    CATALOGUE = "catalogue"
    """Sessions can be found by their fields: `HistoryStore.find_sessions`."""

    RUNS = "runs"
    """A run can hold a session for a while: claim, renew, release."""


class Guarantee(Enum):
    """A property of an opened store, on the server and with the settings that it found.

    A guarantee is checked when the store opens; `HistoryStore.guarantees` holds those that are met.
    """

    SHARED = "shared"
    """A second store opened with the same configuration, in another process too, sees the data."""

    SURVIVES_KILL = "survives kill"
    """What was acknowledged is there after the store's process was killed and started again."""

    SURVIVES_POWER_LOSS = "survives power loss"
    """What was acknowledged is on stable storage."""

    SURVIVES_FAILOVER = "survives failover"
    """What was acknowledged is there after another node took over from the one that took it."""
