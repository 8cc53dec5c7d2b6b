"""Identifiers: how they are made, derived and checked."""

from __future__ import annotations

import os
import time
from hashlib import blake2b

from historykit.errors import InvalidRequestError

__all__ = ["MAX_ID_LENGTH", "check_id", "derive_id", "new_id"]

MAX_ID_LENGTH = 256


def new_id() -> str:
    """Return a new identifier: a UUID of version 7, so that ids sort roughly by time."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    value = (milliseconds & (1 << 48) - 1) << 80 | random
    return _uuid(value, version=7)


def derive_id(*parts: str | bytes) -> str:
    """Return the identifier that belongs to `parts`: always the same, and another for others.

    It is a UUID of version 8 over a digest of the parts and their lengths.
    """
    digest = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return _uuid(int.from_bytes(digest.digest(), "big"), version=8)


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


def _uuid(value: int, *, version: int) -> str:
    """Return the text of a UUID, with the version and variant bits that RFC 9562 asks for.

    The module uuid does this too, but takes 2 ms to import.
    """
    value = value & ~(0xF << 76) | version << 76
    value = value & ~(0b11 << 62) | 0b10 << 62
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
