"""Files that survive whoever writes them."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Folder"]


class Folder:
    """A folder of files that are replaced or appended to, and of locks that several processes
    use."""

    def __init__(self, path: Path, *, durable: bool) -> None:
        self.path = path
        self.durable = durable
        self._locks = path / "locks"

    def create(self) -> None:
        """Make the folder."""
        self._locks.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Keep all others out who lock the same name."""
        handle = os.open(self._locks / name[:2], os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def read(self, name: str, begin: int = 0, end: int | None = None) -> bytes | None:
        """Return the bytes of a file, None where there is none.

        Where the folder itself is gone, that is an error: nobody is to take it for empty.
        """
        try:
            with (self.path / name).open("rb") as file:
                file.seek(begin)
                return file.read() if end is None else file.read(end - begin)
        except FileNotFoundError:
            self._locks.stat()
            return None

    def replace(self, name: str, data: bytes) -> None:
        """Put a file in the place of another one, whole."""
        temporary = self.path / f"{name}.new"
        self._write(temporary, 0, data)
        os.replace(temporary, self.path / name)
        self._flush(self.path)

    def append(self, name: str, end: int, data: bytes) -> None:
        """Write behind the first `end` bytes of a file.

        The name of a new file is on the disk after the next `replace`.
        """
        self._write(self.path / name, end, data)

    def remove(self, *names: str) -> None:
        """Remove files, those that are there."""
        for name in names:
            (self.path / name).unlink(missing_ok=True)
        self._flush(self.path)

    def _write(self, path: Path, begin: int, data: bytes) -> None:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        with open(handle, "wb") as file:
            file.truncate(begin)
            file.seek(begin)
            file.write(data)
            file.flush()
            self._flush(handle)

    def _flush(self, file: Path | int) -> None:
        """Wait until a file is on the disk, or the names in a folder are."""
        if not self.durable:
            return
        if isinstance(file, int):
            os.fsync(file)
            return
        handle = os.open(file, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
