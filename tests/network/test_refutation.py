"""The suite for networks is tested with stores that are wrong: each of its tests refutes one."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from historykit.testing import NetworkConformance
from historykit.testing.proxy import TcpProxy
from historykit.testing.subject import StoreSubject
from historykit_redis import RedisStore
from tests.network.wrong_stores import WRONG_STORES, spec_of

RULES = NetworkConformance.historykit_rules
PAIRS = [(store, test) for store, tests in WRONG_STORES.items() for test in tests]

PATIENCE = 45
"""Seconds after which a test of a wrong store has failed."""


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("store", "test"), PAIRS, ids=[f"{store.__name__}-{test}" for store, test in PAIRS]
)
def test_wrong_store_is_refuted(
    store: type[RedisStore], test: str, redis_url: str, redis_prefix: str
) -> None:
    """Each test that is pinned to a wrong store fails on it."""
    with pytest.raises(BaseException) as caught:  # noqa: PT011  - how it fails is its own affair
        asyncio.run(run(store, test, redis_url, redis_prefix))
    assert not isinstance(caught.value, KeyboardInterrupt)


def test_every_test_of_the_suite_refutes_a_store() -> None:
    """There is no test in the suite that every store passes."""
    assert {test for tests in WRONG_STORES.values() for test in tests} == set(RULES)


async def run(store: type[RedisStore], test: str, url: str, prefix: str) -> None:
    """Run one test of the suite on one store."""
    spec = spec_of(store)
    subject = StoreSubject(spec, {"url": url, "prefix": prefix})
    async with asyncio.timeout(PATIENCE), TcpProxy.to(url) as proxy, subject.opened() as near:
        settings = {"url": proxy.route(url), "prefix": prefix, "timeout": 1}
        async with spec.make_store(StoreSubject(spec, settings).config) as far:
            fixtures = {"subject": subject, "store": near, "far": far, "proxy": proxy}
            names = list(inspect.signature(RULES[test].test).parameters)[1:]
            outcome = RULES[test].test(None, **{name: fixtures[name] for name in names})
            assert inspect.isawaitable(outcome)
            await outcome
