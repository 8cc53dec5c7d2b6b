"""Servers as private processes: on a free port of the loopback, with a folder of their own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from tests.services.programs import Program

__all__ = ["HOST", "PrivateServer", "free_port", "wait_until"]

HOST = "127.0.0.1"
PATIENCE = 30.0
"""Seconds after which a server that does not answer is held to have failed."""


def free_port() -> int:
    """Return a port of the loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until(
    ready: Callable[[], object], *, failed: Callable[[], str | None], seconds: float = PATIENCE
) -> None:
    """Wait until `ready` returns without an error, which raises `RuntimeError` after `seconds`.

    `failed` is asked in between for the reason to wait no longer.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            ready()
        except Exception as error:
            reason = failed()
            if reason is None and time.monotonic() > deadline:
                reason = f"it does not answer after {seconds:.0f} seconds"
            if reason is not None:
                raise RuntimeError(f"{reason}; the last error was {error!r}") from error
            time.sleep(0.02)
        else:
            return


AS_MANY_FILES_AS_ALLOWED = 'ulimit -n "$(ulimit -H -n)"; exec "$@"'
"""The default of 1,024 ends a MongoDB that has a database for each test."""

LAST_WILL = """
read -r _  # the end of whoever started the server
kill -CONT "$1"; kill -"$2" "$1"; sleep 3; kill -KILL "$1"; rm -rf "$3"
"""


class PrivateServer(ABC):
    """A server of a test's own: started by ``with``, and gone with all its data afterwards.

    Its port stays the same when it is killed and started again.
    """

    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    user: ClassVar[str | None] = None
    """Who runs it where root would."""

    def __init__(self, program: Program, *, port: int | None = None) -> None:
        self.program = program
        self.port = port or free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="historykit-"))
        self.log = self.folder / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def url(self) -> str:
        """How clients name the server."""

    @abstractmethod
    def prepare(self) -> None:
        """Make what the first start needs, in the folder."""

    @abstractmethod
    def command(self) -> Sequence[str | Path]:
        """Return the command that starts the server in the foreground."""

    @abstractmethod
    def ask(self) -> object:
        """Do what a client does. Raises whatever it raises while the server is not ready."""

    def __enter__(self) -> Self:
        try:
            self.prepare()
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def is_running(self) -> bool:
        """Whether the server was started, and not ended since."""
        return self._process is not None

    @property
    def pid(self) -> int:
        """The id of the running process."""
        assert self._process is not None, "the server is not running"
        return self._process.pid

    def start(self) -> None:
        """Start the server, and return when it answers."""
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Start the server without waiting for it."""
        assert self._process is None, "the server is running"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", AS_MANY_FILES_AS_ALLOWED, "sh", *self.command()],
                cwd=self.folder,
                env={**os.environ, **self.program.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # an interrupt from the keyboard is not for it
                **self._identity(),
            )
        self._guard = self._guarded()

    def wait_until_ready(self) -> None:
        """Return when the server answers. Raises `RuntimeError`, which shows its log."""
        try:
            wait_until(self.ask, failed=self._failure)
        except RuntimeError as error:
            raise RuntimeError(
                f"{self.program.path} did not start: {error}\n{self._end_of_log()}"
            ) from error

    def kill(self) -> None:
        """End the server as ``kill -9`` does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End the server in good order."""
        self._end(self.stop_signal)

    def freeze(self) -> None:
        """Stop the server in the middle of whatever it does: it keeps its port and says nothing."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen server go on."""
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """End the server and remove its folder."""
        if self._process is not None:
            self.thaw()
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *command: str | Path) -> None:
        """Run a program of the server to its end. Raises `RuntimeError` with what it said."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, **self.program.environment},
            capture_output=True,
            text=True,
            check=False,
            **self._identity(),
        )
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]} failed: {done.stdout}{done.stderr}")

    def _end(self, how: signal.Signals) -> None:
        assert self._process is not None, "the server is not running"
        self._process.send_signal(how)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:  # a server that waits for its clients, for example
            self._process.kill()
            self._process.wait()
        self._process = None
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()

    def _guarded(self) -> subprocess.Popen[bytes] | None:
        """Start what ends the server and removes its folder if this process is killed."""
        if os.name != "posix":
            return None
        will = (str(self.pid), str(self.stop_signal.value), str(self.folder))
        return subprocess.Popen(
            ["/bin/sh", "-c", LAST_WILL, "sh", *will],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _identity(self) -> dict[str, Any]:
        """Return what `subprocess` takes to run as another user, where that is needed."""
        if self.user is None or os.name != "posix" or os.geteuid() != 0:
            return {}
        import pwd

        account = pwd.getpwnam(self.user)
        os.chown(self.folder, account.pw_uid, account.pw_gid)
        return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}

    def _failure(self) -> str | None:
        assert self._process is not None
        code = self._process.poll()
        return None if code is None else f"it ended with {code}"

    def _end_of_log(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-30:])
