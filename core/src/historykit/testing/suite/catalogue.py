"""Sessions are found by their fields."""

from __future__ import annotations

import asyncio
from typing import Any

from historykit.capabilities import Capability, Guarantee
from historykit.session_records import SessionDraft, SessionPatch, SessionPosition, SessionQuery
from historykit.store import HistoryStore
from historykit.testing.drafts import draft, drafts
from historykit.testing.rules import requires, since
from historykit.testing.subject import START, StoreSubject
from historykit.testing.suite.isolation import HOSTILE_TEXTS

__all__ = ["CatalogueTests"]

CATALOGUE = requires(Capability.CATALOGUE)


class CatalogueTests:
    """`find_sessions`: its filters and its order."""

    @since("0.1")
    @CATALOGUE
    async def test_search_finds_the_sessions_of_a_namespace(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Without a filter all sessions of the namespace are found, of all users, and no others."""
        keys = [subject.key("s1", user=user) for user in ("", "ada", "bob")]
        others = [subject.key("s1", namespace="2"), subject.key("s1", user="ada", namespace="-x")]
        for key in (*keys, *others):
            await store.create_session(key, SessionDraft())
        found = await store.find_sessions(SessionQuery(namespace=subject.namespace))
        assert {record.key for record in found.records} == set(keys)
        assert (found.total, found.more) == (3, False)
        nothing = await store.find_sessions(SessionQuery(namespace=subject.namespace + "-y"))
        assert (nothing.records, nothing.total, nothing.more) == ((), 0, False)

    @since("0.1")
    @CATALOGUE
    async def test_search_of_a_user_finds_no_other_users_sessions(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A user's search finds that user's sessions; "" is nobody in particular, not everybody."""
        for user in ("", "ada", "Ada", "ada ", "%"):
            await store.create_session(subject.key(user=user), SessionDraft())
        for user in ("", "ada", "Ada", "ada ", "%"):
            assert await _found(store, subject, user_id=user) == [(user, "s1")]
        assert await _found(store, subject, user_id="a%") == []

    @since("0.1")
    @CATALOGUE
    async def test_search_filters_by_each_field(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Agent, status and memory have to be equal to what is asked for, to the last byte."""
        await _fill(
            store,
            subject,
            a=SessionDraft(agent_id="x"),
            b=SessionDraft(agent_id="X", status="archived"),
            c=SessionDraft(agent_id="x ", memory_enabled=False),
            d=SessionDraft(),
        )
        for conditions, expected in (
            ({"agent_id": "x"}, "a"),
            ({"agent_id": "X"}, "b"),
            ({"agent_id": "x "}, "c"),
            ({"agent_id": ""}, "d"),
            ({"agent_id": "%"}, ""),
            ({"status": "archived"}, "b"),
            ({"status": "active"}, "dca"),
            ({"status": "ACTIVE"}, ""),
            ({"memory_enabled": False}, "c"),
            ({"memory_enabled": True}, "dba"),
        ):
            assert await _ids(store, subject, **conditions) == list(expected), conditions

    @since("0.1")
    @CATALOGUE
    async def test_search_filters_by_labels(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A session is found by labels if it has all of them."""
        await _fill(
            store,
            subject,
            a=SessionDraft(labels=frozenset({"1"})),
            b=SessionDraft(labels=frozenset({"1", "2"})),
            c=SessionDraft(labels=frozenset({"1", "2", "3"})),
            d=SessionDraft(labels=frozenset({"12", "1 "})),
            e=SessionDraft(),
        )
        for labels, expected in (
            (set(), "edcba"),
            ({"1"}, "cba"),
            ({"2"}, "cb"),
            ({"1", "3"}, "c"),
            ({"2", "12"}, ""),
            ({"1", "2", "3", "4"}, ""),
            ({"%"}, ""),
        ):
            assert await _ids(store, subject, labels=frozenset(labels)) == list(expected), labels

    @since("0.1")
    @CATALOGUE
    async def test_search_filters_by_time(self, subject: StoreSubject, store: HistoryStore) -> None:
        """The beginning of a span of time is included, its end is not, to the microsecond."""
        fields = {name: SessionDraft(created_at=START + n) for n, name in enumerate("abcd")}
        await _fill(store, subject, **fields)
        for first, before, expected in (
            (START + 1, None, "dcb"),
            (None, START + 2, "ba"),
            (START + 1, START + 3, "cb"),
            (START + 2, START + 2, ""),
            (START + 4, None, ""),
        ):
            found = await _ids(store, subject, created_from=first, created_before=before)
            assert found == list(expected)

    @since("0.1")
    @CATALOGUE
    async def test_all_conditions_have_to_hold(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A session that misses one condition is not found, and the total counts as the page
        does."""
        wanted = SessionDraft(
            agent_id="x", status="s", memory_enabled=False, labels=frozenset({"l"}), created_at=9
        )
        near = {
            "agent_id": "y",
            "status": "t",
            "memory_enabled": True,
            "labels": frozenset({"m"}),
            "created_at": 8,
        }
        fields = {name: getattr(wanted, name) for name in near}
        await _fill(store, subject, hit=wanted)
        for name, value in near.items():
            await _fill(store, subject, **{name: SessionDraft(**{**fields, name: value})})
        await store.create_session(subject.key("theirs", user="ada"), wanted)
        query = SessionQuery(
            namespace=subject.namespace,
            user_id="",
            agent_id="x",
            status="s",
            memory_enabled=False,
            labels=frozenset({"l"}),
            created_from=9,
            created_before=10,
        )
        found = await store.find_sessions(query)
        assert [record.key.session_id for record in found.records] == ["hit"]
        assert (found.total, found.more) == (1, False)

    @since("0.1")
    @CATALOGUE
    async def test_newest_sessions_come_first(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """The order is time of creation, then session id, then user id, all descending; ids are
        ordered by their code points."""
        drafted = [
            (1, "z", ""),
            (2, "B", ""),
            (2, "a", ""),
            (2, "\u00e9", ""),
            (2, "\uffff", ""),
            (2, "\U0001f600", ""),
            (2, "a", "ada"),
            (2, "a", "Ada"),
            (2, "a b", ""),
            (2, "a-b", ""),
            (2, "10", ""),
            (2, "9", ""),
            (3, "", ""),
        ]
        places = [SessionPosition(time, id or "x", user) for time, id, user in drafted]
        for place in places:
            key = subject.key(place.session_id, user=place.user_id)
            await store.create_session(key, SessionDraft(created_at=place.created_at))
        found = await store.find_sessions(SessionQuery(namespace=subject.namespace))
        assert [record.position for record in found.records] == sorted(places, reverse=True)

    @since("0.1")
    @CATALOGUE
    async def test_order_does_not_change_with_use(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Appending to a session, changing it and holding it does not move it."""
        for name in "abc":
            subject.clock.advance(1)
            await store.create_session(subject.key(name), SessionDraft())
        subject.clock.advance(60)
        await store.append(subject.key("a"), [draft()])
        await store.patch_session(subject.key("b"), SessionPatch(status="x"))
        assert await _ids(store, subject) == ["c", "b", "a"]

    @since("0.1")
    @CATALOGUE
    async def test_search_returns_what_the_session_is(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A session that is found is the record that reading it gives, whoever made it."""
        made, appended = subject.key("made"), subject.key("appended")
        await store.create_session(
            made, SessionDraft(body=bytes(range(256)), labels=frozenset({"a", "b"}), agent_id="x")
        )
        await store.append(appended, drafts("m", 3), create=SessionDraft(status="s", body=b"f"))
        await store.append(appended, drafts("m", 2))
        await store.patch_session(made, SessionPatch(status="t"))
        found = await store.find_sessions(SessionQuery(namespace=subject.namespace))
        expected = [await store.read_session(key) for key in (made, appended)]
        assert list(found.records) == expected

    @since("0.1")
    @CATALOGUE
    async def test_search_follows_changes(self, subject: StoreSubject, store: HistoryStore) -> None:
        """A session is found by what its fields are now, and not by what they were."""
        key = subject.key()
        old = SessionDraft(agent_id="old", status="old", labels=frozenset({"old", "kept"}))
        await store.create_session(key, old)
        patch = SessionPatch(
            agent_id="new",
            status="new",
            memory_enabled=False,
            labels=frozenset({"new", "kept"}),
        )
        await store.patch_session(key, patch)
        for value, expected in (("old", []), ("new", ["s1"])):
            assert await _ids(store, subject, agent_id=value) == expected
            assert await _ids(store, subject, status=value) == expected
            assert await _ids(store, subject, labels=frozenset({value})) == expected
        assert await _ids(store, subject, labels=frozenset({"kept"})) == ["s1"]
        assert await _ids(store, subject, memory_enabled=True) == []

    @since("0.1")
    @CATALOGUE
    async def test_hostile_filters_are_plain_text(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A filter is compared, never interpreted: it finds what has it, and nothing else."""
        texts = [text for text in HOSTILE_TEXTS if len(text) < 100]
        for n, text in enumerate(texts):
            fields = SessionDraft(agent_id=text, status=text, labels=frozenset({text}))
            await store.create_session(subject.key(f"s{n}"), fields)
        for n, text in enumerate(texts):
            assert await _ids(store, subject, agent_id=text) == [f"s{n}"]
            assert await _ids(store, subject, status=text) == [f"s{n}"]
            assert await _ids(store, subject, labels=frozenset({text})) == [f"s{n}"]

    @since("0.1")
    @CATALOGUE
    async def test_failed_creations_are_not_found(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Creations at the same time leave one session in the catalogue, and one total."""
        key = subject.key()
        await asyncio.gather(
            *(store.create_session(key, SessionDraft(), if_exists="return") for _ in range(5)),
            *(store.append(key, [draft()]) for _ in range(5)),
        )
        found = await store.find_sessions(SessionQuery(namespace=subject.namespace))
        assert [record.key for record in found.records] == [key]
        assert (found.total, found.records[0].message_count) == (1, 5)

    @since("0.1")
    @requires(Capability.CATALOGUE, Guarantee.SHARED)
    async def test_second_store_finds_the_session(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A session is found by another store as soon as it was acknowledged, and its changes
        too."""
        async with subject.store() as second:
            for n in range(3):
                await store.create_session(subject.key(f"s{n}"), SessionDraft())
                assert len(await _ids(second, subject)) == n + 1
            await store.patch_session(subject.key("s1"), SessionPatch(status="x"))
            assert await _ids(second, subject, status="x") == ["s1"]


async def _fill(store: HistoryStore, subject: StoreSubject, **fields: SessionDraft) -> None:
    for name, each in fields.items():
        await store.create_session(subject.key(name), each)


async def _found(
    store: HistoryStore, subject: StoreSubject, **conditions: Any
) -> list[tuple[str, str]]:
    query = SessionQuery(namespace=subject.namespace, limit=500, **conditions)
    found = await store.find_sessions(query)
    assert (found.total, found.more) == (len(found.records), False)
    return [(record.key.user_id, record.key.session_id) for record in found.records]


async def _ids(store: HistoryStore, subject: StoreSubject, **conditions: Any) -> list[str]:
    return [session for _, session in await _found(store, subject, **conditions)]
