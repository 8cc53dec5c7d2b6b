"""What is kept with a session beside the fields that a database knows, and its labels.

The body is a dict in the form of the history's codec, so that all values come back as they were and
an encryption covers them. Keys that this version does not know are kept."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, TypeAlias

from historykit.codec import MessageCodec
from historykit.errors import CorruptRecordError, DecodeError, EncodeError, InvalidRequestError
from historykit.execution import ExecutionConfig
from historykit.ids import check_id
from historykit.session_records import SessionRecord

__all__ = [
    "MAX_LABELS",
    "Scalar",
    "check_metadata",
    "check_number_of_labels",
    "check_tags",
    "decode_body",
    "encode_body",
    "labels_of",
    "wanted_labels",
]

Scalar: TypeAlias = str | int | float | bool | None
"""What a value of a session's metadata is."""

MAX_LABELS: Final = 100
"""How many metadata keys and tags a session has at most, taken together."""


DECIMAL_BITS: Final = 1024
"""Integers of more bits, which no float is equal to, have labels of their hexadecimal digits:
Python refuses to write very long ones in decimal."""


def decode_body(record: SessionRecord, codec: MessageCodec) -> dict[str, Any]:
    """Return what is kept with a session; empty where nothing is.

    Objects of state types that this process does not know are `OpaqueValue`s. Raises
    `CorruptRecordError`, which names the session.
    """
    if not record.body:
        return {}
    try:
        with warnings.catch_warnings():
            # Whoever wants the state is told; the others have no use for it.
            warnings.simplefilter("ignore", RuntimeWarning)
            body = codec.decode(record.body, strict=False)
        check_metadata(body.get("metadata", {}))
        check_tags(body.get("tags", []))
        ExecutionConfig.from_dict(body.get("execution_config", {}))
    except (DecodeError, InvalidRequestError, AttributeError, TypeError) as error:
        session_id = record.key.session_id
        raise CorruptRecordError(
            f"Failed to deserialize Session (id={session_id}): {error}", session_id=session_id
        ) from error
    return body


def encode_body(body: Mapping[str, Any], codec: MessageCodec) -> bytes:
    """Return what is kept with a session as bytes, without what is None.

    Raises `InvalidRequestError` for a value that cannot be stored, naming its path.
    """
    kept = {key: value for key, value in body.items() if value is not None}
    try:
        return codec.encode(kept) if kept else b""
    except EncodeError as error:
        raise InvalidRequestError(f"Failed to save resource: {error}") from error


def labels_of(body: Mapping[str, Any]) -> frozenset[str]:
    """Return the labels by which a session with that body is found."""
    return wanted_labels(body.get("metadata") or {}, body.get("tags") or ())


def wanted_labels(metadata: Mapping[str, Scalar], tags: Iterable[str]) -> frozenset[str]:
    """Return the labels of metadata and tags: digests, from which neither can be read."""
    pairs = [_label("metadata", key, _form(value)) for key, value in metadata.items()]
    return frozenset([*pairs, *(_label("tag", tag) for tag in tags)])


def check_metadata(metadata: object) -> dict[str, Scalar]:
    """Return a copy of metadata: texts as keys, and a text, number, bool or None for each.

    Raises `InvalidRequestError` naming the key.
    """
    if not isinstance(metadata, Mapping):
        raise InvalidRequestError(f"metadata must be a dict, not {type(metadata).__name__}")
    checked = {}
    for key, value in metadata.items():
        if not isinstance(key, str):
            raise InvalidRequestError(f"a key of metadata must be a text, not {key!r}")
        if not (value is None or isinstance(value, str | int | float)):
            raise InvalidRequestError(
                f"metadata[{key!r}] must be a text, a number, a bool or None, not "
                f"{type(value).__name__}; keep larger things in the state of the session"
            )
        checked[key] = value
    return checked


def check_tags(tags: object) -> list[str]:
    """Return tags as a list in which each occurs once. Raises `InvalidRequestError`."""
    if isinstance(tags, str | Mapping) or not isinstance(tags, Sequence | set | frozenset):
        raise InvalidRequestError(f"tags must be a list of texts, not {type(tags).__name__}")
    ordered = tags if isinstance(tags, Sequence) else sorted(tags, key=str)
    return list(dict.fromkeys(check_id(tag, "a tag") for tag in ordered))


def check_number_of_labels(metadata: Mapping[str, Scalar], tags: Sequence[str]) -> None:
    """Raise `InvalidRequestError` for more metadata and tags than a session may have."""
    if len(metadata) + len(tags) > MAX_LABELS:
        raise InvalidRequestError(
            f"a session has at most {MAX_LABELS} metadata keys and tags taken together, not "
            f"{len(metadata) + len(tags)}"
        )


def _label(*parts: str) -> str:
    digest = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()


def _form(value: Scalar) -> str:
    """Return a text that is the same for equal values: 1 and 1.0 are, 1 and True are not."""
    if isinstance(value, float):  # or what is one, such as a number of numpy
        value = int(value) if value.is_integer() else float(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        value = int(value)
        if value.bit_length() > DECIMAL_BITS:
            return f"other {value:#x}"
    return f"text {value}" if isinstance(value, str) else f"other {value!r}"
