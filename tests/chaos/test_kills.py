"""A small part of what ``python -m tests.chaos`` does."""

from __future__ import annotations

import pytest

from tests.chaos.runs import run_contention, run_scenario
from tests.chaos.scenarios import SCENARIOS

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(180)]


async def strike(backend: str) -> None:
    """Let 16 writers write 300 turns, with a kill, and 50 writers of two processes meet."""
    outcome = await run_scenario(SCENARIOS[backend](), writers=16, turns=300, kills=1)
    assert outcome.is_good, outcome.count
    assert outcome.count.acknowledged >= 300
    scenario = SCENARIOS[backend]()
    with scenario.arena():
        met = await run_contention(backend, scenario.settings, processes=2)
    assert met.is_good, met.count
    assert (met.count.acknowledged, met.count.messages) == (200, 400)


async def test_killed_writers_of_a_file() -> None:
    """Turns in SQLite survive that processes are killed while they write."""
    await strike("sqlite")


@pytest.mark.usefixtures("redis_url")
async def test_killed_redis() -> None:
    """Turns in Redis survive that the server is killed, where it waits for the disk."""
    await strike("redis")


@pytest.mark.usefixtures("postgres_url")
async def test_killed_postgres() -> None:
    """Turns in PostgreSQL survive that the server is killed."""
    await strike("postgres")


@pytest.mark.usefixtures("mongo_url")
async def test_killed_mongo() -> None:
    """Turns in MongoDB survive that the primary of a replica set is killed."""
    await strike("mongo")
