from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import historykit


def imports_for_type_checkers() -> dict[str, str]:
    """The names of the package by what a type checker reads, with the modules that they are in."""
    tree = ast.parse(Path(historykit.__file__).read_text("utf-8"))
    (block,) = (node for node in tree.body if ast.unparse(node).startswith("if TYPE_CHECKING:"))
    return {alias.name: node.module for node in block.body for alias in node.names}


def output(*lines: str) -> str:
    """What a fresh interpreter prints."""
    command = [sys.executable, "-c", "\n".join(lines)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_type_checker_and_a_program_see_the_same_names():
    """A name is imported at its first use from the module that it is imported from for mypy."""
    found = {name: f"historykit.{module}" for name, module in historykit._MODULES.items()}
    assert found == imports_for_type_checkers()
    assert sorted(found) == sorted(historykit.__all__)


@pytest.mark.parametrize("name", historykit.__all__)
def test_each_name_is_there(name):
    """Every name of `__all__` is an attribute of the package, and listed by `dir`."""
    assert hasattr(historykit, name)
    assert name in dir(historykit)


def test_another_name_is_an_error():
    """A name that the package does not have is an AttributeError that says so."""
    with pytest.raises(AttributeError, match="'historykit' has no attribute 'Nothing'"):
        _ = historykit.Nothing


def test_importing_the_package_imports_none_of_its_modules():
    """`import historykit` is quick: the modules come with the names that are used."""
    listed = "print(*sorted(name for name in sys.modules if name.startswith('historykit')))"
    assert output("import sys, historykit", listed) == "historykit"
    assert output("import sys, historykit.testing.plugin", listed).split() == [
        "historykit",
        "historykit.testing",
        "historykit.testing.plugin",
    ]


def test_a_message_in_a_state_is_restored_by_whoever_reads_first():
    """The type of messages is known before anybody imported the class."""
    assert (
        output(
            "from historykit.serialization import deserialize_state",
            "state = {'last': {'type': 'message', 'role': 'user', 'contents': ['Hi']}}",
            "print(deserialize_state(state)['last'].text)",
        )
        == "Hi"
    )


def test_the_type_of_messages_is_taken_before_they_are_imported():
    """A class of the application cannot take the type id of messages, whatever comes first."""
    assert output(
        "from historykit import register_state_type",
        "class Message:",
        "    to_dict = from_dict = print",
        "try:",
        "    register_state_type(Message)",
        "except ValueError as error:",
        "    print(error)",
    ).startswith("state type 'message' is already registered by historykit.messages.Message")
