"""The command `historykit`. It needs the extra `cli`."""

from __future__ import annotations

import sys

__all__ = ["main"]

EXTRA = ("click", "rich")


def main() -> None:
    """Run the command with the arguments of the process, and exit with its code."""
    try:
        from historykit.cli.commands import historykit
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRA:
            raise
        print(
            "The command historykit needs click and rich; install them with: "
            "pip install 'historykit[cli]'",
            file=sys.stderr,
        )
        raise SystemExit(2) from None
    historykit(prog_name="historykit")
