from __future__ import annotations

import pytest

from tests.catalogue.acceptance import Acceptance
from tests.catalogue.backends import OnMemory

pytestmark = pytest.mark.asyncio


class TestAcceptance(Acceptance, OnMemory):
    """The life of a session."""
