"""A store in several event loops."""

from __future__ import annotations

import asyncio
import gc
import warnings
from typing import Any

import pytest

from historykit.session_records import SessionKey
from historykit.testing.drafts import drafts
from historykit_mongo import MongoConfig, MongoStore


@pytest.mark.parametrize("driver", ["pymongo", "motor"])
def test_one_store_in_two_loops(
    mongo_url: str, mongo_database: str, key: SessionKey, driver: Any
) -> None:
    """A store that was not closed goes on in the next loop, with a client of its own."""

    async def append(store: MongoStore) -> int:
        await store.open()
        await store.append(key, drafts("m", 1))
        return (await store.read_tail(key)).count

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of what the loops left behind
        store = MongoStore(MongoConfig(url=mongo_url, database=mongo_database, driver=driver))
        assert [asyncio.run(append(store)) for _ in range(3)] == [1, 2, 3]
        asyncio.run(store.aclose())
        del store
        gc.collect()
