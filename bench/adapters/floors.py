"""What floors of all databases have in common: they do again what a store was seen to do.

Before a run, the store itself does all that the plan asks for, and what it asks of its driver is
taken down. Since that is done anew for each run, a floor cannot drift from the store.
"""

from __future__ import annotations

import pickle
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from bench.adapter import Adapter
from bench.plan import LAST, Plan
from bench.workload import history_tags, role_of, text

__all__ = [
    "BareFloor",
    "CallRecorder",
    "Page",
    "RecordedFloor",
    "Recorder",
    "Script",
    "record_rounds",
    "seed",
    "turn_of",
]

SEED_BATCH = 1_000


@dataclass(slots=True)
class Script:
    """Everything that a run will ask of a driver, as far as it belongs to a call of the store.

    Appends by session and tag, loads by session and limit, newest page first.
    """

    appends: dict[tuple[str, str], Any] = field(default_factory=dict)
    loads: dict[tuple[str, int | None], list[Any]] = field(default_factory=dict)


@dataclass(slots=True)
class Page:
    """What one page of a load asks of the driver, and where in the answer its bodies are."""

    requests: list[Any]
    places: Any


class Recorder(Protocol):
    """Does one thing after the other through a history, and keeps what that takes."""

    async def append(self, history: Any, session_id: str, tag: str) -> None: ...

    async def load(self, history: Any, session_id: str, limit: int | None) -> None: ...


async def record_rounds(recorder: Recorder, history: Any, plan: Plan, *, largest: int) -> None:
    """Do what `bench.cells` does in all rounds, in the same order, but one after the other."""
    for round in range(plan.rounds):
        for tag in plan.warm_tags():
            await recorder.append(history, plan.warm(round), tag)
        loaded = [plan.session(size, round) for size in plan.loads(largest)]
        for session_id in [plan.warm(round), *loaded]:
            await recorder.load(history, session_id, None)
            await recorder.load(history, session_id, LAST)
        for part in range(plan.passes):
            for _, session_id, tag in plan.appends_of(round, part, largest):
                await recorder.append(history, session_id, tag)
        for part in range(plan.passes):
            for tag in plan.crowd_tags():
                for session_id in plan.crowd(round, part):
                    await recorder.append(history, session_id, tag)


class CallRecorder:
    """Records a store that calls its driver from the event loop.

    `hear` is to be told of each request with its answer. `page` makes the `Page` of what was heard
    during one read; `settle` waits for what an append leaves to be done behind the calls.
    """

    def __init__(
        self,
        page: Callable[[list[tuple[Any, Any]], Sequence[Any]], Page],
        settle: Callable[[], Any] | None = None,
    ) -> None:
        self.script = Script()
        self._page = page
        self._settle = settle
        self._calls: list[tuple[Any, Any]] = []
        self._pages: list[Page] = []

    def hear(self, request: Any, answer: Any) -> None:
        """Take a request down."""
        self._calls.append((request, answer))

    def watch(self, store: Any) -> None:
        """Make a page of whatever the store asks for in one read."""
        read = store._read

        async def watched_read(*arguments: Any) -> Any:
            self._calls = []
            found = await read(*arguments)
            self._pages.append(self._page(self._calls, found.messages))
            return found

        store._read = watched_read

    async def append(self, history: Any, session_id: str, tag: str) -> None:
        """Append a turn and keep what that takes."""
        self._calls = []
        await history.append(session_id, turn_of(tag))
        if self._settle is not None:
            await self._settle()
        self.script.appends[session_id, tag] = [request for request, _ in self._calls]

    async def load(self, history: Any, session_id: str, limit: int | None) -> None:
        """Load a session and keep what that takes."""
        self._pages = []
        await history.load(session_id, limit=limit)
        self.script.loads[session_id, limit] = self._pages


class RecordedFloor(Adapter):
    """Executes a `Script`. Messages come back as dicts that orjson made of the bodies."""

    kind = "floor"
    durability = "as the store's"
    largest = 100_000
    reads_last = True

    @property
    def script_path(self) -> Path:
        """The file that holds what was recorded."""
        return self.place.folder / "script.pickle"

    async def prepare(self, plan: Plan) -> None:
        self.script_path.write_bytes(pickle.dumps(await self.record(plan)))

    @abstractmethod
    async def record(self, plan: Plan) -> Script:
        """Seed the place of this floor, and return what the store does for the rest of the plan.

        The place stays as it was seeded.
        """

    def read_script(self) -> None:
        """Read what was recorded, if it is recorded already."""
        self.script: Any = Script()
        if self.script_path.exists():
            self.script = pickle.loads(self.script_path.read_bytes())
        self.decode = import_module("orjson").loads

    def message(self, role: str, text: str) -> Any:
        raise NotImplementedError("a floor has its messages from the store")

    def text(self, message: Any) -> str:
        text: str = message["contents"][0]["text"]
        return text

    def turn(self, session: Any, tag: str) -> Any:
        return self.script.appends[session, tag]

    async def last(self, session: Any, count: int) -> Sequence[Any]:
        return await self._load(self.script.loads[session, count])

    async def load(self, session: Any) -> Sequence[Any]:
        return await self._load(self.script.loads[session, None])

    async def _load(self, pages: list[Any]) -> list[Any]:
        loaded = [await self.fetch(page) for page in pages]
        return [message for page in reversed(loaded) for message in page]

    async def fetch(self, page: Any) -> list[Any]:
        """Return the messages of one page, oldest first."""
        raise NotImplementedError


class BareFloor(Adapter):
    """Does no more than a history needs, with bodies that are ready: no store was asked how."""

    kind = "floor"
    largest = 100_000
    reads_last = True

    def message(self, role: str, text: str) -> Any:
        contents = [{"type": "text", "text": text}]
        return import_module("orjson").dumps({"role": role, "contents": contents})

    def text(self, message: Any) -> str:
        text: str = message["contents"][0]["text"]
        return text


def turn_of(tag: str) -> list[Any]:
    """Return a turn as historykit takes it."""
    message = import_module("historykit").Message
    return [message(role_of(index), text(f"{tag}-{index}")) for index in (0, 1)]


async def seed(history: Any, session_id: str, size: int) -> None:
    """Fill an empty session through historykit."""
    message = import_module("historykit").Message
    messages = [message(role_of(i), text(tag)) for i, tag in enumerate(history_tags(size))]
    for begin in range(0, size, SEED_BATCH):
        await history.append(session_id, messages[begin : begin + SEED_BATCH])
