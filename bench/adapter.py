"""The interface behind which every store, ours or not, and every floor is measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from bench.plan import Plan
from bench.workload import history_tags, role_of, text

__all__ = ["Adapter", "Bounds", "Kind", "Place"]

Kind = Literal["floor", "historykit", "peer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an adapter keeps its data: a folder of its own, and what the database module serves.

    No other adapter of the run has its `number`, by which it knows its part of a server.
    """

    folder: Path
    number: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What `subject` is to reach on one database.

    `append`, `load` and `last` are the most times the floor's, `throughput` is the least part of
    the floor's turns a second, `flat` is the most that an append's time differs between sizes,
    `stall` is in seconds. Appends are held against another floor where `bare` names one.
    """

    subject: str
    floor: str
    bare: str | None = None
    append: float
    load: float
    last: float
    throughput: float
    flat: float = 1.3
    stall: float = 0.010


class Adapter(ABC):
    """One store. A process has one adapter of it, and opens it once.

    A session is whatever the store wants to be given for a conversation: an id, or an object of its
    own that is made as its documentation says. Messages are the store's own objects; making them is
    never timed, what the store does to write and read them always is.
    """

    name: ClassVar[str]
    """As the tables show it. Unique."""

    database: ClassVar[str]
    kind: ClassVar[Kind] = "peer"

    environment: ClassVar[str] = "historykit"
    """The name of the environment whose Python runs it."""

    distributions: ClassVar[tuple[str, ...]] = ()
    """The distributions whose versions belong into the results."""

    durability: ClassVar[str] = ""
    """What an append that returned survives, in the words of the database's settings."""

    durable: ClassVar[bool] = True
    """Whether that includes a loss of power."""

    largest: ClassVar[int] = 10_000
    """The largest session that is seeded: less where seeding would take minutes."""

    reads_last: ClassVar[bool] = False
    """Whether it can read the newest messages without reading all."""

    seed_batch: ClassVar[int] = 1_000

    notes: ClassVar[str] = ""

    def __init__(self, place: Place) -> None:
        self.place = place

    @abstractmethod
    async def open(self) -> None:
        """Connect, and make tables where there are none."""

    @abstractmethod
    async def close(self) -> None:
        """Disconnect."""

    @abstractmethod
    def message(self, role: str, text: str) -> Any:
        """Return a message as the store has it."""

    @abstractmethod
    def text(self, message: Any) -> str:
        """Return the text of a message that was loaded."""

    @abstractmethod
    async def append(self, session: Any, messages: Any) -> None:
        """Add messages to the end of a session."""

    @abstractmethod
    async def load(self, session: Any) -> Sequence[Any]:
        """Return all messages of a session, oldest first."""

    async def last(self, session: Any, count: int) -> Sequence[Any]:
        """Return the newest `count` messages, oldest first. Only where `reads_last`."""
        raise NotImplementedError

    async def session(self, session_id: str) -> Any:
        """Return the store's own object for a session."""
        return session_id

    async def leave(self, session: Any) -> None:  # noqa: B027  - most have nothing to give back
        """Give the store's own object for a session back."""

    def turn(self, session: Any, tag: str) -> Any:
        """Return the two messages of a turn."""
        return [self.message(role_of(index), text(f"{tag}-{index}")) for index in (0, 1)]

    async def prepare(self, plan: Plan) -> None:
        """Store what is there before the first round."""
        for session_id, size in plan.seeded(self.largest):
            session = await self.session(session_id)
            await self.seed(session, self.messages(size))
            await self.leave(session)

    async def seed(self, session: Any, messages: list[Any]) -> None:
        """Fill an empty session."""
        for begin in range(0, len(messages), self.seed_batch):
            await self.append(session, messages[begin : begin + self.seed_batch])

    def messages(self, size: int) -> list[Any]:
        """Return the messages of a seeded session."""
        tags = history_tags(size)
        return [self.message(role_of(index), text(tag)) for index, tag in enumerate(tags)]
