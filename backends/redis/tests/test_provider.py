from __future__ import annotations

import pytest

from historykit import Message
from historykit.errors import ConfigError, StoreClosedError
from historykit_redis import RedisConfig, RedisHistoryProvider
from tests.services.redis import RedisServer

pytestmark = pytest.mark.asyncio


async def test_provider_keeps_history(server: RedisServer) -> None:
    """A provider made of a URL saves and loads, in the same database as one made later."""
    async with RedisHistoryProvider(server.url, user_id="ada") as provider:
        await provider.save_messages("s1", [Message("user", text="Hello")])
    async with RedisHistoryProvider(RedisConfig(url=server.url), user_id="ada") as provider:
        assert [message.text for message in await provider.get_messages("s1")] == ["Hello"]
    with pytest.raises(StoreClosedError):
        await provider.get_messages("s1")


async def test_flags_are_those_of_a_provider(server: RedisServer) -> None:
    """The flags of a history provider are taken, and a wrong URL is refused at once."""
    async with RedisHistoryProvider(server.url, "memory", max_messages=2) as provider:
        for number in range(4):
            await provider.save_messages("s1", [Message("user", text=f"m {number}")])
        assert [message.text for message in await provider.get_messages("s1")] == ["m 2", "m 3"]
        assert provider.source_id == "memory"
    with pytest.raises(ConfigError):
        RedisHistoryProvider("localhost:6379")
