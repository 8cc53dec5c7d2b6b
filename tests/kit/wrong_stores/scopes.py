from __future__ import annotations

from dataclasses import replace
from typing import Any

from historykit.session_records import SessionKey
from tests.kit.wrong_stores.lies import Lie, wrong

READS = "test_reads_by_others_find_nothing"
WRITES = "test_writes_by_others_change_nothing"
EDITS = "test_edits_by_others_change_nothing"
HOLDS = "test_holds_by_others_are_their_own"


class ScopeLie(Lie):
    """A store that looks for sessions by their id alone, in one of its calls."""

    def anybodys(self, key: SessionKey) -> SessionKey:
        """Return the key of the first session that has this id, whosever it is."""
        return next((each for each in self._sessions if each.session_id == key.session_id), key)


@wrong(READS)
class ReadsAnybodysMessages(ScopeLie):
    """Reads pages of a session by its id alone."""

    async def _read(self, key: SessionKey, *rest: Any) -> Any:
        return await super()._read(self.anybodys(key), *rest)


@wrong(READS)
class ReadsAnybodysTail(ScopeLie):
    """Reads the end of a session by its id alone."""

    async def _read_tail(self, key: SessionKey, stream: str) -> Any:
        return await super()._read_tail(self.anybodys(key), stream)


@wrong(READS)
class ReadsAnybodysMessage(ScopeLie):
    """Reads a message by the ids of session and message alone."""

    async def _read_message(self, key: SessionKey, message_id: str) -> Any:
        return await super()._read_message(self.anybodys(key), message_id)


@wrong(READS)
class ReadsAnybodysNewest(ScopeLie):
    """Reads the newest messages of sessions by their ids alone."""

    async def _read_newest(self, keys: Any, stream: str) -> Any:
        return await super()._read_newest([self.anybodys(key) for key in keys], stream)


@wrong(READS)
class ReadsAnybodysSession(ScopeLie):
    """Reads a session by its id alone."""

    async def _read_session(self, key: SessionKey) -> Any:
        return await super()._read_session(self.anybodys(key))


@wrong(WRITES)
class ChangesAnybodysSession(ScopeLie):
    """Changes a session by its id alone."""

    async def _patch_session(self, key: SessionKey, *rest: Any) -> Any:
        return await super()._patch_session(self.anybodys(key), *rest)


@wrong(WRITES)
class DeletesAnybodysSession(ScopeLie):
    """Deletes a session by its id alone."""

    async def _delete_session(self, key: SessionKey) -> Any:
        return await super()._delete_session(self.anybodys(key))


@wrong(WRITES)
class AppendsToAnybodysSession(ScopeLie):
    """Appends to a session by its id alone."""

    async def _append(self, request: Any) -> Any:
        return await super()._append(replace(request, key=self.anybodys(request.key)))


@wrong(WRITES)
class UpdatesAnybodysSession(ScopeLie):
    """Creates no session where anybody has one of that id."""

    async def _create_session(self, key: SessionKey, *rest: Any) -> Any:
        return await super()._create_session(self.anybodys(key), *rest)


@wrong(EDITS)
class ChangesAnybodysMessage(ScopeLie):
    """Changes a message of a session by its id alone."""

    async def _update_message(self, key: SessionKey, *rest: Any) -> Any:
        return await super()._update_message(self.anybodys(key), *rest)


@wrong(EDITS)
class DeletesAnybodysMessages(ScopeLie):
    """Deletes messages of a session by its id alone."""

    async def _delete_messages(self, key: SessionKey, *rest: Any) -> Any:
        return await super()._delete_messages(self.anybodys(key), *rest)


@wrong(EDITS)
class ReplacesAnybodysMessages(ScopeLie):
    """Replaces messages of a session by its id alone."""

    async def _replace(self, request: Any) -> Any:
        return await super()._replace(replace(request, key=self.anybodys(request.key)))


@wrong(HOLDS)
class HoldsAnybodysSession(ScopeLie):
    """Claims a session by its id alone."""

    async def _claim_run(self, key: SessionKey, *rest: Any) -> Any:
        return await super()._claim_run(self.anybodys(key), *rest)


@wrong(HOLDS)
class RenewsAnybodysHold(ScopeLie):
    """Renews the hold of a session by its id alone."""

    async def _renew_run(self, key: SessionKey, *rest: Any) -> Any:
        return await super()._renew_run(self.anybodys(key), *rest)


@wrong(HOLDS)
class EndsAnybodysHold(ScopeLie):
    """Ends the hold of a session by its id alone."""

    async def _release_run(self, key: SessionKey, *rest: Any) -> Any:
        return await super()._release_run(self.anybodys(key), *rest)


@wrong("test_searches_by_others_find_their_own")
class ForgetsTheUserWithLabels(Lie):
    """Searches among all users where it searches by labels."""

    async def _find_sessions(self, query: Any) -> Any:
        return await super()._find_sessions(replace(query, user_id=None) if query.labels else query)


@wrong("test_searches_by_others_find_their_own")
class CountsForAllUsers(Lie):
    """Counts the matches of all users."""

    async def _find_sessions(self, query: Any) -> Any:
        found = await super()._find_sessions(query)
        everybody = await super()._find_sessions(replace(query, user_id=None))
        return replace(found, total=everybody.total)
