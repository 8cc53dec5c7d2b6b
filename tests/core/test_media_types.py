from __future__ import annotations

import io
import subprocess
import sys
import wave
import zipfile

import pytest

from historykit.media_types import detect_media_type, guess_media_type, name_of_url

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def a_zip() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.txt", "x")
    return file.getvalue()


def a_wav() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(b"\0" * 100)
    return file.getvalue()


PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 50
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + b"\0" * 40
MP4 = b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + b"\0" * 30
MP3 = b"ID3\x03\0\0\0\0\0\x21" + b"\0" * 64
SQLITE = b"SQLite format 3\0" + b"\0" * 84
NOTHING_KNOWN = bytes(range(256))


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("a.wav", "audio/wav"),
        ("x.FLAC", "audio/flac"),
        ("https://a/pic.png?size=2.gif#x.mp3", "image/png"),
        ("https://a/b.tar.gz", "application/gzip"),
        ("C:\\files\\s.py", "text/x-python"),
        ("https://a/s.js", "text/javascript"),
        ("q.md", "text/markdown"),
        ("page.html", "text/html"),
        ("data.json", "application/json"),
        ("chat.db", "application/vnd.sqlite3"),
        ("Makefile", None),
        ("a.nosuchextension", None),
        ("https://a.png", None),
        ("https://a/dir/", None),
    ],
)
def test_a_name_tells_the_media_type(name: str, media_type: str | None) -> None:
    """The extension counts, of a URL that of its path; what none is known for is None."""
    assert guess_media_type(name) == media_type


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://a/b/c.png?d=/e", "c.png"),
        ("https://a/c#f/g", "c"),
        ("https://a/dir/", ""),
        ("https://a", ""),
        ("s3://bucket/k.md", "k.md"),
        ("b/c.txt", "c.txt"),
    ],
)
def test_the_name_of_a_url_is_the_end_of_its_path(url: str, name: str) -> None:
    """Neither query nor fragment nor host are part of the name."""
    assert name_of_url(url) == name


@pytest.mark.parametrize(
    ("head", "media_type"),
    [
        (PNG, "image/png"),
        (JPEG, "image/jpeg"),
        (a_wav(), "audio/wav"),
        (MP3, "audio/mpeg"),
        (MP4, "video/mp4"),
        (SQLITE, "application/vnd.sqlite3"),
        (a_zip(), "application/zip"),
        (b"\x1f\x8b\x08\0" + b"\0" * 20, "application/gzip"),
        (b"%PDF-1.7\n1 0 obj", "application/pdf"),
        (b"<!DOCTYPE html><html>", "text/html"),
        (b"hello world\n", "text/plain"),
        ("grüß dich\n".encode("latin-1"), "text/plain"),
        ("hello".encode("utf-16"), "text/plain"),
        (NOTHING_KNOWN, "application/octet-stream"),
        (b"", "application/octet-stream"),
    ],
)
def test_bytes_tell_the_media_type(head: bytes, media_type: str) -> None:
    """Without a name that says something, the first bytes decide; nothing is taken for CSV."""
    assert detect_media_type(head, "clip") == media_type


@pytest.mark.parametrize(
    ("head", "name", "media_type"),
    [
        (PNG, "s.txt", "image/png"),
        (JPEG, "s.docx", "image/jpeg"),
        (b"%PDF-1.7\n1 0 obj", "s.docx", "application/pdf"),
        (SQLITE, "s.csv", "application/vnd.sqlite3"),
    ],
)
def test_bytes_go_before_a_name_that_is_wrong(head: bytes, name: str, media_type: str) -> None:
    """What the bytes are for certain, no name changes."""
    assert detect_media_type(head, name) == media_type


@pytest.mark.parametrize(
    ("head", "name", "media_type"),
    [
        (b"import os\n", "s.txt", "text/plain"),
        (b"a,b\n1,2\n", "s.csv", "text/csv"),
        (b"# Title\n", "q.md", "text/markdown"),
        (b"print(1)\n", "s.py", "text/x-python"),
        (b'{"a": 1}', "s.json", "application/json"),
        (b"no sound yet", "s.wav", "audio/wav"),
        (b'<?xml version="1.0"?><svg/>', "s.svg", "image/svg+xml"),
        (a_zip(), "s.docx", DOCX),
        (MP4, "s.m4a", "audio/mp4"),
        (NOTHING_KNOWN, "s.heic", "image/heic"),
        (NOTHING_KNOWN, "s.bin", "application/octet-stream"),
        (b"", "s.png", "image/png"),
    ],
)
def test_a_name_decides_what_the_bytes_leave_open(head: bytes, name: str, media_type: str) -> None:
    """Which text, which archive, sound or film in one container: the extension says."""
    assert detect_media_type(head, name) == media_type


def test_without_puremagic_the_name_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the extra is not installed, extensions are all there is, beside text and archives."""
    monkeypatch.setitem(sys.modules, "puremagic", None)
    assert detect_media_type(PNG, "s.png") == "image/png"
    assert detect_media_type(PNG, "clip") == "application/octet-stream"
    assert detect_media_type(b"words", "clip") == "text/plain"
    assert detect_media_type(a_zip(), "clip") == "application/zip"


def test_names_say_the_same_whatever_the_system_says() -> None:
    """The files of the system that map extensions are not read."""
    code = (
        "import mimetypes; mimetypes.add_type('image/x-mine', '.html'); "
        "from historykit.media_types import guess_media_type; print(guess_media_type('a.html'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "text/html"
