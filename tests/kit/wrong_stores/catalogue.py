from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from historykit.memory_sessions import matches
from historykit.session_records import (
    SessionDraft,
    SessionKey,
    SessionQuery,
    SessionRecord,
    SessionSlice,
)
from tests.kit.wrong_stores.lies import Lie, wrong

ANYTHING = "test_any_operations_give_what_the_reference_gives"


class SearchLie(Lie):
    """A store that searches in a way of its own."""

    def filtered(self, records: Iterable[SessionRecord], query: SessionQuery):
        return [record for record in records if matches(record, query)]

    def ordered(self, records: list[SessionRecord]) -> list[SessionRecord]:
        return sorted(records, key=lambda record: record.position, reverse=True)

    def behind(self, records: list[SessionRecord], query: SessionQuery) -> list[SessionRecord]:
        position = query.position
        return [each for each in records if position is None or each.position < position]

    def total(self, found: list[SessionRecord], page: list[SessionRecord], query: SessionQuery):
        return len(found) if query.with_total else None

    async def _find_sessions(self, query: SessionQuery) -> SessionSlice:
        records = [session.record for session in self._sessions.values()]
        found = self.ordered(self.filtered(records, query))
        rest = self.behind(found, query)
        page = rest[query.offset : query.offset + query.limit]
        return SessionSlice(
            records=tuple(page),
            total=self.total(found, page, query),
            more=len(rest) > query.offset + len(page),
        )


@wrong(
    "test_search_filters_by_each_field",
    "test_search_filters_by_labels",
    "test_search_filters_by_time",
    "test_all_conditions_have_to_hold",
    "test_hostile_filters_are_plain_text",
)
class FindsEverything(SearchLie):
    """Takes a filter and finds all sessions of the namespace."""

    def filtered(self, records: Iterable[SessionRecord], query: SessionQuery):
        return [each for each in records if each.key.namespace == query.namespace]


@wrong("test_search_finds_the_sessions_of_a_namespace")
class SearchesBeyondItsNamespace(SearchLie):
    """Takes a namespace for the beginning of namespaces."""

    def filtered(self, records: Iterable[SessionRecord], query: SessionQuery):
        return [
            each
            for each in records
            if each.key.namespace.startswith(query.namespace)
            and matches(each, replace(query, namespace=each.key.namespace))
        ]


@wrong("test_search_of_a_user_finds_no_other_users_sessions")
class TakesNobodyForEverybody(SearchLie):
    """Finds the sessions of all users for nobody in particular."""

    def filtered(self, records: Iterable[SessionRecord], query: SessionQuery):
        query = replace(query, user_id=query.user_id or None)
        return super().filtered(records, query)


@wrong("test_search_filters_by_each_field")
class ComparesWithoutCase(SearchLie):
    """Compares fields without case."""

    def filtered(self, records: Iterable[SessionRecord], query: SessionQuery):
        def low(value: str | None) -> str | None:
            return value and value.lower()

        folded = replace(query, agent_id=low(query.agent_id), status=low(query.status))
        return [
            each
            for each in records
            if matches(
                replace(each, agent_id=each.agent_id.lower(), status=each.status.lower()), folded
            )
        ]


@wrong("test_search_filters_by_labels")
class NeedsOneLabel(SearchLie):
    """Finds a session that has any of the labels."""

    def filtered(self, records: Iterable[SessionRecord], query: SessionQuery):
        found = super().filtered(records, replace(query, labels=frozenset()))
        return [each for each in found if not query.labels or each.labels & query.labels]


@wrong("test_search_filters_by_time")
class IncludesTheEnd(SearchLie):
    """Includes the end of a span of time."""

    def filtered(self, records: Iterable[SessionRecord], query: SessionQuery):
        before = query.created_before
        return super().filtered(
            records, replace(query, created_before=before if before is None else before + 1)
        )


@wrong("test_newest_sessions_come_first")
class OrdersLikeADictionary(SearchLie):
    """Orders ids as people do, without case."""

    def ordered(self, records: list[SessionRecord]) -> list[SessionRecord]:
        return sorted(
            records,
            key=lambda each: (each.created_at, each.key.session_id.lower(), each.key.user_id),
            reverse=True,
        )


@wrong("test_order_does_not_change_with_use")
class OrdersByLastUse(SearchLie):
    """Puts the session first that was used last."""

    def ordered(self, records: list[SessionRecord]) -> list[SessionRecord]:
        return sorted(records, key=lambda each: (each.updated_at, each.position), reverse=True)


@wrong("test_pages_by_offset")
class CountsItsPage(SearchLie):
    """Gives the number of sessions of the page for the total."""

    def total(self, found: list[SessionRecord], page: list[SessionRecord], query: SessionQuery):
        return len(page) if query.with_total else None


@wrong("test_total_is_not_counted_unasked")
class CountsUnasked(SearchLie):
    """Counts all sessions for every page."""

    def total(self, found: list[SessionRecord], page: list[SessionRecord], query: SessionQuery):
        return len(found)


@wrong("test_walk_meets_each_session_once", "test_walk_spans_users")
class WalksByTime(SearchLie):
    """Continues behind all sessions of the same time."""

    def behind(self, records: list[SessionRecord], query: SessionQuery) -> list[SessionRecord]:
        if query.position is None:
            return records
        return [each for each in records if each.created_at < query.position.created_at]


@wrong("test_walk_spans_users")
class WalksWithoutUsers(SearchLie):
    """Continues behind all sessions of the same id."""

    def behind(self, records: list[SessionRecord], query: SessionQuery) -> list[SessionRecord]:
        if query.position is None:
            return records
        return [each for each in records if each.position[:2] < query.position[:2]]


@wrong("test_walk_is_not_disturbed_by_changes", ANYTHING)
class WalksByNumber(SearchLie):
    """Takes a position for the number of sessions before it, as it was on the last page."""

    def behind(self, records: list[SessionRecord], query: SessionQuery) -> list[SessionRecord]:
        begin = 0 if query.position is None else self._end
        self._end = begin + query.limit
        return records[begin:]


@wrong("test_filtered_walk_is_not_disturbed_by_changes")
class WalksByNumberWhenItFilters(WalksByNumber):
    """Takes a position for a number where there is a filter."""

    def behind(self, records: list[SessionRecord], query: SessionQuery) -> list[SessionRecord]:
        if query == replace(SessionQuery(namespace=query.namespace), position=query.position):
            return SearchLie.behind(self, records, query)
        return super().behind(records, query)


@wrong("test_search_returns_what_the_session_is", "test_failed_creations_are_not_found")
class FindsOldCopies(SearchLie):
    """Finds sessions as they were when they were made."""

    def ordered(self, records: list[SessionRecord]) -> list[SessionRecord]:
        return [
            replace(each, streams={}, version=0, last_message_at=None)
            for each in super().ordered(records)
        ]


@wrong("test_search_follows_changes")
class FindsByOldFields(SearchLie):
    """Finds sessions by the fields that they were made with."""

    async def _create_session(
        self, key: SessionKey, draft: SessionDraft, if_exists, incarnation: str, now: int
    ) -> SessionRecord:
        record = await super()._create_session(key, draft, if_exists, incarnation, now)
        self._made = {**getattr(self, "_made", {}), key: record}
        return record

    def filtered(self, records: Iterable[SessionRecord], query: SessionQuery):
        made = getattr(self, "_made", {})
        return [each for each in records if matches(made.get(each.key, each), query)]


@wrong("test_failed_creations_are_not_found")
class CountsAttempts(SearchLie):
    """Counts a creation that found the session as another session."""

    async def _create_session(
        self, key: SessionKey, draft: SessionDraft, if_exists, incarnation: str, now: int
    ) -> SessionRecord:
        self._more = getattr(self, "_more", 0) + (key in self._sessions)
        return await super()._create_session(key, draft, if_exists, incarnation, now)

    def total(self, found: list[SessionRecord], page: list[SessionRecord], query: SessionQuery):
        return len(found) + getattr(self, "_more", 0) if query.with_total else None
