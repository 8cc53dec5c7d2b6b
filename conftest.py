"""What all tests of the workspace share, those of the backends included."""

from __future__ import annotations

pytest_plugins = ["tests.services.plugin"]
