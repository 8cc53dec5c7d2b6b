from __future__ import annotations

import pytest

from tests.catalogue.acceptance import Acceptance
from tests.catalogue.attaching import Attaching
from tests.catalogue.attaching_kills import Killed
from tests.catalogue.backends import OnSQLite
from tests.catalogue.moving import Moving
from tests.catalogue.running import Runs
from tests.catalogue.scope import Scope
from tests.catalogue.searches import Searches
from tests.catalogue.searching import Searching
from tests.catalogue.wording import Wording
from tests.catalogue.writing import Writing

pytestmark = pytest.mark.asyncio


class TestAcceptance(Acceptance, OnSQLite):
    """The life of a session."""


class TestScope(Scope, OnSQLite):
    """Whose sessions a history sees."""


class TestSearching(Searching, OnSQLite):
    """What a search finds."""


class TestWriting(Writing, OnSQLite):
    """How sessions are changed."""


class TestRuns(Runs, OnSQLite):
    """Agents run in a session."""


class TestAttaching(Attaching, OnSQLite):
    """Files that are attached to messages."""


class TestSearches(Searches, OnSQLite):
    """What searches find among real conversations."""


class TestWording(Wording, OnSQLite):
    """How texts and filters are compared."""


class TestMoving(Moving, OnSQLite):
    """Exports and imports."""


class TestKilled(Killed, OnSQLite):
    """Processes that are killed while they attach files."""
