"""The messages that are stored: a role and 1,000 bytes of UTF-8, a quarter of the words not ASCII.

Each text begins with a tag, by which it is known again when it comes back.
"""

from __future__ import annotations

import itertools
import random
from typing import Final

__all__ = ["TEXT_BYTES", "history_tags", "role_of", "tag_of", "text"]

TEXT_BYTES: Final = 1_000

_ASCII: Final = (
    "where is my order it was due on Monday and the page says delayed; I looked up parcel #88-413 "
    'in the depot: {"state": "held", "since": 1718000000, "fee": 4.5} so please confirm the '
    "address C:\\in\\box or call +44 20 7946 0018 (ask for Ann) then I will send it again today\n"
)
_OTHER: Final = (
    "straße übermorgen jalapeño garçon déjà Łódź žluťoučký ευχαριστώ спасибо завтра дякую "
    "תודה شكرا धन्यवाद ขอบคุณ ありがとう 配送 住所 谢谢 明天 감사합니다 🙂 📦 👩🏽‍🔧 €12 № «так» — …"
)


def _body(source: random.Random) -> str:
    words: list[str] = []
    while sum(len(word.encode()) + 1 for word in words) < TEXT_BYTES:
        words.append(source.choice((_OTHER if source.random() < 0.25 else _ASCII).split(" ")))
    return " ".join(words)


_SOURCE: Final = random.Random(4711)
_BODIES: Final = itertools.cycle([_body(_SOURCE) for _ in range(64)])


def text(tag: str) -> str:
    """Return a text of exactly `TEXT_BYTES` bytes that begins with `tag`, which has no space."""
    room = TEXT_BYTES - len(tag) - 1
    body = next(_BODIES).encode()[:room].decode(errors="ignore")  # the cut may part a character
    return f"{tag} {body}" + "." * (room - len(body.encode()))


def tag_of(text: str) -> str:
    """Return the tag of a text."""
    return text.partition(" ")[0]


def history_tags(size: int) -> list[str]:
    """Return the tags of a seeded session of `size` messages."""
    return [f"seed-{index}" for index in range(size)]


def role_of(index: int) -> str:
    """Return who speaks the message of that index: user and assistant by turns."""
    return "assistant" if index % 2 else "user"
