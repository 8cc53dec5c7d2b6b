"""What a store has to decide under a session's lock, as pure functions.

A store that can run Python between its lock and its write calls these; one that decides on its
server says the same in the server's language. Either way this module is where the rules are written
down."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from historykit.errors import (
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    RunInProgressError,
    SessionDeletedError,
    VersionConflictError,
)
from historykit.records import (
    PAGE_BYTES,
    UNCHANGED,
    AppendReceipt,
    AppendRequest,
    MessageDraft,
    MessagePatch,
    ReplaceRequest,
    StoredMessage,
    Window,
)
from historykit.session_records import (
    RunLease,
    SessionHead,
    SessionKey,
    SessionPatch,
    SessionRecord,
)

__all__ = [
    "INSTRUCTION_ROLES",
    "AppendPlan",
    "Known",
    "check_incarnation",
    "check_revision",
    "check_version",
    "cut_page",
    "message_not_found",
    "plan_append",
    "plan_claim",
    "plan_patch",
    "plan_release",
    "plan_renewal",
    "plan_replace",
    "plan_update",
    "retention_cut",
    "role_mismatch",
    "session_exists",
    "session_not_found",
]

INSTRUCTION_ROLES: Final = frozenset({"system", "developer"})
"""A message of one of these roles that opens a stream stays through retention and windows."""

Known = Mapping[str, tuple[int, bytes]]
"""Sequence and digest of the messages that are stored already, by id."""


@dataclass(frozen=True, slots=True)
class AppendPlan:
    """What to write for an append: `drafts` from `first_sequence` on, nothing if there are none."""

    drafts: tuple[MessageDraft, ...]
    first_sequence: int
    receipt: AppendReceipt


def plan_append(request: AppendRequest, head: SessionHead | None, known: Known) -> AppendPlan:
    """Decide on an append, from the session's head and those of the drafts that are stored already.

    Raises `SessionDeletedError` where the incarnation named is gone, `ConflictError` where an id
    comes back with other content, `VersionConflictError` where the session moved on. The order
    matters: a repeat of an append that succeeded is no conflict, although the version moved by it.
    """
    check_incarnation(request.key, request.incarnation, head)
    if head is None:
        head = SessionHead(
            incarnation=request.new_incarnation,
            version=0,
            next_sequence=1,
            memory_enabled=request.create.memory_enabled,
        )
        created = True
    else:
        created = False
    drafts = _new_drafts(request, known) if head.memory_enabled else ()
    if drafts or not known:
        check_version(request.key, request.expected_version, head.version)
    return AppendPlan(drafts, head.next_sequence, _receipt(request, head, drafts, known, created))


def _new_drafts(request: AppendRequest, known: Known) -> tuple[MessageDraft, ...]:
    """Return the drafts that are not stored yet.

    Minted ids are all of one append, so the last of them speaks for all: earlier ones may have been
    trimmed since. Ids that messages brought along are known one by one.
    """
    if not known:
        return request.drafts
    for draft in request.drafts:
        if draft.id in known and known[draft.id][1] != draft.digest:
            raise ConflictError(
                f"message id {draft.id} of session {request.key.session_id!r} is stored with other "
                "content; an idempotency key belongs to one batch, use another key"
            )
    minted = [draft.id for draft in request.drafts if not draft.external]
    repeated = bool(minted) and minted[-1] in known
    if not repeated and any(id in known for id in minted):
        raise ConflictError(
            f"only a part of this batch is stored in session {request.key.session_id!r}; an "
            "idempotency key belongs to one batch, use another key"
        )
    return tuple(
        draft
        for draft in request.drafts
        if draft.id not in known and not (repeated and not draft.external)
    )


def plan_replace(
    request: ReplaceRequest, head: SessionHead, elsewhere: Collection[str]
) -> AppendReceipt:
    """Return the receipt of a replacement whose drafts go from the head's next sequence on.

    `elsewhere` are the ids among the drafts that other streams of the session hold. Raises
    `VersionConflictError` where the session moved on, `ConflictError` for an id of another stream.
    """
    check_version(request.key, request.expected_version, head.version)
    if elsewhere:
        raise ConflictError(
            f"message id {next(iter(elsewhere))} is in another stream of session "
            f"{request.key.session_id!r}; give the message another id"
        )
    count = len(request.drafts)
    return AppendReceipt(
        incarnation=head.incarnation,
        version=head.version + 1,
        ids=tuple(draft.id for draft in request.drafts),
        sequences=tuple(range(head.next_sequence, head.next_sequence + count)),
        stored=count,
    )


def _receipt(
    request: AppendRequest,
    head: SessionHead,
    drafts: tuple[MessageDraft, ...],
    known: Known,
    created: bool,
) -> AppendReceipt:
    places = {id: sequence for id, (sequence, _) in known.items()}
    for sequence, draft in enumerate(drafts, start=head.next_sequence):
        places[draft.id] = sequence
    ids = tuple([draft.id for draft in request.drafts])
    return AppendReceipt(
        incarnation=head.incarnation,
        version=head.version + bool(drafts),
        ids=ids,
        sequences=tuple(map(places.get, ids)),
        stored=len(drafts),
        created=created,
    )


def retention_cut(
    turn_starts: Iterable[int], *, oldest_wanted: int, opening: tuple[int, str] | None
) -> tuple[int, int] | None:
    """Return the first and last sequence that retention removes, or None.

    `oldest_wanted` is the sequence of the oldest of the newest N messages, `turn_starts` are
    sequences at which turns start, `opening` is sequence and role of the stream's first message.
    """
    if opening is None:
        return None
    last = max((start for start in turn_starts if start <= oldest_wanted), default=0) - 1
    first = opening[0] + (opening[1] in INSTRUCTION_ROLES)
    return (first, last) if first <= last else None


def cut_page(
    rows: Iterable[StoredMessage], window: Window
) -> tuple[tuple[StoredMessage, ...], bool]:
    """Return the messages of one page, oldest first, and whether there are more.

    `rows` come in the direction of the window, the nearest first, and at least one more than
    `window.page` where there is one; no more of them is consumed than the page takes.
    """
    page: list[StoredMessage] = []
    most, room = window.page, PAGE_BYTES
    more = False
    for row in rows:
        size = len(row.body)
        if len(page) == most or (room < size and page):
            more = True
            break
        page.append(row)
        room -= size
    if window.after is None:
        page.reverse()
    return tuple(page), more


def check_incarnation(key: SessionKey, named: str | None, head: SessionHead | None) -> None:
    """Raise `SessionDeletedError` if `named` is not the incarnation that lives."""
    if named is not None and (head is None or head.incarnation != named):
        raise SessionDeletedError(
            f"session {key.session_id!r} was deleted since it was read; the write would revive it. "
            "Read again, or write without naming an incarnation to begin anew"
        )


def check_version(key: SessionKey, expected: int | None, actual: int) -> None:
    """Raise `VersionConflictError` if a version is expected and it is not the actual one."""
    if expected is not None and expected != actual:
        raise VersionConflictError(
            f"session {key.session_id!r} is at version {actual}, not {expected}; "
            "read again, then decide again",
            expected=expected,
            actual=actual,
        )


def check_revision(key: SessionKey, expected: int | None, actual: int) -> None:
    """Raise `VersionConflictError` if a revision is expected and it is not the actual one."""
    if expected is not None and expected != actual:
        raise VersionConflictError(
            f"session {key.session_id!r} is at revision {actual}, not {expected}; "
            "read again, then decide again",
            expected=expected,
            actual=actual,
        )


def session_not_found(key: SessionKey) -> NotFoundError:
    """Return the error for a session that is not there."""
    return NotFoundError(f"session {key.session_id!r} not found")


def message_not_found(key: SessionKey, message_id: str) -> NotFoundError:
    """Return the error for a message that is not there."""
    return NotFoundError(f"Message not found: {message_id!r} in session {key.session_id!r}")


def plan_update(row: StoredMessage, patch: MessagePatch) -> StoredMessage:
    """Return a message as a patch leaves it.

    Raises `InvalidRequestError` where the message does not have the role that the patch requires.
    """
    if patch.required_role is not None and patch.required_role != row.role:
        raise role_mismatch(row.role, patch.required_role)
    return row._replace(
        body=row.body if patch.body is None else patch.body,
        reaction=row.reaction if patch.reaction is UNCHANGED else patch.reaction,
        extra=row.extra if patch.extra is UNCHANGED else patch.extra,
        revision=row.revision + 1,
    )


def plan_patch(
    record: SessionRecord, patch: SessionPatch, if_revision: int | None, *, now: int
) -> SessionRecord:
    """Return a session as a patch leaves it.

    Raises `VersionConflictError` where a revision is named and it is not the session's.
    """
    check_revision(record.key, if_revision, record.revision)
    named = {name: getattr(patch, name) for name in patch.__slots__}
    return replace(
        record,
        updated_at=now,
        revision=record.revision + 1,
        **{name: value for name, value in named.items() if value is not None},
    )


def role_mismatch(role: str, required_role: str) -> InvalidRequestError:
    """Return the error for a change that is for messages of another role."""
    return InvalidRequestError(
        f"Only {required_role} messages can be changed so; this one has the role {role!r}"
    )


def session_exists(key: SessionKey) -> ConflictError:
    """Return the error for a session that is there and should not be."""
    return ConflictError(f"session {key.session_id!r} exists already")


def plan_claim(key: SessionKey, held: RunLease | None, wanted: RunLease, *, now: int) -> RunLease:
    """Return the lease to store for a claim. A run may claim again what it holds.

    Raises `RunInProgressError` while another run's lease lasts.
    """
    if held is not None and held.run_id != wanted.run_id and held.expires_at > now:
        raise RunInProgressError(
            f"session {key.session_id!r} is held by run {held.run_id!r}; try later, or run with "
            "History.run(..., when_busy='wait'), which waits for it"
        )
    return wanted


def plan_renewal(key: SessionKey, held: RunLease | None, wanted: RunLease) -> RunLease:
    """Return the lease to store for a renewal, possible as long as nobody else claimed the session.

    Raises `RunInProgressError` where the run does not hold the session any more.
    """
    if held is None or held.run_id != wanted.run_id:
        raise RunInProgressError(
            f"run {wanted.run_id!r} does not hold session {key.session_id!r} any more; stop it"
        )
    return wanted


def plan_release(held: RunLease | None, run_id: str) -> bool:
    """Return whether the lease is to be removed: only by the run that holds it."""
    return held is not None and held.run_id == run_id
