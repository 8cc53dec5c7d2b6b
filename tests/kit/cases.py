"""Makes docs/cases.md: ``python -m tests.kit.cases``.

Each case is what goes wrong in stores of conversations, and names the tests that hold it. A test is
named as in the conformance suite, or by the class of tests/catalogue that has it, or by its module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from historykit.testing import HistoryConformance, NetworkConformance

__all__ = ["CASES", "PAGE", "Case", "missing", "page", "stores_of"]

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "cases.md"

NAMES: Final = {
    "memory": "memory",
    "sqlite": "SQLite",
    "redis": "Redis",
    "postgres": "PostgreSQL",
    "mongo": "MongoDB",
}
CORE: Final = "core"

MARK: Final = "<!-- From here on this page is made by `python -m tests.kit.cases`. -->"


@dataclass(frozen=True, slots=True)
class Case:
    """A case: what may go wrong, what has to hold, and the tests that see to it."""

    name: str
    holds: str
    tests: tuple[str, ...]


CASES: Final = (
    Case(
        "Order within the same instant",
        "messages of one batch, and of batches that follow each other, are read in their order "
        "though the clock stands; so are the attachments of a message",
        (
            "test_batch_keeps_its_order",
            "test_appends_keep_their_order",
            "test_order_does_not_follow_the_clock",
            "test_another_process_reads_the_same",
            "Acceptance.test_two_faces",
        ),
    ),
    Case(
        "The newest, oldest first",
        "a limit means the newest messages, in their order; 0 none, None all, less is refused",
        (
            "test_limit_means_the_newest_oldest_first",
            "test_limit_of_zero_reads_no_messages",
            "core test_records.test_a_window_has_one_direction_and_no_negative_limit",
        ),
    ),
    Case(
        "A change keeps its place",
        "a message that is changed stays where it is, and nothing else changes",
        ("test_change_keeps_the_message_in_its_place", "test_change_is_seen_by_the_session"),
    ),
    Case(
        "Parallel appends",
        "writers in one process and in several lose nothing, and every batch stands together",
        (
            "test_parallel_appends_lose_nothing",
            "test_parallel_batches_stay_whole",
            "test_batches_of_several_stores_stay_whole",
            "test_batches_of_several_processes_stay_whole",
        ),
    ),
    Case(
        "Parallel first use",
        "stores that meet at an empty database all work",
        (
            "test_first_use_may_be_concurrent",
            "test_parallel_first_appends_make_one_session",
            "sqlite test_schema.test_first_use_by_eight_processes",
            "postgres test_schema.test_first_use_by_eight_workers",
            "mongo test_store.test_eight_stores_on_an_empty_database",
        ),
    ),
    Case(
        "A failed save holds nothing",
        "what cannot be stored is named, nothing of its batch is there, and no lock is left",
        (
            "test_message_that_cannot_be_stored_stops_the_batch",
            "test_refused_write_holds_nothing",
            "test_save_that_is_cut_off_is_whole_or_absent",
        ),
    ),
    Case(
        "Appends that expect a version",
        "of two who read the same version one goes on and the other conflicts and writes nothing; "
        "changes of a session's fields are no messages",
        (
            "test_of_two_who_read_a_version_one_goes_on",
            "test_one_of_those_who_expect_a_version_wins",
            "test_expected_version_is_met_or_refused",
            "test_append_leaves_the_revision_alone",
        ),
    ),
    Case(
        "Callers that send everything each time",
        "each message is stored once, by its id or by declaring a transcript",
        (
            "test_transcripts_store_what_is_new",
            "test_cumulative_batches_store_each_message_once",
        ),
    ),
    Case(
        "Genuine repeats",
        "people do say the same again: equal texts are never taken for a repeat",
        ("test_genuine_repeats_stay", "test_equal_messages_are_no_repeat"),
    ),
    Case(
        "A retry",
        "a save whose answer was lost is stored once when it is sent again",
        (
            "test_save_with_a_key_is_stored_once",
            "test_retry_stores_once",
            "test_save_whose_answer_is_lost_is_stored_once",
        ),
    ),
    Case(
        "Replacements",
        "a replacement is there whole or not at all: where one of its messages cannot be stored, "
        "where the session went on meanwhile, where the connection is cut in the midst of it",
        (
            "test_replacement_takes_no_message_of_another_stream",
            "test_replacement_of_another_version_is_refused",
            "test_replacement_that_is_cut_off_is_whole_or_absent",
        ),
    ),
    Case(
        "An outage is no empty history",
        "where the server cannot be reached every call is an error with its cause",
        ("test_outage_is_an_error_for_every_call", "test_outage_in_the_middle_of_saves"),
    ),
    Case(
        "A damaged record",
        "it is named, can be left out, and stops no append",
        ("test_unreadable_record_is_named",),
    ),
    Case(
        "NUL and its like",
        "any text is stored in messages and metadata, and can be searched for",
        (
            "test_messages_come_back_exactly",
            "Wording.test_a_text_is_literal",
            "Wording.test_a_filter_is_honoured_or_refused",
        ),
    ),
    Case(
        "Everything that a message may hold",
        "every content and every value comes back equal, in another process too",
        ("test_messages_come_back_exactly", "test_another_process_reads_the_same"),
    ),
    Case(
        "Unknown types",
        "what only another process knows is kept as it is; data that looks like a type stays data",
        (
            "core test_codec.test_unknown_type_survives_a_process_without_it",
            "core test_codec.test_what_looks_like_a_tag_comes_back_as_data",
        ),
    ),
    Case(
        "Windows",
        "no window parts a call of a tool from its result, or loses the system message",
        (
            "test_window_keeps_tool_groups_whole",
            "core test_windows.test_every_window_of_a_history_is_whole",
        ),
    ),
    Case(
        "Retention",
        "the newest turns stay; 0 stores nothing, less is refused",
        (
            "test_provider_keeps_as_many_as_it_may",
            "test_retention_keeps_the_newest",
            "test_retention_trims_at_the_start_of_a_turn",
        ),
    ),
    Case(
        "Scopes",
        "users, namespaces and streams never mix, in any call",
        (
            "test_reads_by_others_find_nothing",
            "test_writes_by_others_change_nothing",
            "test_edits_by_others_change_nothing",
            "test_holds_by_others_are_their_own",
            "test_searches_by_others_find_their_own",
            "test_parts_of_a_key_do_not_run_together",
            "test_deletion_touches_one_session",
            "Scope.test_a_call_on_an_id",
        ),
    ),
    Case(
        "Hostile ids",
        "any text of 1 to 256 characters is an id, the others are refused everywhere alike",
        (
            "test_hostile_session_ids_are_plain_text",
            "test_hostile_user_ids_are_plain_text",
            "test_ids_are_compared_byte_for_byte",
            "test_bad_arguments_are_refused_before_anything_is_written",
            "core test_records.test_fields_of_sessions_are_identifiers",
        ),
    ),
    Case(
        "Filters are honoured or refused",
        "a filter finds what has it, whatever marks are in it; what is no filter is an error and "
        "never left out",
        (
            "Wording.test_a_filter_is_honoured_or_refused",
            "test_hostile_filters_are_plain_text",
            "test_all_conditions_have_to_hold",
            "Searches.test_filters_find_the_same",
        ),
    ),
    Case(
        "A searched text is literal",
        "no character is a pattern; a blank text is refused",
        ("Wording.test_a_text_is_literal", "Wording.test_a_blank_text_is_refused"),
    ),
    Case(
        "Searches are scoped and full",
        "a user's hits are the user's own, all of them, page by page, with the true total",
        (
            "Wording.test_a_text_is_found_among_ones_own_sessions",
            "test_searches_by_others_find_their_own",
            "Searches.test_pages_are_the_same",
        ),
    ),
    Case(
        "A walk of the catalogue",
        "each session is met once, in the documented order, whatever the size of the pages and "
        "whatever changes meanwhile",
        (
            "Wording.test_the_catalogue_is_walked_whole",
            "test_walk_meets_each_session_once",
            "test_walk_is_not_disturbed_by_changes",
            "test_filtered_walk_is_not_disturbed_by_changes",
            "test_newest_sessions_come_first",
        ),
    ),
    Case(
        "Scrolling back",
        "every message is met once while others come, and a page costs the same on a long session",
        (
            "Wording.test_a_conversation_is_scrolled_back",
            "test_walk_back_meets_each_message_once",
            "test_load_is_one_round_trip_for_each_page",
            "sqlite test_plans.test_the_last_messages_cost_the_same_on_a_long_session",
            "postgres test_plans.test_a_page_costs_the_same_on_a_long_session",
            "mongo test_round_trips.test_a_page_is_one_command",
        ),
    ),
    Case(
        "A deletion leaves nothing",
        "no row, key, index entry or byte; deleting it again finds nothing",
        (
            "test_deletion_leaves_nothing",
            "test_deletion_of_nothing_is_no_error",
            "test_deleted_session_is_not_found",
            "Deletion.test_a_deleted_session_leaves_no_byte",
            "Deletion.test_a_deleted_message_leaves_no_byte",
        ),
    ),
    Case(
        "A clean exit",
        "a process ends with its stores closed, forgotten or closed in vain; the caller's own "
        "client stays open",
        (
            "test_process_ends_after_closing",
            "test_process_ends_without_closing",
            "test_process_ends_when_closing_is_cancelled",
            "redis test_clients.test_any_client_will_do",
            "postgres test_connections.test_an_engine_of_the_callers_own_is_left_open",
            "mongo test_store.test_a_client_of_the_callers_own_stays_open",
        ),
    ),
    Case(
        "Event loops",
        "a store works on the next loop, says so on another one, and mixes no answers",
        (
            "test_store_moves_to_the_next_event_loop",
            "test_other_running_loop_is_refused",
            "test_parallel_reads_do_not_mix",
        ),
    ),
    Case(
        "Discovery of backends",
        "what is broken, missing, doubled or claimed twice is named with its remedy",
        (
            "core test_plugins.test_an_installed_backend_is_loaded_by_its_name",
            "core test_plugins.test_a_plugin_that_cannot_be_imported",
            "core test_plugins.test_a_driver_is_missing",
            "core test_plugins.test_an_editable_install_that_shows_twice_is_one",
            "core test_plugins.test_two_distributions_claim_a_name",
            "core test_plugins.test_discovery_recovers_from_a_failed_read_of_the_metadata",
        ),
    ),
    Case(
        "Schema upgrades",
        "an older database is upgraded when that is asked for, whole or not at all, by one of many",
        (
            "sqlite test_schema.test_a_file_of_each_version_gets_the_schema_of_this_one",
            "sqlite test_schema.test_a_migration_killed_midway_leaves_the_old_version",
            "sqlite test_schema.test_of_five_processes_one_migrates",
            "postgres test_schema.test_tables_of_each_version_get_the_schema_of_this_one",
            "postgres test_schema.test_a_migration_killed_midway_leaves_the_old_version",
            "postgres test_schema.test_of_five_processes_one_migrates",
            "mongo test_store.test_a_newer_collection_is_refused",
            "mongo test_store.test_an_index_that_is_missing_is_made",
        ),
    ),
    Case(
        "Moving from one store to another",
        "an export comes out of any other store as it went in; importing it again adds nothing",
        ("Moving.test_sessions_move_there_and_back",),
    ),
    Case(
        "Deleting a part",
        "by id, by place, by time or a turn as a whole; the others keep order and places, and what "
        "is not there is said so",
        (
            "test_messages_are_deleted_by_id",
            "test_messages_are_deleted_by_place",
            "test_messages_are_deleted_by_time",
            "test_deletion_that_finds_nothing_changes_nothing",
            "Writing.test_a_turn_is_deleted_whole",
            "Wording.test_messages_are_deleted_one_by_one",
        ),
    ),
)


def page() -> str:
    """Return the text of the page: what people wrote of it, and the table."""
    rows = [["case", "what holds", "tests", "stores"], ["---"] * 4]
    for case in CASES:
        tests = ", ".join(f"`{_shown(test)}`" for test in case.tests)
        rows.append([case.name, case.holds, tests, _stores(case)])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{PAGE.read_text('utf-8').partition(MARK)[0]}{MARK}\n\n{table}\n"


def missing() -> list[str]:
    """Return the tests that are named and do not exist."""
    return [test for case in CASES for test in case.tests if not stores_of(test)]


def stores_of(test: str) -> set[str]:
    """Return the stores on which a test runs, none for one that does not exist."""
    where, _, place = test.rpartition(" ")
    owner, _, name = place.partition(".")
    if where:
        folder = "tests/core" if where == CORE else f"backends/{where}/tests"
        return {where} if name in _tests(ROOT / folder / f"{owner}.py") else set()
    if name:
        return _catalogue_stores(owner, name)
    if test in HistoryConformance.historykit_rules:
        return set(NAMES)
    if test in NetworkConformance.historykit_rules:
        return {"redis", "postgres", "mongo"}
    return set()


def _catalogue_stores(owner: str, name: str) -> set[str]:
    """Return the stores with which a class of tests is tried, if it has that test."""
    classes = list(_classes(ROOT / "tests" / "catalogue"))
    if not any(each.name == owner and name in _names(each.body) for each in classes):
        return set()
    bases = [{ast.unparse(base) for base in each.bases} for each in classes]
    tried = set().union(*(each for each in bases if owner in each))
    return {store for store in NAMES if f"On{store}".lower() in {base.lower() for base in tried}}


def _classes(folder: Path) -> Iterator[ast.ClassDef]:
    for path in sorted(folder.glob("*.py")):
        body = ast.parse(path.read_text("utf-8")).body
        yield from (node for node in body if isinstance(node, ast.ClassDef))


def _tests(path: Path) -> set[str]:
    return _names(ast.parse(path.read_text("utf-8")).body) if path.exists() else set()


def _names(body: Iterable[ast.stmt]) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in body if isinstance(node, kinds)}


def _shown(test: str) -> str:
    where, _, place = test.rpartition(" ")
    return f"{where}: {place}" if where not in ("", CORE) else place


def _stores(case: Case) -> str:
    """Return the stores that the tests of a case cover together, where each of them may be."""
    found = set().union(*(stores_of(test) for test in case.tests))
    return ", ".join(shown for store, shown in {**NAMES, CORE: CORE}.items() if store in found)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
