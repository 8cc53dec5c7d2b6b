"""The parent's side of a worker."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from bench.adapter import Adapter, Place
from bench.environments import ROOT, python_of
from bench.plan import Plan

__all__ = ["Process"]

PATIENCE: Final = 600.0
"""How many seconds one command may take before its process is ended."""

QUIET: Final = {"OTEL_SDK_DISABLED": "true", "PYTHONWARNINGS": "ignore"}


class Process:
    """A worker. What it prints goes to a log file beside the adapter's data."""

    def __init__(self, adapter: type[Adapter], place: Place, plan: Plan, *, cache: Path) -> None:
        place.folder.mkdir(parents=True, exist_ok=True)
        where = {"folder": str(place.folder), "number": place.number}
        settings = {**where, "settings": dict(place.settings)}
        self._log = (place.folder / "worker.log").open("ab")
        self._process = subprocess.Popen(
            [
                str(python_of(adapter.environment, cache)),
                "-m",
                "bench.worker",
                adapter.database,
                adapter.name,
                json.dumps(settings),
                json.dumps(plan.to_dict()),
            ],
            cwd=ROOT,
            env={**os.environ, **QUIET},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def send(self, command: str, **arguments: Any) -> None:
        """Send a command, whose answer is to be received."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the answer will say so
            print(json.dumps({"do": command, **arguments}), file=self._process.stdin, flush=True)

    def receive(self) -> dict[str, Any]:
        """Return the answer to the last command; ``failed`` says why there is none."""
        assert self._process.stdout is not None
        watchdog = threading.Timer(PATIENCE, self._process.kill)
        watchdog.daemon = True  # a run that is ended meanwhile shall not wait for it
        watchdog.start()
        try:
            line = self._process.stdout.readline()
        finally:
            watchdog.cancel()
        if not line:
            return {"failed": f"the process ended with {self._process.wait()}: {self._log.name}"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def do(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a command and return its answer."""
        self.send(command, **arguments)
        return self.receive()

    def close(self) -> None:
        """End the worker."""
        self.do("close")
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()
