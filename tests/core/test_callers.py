from __future__ import annotations

import asyncio
import warnings
from pathlib import Path

import pytest

from historykit.callers import Caller, calling, warn_caller


def test_a_warning_points_at_the_line_outside():
    """What historykit warns of has the file and the line of the application."""
    with pytest.warns(UserWarning, match="careful") as caught:
        warn_caller("careful", UserWarning)
    source = Path(__file__).read_text().splitlines()
    assert caught[0].filename == __file__
    assert source[caught[0].lineno - 1].strip() == 'warn_caller("careful", UserWarning)'


@pytest.mark.asyncio
async def test_a_warning_of_a_coroutine_points_at_the_line_that_awaits():
    """Awaited calls are followed to the application."""

    async def awaited() -> None:
        warn_caller("careful", UserWarning)

    with pytest.warns(UserWarning, match="careful") as caught:
        await awaited()
    assert caught[0].filename == __file__


def test_each_line_is_warned_of_once_by_default():
    """The filters of the application apply: by default a line is warned of once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(2):
            warn_caller("careful", UserWarning)
    assert len(caught) == 1


@pytest.mark.asyncio
async def test_a_warning_of_a_task_of_another_thread_points_at_who_waits_for_it():
    """Where the loop itself calls, the line that waits in another thread is the application's."""
    waiting = Caller("app.py", 7, {})
    calling.set(waiting)
    asyncio.get_running_loop().call_soon(warn_caller, "careful", UserWarning)
    with pytest.warns(UserWarning, match="careful") as caught:
        await asyncio.sleep(0)
    assert (caught[0].filename, caught[0].lineno) == ("app.py", 7)
