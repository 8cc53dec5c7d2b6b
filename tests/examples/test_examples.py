"""What a third party writes, proven as the third party would do it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
CUSTOM = EXAMPLES / "custom_backend"

CASE = "-k=test_outage_is_an_error_for_every_call or test_store_works_after_an_outage"

COMMAND = "from historykit.cli import main; main()"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment in which the custom backend is installed."""
    project = tomllib.loads((CUSTOM / "pyproject.toml").read_text("utf-8"))["project"]
    name, version = project["name"], project["version"]
    metadata = tmp_path / "site" / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    points = project["entry-points"]["historykit.backends"]
    lines = [f"{backend} = {module}" for backend, module in points.items()]
    (metadata / "entry_points.txt").write_text("\n".join(["[historykit.backends]", *lines]))
    path = os.pathsep.join([str(metadata.parent), str(CUSTOM / "src")])
    return {**os.environ, "PYTHONPATH": path}


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        **options,  # type: ignore[call-overload]
    )


@pytest.mark.timeout(300)
def test_custom_backend_is_conformant(tmp_path: Path, environment: dict[str, str]) -> None:
    """The store on plain files, found by its entry point, passes the command."""
    settings = ["--set", f"folder={tmp_path / 'acme'}", "--set", "durable=false"]
    report = tmp_path / "report.json"
    ended = run(
        "-c",
        COMMAND,
        "conformance",
        "acme",
        *settings,
        f"--report={report}",
        env=environment,
        cwd=tmp_path,
    )
    assert ended.returncode == 0, ended.stdout
    (judged,) = json.loads(report.read_text("utf-8"))["classes"]
    assert (judged["level"], judged["ran"]) == ("CONFORMANT", judged["total"])
    assert judged["distribution"] == "acme-history 1.0"
    assert judged["claims"] == ["SHARED", "SURVIVES_KILL"]


def test_custom_backend_says_when_its_folder_is_away(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """The backend's own tests unmount the folder, with and without waiting for the disk."""
    ended = run("-m", "pytest", "-q", f"--rootdir={CUSTOM}", CASE, env=environment, cwd=CUSTOM)
    assert ended.returncode == 0, ended.stdout
    assert "4 passed" in ended.stdout
    assert ended.stdout.count("PARTIAL (2 of") == 2


def test_bare_provider_is_conformant(tmp_path: Path) -> None:
    """The provider with two methods passes the suite for providers."""
    folder = EXAMPLES / "bare_provider"
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nasyncio_default_fixture_loop_scope = function\n"
    )
    options = [
        f"--rootdir={folder}",
        f"--config-file={tmp_path / 'pytest.ini'}",
        "--history-strict",
    ]
    ended = run("-m", "pytest", "-q", "-p", "no:cacheprovider", *options, ".", cwd=folder)
    assert ended.returncode == 0, ended.stdout
    assert "  CONFORMANT (24 of 24 tests ran)" in ended.stdout
