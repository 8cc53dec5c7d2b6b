"""The catalogue of a namespace: how its sessions are found, and kept findable.

It lies in a slot of its own. On one server the scripts that change a session change the catalogue
in the same step. In a cluster an entry is written before what it says comes true, and removed after
it ceased to be true, so that it may say too much but not too little. Readers look at the sessions
themselves, and take out what is wrong; so they do with what was evicted or deleted by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from historykit.session_records import SessionKey, SessionQuery, SessionRecord, SessionSlice
from historykit_redis.keys import pack_time, place_of, unpack_place
from historykit_redis.packing import Fields, unpack_record
from historykit_redis.scripts import FIND_SESSIONS
from historykit_redis.server import Server

__all__ = ["announce", "find", "settle"]

BUDGET: Final = 5000
"""How many entries a script looks at in one go, while the server does nothing else; and how many
are looked at where one was found to be wrong."""

ATTEMPTS: Final = 5
"""How often a search is made again because sessions changed or went away in the meantime."""


async def find(server: Server, query: SessionQuery) -> SessionSlice:
    """Return one page of the sessions that match, newest first."""
    sets = server.keys.conditions(query)
    for _ in range(ATTEMPTS):
        total, places = await _places(server, query, sets)
        records = await _records(server, query.namespace, places)
        found = [record for record in records if record and _matches(record, query)]
        if len(found) == len(places):
            break
        await _clean(server, query.namespace, places, frozenset(sets))
    return SessionSlice(
        records=tuple(found[: query.limit]),
        total=total if query.with_total else None,
        more=len(places) > query.limit,
    )


async def announce(server: Server, key: SessionKey, state: Fields) -> None:
    """In a cluster: put a session into the sets where it will be found once it has that state."""
    if server.is_split and b"place" in state:
        sets = server.keys.entries(key, state)
        await server.change_sets({state[b"place"]: sets}, sets)


async def settle(server: Server, key: SessionKey, *states: Fields) -> None:
    """In a cluster: put right what the sets say about a session that had or has the states."""
    if server.is_split and states:
        sets = frozenset().union(*(server.keys.entries(key, state) for state in states))
        await _settle(server, key.namespace, sorted({state[b"place"] for state in states}), sets)


async def _settle(
    server: Server, namespace: str, places: Sequence[bytes], sets: frozenset[bytes]
) -> None:
    """Let each session be in those of the sets where it belongs, and not in the others.

    It may change meanwhile, so that what was written is compared once more.
    """
    written: list[frozenset[bytes]] | None = None
    while (wanted := await _wanted(server, namespace, places, sets)) != written:
        await server.change_sets(dict(zip(places, wanted, strict=True)), sets)
        written = wanted


async def _places(
    server: Server, query: SessionQuery, sets: Sequence[bytes]
) -> tuple[int, list[bytes]]:
    """Return how many sessions match, if asked for, and the places of one page and one more."""
    low = b"-" if query.created_from is None else b"[" + pack_time(query.created_from)
    high = b"+" if query.created_before is None else b"(" + pack_time(query.created_before)
    total, start = 0, high
    if query.position is not None:
        place = place_of(query.position)
        if high == b"+" or place < high[1:]:
            start = b"(" + place
            if query.with_total:
                total, _ = await _walk(server, sets, high, b"[" + place, counting=True)
    count, places = await _walk(
        server,
        sets,
        start,
        low,
        skip=query.offset,
        want=query.limit + 1,
        counting=query.with_total,
    )
    return total + count, places


async def _walk(
    server: Server,
    sets: Sequence[bytes],
    high: bytes,
    low: bytes,
    *,
    skip: int = 0,
    want: int = 0,
    counting: bool,
) -> tuple[int, list[bytes]]:
    """Return how many places are in all the sets, and so many of them as are wanted."""
    count = 0
    places: list[bytes] = []
    cursor: bytes | None = high
    while cursor is not None:
        numbers = (max(skip - count, 0), want - len(places), counting, BUDGET)
        last, found, part = await server.run_on(
            FIND_SESSIONS, sets, cursor, low, *(b"%d" % number for number in numbers)
        )
        count += found
        places += part
        cursor = None if last is None else b"(" + last
    return count, places


async def _records(
    server: Server, namespace: str, places: Sequence[bytes]
) -> list[SessionRecord | None]:
    """Return the sessions at places, None for one that is not there."""
    keys = [_key_at(namespace, place) for place in places]
    states = await server.read_sessions(keys)
    return [
        unpack_record(key, state) if state.get(b"place") == place else None
        for key, place, state in zip(keys, places, states, strict=True)
    ]


async def _wanted(
    server: Server, namespace: str, places: Sequence[bytes], sets: frozenset[bytes]
) -> list[frozenset[bytes]]:
    """Return to which of the sets the sessions at places belong by their fields."""
    keys = [_key_at(namespace, place) for place in places]
    states = await server.read_sessions(keys)
    return [
        sets & server.keys.entries(key, state) if state.get(b"place") == place else frozenset()
        for key, place, state in zip(keys, places, states, strict=True)
    ]


async def _clean(
    server: Server, namespace: str, places: Sequence[bytes], sets: frozenset[bytes]
) -> None:
    """Take sessions out of the sets that are not there, or do not belong in them.

    Where somebody deleted sessions by hand, others than those at `places` may be gone too. In a
    cluster the session is more likely one that is just being made.
    """
    wrong = await _wrong(server, namespace, places, sets)
    if wrong and not server.is_split:
        _, places = await _walk(server, [*sets], b"+", b"-", want=BUDGET, counting=False)
        wrong = await _wrong(server, namespace, places, sets)
    if wrong:
        await _settle(server, namespace, wrong, sets)


async def _wrong(
    server: Server, namespace: str, places: Sequence[bytes], sets: frozenset[bytes]
) -> list[bytes]:
    """Return the places whose sessions do not belong in all the sets."""
    wanted = await _wanted(server, namespace, places, sets)
    return [place for place, names in zip(places, wanted, strict=True) if names != sets]


def _key_at(namespace: str, place: bytes) -> SessionKey:
    position = unpack_place(place)
    return SessionKey(namespace, position.user_id, position.session_id)


def _matches(record: SessionRecord, query: SessionQuery) -> bool:
    """Return whether a session that is at its place still meets the conditions that can change."""
    return (
        query.agent_id in (None, record.agent_id)
        and query.status in (None, record.status)
        and query.memory_enabled in (None, record.memory_enabled)
        and query.labels <= record.labels
    )
