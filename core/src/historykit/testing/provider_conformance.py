"""The class for the author of a bare provider: one with `get_messages` and `save_messages`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, ClassVar

import pytest
import pytest_asyncio

from historykit.capabilities import Guarantee
from historykit.providers import BaseHistoryProvider
from historykit.testing.conformance import Conformance
from historykit.testing.plugin import SUBJECT
from historykit.testing.provider_subject import ProviderSubject
from historykit.testing.suite.providers import ProviderTests

__all__ = ["ProviderConformance"]


class ProviderConformance(ProviderTests, Conformance, open_names={"guarantees", "new_provider"}):
    """The suite for a provider that somebody wrote by hand, without a store of historykit.

    Write the fixture `new_provider`: it returns a function without arguments that makes a
    provider, each time another one over the same storage. That should be a storage of the test's
    own, such as a file in `tmp_path`. A provider with a method `aclose` or `close` is closed::

        class TestMine(ProviderConformance):
            guarantees = frozenset({Guarantee.SHARED})

            @pytest.fixture
            def new_provider(self, tmp_path):
                return lambda: MyHistoryProvider(tmp_path / "chat.db")

    `guarantees` holds what the provider claims; for `Guarantee.SHARED` a second provider has to see
    what the first one saved.
    """

    guarantees: ClassVar[frozenset[Guarantee]] = frozenset()

    @classmethod
    def check(cls) -> None:
        """Raise the error that keeps every test of the class from running, if there is one."""
        super().check()
        if not hasattr(cls, "new_provider"):
            raise TypeError("write the fixture new_provider: it returns what makes a provider")

    @classmethod
    def facts(cls) -> dict[str, Any]:
        """Return what a report says about the class, as plain data."""
        return {
            "subject": f"the provider of {cls.__name__}",
            "declares": sorted(claim.name for claim in cls.guarantees),
        }

    @pytest_asyncio.fixture(loop_scope="function")
    async def subject(
        self, request: pytest.FixtureRequest, new_provider: Callable[[], BaseHistoryProvider]
    ) -> AsyncIterator[ProviderSubject]:
        """The provider under test, with session ids for one test."""
        subject = ProviderSubject(new_provider, frozenset(type(self).guarantees))
        request.node.stash[SUBJECT] = subject
        yield subject
        await subject.close()

    @pytest_asyncio.fixture(loop_scope="function")
    async def provider(self, subject: ProviderSubject) -> BaseHistoryProvider:
        """A provider over a storage in which the sessions of the test are empty."""
        return await subject.provider()
