"""Identifiers: how they are made, derived and checked."""

from __future__ import annotations

import os
import time
from hashlib import blake2b

from historykit.errors import InvalidRequestError

__all__ = ["MAX_ID_LENGTH", "check_id", "check_name", "check_time", "derive_id", "new_id"]

MAX_ID_LENGTH = 256
"""The most characters that an identifier has."""

_LATEST = (1 << 63) - 1
_EARLIEST = -_LATEST - 1

_VARIANTS = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))
"""What becomes of a digit whose upper two bits say which kind of UUID it is."""


def new_id() -> str:
    """Return a new identifier: a UUID of version 7, so that ids sort roughly by time."""
    milliseconds = time.time_ns() // 1_000_000
    return _uuid(f"{milliseconds:012x}{os.urandom(10).hex()}", version=7)


def derive_id(*parts: str | bytes) -> str:
    """Return the identifier that belongs to `parts`: always the same, and another for others.

    It is a UUID of version 8 over a digest of the parts and their lengths.
    """
    digest = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return _uuid(digest.hexdigest(), version=8)


def check_id(value: object, what: str) -> str:
    """Return `value` if it is an acceptable identifier, named `what` in the error.

    An identifier is a string of 1 to 256 code points without NUL and without surrogates. Any other
    text is acceptable and compared byte for byte: historykit gives no character a meaning.
    """
    if not isinstance(value, str):
        raise InvalidRequestError(f"{what} must be a string, not {type(value).__name__}")
    if not 1 <= len(value) <= MAX_ID_LENGTH:
        raise InvalidRequestError(
            f"{what} must have 1 to {MAX_ID_LENGTH} characters, this one has {len(value)}"
        )
    if "\0" in value:
        raise InvalidRequestError(f"{what} must not contain NUL; remove it: {value!r}")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidRequestError(f"{what} must not contain surrogates; remove them: {value!a}")
    return value


def check_name(value: object, what: str) -> str:
    """Return `value` if it is empty or an identifier, named `what` in the error."""
    return "" if value == "" else check_id(value, what)


def check_time(value: object, what: str) -> int:
    """Return `value` if it is a time: microseconds since 1970, in 64 bits, named `what` in the
    error."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidRequestError(f"{what} must be an integer, not {type(value).__name__}")
    if not _EARLIEST <= value <= _LATEST:
        raise InvalidRequestError(f"{what} must fit into 64 bits; {value} does not")
    return value


def _uuid(digits: str, *, version: int) -> str:
    """Return a UUID of 32 hexadecimal digits, with the version and variant of RFC 9562 set in them.

    The module uuid does this too, but takes 2 ms to import.
    """
    variant = _VARIANTS[digits[16]]
    return (
        f"{digits[:8]}-{digits[8:12]}-{version}{digits[13:16]}-{variant}{digits[17:20]}-"
        f"{digits[20:]}"
    )
