"""A state machine that does the same to a store and to the memory store, and compares."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Final

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    precondition,
    rule,
    run_state_machine_as_test,
)

from historykit.capabilities import Capability
from historykit.records import (
    MessageDraft,
    MessagePatch,
    MessageSelector,
    Retention,
    StoredMessage,
    Window,
)
from historykit.session_records import (
    SessionDraft,
    SessionKey,
    SessionPatch,
    SessionPosition,
    SessionQuery,
)
from historykit.testing.comparison import Comparison, Side
from historykit.testing.drafts import draft
from historykit.testing.subject import StoreSubject

__all__ = ["SETTINGS", "run_against_reference"]

SETTINGS: Final = settings(
    max_examples=40,
    stateful_step_count=30,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)
"""The same operations in every run: a verdict does not depend on luck."""

ALL_SESSIONS = (("s1", ""), ("s1", "ada"), ("s2", ""))
SESSIONS = st.sampled_from(ALL_SESSIONS)
STREAMS = st.sampled_from(["main", "main", "audit"])
NUMBERS = st.integers(0, 7)
ROLES = st.sampled_from(["user", "assistant", "system"])
MESSAGES = st.lists(st.tuples(ROLES, st.booleans(), st.booleans()), min_size=1, max_size=4)
EXPECTATIONS = st.sampled_from(["none", "none", "right", "wrong"])
BOUNDS = st.sampled_from([None, None, 1, 2, 4])
WORDS = st.sampled_from(["x", "y"])
LABELS = st.frozensets(st.sampled_from(["a", "b", "c"]))


class StoreMachine(RuleBasedStateMachine):
    """Does one random operation after another to both sides."""

    both: ClassVar[Comparison]

    def __init__(self) -> None:
        super().__init__()
        self.both.begin()
        self.batches: list[tuple[SessionKey, str, list[MessageDraft]]] = []
        self.messages: list[tuple[SessionKey, str]] = []

    def teardown(self) -> None:
        """Compare all that is there in the end, and remove it."""
        for key in map(self.both.key, ALL_SESSIONS):
            for stream in ("main", "audit"):
                self.both.compare(key, partial(_read, key, stream))
            self.both.compare(key, partial(_delete, key))
        self.both.end()

    @rule(
        session=SESSIONS,
        stream=STREAMS,
        messages=MESSAGES,
        expectation=EXPECTATIONS,
        life=st.none() | NUMBERS,
        bound=BOUNDS,
        memory=st.sampled_from([True, True, True, False]),
    )
    def append(
        self,
        session: tuple[str, str],
        stream: str,
        messages: list[tuple[str, bool, bool]],
        expectation: str,
        life: int | None,
        bound: int | None,
        memory: bool,
    ) -> None:
        """Append new messages."""
        key = self.both.key(session)
        batch = [
            draft(
                f"{len(self.batches)}.{n}",
                role=role,
                turn_start=turn_start,
                external=external,
                created_at=self.both.clock.now + n,
            )
            for n, (role, turn_start, external) in enumerate(messages)
        ]
        self.batches.append((key, stream, batch))
        self.messages += [(key, each.id) for each in batch]
        version = self.both.version(key, expectation)
        self.both.compare(
            key,
            lambda side: side.store.append(
                key,
                batch,
                stream=stream,
                create=SessionDraft(memory_enabled=memory, body=b"made"),
                incarnation=None if life is None else side.life(life),
                expected_version=version,
                retention=None if bound is None else Retention(bound),
            ),
        )

    @precondition(lambda self: self.batches)
    @rule(index=NUMBERS, skip=st.integers(0, 1), more=st.booleans(), bound=BOUNDS)
    def append_again(self, index: int, skip: int, more: bool, bound: int | None) -> None:
        """Append messages that may be there, all or a part, perhaps before new ones."""
        key, stream, known = self.batches[-1 - index % len(self.batches)]
        batch = known[skip:] + ([draft("more", external=True)] if more else [])
        if batch:
            retention = None if bound is None else Retention(bound)
            self.both.compare(
                key,
                lambda side: side.store.append(key, batch, stream=stream, retention=retention),
            )

    @rule(
        session=SESSIONS,
        stream=STREAMS,
        limit=st.none() | st.integers(0, 5),
        before=st.none() | NUMBERS,
        after=st.none() | NUMBERS,
    )
    def read(
        self,
        session: tuple[str, str],
        stream: str,
        limit: int | None,
        before: int | None,
        after: int | None,
    ) -> None:
        """Read a window, and the tail."""
        key = self.both.key(session)

        def window(side: Side) -> Window:
            if before is not None:
                return Window(limit=limit, before=side.place(key, before))
            if after is not None:
                return Window(limit=limit, after=side.place(key, after))
            return Window(limit=limit)

        self.both.compare(key, lambda side: side.store.read(key, window(side), stream=stream))
        self.both.compare(key, lambda side: side.store.read_tail(key, stream=stream))

    @precondition(lambda self: self.messages)
    @rule(index=NUMBERS, stream=STREAMS)
    def read_single_messages(self, index: int, stream: str) -> None:
        """Read a message by its id, and the newest of its session."""
        key, id = self.messages[-1 - index % len(self.messages)]
        self.both.compare(key, lambda side: side.store.read_message(key, id))

        async def newest(side: Side) -> StoredMessage | None:
            (row,) = await side.store.read_newest([key], stream=stream)
            return row

        self.both.compare(key, newest)

    @rule(session=SESSIONS)
    def read_session(self, session: tuple[str, str]) -> None:
        """Read the fields of a session."""
        key = self.both.key(session)
        self.both.compare(key, lambda side: side.store.read_session(key))

    @rule(
        session=SESSIONS,
        words=st.tuples(WORDS, WORDS),
        memory=st.booleans(),
        labels=LABELS,
        earlier=st.none() | NUMBERS,
        if_exists=st.sampled_from(["error", "return", "update"]),
    )
    def create_session(
        self,
        session: tuple[str, str],
        words: tuple[str, str],
        memory: bool,
        labels: frozenset[str],
        earlier: int | None,
        if_exists: Any,
    ) -> None:
        """Create a session, or not."""
        key = self.both.key(session)
        created_at = None if earlier is None else self.both.clock.now - earlier
        fields = SessionDraft(
            agent_id=words[0],
            status=words[1],
            memory_enabled=memory,
            labels=labels,
            created_at=created_at,
        )
        self.both.compare(
            key, lambda side: side.store.create_session(key, fields, if_exists=if_exists)
        )

    @rule(
        session=SESSIONS,
        status=st.none() | WORDS,
        memory=st.none() | st.booleans(),
        labels=st.none() | LABELS,
        expectation=EXPECTATIONS,
    )
    def patch_session(
        self,
        session: tuple[str, str],
        status: str | None,
        memory: bool | None,
        labels: frozenset[str] | None,
        expectation: str,
    ) -> None:
        """Change fields of a session."""
        key = self.both.key(session)
        patch = SessionPatch(status=status, memory_enabled=memory, labels=labels)
        revision = self.both.revision(key, expectation)
        self.both.compare(
            key, lambda side: side.store.patch_session(key, patch, if_revision=revision)
        )

    @rule(session=SESSIONS)
    def delete_session(self, session: tuple[str, str]) -> None:
        """Delete a session."""
        key = self.both.key(session)
        self.both.compare(key, lambda side: side.store.delete_session(key))

    @precondition(lambda self: self.messages and self.can(Capability.EDIT))
    @rule(
        index=NUMBERS,
        body=st.none() | WORDS,
        reaction=st.sampled_from(["LIKE", None]),
        role=st.none() | ROLES,
    )
    def update_message(
        self, index: int, body: str | None, reaction: str | None, role: str | None
    ) -> None:
        """Change a message."""
        key, id = self.messages[-1 - index % len(self.messages)]
        text = None if body is None else body.encode()
        patch = MessagePatch(
            body=text,
            digest=text and text * 16,
            reaction=reaction,
            required_role=role,
        )
        self.both.compare(key, lambda side: side.store.update_message(key, id, patch))

    @precondition(lambda self: self.messages and self.can(Capability.EDIT))
    @rule(index=NUMBERS, stream=STREAMS, first=st.none() | NUMBERS, last=st.none() | NUMBERS)
    def delete_messages(self, index: int, stream: str, first: int | None, last: int | None) -> None:
        """Delete messages, by place or by id."""
        key, id = self.messages[-1 - index % len(self.messages)]

        def selector(side: Side) -> MessageSelector:
            return MessageSelector(
                stream=stream,
                ids=(id,) if first is None and last is None else None,
                first=None if first is None else side.place(key, first),
                last=None if last is None else side.place(key, last),
            )

        self.both.compare(key, lambda side: side.store.delete_messages(key, selector(side)))

    @precondition(lambda self: self.can(Capability.EDIT))
    @rule(session=SESSIONS, stream=STREAMS, count=st.integers(0, 3), right=st.booleans())
    def replace(self, session: tuple[str, str], stream: str, count: int, right: bool) -> None:
        """Replace a stream."""
        key = self.both.key(session)
        batch = [draft(f"replaced {n}") for n in range(count)]
        self.messages += [(key, each.id) for each in batch]
        version = self.both.version(key, "right" if right else "wrong") or 0
        self.both.compare(
            key,
            lambda side: side.store.replace(key, batch, stream=stream, expected_version=version),
        )

    @precondition(lambda self: self.can(Capability.CATALOGUE))
    @rule(
        user=st.sampled_from([None, "", "ada"]),
        status=st.none() | WORDS,
        memory=st.none() | st.booleans(),
        labels=LABELS,
        limit=st.integers(1, 3),
        offset=st.integers(0, 2),
        behind=st.none() | SESSIONS,
    )
    def find_sessions(
        self,
        user: str | None,
        status: str | None,
        memory: bool | None,
        labels: frozenset[str],
        limit: int,
        offset: int,
        behind: tuple[str, str] | None,
    ) -> None:
        """Find sessions."""
        position = behind and SessionPosition(self.both.clock.now - 1, *behind)
        query = SessionQuery(
            namespace=self.both.key(("s1", "")).namespace,
            user_id=user,
            status=status,
            memory_enabled=memory,
            labels=labels,
            limit=limit,
            offset=offset,
            position=position,
        )
        self.both.compare(self.both.key(("s1", "")), lambda side: side.store.find_sessions(query))

    @precondition(lambda self: self.can(Capability.RUNS))
    @rule(session=SESSIONS, run=WORDS, how=st.sampled_from(["claim", "renew", "release"]))
    def hold(self, session: tuple[str, str], run: str, how: str) -> None:
        """Claim a session for a run, renew the claim or release it."""
        key = self.both.key(session)

        async def operate(side: Side) -> object:
            if how == "release":
                return await side.store.release_run(key, run)
            claim = side.store.claim_run if how == "claim" else side.store.renew_run
            return await claim(key, run, ttl=30)

        self.both.compare(key, operate)

    @rule(seconds=st.sampled_from([0, 0.000001, 10, 30]))
    def wait(self, seconds: float) -> None:
        """Move the clock."""
        self.both.clock.advance(seconds)

    @rule()
    def open_again(self) -> None:
        """Close the store and open it again."""
        self.both.reopen()

    def can(self, capability: Capability) -> bool:
        """Return whether the store under test has a capability."""
        return capability in self.both.mine.store.capabilities


async def _read(key: SessionKey, stream: str, side: Side) -> object:
    return await side.store.read(key, stream=stream)


async def _delete(key: SessionKey, side: Side) -> object:
    return await side.store.delete_session(key)


def run_against_reference(subject: StoreSubject) -> None:
    """Look for operations that a store answers otherwise than the memory store, and show them."""
    with Comparison(subject) as comparison:

        class Machine(StoreMachine):
            both = comparison

        run_state_machine_as_test(Machine, settings=SETTINGS)
