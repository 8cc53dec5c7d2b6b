"""What is there of the turns that writers were told are there."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from historykit.testing.subject import read_all
from tests.chaos.writer import Job

__all__ = ["Count", "count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Turns: how many were acknowledged, are stored, and are not as they have to be.

    `missing` were acknowledged and are not there; `torn` are there without one of their messages,
    or with another one between them; `doubled` are there more than once; of `disordered` ones an
    earlier one of the same writer comes later.
    """

    acknowledged: int
    stored: int
    messages: int
    missing: int
    torn: int
    doubled: int
    disordered: int

    @property
    def is_good(self) -> bool:
        """Whether every turn is as it has to be."""
        return not (self.missing or self.torn or self.doubled or self.disordered)

    def __add__(self, other: Count) -> Count:
        return Count(
            **{name: getattr(self, name) + getattr(other, name) for name in self.__slots__}
        )


async def count(job: Job, sessions: Sequence[str], acknowledged: Sequence[str]) -> Count:
    """Read all sessions, with a store that is new, and count."""
    told: dict[str, set[str]] = {session: set() for session in sessions}
    for line in acknowledged:
        session, _, turn = line.partition("\t")
        told[session].add(turn)
    total = Count(**dict.fromkeys(Count.__slots__, 0))
    async with job.store() as store:
        for session in sessions:
            rows = await read_all(store, job.key(session))
            total += count_session([row.body.decode() for row in rows], told[session])
    return total


def count_session(texts: Sequence[str], told: set[str]) -> Count:
    """Count the turns of a session with these messages, of which `told` were acknowledged."""
    places = Counter(texts)
    turns = list(dict.fromkeys(text.rpartition(" ")[0] for text in texts))
    neighbours = set(itertools.pairwise(texts))
    torn = [turn for turn in turns if (f"{turn} 0", f"{turn} 1") not in neighbours]
    return Count(
        acknowledged=len(told),
        stored=len(turns),
        messages=len(texts),
        missing=len(told - set(turns)),
        torn=len(torn),
        doubled=sum(max(places[f"{turn} 0"], places[f"{turn} 1"]) > 1 for turn in turns),
        disordered=_disordered(turns),
    )


def _disordered(turns: Sequence[str]) -> int:
    last: dict[str, int] = {}
    wrong = 0
    for turn in turns:
        writer, _, number = turn.partition(" ")
        wrong += int(number) < last.get(writer, -1)
        last[writer] = int(number)
    return wrong
