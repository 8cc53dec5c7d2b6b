"""Real conversations for tests; README.md says where they are from."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

__all__ = ["conversations"]


def conversations() -> list[dict[str, Any]]:
    """Return the conversations: `id`, `agent`, and `messages` in chat-completions form."""
    path = Path(__file__).with_name("conversations.jsonl.xz")
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
