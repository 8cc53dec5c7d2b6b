from __future__ import annotations

import pytest

from tests.catalogue.acceptance import Acceptance
from tests.catalogue.attaching import Attaching
from tests.catalogue.backends import OnMemory
from tests.catalogue.moving import Moving
from tests.catalogue.running import Runs
from tests.catalogue.scope import Scope
from tests.catalogue.searching import Searching
from tests.catalogue.wording import Wording
from tests.catalogue.writing import Writing

pytestmark = pytest.mark.asyncio


class TestAcceptance(Acceptance, OnMemory):
    """The life of a session."""


class TestScope(Scope, OnMemory):
    """Whose sessions a history sees."""


class TestSearching(Searching, OnMemory):
    """What a search finds."""


class TestWriting(Writing, OnMemory):
    """How sessions are changed."""


class TestRuns(Runs, OnMemory):
    """Agents run in a session."""


class TestAttaching(Attaching, OnMemory):
    """Files that are attached to messages."""


class TestWording(Wording, OnMemory):
    """How texts and filters are compared."""


class TestMoving(Moving, OnMemory):
    """Exports and imports."""
