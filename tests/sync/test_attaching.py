from __future__ import annotations

from pathlib import Path

import pytest

from historykit import FileUploadError, sync


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("notes")


def test_files_are_attached_and_read_without_asyncio() -> None:
    """A session takes files, their bytes are read by `call`, and the warning is at the line."""
    with sync.open_history("sqlite", path="chat.db", attachments="files") as history:
        chat = history.Session(id="s").save()
        with pytest.warns(DeprecationWarning, match="`files`") as caught:
            message = chat.add_message("user", "a", attachments=["notes.txt"], files=["notes.txt"])
        assert [warning.filename for warning in caught] == [__file__]
        assert [history.call(each.read) for each in message.attachments or ()] == [b"notes"] * 2
        chat.delete()
        assert history.sweep_attachments(older_than=0).blobs == 0


def test_attachments_are_resolved_without_asyncio() -> None:
    """`sync.resolve_attachments` takes a blocking history."""
    with sync.open_history("sqlite", path="chat.db", attachments="files") as history:
        (notes,) = sync.resolve_attachments(history, ["notes.txt"])
        assert (notes["name"], notes["type"]) == ("notes.txt", "text")
        with pytest.raises(FileUploadError, match=r"Failed to upload file 'no' for session 's': "):
            sync.resolve_attachments(history, ["no"], error_label="session 's'")
