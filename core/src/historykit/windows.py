"""Windows on a history that a model can be given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import dropwhile

from historykit.messages import Message

__all__ = ["whole_groups"]

_ANSWERS = ("_result", "_approval_response")
"""How the types of contents end that answer others."""


def whole_groups(messages: Sequence[Message]) -> list[Message]:
    """Return `messages`, the end of a history, without parts of tool groups that were cut off.

    A result whose call is not among the messages is left out, so is the answer to an approval that
    was not asked for in them, and a call that loses its result by this. Tool messages that name no
    call belong to what stands before them and are left out at the beginning. A call that has no
    result yet stays: it may be waiting for approval.
    """
    kept = list(dropwhile(_is_bare_tool_message, messages))
    types = {content.type for message in kept for content in message.contents}
    if not any(type.endswith(_ANSWERS) for type in types):
        return kept
    while True:
        opened = {key for message in kept for key in _opens(message)}
        cut = [message for message in kept if not opened.issuperset(_closes(message))]
        if not cut:
            return kept
        lost = {key for message in cut for key in _closes(message)}
        gone = {id(message) for message in cut}
        kept = [m for m in kept if id(m) not in gone and lost.isdisjoint(_opens(m))]


def _is_bare_tool_message(message: Message) -> bool:
    return message.role == "tool" and next(_closes(message), None) is None


def _opens(message: Message) -> Iterator[str]:
    """Yield the keys under which later messages answer this one."""
    for content in message.contents:
        if content.type == "function_approval_request":
            call = content.function_call
            yield from _keys(content.id, call and call.call_id)
        elif content.type.endswith("_call"):
            yield from _keys(content.call_id, content.image_id)


def _closes(message: Message) -> Iterator[str]:
    """Yield the keys of what this message answers."""
    for content in message.contents:
        if content.type == "function_approval_response":
            yield from _keys(content.id)
        elif content.type.endswith("_result"):
            yield from _keys(content.call_id, content.image_id)


def _keys(*values: object) -> Iterator[str]:
    return (value for value in values if isinstance(value, str))
