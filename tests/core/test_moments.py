from __future__ import annotations

import datetime as dt

import pytest

from historykit.errors import InvalidRequestError
from historykit.moments import iso_time, microseconds

NOON = 1_767_268_800_000_000
"""12:00 on 2026-01-01, UTC."""


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (NOON, "2026-01-01T12:00:00.000Z"),
        (NOON + 1_999, "2026-01-01T12:00:00.001Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (2**62, str(2**62)),
    ],
)
def test_a_time_is_written_in_utc(time: int, text: str) -> None:
    """A time is ISO 8601 cut to milliseconds, or its number where no calendar has it."""
    assert iso_time(time) == text


@pytest.mark.parametrize(
    "time",
    [
        "2026-01-01T12:00:00Z",
        "2026-01-01T12:00:00",
        " 2026-01-01T14:00:00+02:00 ",
        "2026-01-01 12:00",
        dt.datetime(2026, 1, 1, 12),
        dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC),
        dt.datetime(2026, 1, 1, 14, tzinfo=dt.timezone(dt.timedelta(hours=2))),
    ],
    ids=str,
)
def test_a_time_is_read(time: object) -> None:
    """A datetime or a text names a moment; without a zone it is in UTC."""
    assert microseconds(time, "t") == NOON


def test_a_date_is_its_first_moment() -> None:
    """A date, also as a text, is midnight in UTC; None is None."""
    midnight = NOON - 12 * 3600 * 1_000_000
    assert microseconds(dt.date(2026, 1, 1), "t") == microseconds("2026-01-01", "t") == midnight
    assert microseconds(None, "t") is None


@pytest.mark.parametrize("time", ["yesterday", "", 5, 1.5])
def test_what_is_no_time_is_named(time: object) -> None:
    """The error says which argument is wrong, and has the status 400."""
    with pytest.raises(InvalidRequestError, match="created_after must be") as caught:
        microseconds(time, "created_after")
    assert caught.value.status_code == 400
