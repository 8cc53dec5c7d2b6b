"""Makes the tables of docs/conformance.md: ``python -m tests.kit.page``."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from historykit.testing import HistoryConformance, NetworkConformance, ProviderConformance
from historykit.testing.rules import Rule
from tests.kit.wrong_providers import WRONG_PROVIDERS
from tests.kit.wrong_stores import REFUTED_BY

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"

MARK = "<!-- From here on this page is made by `python -m tests.kit.page`. -->"

STORES = """
## Tests for stores

Each of them refutes stores that were made wrong on purpose: those in the last column, which are
[described below](#wrong-stores). A test that refutes none would be no test.
"""

NETWORKS = """
## Tests for stores behind a network

`NetworkConformance` puts a proxy between a store and its server. It cuts, stalls, delays and
counts.
"""

PROVIDERS = """
## Tests for providers

`ProviderConformance` is for a bare `BaseHistoryProvider` that has a storage of its own and just
`get_messages` and `save_messages`. The fixture `new_provider` returns what makes one;
`guarantees` holds what it claims.
"""

WRONG = """
## Wrong stores

Each tells one lie. The tests named have to refute it.
"""

WRONG_PROVIDER = "## Wrong providers"


def page() -> str:
    """Return the text of the page: what people wrote of it, and the tables."""
    stores = {store.__name__: tests for store, tests in REFUTED_BY.items()}
    providers = {provider.__name__: tests for provider, tests in WRONG_PROVIDERS.items()}
    parts = [
        PAGE.read_text("utf-8").partition(MARK)[0] + MARK,
        STORES,
        *_topics(HistoryConformance.historykit_rules, stores),
        NETWORKS,
        _table(NetworkConformance.historykit_rules.values(), {}),
        PROVIDERS,
        _table(ProviderConformance.historykit_rules.values(), providers),
        WRONG,
        _lies(REFUTED_BY),
        WRONG_PROVIDER,
        _lies(WRONG_PROVIDERS),
    ]
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def _topics(rules: Mapping[str, Rule], refuted: Mapping[str, Iterable[str]]) -> Iterator[str]:
    for topic in dict.fromkeys(rule.topic for rule in rules.values()):
        yield f"### {topic.capitalize()}"
        yield _table([rule for rule in rules.values() if rule.topic == topic], refuted)


def _table(rules: Iterable[Rule], refuted: Mapping[str, Iterable[str]]) -> str:
    refutes = {
        rule.id: [name for name, tests in refuted.items() if rule.id in tests] for rule in rules
    }
    rows = [
        [f"`{rule.id}`", rule.text, rule.since, ", ".join(need.name for need in rule.requires)]
        + ([", ".join(refutes[rule.id])] if refuted else [])
        for rule in rules
    ]
    titles = ["test", "rule", "since", "requires", "refutes"]
    return _rows([titles if refuted else titles[:-1], *rows])


def _lies(refuted: Mapping[type, Iterable[str]]) -> str:
    rows = [
        [each.__name__, inspect.getdoc(each) or "", ", ".join(f"`{test}`" for test in tests)]
        for each, tests in refuted.items()
    ]
    return _rows([["name", "lie", "refuted by"], *rows])


def _rows(rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join([lines[0], f"|{' --- |' * len(rows[0])}", *lines[1:]])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
