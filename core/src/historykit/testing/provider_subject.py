"""What a conformance test of a bare provider is about."""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Callable
from typing import Any

from historykit.providers import BaseHistoryProvider
from historykit.testing.rules import Requirement

__all__ = ["ProviderSubject"]


class ProviderSubject:
    """A way to make providers over one storage, with session ids for one test."""

    def __init__(
        self, factory: Callable[[], BaseHistoryProvider], claims: frozenset[Requirement]
    ) -> None:
        self.claims = self.declared = claims
        self.facts: dict[str, Any] = {"claims": sorted(claim.name for claim in claims)}
        self._factory = factory
        self._prefix = f"hk_{secrets.token_hex(4)}"
        self._providers: list[BaseHistoryProvider] = []

    def session(self, name: str = "s1") -> str:
        """Return a session id that no other test has."""
        return f"{self._prefix}{name}"

    async def provider(self) -> BaseHistoryProvider:
        """Return another provider over the same storage."""
        provider = self._factory()
        self._providers.append(provider)
        return provider

    async def close(self) -> None:
        """Close all providers, those that can be closed: by `aclose` or `close`."""
        while self._providers:
            provider = self._providers.pop()
            close = getattr(provider, "aclose", None) or getattr(provider, "close", None)
            if close is not None:
                result = close()
                if inspect.isawaitable(result):
                    await result
