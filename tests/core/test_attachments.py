from __future__ import annotations

import asyncio
import io
import os
import re
import subprocess
import sys
import warnings
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import historykit
from historykit import (
    Attachments,
    ConfigError,
    FileUploadError,
    ForbiddenError,
    History,
    HistoryConfig,
    InvalidRequestError,
    NotFoundError,
    ResourceError,
    load_config,
    resolve_attachments,
)
from historykit.attachment_store import FsspecAttachmentStore
from historykit.attachments import SIZE_LIMITS, as_attachments
from historykit.ids import new_id
from historykit.memory import MemoryStore
from historykit.session_records import SessionKey

pytestmark = pytest.mark.asyncio

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 50


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("photo.png").write_bytes(PNG)
    Path("notes.md").write_text("# Notes\n")
    Path("s.bin").write_bytes(bytes(range(256)))
    return tmp_path


@pytest_asyncio.fixture(params=["folder", "memory"])
async def history(request: pytest.FixtureRequest) -> AsyncIterator[History]:
    place = "blobs" if request.param == "folder" else f"memory://{new_id()}"
    async with historykit.open_history("memory", attachments=place) as history:
        yield history


async def stored(history: History) -> list[str]:
    assert history.attachments is not None
    store = history.attachments.store
    return [store.url(blob.key) for blob in await store.find("")]


async def read(history: History, url: str) -> bytes:
    assert history.attachments is not None
    store = history.attachments.store
    key = store.key(url)
    assert key is not None
    return b"".join([piece async for piece in store.read(key)])


@pytest.mark.parametrize(
    ("entry", "resolved"),
    [
        (
            "https://cdn.example.com/a.wav",
            {"name": "a.wav", "type": "audio", "mimeType": "audio/wav"},
        ),
        ("HTTPS://cdn.example.com/x.FLAC?v=1#t.png", {"name": "x.FLAC", "type": "audio"}),
        ("s3://bucket/s.py", {"name": "s.py", "type": "code", "mimeType": "text/x-python"}),
        ("gs://bucket/clip", {"name": "clip"}),
        ("https://example.com/dir/", {"name": None}),
        ({"url": "https://e/pic.png"}, {"type": "image", "mimeType": "image/png"}),
        ({"url": "https://e/clip", "type": "audio"}, {"type": "audio"}),
        (
            {"url": "https://e/pic.png", "mimeType": "audio/wav"},
            {"mimeType": "audio/wav", "type": "audio"},
        ),
        ({"url": "https://e/clip", "mimeType": "audio/wav"}, {"type": "audio"}),
        ({"url": "https://e/1", "name": "a.png", "mimeType": "audio/wav"}, {"type": "audio"}),
        ({"url": "https://e/pic.png", "type": None, "more": 1}, {"type": "image", "more": 1}),
        ({"url": "https://e/1", "name": "a.pdf"}, {"name": "a.pdf", "type": "document"}),
        ({"url": "ipfs://abc/data.json"}, {"type": "unknown", "mimeType": "application/json"}),
    ],
)
async def test_a_url_stays_as_it_is(history: History, entry: Any, resolved: dict[str, Any]) -> None:
    """Name, type and media type are told where they can be, and nothing is stored."""
    (found,) = await resolve_attachments(history, [entry])
    assert found["url"] == (entry if isinstance(entry, str) else entry["url"])
    assert {name: found[name] for name in resolved} == resolved
    assert await stored(history) == []


@pytest.mark.parametrize("entry", ["https://[::1/a.png", {"url": "https://[::1/a.png"}])
async def test_a_url_that_is_none_stays_as_it_is(history: History, entry: Any) -> None:
    """It is never fetched, and says nothing."""
    (found,) = await resolve_attachments(history, [entry])
    assert found["url"] == "https://[::1/a.png"
    assert found.get("name") is None


async def test_what_cannot_be_told_of_a_url_is_not_there(history: History) -> None:
    """Without an extension there is neither type nor media type, unless a dict has one."""
    found = await resolve_attachments(history, ["https://e/clip", {"url": "https://e/clip"}])
    assert found == [{"url": "https://e/clip", "name": "clip"}, {"url": "https://e/clip"}]


async def test_the_entries_of_a_caller_are_not_changed(history: History) -> None:
    """What is found out is written into copies."""
    entry = {"url": "https://e/pic.png"}
    await resolve_attachments(history, [entry])
    assert entry == {"url": "https://e/pic.png"}


@pytest.mark.parametrize("entry", ["photo.png", Path("photo.png"), {"path": "photo.png"}])
async def test_a_local_file_is_stored(history: History, entry: Any) -> None:
    """A path as text, as a Path or in a dict is read, and its bytes tell what it is."""
    (found,) = await resolve_attachments(history, [entry])
    assert found == {
        "url": found["url"],
        "name": "photo.png",
        "type": "image",
        "mimeType": "image/png",
    }
    assert await read(history, found["url"]) == PNG


async def test_a_file_url_is_a_local_file(history: History, here: Path) -> None:
    """A file URL, as text or in a dict, names a local file; escapes in it are undone."""
    Path("a b.png").write_bytes(PNG)
    url = (here / "a b.png").as_uri()
    found = await resolve_attachments(history, [url, {"url": url.replace("file:", "FILE:")}])
    assert [each["name"] for each in found] == ["a b.png", "a b.png"]
    with pytest.raises(InvalidRequestError, match="another machine, 'server'"):
        await resolve_attachments(history, ["file://server/a.png"])


async def test_a_data_uri_is_stored(history: History) -> None:
    """The bytes of a data URI are stored, in base64 or not, and its media type goes before."""
    found = await resolve_attachments(
        history,
        [
            "data:audio/wav;base64,YWJj",
            {"url": "data:,a%20b", "name": "n.md", "url2": None},
            {"url": "DATA:text/x;charset=utf-8,x", "mimeType": "text/y"},
        ],
    )
    assert [each["mimeType"] for each in found] == ["audio/wav", "text/markdown", "text/y"]
    assert [each["name"] for each in found] == [None, "n.md", None]
    assert [await read(history, each["url"]) for each in found] == [b"abc", b"a b", b"x"]
    for wrong, says in (
        ("data:text/plain", "without a comma"),
        ("data:;base64,?", "is not base64"),
    ):
        with pytest.raises(InvalidRequestError, match=says):
            await resolve_attachments(history, [wrong])


async def test_what_a_dict_says_goes_before_what_the_file_says(history: History) -> None:
    """Other keys of a path's dict are kept, None is not given, and the URL is that of the blob."""
    entry = {
        "path": "photo.png",
        "type": "audio",
        "name": "voice.wav",
        "mimeType": None,
        "url": "",
        "more": 1,
    }
    (found,) = await resolve_attachments(history, [entry])
    assert found.pop("url").startswith(("file://", "memory://"))
    assert found == {"name": "voice.wav", "type": "audio", "mimeType": "image/png", "more": 1}


async def test_a_media_type_that_is_given_tells_the_type(history: History) -> None:
    """The type of an uploaded file follows the media type that its dict has."""
    (found,) = await resolve_attachments(
        history, [{"path": "s.bin", "mimeType": "audio/wav", "type": None}]
    )
    assert found["type"] == "audio"


@pytest.mark.parametrize(
    ("path", "kind", "media_type"),
    [
        ("notes.md", "text", "text/markdown"),
        ("s.bin", "unknown", "application/octet-stream"),
        ("s.py", "code", "text/x-python"),
    ],
)
async def test_nothing_is_taken_for_csv(
    history: History, path: str, kind: str, media_type: str
) -> None:
    """What is not recognized has the type of its name, or none."""
    if not Path(path).exists():
        Path(path).write_text("print(1)\n")
    (found,) = await resolve_attachments(history, [path])
    assert (found["type"], found["mimeType"]) == (kind, media_type)


async def test_a_url_in_a_dict_goes_before_a_path(history: History) -> None:
    """The path of a dict with a URL is neither read nor passed on."""
    (found,) = await resolve_attachments(history, [{"url": "https://e/a", "path": "/etc/passwd"}])
    assert found == {"url": "https://e/a"}


@pytest.mark.parametrize("nothing", [None, [], ()])
async def test_no_attachments_are_an_empty_list(history: History, nothing: Any) -> None:
    """Nothing attached is nothing, and no warning."""
    assert await resolve_attachments(history, nothing, nothing) == []


async def test_files_come_after_attachments(history: History) -> None:
    """The deprecated files are stored and appended, with a warning at the caller's line."""
    with pytest.warns(DeprecationWarning, match="`files` is deprecated; pass local") as caught:
        found = await resolve_attachments(history, ["https://e/a.pdf"], ["photo.png"])
    assert [each["type"] for each in found] == ["document", "image"]
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("photo.png",), r"attachments must be a list, not str; put it in a list: attachments="),
        ((Path("photo.png"),), "put it in a list"),
        (({"path": "photo.png"},), "put it in a list"),
        ((5,), "attachments must be a list, not int$"),
        ((None, "photo.png"), r"files must be a list, not str; put it in a list: files=\[...\]"),
        (([5],), "unsupported attachment entry type: int"),
        (([b"a"],), "unsupported attachment entry type: bytes; it may be a path, .* brings bytes"),
        (([None],), "unsupported attachment entry type: NoneType"),
        ((None, [5]), "unsupported attachment entry type: int"),
        (([{"path": 5}],), "unsupported attachment entry type: int"),
        (([{}],), "must have a 'url' or a 'path' key"),
        (([{"url": "", "path": ""}],), "must have a 'url' or a 'path' key"),
        (([{"url": "https://e", "name": 5}],), "name of an attachment must be text, not int"),
        (([Path("https://e/a.png")],), "is a URL that was made a Path"),
        ((["data:,\ud800"],), "the data of a data URI must not contain surrogates"),
        ((["file://[::1/a.png"],), "is no URL: Invalid IPv6 URL"),
        (
            (["ftp://me:hidden@e/a.png"],),
            r"'ftp://me:\*\*\*@e/a.png' has the scheme 'ftp', .* pass \{\"url\": ...\}",
        ),
    ],
)
async def test_an_entry_that_is_none_says_so(
    history: History, arguments: tuple[Any, ...], says: str
) -> None:
    """The error names the thing and the remedy, and what came before it is not stored."""
    attachments, *files = arguments
    if isinstance(attachments, list):
        attachments = ["photo.png", *attachments]
    with pytest.raises(InvalidRequestError, match=says):
        await resolve_attachments(history, attachments, *files)
    assert await stored(history) == []


@pytest.mark.parametrize(
    ("entry", "cause"),
    [
        ("missing.png", "No such file or directory"),
        ("folder", "(Is a directory|it is not a file)"),
        ("a\0b", "a path cannot contain NUL"),
        ("pipe", "it is not a file"),
    ],
)
async def test_a_file_that_cannot_be_stored_is_named(
    history: History, entry: str, cause: str
) -> None:
    """The error has path, label and cause, and what was stored before it is deleted again."""
    Path("folder").mkdir()
    os.mkfifo("pipe")
    start = f"Failed to upload file {entry!r} for session 's1': "
    with pytest.raises(FileUploadError, match=f"^{re.escape(start)}{cause}$"):
        await resolve_attachments(history, ["photo.png", entry], error_label="session 's1'")
    assert await stored(history) == []


async def test_a_file_that_cannot_be_read_is_closed(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the first bytes cannot be read, the file does not stay open."""

    class Unreadable(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError(5, "Input/output error")

    file = Unreadable()
    monkeypatch.setattr(history.attachments, "open_file", lambda path: file)
    with pytest.raises(FileUploadError, match="Input/output error"):
        await resolve_attachments(history, ["photo.png"])
    assert file.closed


async def test_a_cancelled_resolving_leaves_nothing(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was stored when the caller went away is deleted."""
    assert history.attachments is not None
    open_file = history.attachments.open_file
    opened: list[str] = []
    loop = asyncio.get_running_loop()

    def opening(path: str) -> Any:
        opened.append(path)
        if len(opened) == 2:
            loop.call_soon_threadsafe(task.cancel)
        return open_file(path)

    monkeypatch.setattr(history.attachments, "open_file", opening)
    task = asyncio.create_task(resolve_attachments(history, ["photo.png"] * 3))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert opened == ["photo.png"] * 2
    assert await stored(history) == []


async def test_a_file_that_is_too_large_is_refused(here: Path) -> None:
    """Each class of files has a limit; the error names it, and nothing is left."""
    attachments = Attachments("blobs", size_limits={"image": len(PNG) - 1, "other": None})
    async with historykit.open_history("memory", attachments=attachments) as history:
        with pytest.raises(FileUploadError, match="more than 57 bytes, the limit for image files"):
            await resolve_attachments(history, ["photo.png"])
        assert len(await resolve_attachments(history, ["notes.md"])) == 1


@pytest.mark.parametrize(
    ("media_type", "kind"),
    [
        ("audio/wav", "audio"),
        ("application/pdf", "application"),
        ("video/mp4", "video"),
        ("image/png", "image"),
        ("application/vnd.sqlite3", "database"),
        ("text/plain", "other"),
        ("model/stl", "other"),
    ],
)
async def test_the_limits_are_those_of_the_document(media_type: str, kind: str) -> None:
    """Without others, the limits by class are those of the aiXplain service."""
    assert Attachments("blobs").size_limit(media_type) == (kind, SIZE_LIMITS[kind])


async def test_local_paths_can_be_refused(history: History) -> None:
    """A server that takes attachments from its users reads none of its own files for them."""
    assert history.attachments is not None
    history.attachments.allow_local_paths = False
    for entry in ("photo.png", "missing", Path("photo.png").absolute().as_uri()):
        with pytest.raises(FileUploadError, match="local files may not be attached here"):
            await resolve_attachments(history, [entry])
    assert len(await resolve_attachments(history, ["https://e/a.png", "data:,x"])) == 2


async def test_local_files_must_lie_under_the_roots(here: Path) -> None:
    """Links and dots lead out of no root, and whether a file outside exists is not told."""
    root = here / "uploads"
    (root / "deep").mkdir(parents=True)
    (root / "deep" / "in.txt").write_text("in")
    (root / "link.txt").symlink_to(here / "notes.md")
    (root / "links").symlink_to(here)
    (here / "uploads-not").mkdir()
    (here / "uploads-not" / "a.txt").write_text("a")
    attachments = Attachments(here / "blobs", allowed_roots=["uploads"])
    async with historykit.open_history("memory", attachments=attachments) as history:
        (found,) = await resolve_attachments(history, ["uploads/deep/in.txt"])
        assert await read(history, found["url"]) == b"in"
        for outside in (
            "notes.md",
            "missing.md",
            "uploads/../notes.md",
            "uploads/link.txt",
            "uploads/links/notes.md",
            "uploads-not/a.txt",
        ):
            with pytest.raises(FileUploadError, match="in no folder that files may be attached"):
                await resolve_attachments(history, [outside])


async def test_a_file_that_is_exchanged_while_it_is_opened_is_refused(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link that takes the place of a file at the last moment is noticed."""
    (here / "uploads").mkdir()
    path = here / "uploads" / "a.txt"
    path.write_text("a")
    attachments = Attachments("blobs", allowed_roots=["uploads"])
    open_file = os.open

    def exchanging(*arguments: Any, **options: Any) -> int:
        opened = open_file(*arguments, **options)
        path.unlink()
        path.symlink_to(here / "notes.md")
        return opened

    monkeypatch.setattr(os, "open", exchanging)
    with pytest.raises(ForbiddenError, match="exchanged"):
        attachments.open_file("uploads/a.txt")


async def test_the_files_of_the_store_are_no_local_files() -> None:
    """Nobody reads another one's attachment by the path of its blob."""
    async with historykit.open_history("memory", attachments="blobs") as history:
        (found,) = await resolve_attachments(history.as_user("ada"), ["photo.png"])
        path = found["url"].removeprefix("file://")
        for user in ("ada", "bob"):
            with pytest.raises(FileUploadError, match="it is a stored attachment"):
                await resolve_attachments(history.as_user(user), [path])


async def test_a_stored_attachment_is_copied(history: History) -> None:
    """What a user has stored can be attached by its URL: each attachment has its own blob."""
    ada = history.as_user("ada")
    (first,) = await resolve_attachments(ada, ["photo.png"])
    second, third = await resolve_attachments(ada, [first["url"], dict(first, name="b.png")])
    assert len({first["url"], second["url"], third["url"]}) == 3
    assert (third["name"], third["type"]) == ("b.png", "image")
    assert await read(history, third["url"]) == PNG


async def test_the_attachment_of_another_is_forbidden(history: History) -> None:
    """A URL in the store that is not one's own is refused, whatever it leads to."""
    (found,) = await resolve_attachments(history.as_user("ada"), ["photo.png"])
    folder, _, name = found["url"].rpartition("/")
    bob = history.as_user("bob")
    (own,) = await resolve_attachments(bob, ["photo.png"])
    theirs = folder.rpartition("/")[2]
    for url in (
        found["url"],
        f"{own['url'].rpartition('/')[0]}/../{theirs}/{name}",
        f"{own['url'].rpartition('/')[0]}/..",
        folder,
    ):
        for entry in (url, {"url": url}):
            with pytest.raises(ForbiddenError, match="of another session"):
                await resolve_attachments(bob, [entry])


async def test_a_folder_gives_what_is_its_own_only(history: History) -> None:
    """Reading and links need a URL of the folder; what is not in it is not found."""
    (found,) = await resolve_attachments(history, ["photo.png"])
    folder = await history.attachment_folder()
    assert folder.owns(found["url"])
    assert b"".join([piece async for piece in folder.read(found["url"])]) == PNG
    assert await folder.link(found["url"], expires=60) == found["url"]
    other = await history.as_user("ada").attachment_folder()
    assert not other.owns(found["url"])
    with pytest.raises(NotFoundError):
        other.read(found["url"])
    with pytest.raises(NotFoundError):
        await other.link(found["url"], expires=60)
    await other.delete([found["url"]])
    assert await stored(history) == [found["url"]]
    assert folder.path in repr(folder)


async def test_links_need_no_store() -> None:
    """A history without attachments takes links, and says of a file what it needs."""
    async with historykit.open_history("memory") as history:
        assert history.attachments is None
        assert len(await resolve_attachments(history, ["https://e/a.png"])) == 1
        with pytest.raises(FileUploadError, match="open it with attachments=, a folder or a URL"):
            await resolve_attachments(history, ["photo.png"])
        with pytest.raises(ResourceError, match="keeps no attachments"):
            await history.attachment_folder()


async def test_the_owner_of_the_blobs_is_kept_in_the_store_of_the_messages(here: Path) -> None:
    """Another history on the same store has the same folders, on another store others."""
    store, other = MemoryStore(), MemoryStore()
    async with History(store, attachments="blobs") as one, History(other, attachments="blobs") as b:
        again = History(store, attachments="blobs")
        assert (await one.attachment_folder()).path == (await again.attachment_folder()).path
        assert (await one.attachment_folder()).path != (await b.attachment_folder()).path
        elsewhere = History(store, namespace="n", attachments="blobs")
        assert (await elsewhere.attachment_folder()).path != (await one.attachment_folder()).path


async def test_deleting_a_session_deletes_its_attachments(history: History) -> None:
    """The folder of the session goes with it, and nothing else."""
    assert history._space is not None
    await history.append("s", [historykit.Message("user", "a")])
    folder = await history._folder_of(history.key("s"))
    assert folder is not None
    await folder.put(io.BytesIO(PNG))
    (kept,) = await resolve_attachments(history, ["photo.png"])
    assert (await history.delete("s")).sessions == 1
    assert await stored(history) == [kept["url"]]
    assert (await history.delete("s")).sessions == 0


async def test_attachments_are_configured_in_a_file_or_the_environment(here: Path) -> None:
    """`attachments` stands beside the backend: a folder or a URL, or a table that says more."""
    Path("a.toml").write_text('[history]\nbackend = "memory"\nattachments = "files"\n')
    history = historykit.open_history(load_config("a.toml"))
    assert repr(history.attachments) == "Attachments(FsspecAttachmentStore('files'))"
    Path("b.toml").write_text(
        '[history]\nbackend = "memory"\n[history.attachments]\nlocation = "files"\n'
        'allowed_roots = ["uploads"]\nallow_local_paths = false\n'
        "[history.attachments.size_limits]\nimage = 10\n"
    )
    attachments = historykit.open_history(load_config("b.toml")).attachments
    assert attachments is not None
    assert attachments.allowed_roots == [Path("uploads")]
    assert not attachments.allow_local_paths
    assert attachments.size_limits["image"] == 10
    environ = {"HISTORYKIT_BACKEND": "memory", "HISTORYKIT_ATTACHMENTS": "memory://env"}
    config = load_config(environ=environ)
    assert "memory://env" in repr(historykit.open_history(config).attachments)
    argument = historykit.open_history(config, attachments="memory://argument")
    assert "memory://argument" in repr(argument.attachments)
    assert historykit.open_history(HistoryConfig(backend="memory")).attachments is None


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (5, "must be a folder, a URL or Attachments, not int"),
        ({"location": "a", "allowed_rots": []}, "did you mean 'allowed_roots'"),
        ({"allowed_roots": []}, "needs 'location'"),
        ({"location": "a", "allowed_roots": "uploads"}, "put it in a list"),
        ({"location": "a", "size_limits": {"images": 5}}, "did you mean 'image'"),
        ({"location": "a", "size_limits": {"image": "5 MB"}}, "number of bytes or None"),
        ({"location": "a", "size_limits": {"image": True}}, "number of bytes or None"),
        ({"location": "a", "size_limits": {"image": -1}}, "number of bytes or None"),
    ],
)
async def test_a_wrong_configuration_is_named(value: Any, says: str) -> None:
    """What is not understood is an error before anything is opened."""
    with pytest.raises(ConfigError, match=says):
        historykit.open_history("memory", attachments=value)


async def test_a_store_of_ones_own_can_be_given() -> None:
    """Anything that is an attachment store will do, and settings can be made once."""
    store = FsspecAttachmentStore("memory://mine")
    assert as_attachments(store).store is store
    attachments = Attachments(store)
    assert as_attachments(attachments) is attachments


async def test_importing_historykit_imports_no_extra() -> None:
    """fsspec and puremagic are imported when a place is named, and not before."""
    code = (
        "import sys, historykit; historykit.Attachments; historykit.resolve_attachments; "
        "print({'fsspec', 'puremagic'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


async def test_an_owner_is_made_once(history: History) -> None:
    """Who asks first at the same time gets the same folders."""
    views = [history.as_user("ada") for _ in range(5)]
    paths = {(await view.attachment_folder()).path for view in views}
    assert len(paths) == 1
    key = SessionKey("historykit.attachments", "", "default")
    assert (await history.store.read_session(key)).incarnation == paths.pop().partition("/")[0]


async def test_no_warning_without_files(history: History) -> None:
    """An empty list of files is no use of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert await resolve_attachments(history, ["https://e/a"], []) != []


async def test_a_tilde_is_the_home_of_the_user(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path is the one that a shell would make of it, wherever it is named."""
    home = tmp_path / "home"
    home.mkdir()
    home.joinpath("pic.png").write_bytes(PNG)
    home.joinpath("h.toml").write_text('[history]\nbackend = "memory"\n')
    monkeypatch.setenv("HOME", str(home))
    (resolved,) = await resolve_attachments(history, ["~/pic.png"])
    assert await read(history, resolved["url"]) == PNG
    assert Attachments("blobs", allowed_roots=["~"]).allowed_roots == [home]
    assert load_config("~/h.toml", environ={}).backend == "memory"
    kept = as_attachments("~/kept").store
    assert isinstance(kept, FsspecAttachmentStore)
    assert str(kept.local_root) == str(home / "kept")
