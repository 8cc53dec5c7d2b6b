"""The provider that owns its connections."""

from __future__ import annotations

import pytest

import historykit_postgres
from historykit import open_history
from historykit.errors import StoreClosedError
from historykit.messages import Message
from historykit_postgres import PostgresConfig, PostgresHistoryProvider

pytestmark = pytest.mark.asyncio


async def test_a_conversation_survives_a_restart(url: str, postgres_schema: str) -> None:
    """A provider takes a config; another one on the database finds what was saved."""
    config = PostgresConfig(url=url, schema=postgres_schema)
    async with PostgresHistoryProvider(config) as provider:
        await provider.save_messages("s1", [Message("user", ["Hello"])])
        await provider.save_messages("s1", [Message("assistant", ["Hi"])])
    async with PostgresHistoryProvider(config, user_id="bob") as provider:
        assert await provider.get_messages("s1") == []
    async with PostgresHistoryProvider(config, "audit", window=1) as provider:
        assert provider.source_id == "audit"
        assert [message.text for message in await provider.get_messages("s1")] == ["Hi"]


async def test_a_provider_connects_at_first_use(url: str, postgres_schema: str) -> None:
    """Making a provider of a URL connects to nothing; a closed one says so."""
    options = f"?options=-c%20search_path%3D{postgres_schema}"
    unreachable = PostgresHistoryProvider("postgresql://nowhere.invalid/chat")
    await unreachable.aclose()
    async with open_history("postgres", url=url, schema=postgres_schema):
        pass
    provider = PostgresHistoryProvider(url + options)
    await provider.save_messages("s1", [Message("user", ["Hello"])])
    await provider.aclose()
    with pytest.raises(StoreClosedError):
        await provider.get_messages("s1")


async def test_the_package_exports_four_names() -> None:
    """All that a user imports is named in the package."""
    for name in historykit_postgres.__all__:
        assert getattr(historykit_postgres, name).__name__ == name
    with pytest.raises(AttributeError, match="nothing"):
        historykit_postgres.nothing  # noqa: B018  - looking is what is tried
