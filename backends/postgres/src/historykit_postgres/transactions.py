"""Transactions on one connection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

from historykit.errors import StorageUnavailableError
from historykit_postgres.drivers import Driver
from historykit_postgres.errors import is_lost

__all__ = ["Work", "atomically", "in_transaction"]

T = TypeVar("T")

Work = Callable[[Driver], Awaitable[T]]
"""What is done on one connection. It may be done again on another one."""

# Whatever the default of the role is: a statement has to see what was committed before it.
BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"


async def in_transaction(driver: Driver, work: Work[T], *, repeatable: bool = False) -> T:
    """Do `work` fully or not at all and return what it returns.

    Raises `StorageUnavailableError` where the connection is lost while the transaction commits, so
    that it may be done or not; or the driver's error if the work is `repeatable`.
    """
    result = await _begun(driver, work, BEGIN, "ROLLBACK")
    try:
        await driver.execute("COMMIT")
    except Exception as error:
        if repeatable or not is_lost(error):
            raise
        raise StorageUnavailableError(
            "the connection was lost during the commit: the change may be done or not; read before "
            "you try again"
        ) from error
    return result


async def atomically(driver: Driver, work: Work[T]) -> T:
    """Do `work` fully or not at all, as a part of the transaction if one has begun."""
    if not driver.in_transaction:
        return await in_transaction(driver, work)
    undo = "ROLLBACK TO SAVEPOINT historykit; RELEASE SAVEPOINT historykit"
    result = await _begun(driver, work, "SAVEPOINT historykit", undo)
    await driver.execute("RELEASE SAVEPOINT historykit")
    return result


async def _begun(driver: Driver, work: Work[T], begin: str, undo: str) -> T:
    await driver.execute(begin)
    try:
        return await work(driver)
    except Exception:
        with suppress(Exception):  # what is lost has been undone by the server
            await driver.execute(undo)
        raise
