"""What one run does: how many sessions of which sizes, and which of them is written when.

Both sides of a run follow the plan: the parent process asks for rounds and passes, the workers do
them, and a floor knows beforehand what will be appended where.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

__all__ = ["LAST", "Plan"]

LAST: Final = 20
"""How many messages the cell `last` reads."""

SHARED_ABOVE: Final = 10_000
"""Sessions longer than this are the same in all rounds; what a run appends is nothing to them."""

LOADS: Final = {100: 10, 1_000: 5, 10_000: 1}
"""How often a pass loads a session, by its size. Other sizes are not loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The numbers of a run.

    A round is a fresh process for each adapter. Within a round each cell is visited in `passes`,
    the adapters by turns, so that whatever else the machine does falls on all alike.
    """

    run: str
    sizes: tuple[int, ...] = (0, 100, 1_000, 10_000, 100_000)
    rounds: int = 5
    passes: int = 4
    appends: int = 12
    warm_turns: int = 5
    sessions: int = 32
    session_turns: int = 10
    writers: int = 50
    writer_turns: int = 4

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return the plan that `to_dict` wrote."""
        return cls(**{**data, "sizes": tuple(data["sizes"])})

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON has it."""
        return asdict(self)

    def loads(self, largest: int) -> dict[int, int]:
        """Return how often a pass loads each size that an adapter has, up to `largest`."""
        return {
            size: count for size, count in LOADS.items() if size in self.sizes and size <= largest
        }

    def seeded(self, largest: int) -> Iterator[tuple[str, int]]:
        """Yield id and size of each session that is there before the first round."""
        for size in self.sizes:
            if 0 < size <= largest:
                yield from ((id, size) for id in self._copies(size))

    def session(self, size: int, round: int, part: int = 0, index: int = 0) -> str:
        """Return the session of a size in a round; those of size 0 are new at each append."""
        if size == 0:
            return self._id("new", round, part, index)
        return self._id("seeded", size, round if size <= SHARED_ABOVE else 0)

    def appends_of(self, round: int, part: int, largest: int) -> Iterator[tuple[int, str, str]]:
        """Yield size, session and tag of each append of a pass, the sizes by turns."""
        sizes = [size for size in self.sizes if size <= largest]
        for index in range(self.appends):
            for size in sizes:
                tag = f"turn-{round}-{part}-{index}"
                yield size, self.session(size, round, part, index), tag

    def warm(self, round: int) -> str:
        """Return the session on which a process warms up."""
        return self._id("warm", round)

    def warm_tags(self) -> list[str]:
        """Return the tags of the turns on which a process warms up."""
        return [f"warm-{index}" for index in range(self.warm_turns)]

    def crowd(self, round: int, part: int) -> list[str]:
        """Return the new sessions that a pass writes at once."""
        return [self._id("crowd", round, part, index) for index in range(self.sessions)]

    def crowd_tags(self) -> list[str]:
        """Return the tags of the turns that each of these sessions gets."""
        return [f"crowd-{index}" for index in range(self.session_turns)]

    def contended(self, processes: int) -> str:
        """Return the session that all writers share, from that many processes."""
        return self._id("contended", processes)

    def _copies(self, size: int) -> list[str]:
        rounds = self.rounds if size <= SHARED_ABOVE else 1
        return [self.session(size, round) for round in range(rounds)]

    def _id(self, *parts: object) -> str:
        # Some peers take nothing but a UUID.
        return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(map(str, (self.run, *parts)))))
