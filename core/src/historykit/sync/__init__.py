"""historykit without asyncio: the same names, and calls that block::

    from historykit import sync

    with sync.open_history("sqlite", path="chat.db") as history:
        chat = history.Session(agent="helper", name="Carrots").save()
        chat.add_message("user", "When do I sow carrots?")

Each history has an event loop of its own, in a background thread, on which it runs the
asynchronous calls; agents that it runs run there too. On an event loop the calls raise
`WrongLoopError`. What is not found here is the same in both worlds: messages, configs, errors,
records. ``history.call(photo.read)`` runs what is asynchronous of these, as of an attachment.
"""

from historykit.sync.attaching import resolve_attachments
from historykit.sync.calls import BoundAgent, History, Session, open_history
from historykit.sync.face import HistoryFace, SessionFace

__all__ = [
    "BoundAgent",
    "History",
    "HistoryFace",
    "Session",
    "SessionFace",
    "open_history",
    "resolve_attachments",
]
