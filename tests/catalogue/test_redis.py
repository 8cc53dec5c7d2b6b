from __future__ import annotations

import pytest

from tests.catalogue.acceptance import Acceptance
from tests.catalogue.backends import OnRedis

pytestmark = pytest.mark.asyncio


class TestAcceptance(Acceptance, OnRedis):
    """The life of a session."""
