"""Sessions, users and namespaces never see each other."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from historykit.session_records import SessionDraft, SessionKey, SessionPatch
from historykit.store import HistoryStore
from historykit.testing.drafts import draft
from historykit.testing.rules import since
from historykit.testing.subject import StoreSubject

__all__ = ["HOSTILE_TEXTS", "IsolationTests"]

HOSTILE_TEXTS = (
    "../../x",
    "..",
    ".",
    "/",
    "a/b",
    "a\\",
    "C:\\con",
    "nul.txt",
    "x' OR 1=1--",
    '"; DROP TABLE sessions; --',
    "{t}",
    "{0}",
    "%s",
    "%",
    "_",
    "*",
    "?",
    "[a-z]",
    "$where",
    "a.b",
    ":",
    "a:b",
    "~",
    "#",
    "0",
    "-1",
    "1e3",
    "None",
    "null",
    "default",
    "main",
    " ",
    "\t",
    "line\nbreak",
    "\x01",
    "\x7f",
    "\u200b",
    "\ufeff",
    "\ufffd",
    "\uffff",
    "\U0010ffff",
    "été",
    "\N{PILE OF POO}",
    "x" * 256,
    "\N{PILE OF POO}" * 256,
    "3f2b8c1e-77aa-4d4f-9b3e-0f8f1c2d3e4f",
)
"""Texts that mean something to a path, a query, a pattern or a key somewhere."""

LOOK_ALIKES = (
    ("case", "Case", "CASE"),
    ("x", "x ", " x", "x\t", "x\n"),
    ("\u00e9", "e\u0301", "e"),
    ("1", "01", "1.0", "+1", "\uff11"),
    ("ss", "\u00df", "\u1e9e"),
    ("prod", "prod2", "pro"),
    ("i", "\u0131", "I", "\u0130"),
    ("x" * 255 + "a", "x" * 255 + "b"),
)
"""Texts that some comparisons take for equal, or for the beginning of each other."""


class IsolationTests:
    """All three parts of a key count, to the last byte."""

    @since("0.1")
    async def test_sessions_are_apart(self, subject: StoreSubject, store: HistoryStore) -> None:
        """What is appended to one session is in no other."""
        await _assert_apart(subject, store, [subject.key("s1"), subject.key("s2")])

    @since("0.1")
    async def test_users_are_apart(self, subject: StoreSubject, store: HistoryStore) -> None:
        """The same session id is another session for each user, and for nobody in particular."""
        users = ("", "ada", "bob", "Ada")
        await _assert_apart(subject, store, [subject.key(user=user) for user in users])

    @since("0.1")
    async def test_namespaces_are_apart(self, subject: StoreSubject, store: HistoryStore) -> None:
        """The same user and session id are another session in each namespace."""
        names = ("", "2", "-prod", "-prod2")
        await _assert_apart(subject, store, [subject.key(namespace=name) for name in names])

    @since("0.1")
    async def test_parts_of_a_key_do_not_run_together(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """No character joins the parts of a key: ("a:b", "c") is not ("a", "b:c")."""
        keys = []
        for mark in (":", "/", "|", ".", "\x1f", " ", ",", "\\", "\x01"):
            parts = ("a", "b", "c")
            keys += [
                subject.key(mark.join(parts[cut:]), user=mark.join(parts[:cut])) for cut in (1, 2)
            ]
            keys += [
                subject.key(mark.join(parts[cut:]), namespace=mark.join(["", *parts[:cut]]))
                for cut in (1, 2)
            ]
        await _assert_apart(subject, store, keys)

    @since("0.1")
    async def test_hostile_session_ids_are_plain_text(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Any text is a session id: no path, query, pattern or key is made of its parts."""
        await _assert_apart(subject, store, map(subject.key, HOSTILE_TEXTS))

    @since("0.1")
    async def test_hostile_user_ids_are_plain_text(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Any text is a user id."""
        await _assert_apart(subject, store, (subject.key(user=user) for user in HOSTILE_TEXTS))

    @since("0.1")
    async def test_hostile_namespaces_are_plain_text(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Any text is a namespace."""
        names = (name for name in HOSTILE_TEXTS if len(name) < 200)
        await _assert_apart(subject, store, (subject.key(namespace=name) for name in names))

    @since("0.1")
    async def test_hostile_streams_are_plain_text(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Any text is the name of a stream."""
        key = subject.key()
        names = {"main", *HOSTILE_TEXTS, *itertools.chain.from_iterable(LOOK_ALIKES)}
        for name in names:
            await store.append(key, [draft(name)], stream=name)
        for name in names:
            assert await subject.texts(store, key, stream=name) == [name]

    @since("0.1")
    async def test_hostile_message_ids_are_plain_text(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Any text is the id of a message, and is another one than those that look like it."""
        key = subject.key()
        ids = list({*HOSTILE_TEXTS, *itertools.chain.from_iterable(LOOK_ALIKES)})
        receipt = await store.append(key, [draft(id, id=id) for id in ids])
        assert receipt.stored == len(ids)
        rows = await subject.messages(store, key)
        assert [(row.id, row.body.decode()) for row in rows] == [(id, id) for id in ids]

    @since("0.1")
    async def test_ids_are_compared_byte_for_byte(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Case, spaces at the end, accents and other spellings make another session or user."""
        texts = list(itertools.chain.from_iterable(LOOK_ALIKES))
        await _assert_apart(subject, store, map(subject.key, texts))
        await _assert_apart(subject, store, (subject.key("s2", user=text) for text in texts))

    @since("0.1")
    async def test_deletion_touches_one_session(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Deleting a session leaves those alone that share an id or the beginning of one."""
        keys = [
            subject.key(session, user=user, namespace=name)
            for session in ("s1", "s10", "%")
            for user in ("", "ada")
            for name in ("", "2")
        ]
        for key in keys:
            await store.append(key, [draft(repr(key))])
        for gone in (subject.key("s1"), subject.key("%")):
            keys.remove(gone)
            assert (await store.delete_session(gone)).sessions == 1
            for key in keys:
                assert await subject.texts(store, key) == [repr(key)]

    @since("0.1")
    async def test_fields_of_sessions_are_apart(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Creating and changing a session leaves the sessions of the same id alone."""
        keys = [subject.key(user=user) for user in ("", "ada", "bob")]
        for key in keys:
            await store.create_session(key, SessionDraft(body=repr(key).encode()))
        await store.patch_session(keys[1], SessionPatch(status="archived", body=b"changed"))
        records = [await store.read_session(key) for key in keys]
        assert [record.key for record in records] == keys
        assert [record.status for record in records] == ["active", "archived", "active"]
        assert records[2].body == repr(keys[2]).encode()

    @since("0.1")
    async def test_message_ids_belong_to_one_session(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A message id that another session has too is no repeat."""
        batch = [draft("same", id="m1", external=True), draft("also", id="m2")]
        keys = [subject.key(), subject.key("s2"), subject.key(user="ada")]
        receipts = [await store.append(key, batch) for key in keys]
        assert [receipt.stored for receipt in receipts] == [2, 2, 2]
        for key in keys:
            assert await subject.texts(store, key) == ["same", "also"]


async def _assert_apart(
    subject: StoreSubject, store: HistoryStore, keys: Iterable[SessionKey]
) -> None:
    """Fill a session for each key, and find in each what was put there."""
    keys = list(keys)
    for key in keys:
        receipt = await store.append(key, [draft(repr(key))])
        assert receipt.created, f"{key} is taken for another session"
    async with subject.witness(store) as witness:
        for key in keys:
            page = await witness.read(key)
            assert [row.body.decode() for row in page.messages] == [repr(key)]
