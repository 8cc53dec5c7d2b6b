"""Times of a store as people and programs write them."""

from __future__ import annotations

import datetime as dt

from historykit.errors import InvalidRequestError

__all__ = ["iso_time", "microseconds"]

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


def iso_time(time: int) -> str:
    """Return a time in ISO 8601, in UTC, cut to milliseconds: ``2026-01-31T12:00:00.000Z``.

    `time` is in microseconds since 1970. One that no calendar has is written as that number.
    """
    try:
        moment = EPOCH + dt.timedelta(microseconds=time)
    except OverflowError:
        return str(time)
    return f"{moment.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def microseconds(time: object, what: str) -> int | None:
    """Return a time in microseconds since 1970: of a datetime, a date or a text in ISO 8601.

    Without a time zone it is in UTC; a date is its first moment. None stays None. Raises
    `InvalidRequestError`, which calls the time `what`.
    """
    moment = time
    if isinstance(moment, str):
        try:
            moment = dt.datetime.fromisoformat(moment.strip())
        except ValueError as error:
            raise InvalidRequestError(
                f"{what} must be a time in ISO 8601, as in 2026-01-31T12:00:00Z; not {time!r}"
            ) from error
    if moment is None:
        return None
    if isinstance(moment, dt.date) and not isinstance(moment, dt.datetime):
        moment = dt.datetime.combine(moment, dt.time())
    if not isinstance(moment, dt.datetime):
        raise InvalidRequestError(
            f"{what} must be a datetime or a text in ISO 8601, not {type(time).__name__}"
        )
    if moment.utcoffset() is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return (moment - EPOCH) // _MICROSECOND
