from __future__ import annotations

import pytest

from tests.catalogue.acceptance import Acceptance
from tests.catalogue.backends import OnMongo

pytestmark = pytest.mark.asyncio


class TestAcceptance(Acceptance, OnMongo):
    """The life of a session."""
