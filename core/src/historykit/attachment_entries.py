"""What a caller may attach, read and checked: URLs, local files, and data URIs."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import unquote_to_bytes, urlsplit
from urllib.request import url2pathname

from historykit.errors import InvalidRequestError
from historykit.media_types import guess_media_type, name_of_url
from historykit.redaction import redact_url
from historykit.session_messages import SessionMessageAttachment
from historykit.statuses import AttachmentType

__all__ = [
    "DataEntry",
    "Entry",
    "FileEntry",
    "HostedEntry",
    "completed",
    "data_of",
    "entries_of",
    "read_entry",
    "read_file",
]

HOSTED: Final = ("http", "https", "s3", "gs", "gcs", "az", "abfs", "abfss")
"""The schemes of URLs that a text may be; the URL in a dict may have any."""

_TEXTS: Final = ("url", "name", "type", "mimeType")
_SCHEME: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?P<slashes>/*)")


@dataclass(frozen=True, slots=True)
class HostedEntry:
    """Something that is somewhere already: its fields, `url` among them.

    `source` is the attachment of a message that it was read from.
    """

    fields: dict[str, Any] = field(repr=False)
    source: SessionMessageAttachment | None = None


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A local file to store. The fields are those that go before what the file says."""

    path: str = field(repr=False)
    fields: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class DataEntry:
    """Bytes to store, out of a data URI."""

    data: bytes = field(repr=False)
    fields: dict[str, Any] = field(repr=False)


Entry: TypeAlias = HostedEntry | FileEntry | DataEntry


def read_entry(entry: object, is_stored: Callable[[str], bool]) -> Entry:
    """Return what an entry of `attachments` asks for; `is_stored` knows URLs of one's own store.

    Raises `InvalidRequestError`.
    """
    if isinstance(entry, str):
        return _text(entry, is_stored)
    if isinstance(entry, Path):
        return read_file(entry)
    if isinstance(entry, Mapping):
        return _mapping(entry, is_stored)
    if isinstance(entry, SessionMessageAttachment):
        fields = {name: value for name, value in entry.to_dict().items() if value is not None}
        return HostedEntry(fields, entry) if is_stored(entry.url) else _mapping(fields, is_stored)
    raise _unsupported(entry)


def read_file(path: object) -> FileEntry:
    """Return the entry for a local path. Raises `InvalidRequestError` for what is none."""
    if not isinstance(path, str | Path):
        raise _unsupported(path)
    text = str(path)
    found = _SCHEME.match(text)
    if isinstance(path, Path) and found is not None and found["scheme"].lower() in HOSTED:
        raise InvalidRequestError(
            f"attachment {redact_url(text)!r} is a URL that was made a Path; pass the URL as text"
        )
    return FileEntry(text, {})


def _unsupported(entry: object) -> InvalidRequestError:
    remedy = "a data URI or a file brings bytes" if isinstance(entry, bytes | bytearray) else ""
    return InvalidRequestError(
        f"unsupported attachment entry type: {type(entry).__name__}; it may be a path, a URL, a "
        "dict with 'url' or 'path', or an attachment of a message" + (remedy and f", and {remedy}")
    )


def completed(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields with the type and the media type that are not there and can be told.

    The media type tells the type, the name tells the media type, and else the URL does.
    """
    media_type = (
        fields.get("mimeType")
        or guess_media_type(fields.get("name") or "")
        or guess_media_type(fields["url"])
    )
    if media_type:
        fields["type"] = fields.get("type") or AttachmentType.of(media_type).value
        fields["mimeType"] = media_type
    return fields


def _text(text: str, is_stored: Callable[[str], bool]) -> Entry:
    found = _SCHEME.match(text)
    scheme = "" if found is None else found["scheme"].lower()
    if scheme == "data":
        return _data(text, {})
    slashes = 0 if found is None else len(found["slashes"])
    if is_stored(text) or (scheme in HOSTED and slashes >= 2):
        return HostedEntry({"url": text, "name": name_of_url(text) or None})
    if scheme == "file" and slashes:
        return FileEntry(_local_path(text), {})
    if slashes >= 2:
        raise InvalidRequestError(
            f"attachment {redact_url(text)!r} has the scheme {scheme!r}, which is not one of "
            f'{", ".join(HOSTED)}, file and data; pass {{"url": ...}} to attach it as it is'
        )
    return FileEntry(text, {})


def _mapping(entry: Mapping[Any, Any], is_stored: Callable[[str], bool]) -> Entry:
    fields = dict(entry)
    path, url = fields.pop("path", None), fields.get("url")
    for name in _TEXTS:
        if fields.get(name) is not None and not isinstance(fields[name], str):
            raise InvalidRequestError(
                f"{name} of an attachment must be text, not {type(fields[name]).__name__}"
            )
    if not url and not path:
        raise InvalidRequestError("attachment dict must have a 'url' or a 'path' key")
    if url and is_stored(url):
        return HostedEntry(fields)
    if url and url[:5].lower() not in ("data:", "file:"):
        return HostedEntry(fields)
    others = {name: value for name, value in fields.items() if name != "url" and value is not None}
    if not url:
        return FileEntry(read_file(path).path, others)
    if url[:5].lower() == "data:":
        return _data(url, others)
    return FileEntry(_local_path(url), others)


def data_of(uri: str) -> bytes:
    """Return the bytes of a data URI. Raises `InvalidRequestError`."""
    header, comma, payload = uri.partition(",")
    if not comma:
        raise InvalidRequestError("a data URI without a comma has no data")
    try:
        data = unquote_to_bytes(payload)
    except UnicodeEncodeError:
        raise InvalidRequestError("the data of a data URI must not contain surrogates") from None
    if not header.rstrip().lower().endswith(";base64"):
        return data
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise InvalidRequestError(f"the data of a data URI is not base64: {error}") from None


def _data(uri: str, fields: dict[str, Any]) -> DataEntry:
    media_type = uri[5:].partition(",")[0].partition(";")[0].strip()
    return DataEntry(data_of(uri), ({"mimeType": media_type} if media_type else {}) | fields)


def _local_path(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InvalidRequestError(f"attachment {url!r} is no URL: {error}") from None
    if parts.netloc.lower() not in ("", "localhost"):
        raise InvalidRequestError(
            f"attachment {redact_url(url)!r} names another machine, {parts.hostname!r}; only local "
            "files can be attached by file://"
        )
    return url2pathname(parts.path)


def entries_of(value: object, what: str) -> Iterable[object]:
    """Return the entries of an argument. Raises `InvalidRequestError` for one entry without a
    list."""
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return value
    hint = f"; put it in a list: {what}=[...]" if isinstance(value, str | Path | Mapping) else ""
    raise InvalidRequestError(f"{what} must be a list, not {type(value).__name__}{hint}")
