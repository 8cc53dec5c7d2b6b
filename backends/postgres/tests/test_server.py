"""What the settings of a server promise."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from historykit.capabilities import Guarantee
from historykit.errors import StorageError
from historykit_postgres import PostgresConfig, PostgresStore
from historykit_postgres.server import guarantees
from tests.services.postgres import PostgresServer, connect

SHARED, KILL, POWER, FAILOVER = (
    Guarantee.SHARED,
    Guarantee.SURVIVES_KILL,
    Guarantee.SURVIVES_POWER_LOSS,
    Guarantee.SURVIVES_FAILOVER,
)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {SHARED, KILL, POWER}),
        ({"synchronous_commit": "off"}, {SHARED}),
        ({"synchronous_commit": "local"}, {SHARED, KILL, POWER}),
        ({"fsync": "off"}, {SHARED, KILL}),
        ({"full_page_writes": "off"}, {SHARED, KILL}),
        ({"synchronous_standby_names": "ANY 1 (b, c)"}, {SHARED, KILL, POWER, FAILOVER}),
        ({"synchronous_standby_names": "b", "synchronous_commit": "local"}, {SHARED, KILL, POWER}),
        (
            {"synchronous_standby_names": "b", "synchronous_commit": "remote_apply"},
            {SHARED, KILL, POWER, FAILOVER},
        ),
    ],
)
def test_guarantees_follow_from_settings(
    settings: dict[str, str], expected: set[Guarantee]
) -> None:
    """What is promised is what the settings keep."""
    default = {
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "on",
        "synchronous_standby_names": "",
    }
    assert guarantees({**default, **settings}) == expected


@pytest.mark.asyncio
async def test_guarantees_are_those_of_the_opened_server(
    own_server: Callable[..., PostgresServer], driver: str
) -> None:
    """A store looks at its server, as its own session has it."""
    server = own_server("-c", "full_page_writes=off")
    url = server.url.replace("postgresql:", f"postgresql+{driver}:")
    async with PostgresStore(PostgresConfig(url=url)) as store:
        assert store.guarantees == {SHARED, KILL}
        info = await store.ping()
        assert info.product == "PostgreSQL"
        assert info.version.partition(".")[0] in ("15", "16", "17", "18")
        assert info.settings["full_page_writes"] == "off"
    with connect(server.url) as connection:
        connection.execute("ALTER ROLE postgres SET synchronous_commit = off")
    async with PostgresStore(PostgresConfig(url=url)) as store:
        assert store.guarantees == {SHARED}


@pytest.mark.asyncio
async def test_a_database_that_cannot_keep_all_ids_is_refused(
    own_server: Callable[..., PostgresServer], driver: str
) -> None:
    """A database in another encoding than UTF-8 is refused before anything is made in it."""
    server = own_server()
    with connect(server.url) as connection:
        connection.execute("CREATE DATABASE old ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    place, _, _ = server.url.replace("postgresql:", f"postgresql+{driver}:").rpartition("/")
    with pytest.raises(StorageError, match=r"LATIN1.*ENCODING 'UTF8'"):
        await PostgresStore(PostgresConfig(url=f"{place}/old")).open()
