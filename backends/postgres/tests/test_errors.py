"""What becomes of the errors of drivers and servers, and what they never show."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from historykit.errors import (
    ConflictError,
    HistoryKitError,
    InvalidRequestError,
    StorageError,
    StorageUnavailableError,
    TooLargeError,
)
from historykit.records import MessagePatch
from historykit.session_records import SessionDraft, SessionKey
from historykit.testing.drafts import draft, drafts, texts
from historykit.testing.proxy import TcpProxy
from historykit_postgres import PostgresConfig, PostgresStore
from historykit_postgres.errors import translate
from tests.services.postgres import PostgresServer, connect
from tests.services.processes import free_port

pytestmark = pytest.mark.asyncio

Inside = Callable[..., list[Any]]
Make = Callable[..., PostgresStore]
Role = Callable[..., str]

SECRET = "hunter2-of-the-role"


@pytest.fixture
def role(postgres_url: str, url: str) -> Iterator[Role]:
    """Return a function that makes a role with options and returns the URL with it."""
    name = f"hk_{secrets.token_hex(6)}"
    with connect(postgres_url) as connection:

        def role(options: str) -> str:
            connection.execute(f"CREATE ROLE {name} PASSWORD '{SECRET}' {options}")  # type: ignore[arg-type]  # no user's
            _, _, place = url.rpartition("@")
            scheme, _, _ = url.partition("://")
            return f"{scheme}://{name}:{SECRET}@{place}"

        yield role
        connection.execute(f"DROP OWNED BY {name}")  # type: ignore[arg-type]  # no user's
        connection.execute(f"DROP ROLE {name}")  # type: ignore[arg-type]  # no user's


def assert_clean(error: HistoryKitError) -> None:
    """Check that an error shows no password and no message, and has the driver's as its cause."""
    for text in (str(error), repr(error), repr(error.details)):
        assert SECRET not in text
        assert "PRIVATE" not in text
    assert error.__cause__ is not None


async def test_a_server_that_is_not_there(driver: str) -> None:
    """A refused connection says where it was refused, and not with which password."""
    url = f"postgresql+{driver}://ada:{SECRET}@127.0.0.1:{free_port()}/chat"
    with pytest.raises(StorageUnavailableError, match=r"127\.0\.0\.1") as caught:
        await PostgresStore(PostgresConfig(url=url)).open()
    assert_clean(caught.value)


async def test_a_host_that_is_not_there(driver: str) -> None:
    """The same with a name that nobody knows."""
    url = f"postgresql+{driver}://ada:{SECRET}@nowhere.invalid/chat"
    with pytest.raises(StorageUnavailableError, match=r"nowhere\.invalid") as caught:
        await PostgresStore(PostgresConfig(url=url, timeout=5)).open()
    assert_clean(caught.value)


async def test_a_database_that_is_not_there(url: str) -> None:
    """A database that does not exist is an error that says so."""
    place, _, _ = url.rpartition("/")
    with pytest.raises(StorageError, match='database "nothing" does not exist') as caught:
        await PostgresStore(PostgresConfig(url=f"{place}/nothing")).open()
    assert_clean(caught.value)


async def test_a_role_that_may_not_log_in(role: Role, postgres_schema: str) -> None:
    """A role that may not log in is an error that says so."""
    with pytest.raises(StorageError, match="is not permitted to log in") as caught:
        await PostgresStore(PostgresConfig(url=role("NOLOGIN"), schema=postgres_schema)).open()
    assert_clean(caught.value)


async def test_no_connection_is_left(role: Role, postgres_schema: str) -> None:
    """Where the role has no connection left, the error says what to change."""
    url = role("LOGIN CONNECTION LIMIT 0")
    with pytest.raises(StorageUnavailableError, match="too many connections") as caught:
        await PostgresStore(PostgresConfig(url=url, schema=postgres_schema)).open()
    assert_clean(caught.value)


async def test_a_server_that_only_reads(
    make: Make, url: str, key: SessionKey, inside: Inside
) -> None:
    """On a server that only reads, reading works and writing is an error that says why."""
    async with make() as store:
        await store.append(key, drafts("m", 2))
    only_reading = f"{url}?options=-c%20default_transaction_read_only%3Don"
    async with make(url=only_reading) as store:
        assert texts((await store.read(key)).messages) == ["m 0", "m 1"]
        for write in (
            lambda: store.append(key, [draft("PRIVATE")]),
            lambda: store.create_session(key, SessionDraft(body=b"PRIVATE")),
        ):
            with pytest.raises(StorageError, match="name the primary") as caught:
                await write()
            assert_clean(caught.value)


@pytest.mark.parametrize(
    ("setting", "text"),
    [("lock_timeout", "lock_timeout"), ("statement_timeout", "statement_timeout")],
)
async def test_timeouts_of_the_server(
    make: Make, url: str, key: SessionKey, inside: Inside, setting: str, text: str
) -> None:
    """A lock that the server does not wait for any longer is an error, and nothing is written."""
    async with make(url=f"{url}?options=-c%20{setting}%3D200") as store:
        await store.append(key, drafts("m", 1))
        inside("BEGIN")
        inside("SELECT 1 FROM historykit_sessions FOR UPDATE")
        for write in (
            lambda: store.append(key, [draft("PRIVATE")]),
            lambda: store.update_message(key, "m", MessagePatch(reaction="LIKE")),
        ):
            with pytest.raises(StorageUnavailableError, match=text) as caught:
                await write()
            assert_clean(caught.value)
        inside("COMMIT")
        assert texts((await store.read(key)).messages) == ["m 0"]


async def test_a_server_that_stops_and_starts(
    own_server: Callable[..., PostgresServer], driver: str, key: SessionKey
) -> None:
    """While the server is away every call is an error; when it is back the store goes on."""
    server = own_server()
    config = PostgresConfig(url=server.url.replace("postgresql:", f"postgresql+{driver}:"))
    async with PostgresStore(config) as store:
        await store.append(key, drafts("m", 2))
        server.stop()
        for call in (
            lambda: store.read(key),
            lambda: store.append(key, [draft("PRIVATE")]),
            lambda: store.delete_session(key),
            store.ping,
        ):
            with pytest.raises(StorageUnavailableError) as caught:
                await call()
            assert_clean(caught.value)
        server.start()
        await store.append(key, drafts("n", 1))
        assert texts((await store.read(key)).messages) == ["m 0", "m 1", "n 0"]


async def test_a_server_that_does_not_answer(
    url: str, postgres_schema: str, key: SessionKey
) -> None:
    """A server that does not answer is an error after `timeout`; what was asked for is done once
    or not at all, and may be asked for again."""
    async with TcpProxy.to(url) as proxy:
        config = PostgresConfig(url=proxy.route(url), schema=postgres_schema, timeout=0.5)
        async with PostgresStore(config) as store:
            batch = drafts("m", 2)
            await store.append(key, drafts("first", 1))
            for requests in (True, False):
                async with proxy.stalled(requests=requests):
                    with pytest.raises(StorageUnavailableError, match="timeout"):
                        await store.append(key, batch)
                    with pytest.raises(StorageUnavailableError, match="timeout"):
                        await store.read(key)
            await store.append(key, batch)
            assert texts((await store.read(key)).messages) == ["first 0", "m 0", "m 1"]


async def test_tables_that_are_gone(make: Make, key: SessionKey, inside: Inside) -> None:
    """Where somebody dropped the tables, the error says so, and opening anew makes new ones."""
    async with make() as store:
        await store.append(key, drafts("m", 1))
        inside(f"DROP SCHEMA {store._config.schema} CASCADE")
        with pytest.raises(StorageError, match="open it again"):
            await store.append(key, [draft("PRIVATE")])
    async with make() as store:
        assert (await store.read(key)).incarnation is None


async def test_names_that_the_database_cannot_keep(make: Make, key: SessionKey) -> None:
    """A name with NUL or a surrogate, or a number beyond 64 bits, is refused, and nothing written
    nor repeated."""
    async with make() as store:
        for name in ("a\0b", "a\ud800b"):
            with pytest.raises(InvalidRequestError) as caught:
                await store.append(key, [replace(draft("PRIVATE"), role=name)])
            assert "PRIVATE" not in str(caught.value)
        with pytest.raises(InvalidRequestError):
            await store.append(key, [draft("PRIVATE", created_at=1 << 63)])
        assert (await store.read(key)).incarnation is None


async def test_the_detail_of_an_error_is_not_shown(
    make: Make, key: SessionKey, inside: Inside
) -> None:
    """PostgreSQL tells the whole row in the detail of some errors: that stays in the cause."""
    async with make() as store:
        await store.append(key, drafts("m", 1))
        inside("ALTER TABLE historykit_messages ADD CHECK (role <> 'forbidden')")
        with pytest.raises(StorageError) as caught:
            await store.append(key, [draft("PRIVATE", role="forbidden")])
        assert_clean(caught.value)
        assert "check constraint" in str(caught.value)


class ServerError(Exception):
    """An error as both drivers have it: with an SQLSTATE."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__("DETAIL: PRIVATE")
        self.sqlstate = sqlstate
        self.message = "the main text"


@pytest.mark.parametrize(
    ("sqlstate", "kind", "text"),
    [
        ("53100", StorageUnavailableError, "disk is full"),
        ("53200", StorageUnavailableError, "out of memory"),
        ("40001", StorageUnavailableError, "run this one again"),
        ("40P01", StorageUnavailableError, "waits for this one"),
        ("57P01", StorageUnavailableError, "shut down"),
        ("57P02", StorageUnavailableError, "crashed"),
        ("57P03", StorageUnavailableError, "starts or stops"),
        ("08006", StorageUnavailableError, "connection is gone"),
        ("28P01", StorageError, "password"),
        ("25P02", StorageError, "roll it back"),
        ("23505", ConflictError, "stored already"),
        ("54000", TooLargeError, "more than PostgreSQL takes"),
        ("22021", InvalidRequestError, "NUL"),
        ("XX000", StorageError, "SQLSTATE XX000"),
    ],
)
async def test_errors_of_the_server(sqlstate: str, kind: type[Exception], text: str) -> None:
    """Each error of the server becomes one that says what to do, without its detail."""
    error = translate(ServerError(sqlstate), "append", "postgresql://localhost/chat")
    assert type(error) is kind
    assert text in str(error)
    assert "PRIVATE" not in str(error)


async def test_errors_of_the_program() -> None:
    """Anything else is a StorageError that shows nothing but its kind."""
    error = translate(KeyError("PRIVATE"), "append", "postgresql://localhost/chat")
    assert type(error) is StorageError
    assert "KeyError" in str(error)
    assert "PRIVATE" not in str(error)
