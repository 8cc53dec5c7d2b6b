from __future__ import annotations

import pytest

from tests.catalogue.acceptance import Acceptance
from tests.catalogue.backends import OnSQLite

pytestmark = pytest.mark.asyncio


class TestAcceptance(Acceptance, OnSQLite):
    """The life of a session."""
