from __future__ import annotations

from pathlib import Path

import pytest

import historykit_sqlite
from historykit.errors import StoreClosedError
from historykit.messages import Message
from historykit_sqlite import SQLiteConfig, SQLiteHistoryProvider

pytestmark = pytest.mark.asyncio


async def test_a_conversation_survives_a_restart(path: Path) -> None:
    """A provider needs a path and nothing else; another one on the file finds what was saved."""
    async with SQLiteHistoryProvider(path) as provider:
        await provider.save_messages("s1", [Message("user", ["Hello"])])
        await provider.save_messages("s1", [Message("assistant", ["Hi"])])
    async with SQLiteHistoryProvider(str(path)) as provider:
        found = await provider.get_messages("s1")
    assert [(message.role, message.text) for message in found] == [
        ("user", "Hello"),
        ("assistant", "Hi"),
    ]


async def test_the_flags_of_a_provider_and_the_settings_of_the_file(path: Path) -> None:
    """A provider takes the flags of history providers, and a config instead of a path."""
    config = SQLiteConfig(path=path, synchronous="normal")
    async with SQLiteHistoryProvider(config, "audit", user_id="ada", window=1) as provider:
        assert provider.source_id == "audit"
        await provider.save_messages("s1", [Message("user", ["one"]), Message("user", ["two"])])
        assert [message.text for message in await provider.get_messages("s1")] == ["two"]
    async with SQLiteHistoryProvider(path, user_id="bob") as provider:
        assert await provider.get_messages("s1") == []


async def test_a_provider_opens_its_file_at_first_use(path: Path) -> None:
    """Making a provider touches no file; a closed one says so."""
    provider = SQLiteHistoryProvider(path)
    assert not path.exists()
    await provider.save_messages("s1", [Message("user", ["Hello"])])
    await provider.aclose()
    with pytest.raises(StoreClosedError):
        await provider.get_messages("s1")


async def test_the_package_exports_three_names() -> None:
    """All that a user imports is named in the package."""
    assert historykit_sqlite.__all__ == ["SQLiteConfig", "SQLiteHistoryProvider", "SQLiteStore"]
    for name in historykit_sqlite.__all__:
        assert getattr(historykit_sqlite, name).__name__ == name
