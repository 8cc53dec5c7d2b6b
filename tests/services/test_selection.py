"""Runs of pytest that need servers, and what they say where there are none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TESTS = """
import os

def test_redis(redis_url, redis_prefix):
    assert redis_url == os.environ["HISTORYKIT_TEST_REDIS_URL"]

def test_nothing():
    pass
"""

pytestmark = pytest.mark.timeout(120)

Run = Callable[..., tuple[int, str]]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that runs two tests, one of which needs Redis, with options."""
    tests = tmp_path / "test_two.py"
    tests.write_text(TESTS)

    def run(*options: str, **environment: str) -> tuple[int, str]:
        # A socket that is not there: no daemon of this machine is to answer.
        clean = {name: os.environ[name] for name in os.environ if "HISTORYKIT_TEST" not in name}
        command = (sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"))
        done = subprocess.run(
            [*command, "--rootdir", str(ROOT), "-p", "tests.services.plugin", str(tests), *options],
            cwd=ROOT,
            env={**clean, "DOCKER_HOST": f"unix://{tmp_path}/none", **environment},
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    return run


def test_a_selected_server_is_there(run: Run) -> None:
    """A selected backend has a server, and the end of the run says which."""
    code, said = run("--backend", "redis")
    assert code == 0, said
    assert "2 passed" in said
    assert "a private process of" in said
    assert "postgres  NOT SELECTED" in said


def test_workers_share_the_server(run: Run) -> None:
    """With several workers there is one server, which they inherit."""
    code, said = run("--backend", "redis", "-n", "2")
    assert code == 0, said
    assert "2 passed" in said


def test_tests_without_their_server_are_deselected(run: Run) -> None:
    """Tests of a backend that is not selected are not run, and counted."""
    code, said = run("--backend", "sqlite")
    assert code == 0, said
    assert "1 passed, 1 deselected" in said
    assert "redis     NOT SELECTED (1 tests)" in said


def test_no_server_is_an_error_with_remedies(run: Run) -> None:
    """Where there is no server the run ends, and names what helps; nothing is skipped."""
    code, said = run("--backend", "redis", "--containers", "-n", "1")
    assert code == pytest.ExitCode.USAGE_ERROR, said
    for remedy in ("HISTORYKIT_TEST_REDIS_URL=", "testcontainers", "python3 dev.py test"):
        assert remedy in said
    assert "skipped" not in said


def test_a_given_server_that_does_not_answer_is_an_error(run: Run) -> None:
    """A server that the environment names is used or the run ends; its password is not shown."""
    url = "redis://user:hunter2@127.0.0.1:1/0"
    code, said = run("--backend", "redis", HISTORYKIT_TEST_REDIS_URL=url)
    assert code == pytest.ExitCode.USAGE_ERROR, said
    assert "redis://user:***@127.0.0.1:1/0" in said
    assert "hunter2" not in said


def test_processes_are_taken_whatever_the_environment_names(run: Run) -> None:
    """With --processes a run has servers of its own, also where a URL is given."""
    url = "redis://127.0.0.1:1/0"
    code, said = run("--backend", "redis", "--processes", HISTORYKIT_TEST_REDIS_URL=url)
    assert code == 0, said
    assert "a private process of" in said


def test_containers_are_insisted_on_whatever_the_environment_names(run: Run) -> None:
    """With --containers a URL that is given is no way out."""
    url = "redis://127.0.0.1:1/0"
    code, said = run("--backend", "redis", "--containers", HISTORYKIT_TEST_REDIS_URL=url)
    assert code == pytest.ExitCode.USAGE_ERROR, said
    assert "there is no server for the tests of redis" in said


def test_containers_and_processes_are_refused_together(run: Run) -> None:
    """A run has its servers in one way."""
    code, said = run("--backend", "redis", "--containers", "--processes")
    assert code == pytest.ExitCode.USAGE_ERROR, said
    assert "one run takes one of them" in said


def test_a_kind_of_server_without_an_image_says_so(run: Run) -> None:
    """Where there is no image of a kind of server, the error does not advise to use Docker."""
    code, said = run("--backend", "pgbouncer", "--containers", "-n", "1")
    assert code == pytest.ExitCode.USAGE_ERROR, said
    assert "there is no server for the tests of pgbouncer: there is no image of it" in said
    assert "HISTORYKIT_TEST_PGBOUNCER_URL=" in said
    assert "Docker" not in said


def test_two_servers_of_one_backend_are_refused(run: Run) -> None:
    """One run takes one kind of server of each backend."""
    code, said = run("--backend", "redis", "--backend", "valkey")
    assert code == pytest.ExitCode.USAGE_ERROR, said
    assert "one run takes one of them" in said
