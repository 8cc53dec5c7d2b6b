"""Which media type a file has: by its name, or by its first bytes and its name.

What a name says is the same on every machine and every Python: the tables of the system are not
read. Bytes are looked at by puremagic, where it is installed (the extra `attachments`)."""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from functools import cache
from typing import Final
from urllib.parse import urlsplit

__all__ = ["HEAD_BYTES", "detect_media_type", "guess_media_type", "name_of_url"]

HEAD_BYTES: Final = 8192
"""How many of the first bytes of a file are worth looking at."""

ANYTHING: Final = "application/octet-stream"

_BY_EXTENSION: Final[Mapping[str, str]] = {
    "avif": "image/avif",
    "bmp": "image/bmp",
    "c": "text/x-c",
    "cc": "text/x-c++",
    "cpp": "text/x-c++",
    "csv": "text/csv",
    "db": "application/vnd.sqlite3",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "flac": "audio/flac",
    "gif": "image/gif",
    "go": "text/x-go",
    "gz": "application/gzip",
    "h": "text/x-c",
    "heic": "image/heic",
    "hpp": "text/x-c++",
    "ipynb": "application/x-ipynb+json",
    "java": "text/x-java-source",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "js": "text/javascript",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "jsx": "text/javascript",
    "m4a": "audio/mp4",
    "md": "text/markdown",
    "mjs": "text/javascript",
    "mkv": "video/x-matroska",
    "mp3": "audio/mpeg",
    "odp": "application/vnd.oasis.opendocument.presentation",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odt": "application/vnd.oasis.opendocument.text",
    "oga": "audio/ogg",
    "ogg": "audio/ogg",
    "ogv": "video/ogg",
    "opus": "audio/ogg",
    "parquet": "application/vnd.apache.parquet",
    "pdf": "application/pdf",
    "png": "image/png",
    "ppt": "application/vnd.ms-powerpoint",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "py": "text/x-python",
    "rb": "text/x-ruby",
    "rs": "text/x-rust",
    "rtf": "application/rtf",
    "sh": "text/x-shellscript",
    "sqlite": "application/vnd.sqlite3",
    "sqlite3": "application/vnd.sqlite3",
    "svg": "image/svg+xml",
    "toml": "application/toml",
    "ts": "text/x-typescript",
    "tsx": "text/x-typescript",
    "txt": "text/plain",
    "wav": "audio/wav",
    "weba": "audio/webm",
    "webm": "video/webm",
    "webp": "image/webp",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "zip": "application/zip",
}
"""What the module mimetypes does not know, or not on every Python."""

_ALIASES: Final[Mapping[str, str]] = {
    "application/ogg": "audio/ogg",
    "application/x-gzip": "application/gzip",
    "application/x-sqlite3": "application/vnd.sqlite3",
    "application/xml": "text/xml",
    "audio/mp3": "audio/mpeg",
    "audio/vnd.audiokoz": "audio/mpeg",  # for puremagic, what begins with ID3 tags
    "audio/vnd.wave": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/x-flac": "audio/flac",
    "audio/x-m4a": "audio/mp4",
    "audio/x-wav": "audio/wav",
    "image/x-ms-bmp": "image/bmp",
}

_CONTAINERS: Final[Mapping[bytes, str]] = {
    b"PK\x03\x04": "application/zip",
    b"PK\x05\x06": "application/zip",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ANYTHING,  # what old office programs write
    b"\x1f\x8b": "application/gzip",
}
"""Beginnings of files that may be of many types: the name knows better which of them."""

_TEXTS: Final = ("text/", "application/json", "application/rtf", "image/svg+xml")
_MARKS: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_CONTROLS: Final = bytes({*range(32)} - {*b"\t\n\r\f\b\x1b"})

CONFIDENT: Final = 0.3
"""Below this, puremagic has compared two bytes: a text may begin with those of a picture."""


def guess_media_type(name: str) -> str | None:
    """Return the media type that the extension of a file's name or of a URL says, if it says one.

    Query and fragment of a URL do not count, nor does case.
    """
    _, dot, extension = name_of_url(name).rpartition(".")
    if not dot:
        return None
    extension = extension.lower()
    found = _BY_EXTENSION.get(extension)
    return found or _standard_types().get(f".{extension}")


def name_of_url(url: str) -> str:
    """Return the last part of the path of a URL, "" where it has none or is none."""
    if "://" not in url:
        return url.replace("\\", "/").rpartition("/")[2]
    try:
        return urlsplit(url).path.rpartition("/")[2]
    except ValueError:
        return ""


def detect_media_type(head: bytes, name: str) -> str:
    """Return the media type of a file that begins with `head`, up to `HEAD_BYTES` of it.

    The bytes decide, and the name where they leave it open: where they are no more than a text or
    an archive. What neither tells is "application/octet-stream".
    """
    named = guess_media_type(name)
    if not head:
        return named or ANYTHING
    if head.startswith(b"%PDF-"):
        return "application/pdf"  # where nothing in it is compressed, it looks like a text
    for start, container in _CONTAINERS.items():
        if head.startswith(start):
            return named or container
    sniffed = _sniffed(head)
    if _is_text(head):
        texts = (found for found in sniffed if found.startswith(_TEXTS))
        return named or next(texts, "text/plain")
    if named in sniffed or not sniffed:
        return named or ANYTHING
    if named is not None and named.startswith("audio/") and sniffed[0].startswith("video/"):
        return named  # a container of both
    return sniffed[0]


def _is_text(head: bytes) -> bool:
    return head.startswith(_MARKS) or head.translate(None, _CONTROLS) == head


def _sniffed(head: bytes) -> list[str]:
    """Return the media types that bytes may have, the likeliest first."""
    try:
        import puremagic
    except ModuleNotFoundError:
        return []
    try:
        found = puremagic.magic_string(head)
    except (puremagic.PureError, ValueError):
        return []
    return [
        _ALIASES.get(match.mime_type, match.mime_type)
        for match in found
        if match.mime_type and match.confidence >= CONFIDENT
    ]


@cache
def _standard_types() -> Mapping[str, str]:
    """Return what Python itself says of extensions, without the files of the system."""
    standard = mimetypes.MimeTypes()
    return {**standard.types_map[False], **standard.types_map[True]}
