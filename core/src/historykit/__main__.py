"""The command `historykit`, as ``python -m historykit``."""

from __future__ import annotations

from historykit.cli import main

main()
