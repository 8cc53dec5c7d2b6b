from __future__ import annotations

import subprocess
import sys

import pytest


def error(missing: str) -> str:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from historykit.testing import HistoryConformance"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("missing", ["pytest", "pytest_asyncio", "hypothesis"])
def test_what_the_suite_needs_is_named_with_its_extra(missing: str) -> None:
    """Importing the suite without its extra says what to install."""
    assert error(missing) == (
        f"ModuleNotFoundError: historykit.testing needs {missing}; install it with: "
        "pip install 'historykit[conformance]'"
    )


def test_another_module_that_is_missing_is_named_as_it_is() -> None:
    """A module that the extra does not bring is an error of its own."""
    assert "historykit[conformance]" not in error("historykit.testing.subject")
