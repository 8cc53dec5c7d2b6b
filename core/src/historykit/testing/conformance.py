"""The classes that authors of backends and of providers derive from."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import AsyncExitStack
from importlib.metadata import entry_points
from typing import Any, ClassVar, Final

import pytest
import pytest_asyncio

from historykit.backends import BackendSpec
from historykit.errors import StorageUnavailableError
from historykit.plugins import GROUP, load_backend
from historykit.records import ServerInfo
from historykit.store import HistoryStore
from historykit.testing.faults import Outage, simulated_outage
from historykit.testing.plugin import SUBJECT
from historykit.testing.rules import Rule, rules_of
from historykit.testing.subject import StoreSubject
from historykit.testing.suite.catalogue import CatalogueTests
from historykit.testing.suite.concurrency import ConcurrencyTests
from historykit.testing.suite.contract import ContractTests
from historykit.testing.suite.conversations import ConversationTests
from historykit.testing.suite.deletion import DeletionTests
from historykit.testing.suite.editing import EditingTests
from historykit.testing.suite.idempotency import IdempotencyTests
from historykit.testing.suite.isolation import IsolationTests
from historykit.testing.suite.lifecycle import LifecycleTests
from historykit.testing.suite.lookups import LookupTests
from historykit.testing.suite.model import ModelTests
from historykit.testing.suite.ordering import OrderingTests
from historykit.testing.suite.paging import PagingTests
from historykit.testing.suite.refusals import RefusalTests
from historykit.testing.suite.resilience import ResilienceTests
from historykit.testing.suite.retention import RetentionTests
from historykit.testing.suite.runs import RunTests
from historykit.testing.suite.scopes import ScopeTests
from historykit.testing.suite.sessions import SessionTests
from historykit.testing.suite.values import ValueTests
from historykit.testing.suite.walks import WalkTests

__all__ = ["STORE_NAMES", "Conformance", "HistoryConformance", "StoreConformance"]


STORE_NAMES: Final = frozenset({"backend", "spec", "config", "backend_config"})
"""What the author of a backend may set in a class of the suite."""


def _members(suite: type, without: Collection[str]) -> dict[str, object]:
    """Return what the suite defines, and a class derived from it may not define anew."""
    members: dict[str, object] = {}
    for parent in reversed(suite.__mro__[:-1]):
        members |= vars(parent)
    return {
        name: member
        for name, member in members.items()
        if name not in without and not (name.startswith("_"))
    }


class Conformance:
    """What conformance classes have in common: tests that stand, and failures that are known.

    `known_failures` names tests that fail, each with the reason. It is strict: a test that is
    listed and passes fails as stale. Deriving a class raises `TypeError` if it replaces a test or a
    fixture of the suite, or lists a test that does not exist. A class that only prepares others
    says ``__test__ = False``.
    """

    known_failures: ClassVar[Mapping[str, str]] = {}
    historykit_rules: ClassVar[Mapping[str, Rule]] = {}
    _fixed: ClassVar[Mapping[str, object]] = {}
    __test__ = False

    def __init_subclass__(cls, *, open_names: Iterable[str] | None = None) -> None:
        super().__init_subclass__()
        if open_names is None:
            cls.__test__ = cls.__dict__.get("__test__", True)
            _verify(cls)
        else:
            cls.historykit_rules = rules_of(cls)
            cls._fixed = _members(cls, {*open_names, "known_failures"})

    @classmethod
    def check(cls) -> None:
        """Raise the error that keeps every test of the class from running, if there is one."""
        _verify(cls)


class StoreConformance(Conformance, open_names=STORE_NAMES):
    """What the suites for a store have in common: the backend, and a store for each test."""

    backend: ClassVar[str] = ""
    spec: ClassVar[BackendSpec | None] = None
    config: ClassVar[Mapping[str, object]] = {}
    _unavailable: ClassVar[str | None] = None
    _server: ClassVar[ServerInfo | None] = None

    @classmethod
    def check(cls) -> None:
        """Raise the error that keeps every test of the class from running, if there is one."""
        super().check()
        if cls.spec is None and not cls.backend:
            raise TypeError("name the backend: backend = 'acme', or give a spec")
        cls.backend_spec()

    @classmethod
    def backend_spec(cls) -> BackendSpec:
        """Return the description of the backend under test. Raises `BackendError`."""
        return cls.spec or load_backend(cls.backend)

    @classmethod
    def facts(cls) -> dict[str, Any]:
        """Return what a report says about the class, as plain data."""
        spec = cls.backend_spec()
        return {
            "subject": spec.name,
            "distribution": _distribution(cls.backend),
            "api_version": spec.api_version,
            "declares": sorted(need.name for need in spec.capabilities | spec.guarantees),
        }

    @pytest.fixture
    def backend_config(self) -> Mapping[str, object]:
        """The configuration of the backend. Override it where `config` is not enough."""
        return self.config

    @pytest.fixture
    def subject(self, request: pytest.FixtureRequest, backend_config: object) -> StoreSubject:
        """The backend under test, with a namespace and a clock for one test."""
        subject = StoreSubject(type(self).backend_spec(), backend_config)
        request.node.stash[SUBJECT] = subject
        return subject

    @pytest_asyncio.fixture(loop_scope="function")
    async def store(self, subject: StoreSubject) -> AsyncIterator[HistoryStore]:
        """An opened store in which the namespace of the test is empty."""
        suite = type(self)
        if suite._unavailable is not None:
            pytest.fail(suite._unavailable, pytrace=False)
        async with AsyncExitStack() as stack:
            try:
                store = await stack.enter_async_context(subject.opened())
                suite._server = subject.server = suite._server or await store.ping()
            except StorageUnavailableError as error:
                if suite._server is None:
                    suite._unavailable = f"the store cannot be reached: {error}"
                raise
            yield store


class HistoryConformance(
    # pytest runs the tests of the last base first
    ModelTests,
    ConversationTests,
    RunTests,
    WalkTests,
    CatalogueTests,
    ResilienceTests,
    ConcurrencyTests,
    RetentionTests,
    EditingTests,
    LookupTests,
    DeletionTests,
    SessionTests,
    IdempotencyTests,
    PagingTests,
    ValueTests,
    ScopeTests,
    IsolationTests,
    OrderingTests,
    LifecycleTests,
    RefusalTests,
    ContractTests,
    StoreConformance,
    open_names=STORE_NAMES | {"outage"},
):
    """The suite for a store: derive a class and say which backend, and how it is configured.

    `backend` is the name of one that is installed or registered; any other has its `spec`.
    `config` holds its settings. Where they need fixtures, override the fixture `backend_config`,
    which returns a mapping, or the config object itself. Two stores made of one configuration are
    expected to share their data where the backend claims it.

    `outage` may be overridden too: a fixture that returns an `Outage`. Without it, an outage is
    simulated by operations of the store that fail with `ConnectionError`.
    """

    @pytest.fixture
    def outage(self) -> Outage:
        """What makes the server unreachable. Override it to do so for real."""
        return simulated_outage


def _verify(suite: type[Conformance]) -> None:
    """Raise `TypeError` if a class is not the suite with settings of its own."""
    for name, member in suite._fixed.items():
        if inspect.getattr_static(suite, name, None) is not member:
            raise TypeError(
                f"{suite.__name__}.{name} replaces what the suite has under this name; give it "
                "another one. A test that fails goes into known_failures, with the reason"
            )
    for test, reason in suite.known_failures.items():
        if test not in suite.historykit_rules:
            raise TypeError(f"known_failures of {suite.__name__} lists no test: {test!r}")
        if not str(reason or "").strip():
            raise TypeError(f"known_failures of {suite.__name__} needs a reason for {test}")


@functools.cache
def _distribution(backend: str) -> str | None:
    """Return name and version of the distribution that provides an installed backend."""
    for entry in entry_points(group=GROUP, name=backend):
        if entry.dist is not None:
            return f"{entry.dist.name} {entry.dist.version}"
    return None
