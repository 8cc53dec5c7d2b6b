"""The suite under pytest: selection, skips, known failures, reports, other settings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import historykit.testing.conformance
import historykit.testing.provider_conformance  # noqa: F401  - runs within this one share both

pytest_plugins = ["pytester"]

pytestmark = pytest.mark.timeout(300)  # some of these run pytest in other processes

MEMORY = """
from historykit.testing import HistoryConformance

class TestMemory(HistoryConformance):
    backend = "memory"
"""

PROVIDER = """
import pytest
from historykit import BaseHistoryProvider, Message
from historykit.testing import ProviderConformance

class ListProvider(BaseHistoryProvider):
    def __init__(self):
        super().__init__("list")
        self.rows = []

    async def get_messages(self, session_id, **kwargs):
        return [Message.from_json(row) for id, row in self.rows if session_id and id == session_id]

    async def save_messages(self, session_id, messages, **kwargs):
        self.rows += [(session_id, message.to_json()) for message in messages if session_id]

class TestList(ProviderConformance):
    @pytest.fixture
    def new_provider(self):
        return ListProvider
"""

WRONG = """
from historykit.testing import HistoryConformance
from tests.kit.wrong_stores import spec_of, {module}

class TestWrong(HistoryConformance):
    spec = spec_of({module}.{store})
"""

STANDALONE = ["--pyargs", "historykit.testing.standalone", "--noconftest"]

ORDER = "test_batch_keeps_its_order"
FORGETS = "test_second_store_sees_what_was_appended"


@pytest.fixture
def pytester(pytester: pytest.Pytester) -> pytest.Pytester:
    """A directory with the settings of a careful author, who has this checkout in the path."""
    root = Path(__file__).parents[2]
    pytester.makeini(
        f"[pytest]\nasyncio_default_fixture_loop_scope = function\npythonpath = {root}\n"
    )
    return pytester


def run(pytester: pytest.Pytester, source: str, *arguments: str) -> pytest.RunResult:
    """Run a test module."""
    pytester.makepyfile(source)
    return pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", *arguments)


def run_alone(pytester: pytest.Pytester, source: str, *arguments: str) -> pytest.RunResult:
    """Run a test module in a process of its own."""
    pytester.makepyfile(source)
    return pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", *arguments)


def report(pytester: pytest.Pytester) -> dict[str, Any]:
    """Return the report that a run wrote."""
    (judged,) = json.loads((pytester.path / "report.json").read_text("utf-8"))["classes"]
    assert isinstance(judged, dict)
    return judged


def test_provider_is_conformant(pytester: pytest.Pytester) -> None:
    """A run of the whole suite without a failure ends as CONFORMANT."""
    result = run_alone(pytester, PROVIDER, "--history-strict")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["*historykit conformance*", "*not claimed*SHARED not declared", "  CONFORMANT (24 of 24*"]
    )


def test_part_of_the_suite_is_partial(pytester: pytest.Pytester) -> None:
    """Deselecting tests makes a level of PARTIAL, which fails where completeness was asked for."""
    result = run(pytester, MEMORY, "-k", ORDER)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines("*PARTIAL (1 of *")
    result = run(pytester, MEMORY, "-k", ORDER, "--history-strict")
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_nothing_of_the_suite_is_not_run(pytester: pytest.Pytester) -> None:
    """Where all tests are deselected, or no class is there, nothing ran, and nothing is proven."""
    result = run(pytester, MEMORY, "-k", "zzz")
    result.stdout.fnmatch_lines("*NOT RUN (0 of *")
    result = run(pytester, "def test_other(): pass", "--history-strict")
    result.stdout.fnmatch_lines("NOT RUN: no conformance class was collected")
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_wrong_store_is_refuted(pytester: pytest.Pytester) -> None:
    """A test that fails shows what it found, and the store is NOT CONFORMANT."""
    source = WRONG.format(module="messages", store="ReversesBatches")
    result = run_alone(pytester, source, "-k", "keeps_its_order or keep_their_order")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*At index 0 diff: 'm 49' != 'm 0'*",
            f"  failed               {ORDER}*assert *'m 49'*",
            "  NOT CONFORMANT (2 of *",
        ]
    )


def test_capability_that_is_there_has_to_be_declared(pytester: pytest.Pytester) -> None:
    """A test of an undeclared capability that passes fails."""
    source = WRONG.format(module="contract", store="EditsWithoutSayingSo")
    result = run(pytester, source, "-k", "test_epoch_counts_edits")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines("*undeclared  *test_epoch_counts_edits*EDIT*declares*")


def test_capability_that_is_not_there_has_to_be_refused(pytester: pytest.Pytester) -> None:
    """A test of an undeclared capability passes by the refusal of the call, and only by that."""
    source = """
        from historykit.memory import MemoryStore
        from historykit.plugins import BackendSpec
        from historykit.memory import MemoryConfig
        from historykit.testing import HistoryConformance

        class Plain(MemoryStore):
            capabilities = frozenset()

        class TestPlain(HistoryConformance):
            spec = BackendSpec(name="memory", store=lambda: Plain, config=lambda: MemoryConfig)
        """
    result = run(pytester, source, "-k", "test_epoch_counts_edits or test_claim_expires")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["  refused  *test_epoch_counts_edits*EDIT not declared", "  refused*RUNS not declared"]
    )
    source = WRONG.format(module="contract", store="IgnoresWhatItCannotDo")
    result = run(pytester, source, "-k", "test_epoch_counts_edits")
    result.stdout.fnmatch_lines("*failed  *test_epoch_counts_edits*")


def test_capability_may_be_missing_on_a_server(pytester: pytest.Pytester) -> None:
    """What is declared and not there says that it is the server's fault."""
    source = """
        from historykit.capabilities import Capability
        from historykit.memory import MemoryConfig, MemoryStore
        from historykit.plugins import BackendSpec
        from historykit.testing import HistoryConformance

        class Plain(MemoryStore):
            capabilities = frozenset()

        class TestPlain(HistoryConformance):
            spec = BackendSpec(
                name="memory", store=lambda: Plain, config=lambda: MemoryConfig,
                capabilities=frozenset(Capability),
            )
        """
    result = run(pytester, source, "-k", "test_claim_expires")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines("*refused  *test_claim_expires*not on this server")


KNOWN = MEMORY + '    known_failures = {{"{test}": "memory#12"}}\n'


def test_known_failure_is_expected(pytester: pytest.Pytester) -> None:
    """A test that is listed and fails is no failure, and is named in the level."""
    source = PROVIDER + ('    known_failures = {"test_no_session_is_no_history": "list#1"}\n')
    source = source.replace("if session_id and id", "if id").replace("if session_id]", "]")
    result = run(pytester, source, "--history-strict", "--history-report=report.json")
    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=23, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            "  known failure*test_no_session_is_no_history*list#1",
            "  CONFORMANT, WITH 1 KNOWN FAILURE (24 of 24 tests ran)",
        ]
    )
    judged = report(pytester)
    assert (judged["level"], judged["known_failures"]) == ("CONFORMANT, WITH KNOWN FAILURES", 1)


@pytest.mark.parametrize("test", [ORDER, FORGETS])
def test_stale_listing_fails(pytester: pytest.Pytester, test: str) -> None:
    """A test that is listed and would not have failed has to leave the list."""
    result = run(pytester, KNOWN.format(test=test), "-k", test)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"  stale  *{test}*memory#12*", "  NOT CONFORMANT*"])


def test_listing_of_no_test_stops_the_collection(pytester: pytest.Pytester) -> None:
    """An id that no test has is one error, which no selection can hide."""
    result = run(pytester, KNOWN.format(test="test_typo"), "-k", ORDER)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines("*known_failures of TestMemory lists no test: 'test_typo'*")


SKIPS = {
    "by a mark": ("", "    pytestmark = pytest.mark.skip(reason='no server')\n"),
    "by a condition": ("", "    pytestmark = pytest.mark.skipif(True, reason='no server')\n"),
    "by xfail": ("", "    pytestmark = pytest.mark.xfail\n"),
    "by xfail without running": ("", "    pytestmark = pytest.mark.xfail(run=False)\n"),
    "by a fixture": (
        "",
        "    @pytest.fixture\n    def backend_config(self):\n        pytest.skip('no server')\n",
    ),
    "by a fixture of the module": (
        "@pytest.fixture(autouse=True)\ndef skip_all():\n    pytest.skip('no server')\n",
        "",
    ),
}


@pytest.mark.parametrize("way", SKIPS)
def test_skip_is_an_error(pytester: pytest.Pytester, way: str) -> None:
    """A conformance test that is skipped, in whatever way, is an error."""
    before, inside = SKIPS[way]
    result = run(pytester, f"import pytest\n{before}{MEMORY}{inside}", "-k", ORDER)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [f"  error  *{ORDER}*may not be skipped*", "  NOT CONFORMANT (1 of *"]
    )


def test_own_test_of_the_author_is_an_ordinary_test(pytester: pytest.Pytester) -> None:
    """A test that the author adds fails and passes as any other, and may not be skipped."""
    source = f"""import pytest{MEMORY}
    def test_mine_good(self): pass
    def test_mine_bad(self): assert 0
    def test_mine_skip(self): pytest.skip()
    """
    result = run(pytester, source, "-k", "test_mine")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*may not be skipped*", "  NOT RUN (0 of *"])


def test_test_that_is_exchanged_later_stops_the_collection(pytester: pytest.Pytester) -> None:
    """A class that is tampered with after it was made is one error."""
    source = MEMORY + f"\nTestMemory.{ORDER} = lambda self: None\n"
    result = run(pytester, source)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(f"*TestMemory.{ORDER} replaces*")


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        (MEMORY.replace('"memory"', '"memroy"'), "*no backend 'memroy' is installed*"),
        (MEMORY.replace('"memory"', '""'), "*name the backend: backend = 'acme', or give a spec"),
        (PROVIDER.replace("new_provider", "other"), "*write the fixture new_provider*"),
    ],
)
def test_backend_that_does_not_load_is_one_error(
    pytester: pytest.Pytester, source: str, complaint: str
) -> None:
    """Without a backend that loads there is one error, not one for each test."""
    result = run(pytester, source)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(complaint)


def test_server_that_is_away_is_asked_once(pytester: pytest.Pytester) -> None:
    """Where the store cannot be reached at first, the other tests do not try again."""
    source = """
        from historykit.errors import StorageUnavailableError
        from historykit.memory import MemoryConfig, MemoryStore
        from historykit.plugins import BackendSpec
        from historykit.testing import HistoryConformance

        class Away(MemoryStore):
            async def _open(self):
                print("KNOCK")
                raise StorageUnavailableError("nobody at home")

        class TestAway(HistoryConformance):
            spec = BackendSpec(name="memory", store=lambda: Away, config=lambda: MemoryConfig)
        """
    result = run(pytester, source, "-k", "keeps_its_order or keep_their_order")
    result.assert_outcomes(errors=2)
    assert result.stdout.lines.count("KNOCK") == 1
    result.stdout.fnmatch_lines("*error  *the store cannot be reached: nobody at home*")


def test_report_says_what_was_found(pytester: pytest.Pytester) -> None:
    """The report has the versions, what the backend declares, and a verdict for every test."""
    run(pytester, MEMORY, "--history-report=report.json", "-k", f"{ORDER} or {FORGETS}")
    written = json.loads((pytester.path / "report.json").read_text("utf-8"))
    assert set(written) == {"historykit", "pytest", "python", "classes"}
    judged = report(pytester)
    assert judged["class"] == "test_report_says_what_was_found.py::TestMemory"
    assert (judged["subject"], judged["api_version"]) == ("memory", 1)
    assert judged["server"] == "memory 1"
    assert judged["declares"] == judged["claims"] == ["CATALOGUE", "EDIT", "RUNS"]
    assert (judged["level"], judged["ran"]) == ("PARTIAL", 2)
    assert judged["total"] == len(judged["tests"])
    assert judged["tests"][ORDER] == {"verdict": "passed", "detail": ""}
    assert judged["tests"][FORGETS] == {"verdict": "not claimed", "detail": "SHARED not declared"}
    assert judged["tests"]["test_claim_expires"]["verdict"] == "not run"


def test_workers_make_one_report(pytester: pytest.Pytester) -> None:
    """Under pytest-xdist the verdicts of all workers make one table."""
    result = run_alone(
        pytester, PROVIDER, "-n2", "--history-strict", "--history-report=report.json"
    )
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines("*CONFORMANT (24 of 24 tests ran)")
    assert report(pytester)["ran"] == 24
    result = run_alone(pytester, PROVIDER, "-n2", "--history-strict", "-k", "zzz")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines("*NOT RUN (0 of 24 tests ran)")


@pytest.mark.parametrize(
    "options",
    [
        ["-o", "asyncio_mode=auto"],
        [
            "-o",
            "asyncio_mode=auto",
            "-o",
            "asyncio_default_fixture_loop_scope=session",
            "-o",
            "asyncio_default_test_loop_scope=session",
        ],
        ["-W", "error"],
        ["--import-mode=importlib"],
    ],
    ids=["auto mode", "session loops", "warnings are errors", "importlib"],
)
def test_settings_of_the_author_do_not_matter(
    pytester: pytest.Pytester, options: list[str]
) -> None:
    """The suite runs the same in any mode of pytest-asyncio, and without a warning."""
    result = run_alone(pytester, PROVIDER, "--history-strict", *options)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines("*CONFORMANT (24 of 24 tests ran)")


def test_verbose_table_lists_all_tests(pytester: pytest.Pytester) -> None:
    """The table counts what passed, and lists it where pytest is verbose."""
    result = run(pytester, MEMORY, "-k", ORDER)
    result.stdout.fnmatch_lines("*passed               1 tests")
    result = run(pytester, MEMORY, "-k", ORDER, "-vv")
    result.stdout.fnmatch_lines(f"*passed               {ORDER}")


def test_other_runs_are_left_alone(pytester: pytest.Pytester) -> None:
    """Where no conformance class is there the plugin says nothing, and skips are skips."""
    source = "import pytest\ndef test_a(): pass\ndef test_b(): pytest.skip()\n"
    result = run(pytester, source)
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.no_fnmatch_line("*historykit*")
    assert not (pytester.path / "report.json").exists()


def test_plugin_imports_no_suite() -> None:
    """Loading the plugin, as every run of pytest does, imports neither the suite nor what it
    needs."""
    code = (
        "import sys, pytest; before = set(sys.modules); import historykit.testing.plugin; "
        "print(*sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    names = loaded.stdout.split()
    suite = [name for name in names if name.startswith("historykit.testing")]
    assert suite == ["historykit.testing", "historykit.testing.plugin"]
    assert not {"hypothesis", "pytest_asyncio", "historykit.memory"} & set(names)


def test_standalone_tests_what_the_options_name(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a test module the options name backend, settings and known failures."""
    pytester.makefile(".toml", failures=f'{FORGETS} = "a reason"')
    arguments = [*STANDALONE, "--history-backend=sqlite"]
    result = run_alone(pytester, "", *arguments, "--history-set=path=a.db", "-k", ORDER)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["sqlite from historykit-sqlite *", "  PARTIAL (1 of *"])
    assert (pytester.path / "a.db").exists()
    monkeypatch.setenv("HISTORYKIT_SQLITE_PATH", "b.db")
    arguments.append("--history-known-failures=failures.toml")
    result = run_alone(pytester, "", *arguments, "-k", FORGETS)
    result.stdout.fnmatch_lines("*stale  *'a reason'*")
    assert (pytester.path / "b.db").exists()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ([], "*name the backend to test: --history-backend NAME*"),
        (["--history-backend=memory", "--history-set=x"], "*--history-set takes KEY=VALUE*'x'*"),
        (["--history-backend=memory", "--history-known-failures=none"], "*No such file*none*"),
        (["--history-backend=memory", "--history-known-failures=bad"], "*bad is no TOML file*"),
        (["--history-backend=memory", "--history-known-failures=mute"], "*a reason for test_a*"),
    ],
)
def test_standalone_refuses_options_that_make_no_sense(
    pytester: pytest.Pytester, options: list[str], complaint: str
) -> None:
    """What is wrong with the options is said in a line."""
    (pytester.path / "bad").write_text("= =")
    (pytester.path / "mute").write_text("test_a = ''")
    result = run_alone(pytester, "", *STANDALONE, *options)
    assert result.ret != pytest.ExitCode.OK
    (pytester.path / "output").write_text(result.stdout.str() + result.stderr.str())
    assert any(
        part in (pytester.path / "output").read_text() for part in complaint.strip("*").split("*")
    )
