from __future__ import annotations

import pytest

from tests.catalogue.acceptance import Acceptance
from tests.catalogue.backends import OnPostgres

pytestmark = pytest.mark.asyncio


class TestAcceptance(Acceptance, OnPostgres):
    """The life of a session."""
