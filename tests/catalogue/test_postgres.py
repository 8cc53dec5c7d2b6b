from __future__ import annotations

import pytest

from tests.catalogue.acceptance import Acceptance
from tests.catalogue.attaching import Attaching
from tests.catalogue.attaching_kills import Killed
from tests.catalogue.backends import OnPostgres
from tests.catalogue.moving import Moving
from tests.catalogue.running import Runs
from tests.catalogue.scope import Scope
from tests.catalogue.searches import Searches
from tests.catalogue.searching import Searching
from tests.catalogue.wording import Wording
from tests.catalogue.writing import Writing

pytestmark = pytest.mark.asyncio


class TestAcceptance(Acceptance, OnPostgres):
    """The life of a session."""


class TestScope(Scope, OnPostgres):
    """Whose sessions a history sees."""


class TestSearching(Searching, OnPostgres):
    """What a search finds."""


class TestWriting(Writing, OnPostgres):
    """How sessions are changed."""


class TestRuns(Runs, OnPostgres):
    """Agents run in a session."""


class TestAttaching(Attaching, OnPostgres):
    """Files that are attached to messages."""


class TestSearches(Searches, OnPostgres):
    """What searches find among real conversations."""


class TestWording(Wording, OnPostgres):
    """How texts and filters are compared."""


class TestMoving(Moving, OnPostgres):
    """Exports and imports."""


class TestKilled(Killed, OnPostgres):
    """Processes that are killed while they attach files."""
