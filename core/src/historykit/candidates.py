"""A plugin that was found: loading it and checking it, step by step.

Each step that fails is a `BackendError` of its own, which names the backend, where it comes from
and what to do."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from typing import TYPE_CHECKING, TypeVar

import pluggy

from historykit.backends import API_VERSIONS, BackendSpec, Hooks
from historykit.errors import BackendLoadError, IncompatibleBackendError
from historykit.store import HistoryStore

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["Candidate"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Something that should be a backend named `name`.

    `value` says what it is, `load` returns it, `package` is the package that it is a part of.
    `distribution` and `version` are None where it was registered by the program itself.
    """

    name: str
    value: str
    package: str
    load: Callable[[], object]
    distribution: str | None = None
    version: str | None = None

    @classmethod
    def installed(cls, entry_point: EntryPoint) -> Candidate:
        """Return the candidate that an entry point names. Nothing is imported."""
        distribution = entry_point.dist
        return cls(
            name=entry_point.name,
            value=entry_point.value,
            package=entry_point.module.partition(".")[0],
            load=entry_point.load,
            distribution=distribution.name if distribution else None,
            version=distribution.version if distribution else None,
        )

    @classmethod
    def given(cls, plugin: object) -> Candidate:
        """Return the candidate for a module with the hook, or for a `BackendSpec`."""
        if isinstance(plugin, BackendSpec):
            name, value = plugin.name, "a BackendSpec"
            module = inspect.getmodule(plugin.store)
        else:
            name = value = getattr(plugin, "__name__", type(plugin).__qualname__)
            module = inspect.getmodule(plugin)
        package = module.__name__.partition(".")[0] if module else ""
        return cls(name=name, value=value, package=package, load=lambda: plugin)

    def __str__(self) -> str:
        if self.distribution is None:
            return f"{self.value}, registered by this program"
        return f"{self.value} of {self.distribution} {self.version}"

    def describe(self) -> BackendSpec:
        """Import the plugin and return what it says about itself; its driver is not imported.

        Raises `BackendLoadError` and `IncompatibleBackendError`.
        """
        plugin = self._guarded(self.load)
        spec = plugin if isinstance(plugin, BackendSpec) else self._hooked(plugin)
        self._check_version(spec)
        return spec

    def check_classes(self, spec: BackendSpec) -> None:
        """Import the driver, and see that store and config are what they should be.

        Raises `BackendLoadError`.
        """
        store: object = self._guarded(spec.store)
        if not (inspect.isclass(store) and issubclass(store, HistoryStore)):
            raise self.failure(f"{store!r} is not a subclass of historykit.store.HistoryStore")
        if missing := sorted(store.__abstractmethods__):
            raise self.failure(f"{store.__qualname__} does not define {', '.join(missing)}")
        config: object = self._guarded(spec.config)
        if not (inspect.isclass(config) and is_dataclass(config)):
            raise self.failure(f"its config {config!r} is not a dataclass")

    def failure(self, reason: str) -> BackendLoadError:
        """Return the error that says why the candidate is no backend."""
        return BackendLoadError(
            f"backend {self.name!r} ({self}) does not load: {reason}",
            backend=self.name,
            details={
                "distribution": self.distribution,
                "version": self.version,
                "entry_point": self.value,
            },
        )

    def _hooked(self, plugin: object) -> BackendSpec:
        """Return what the plugin's hook returns."""
        if inspect.isclass(plugin):
            raise self.failure(f"{plugin.__qualname__} is a class; name a module with the hook")
        answers = self._guarded(lambda: self._answers(plugin))
        if not answers:
            raise self.failure(
                "no function historykit_backend is marked with historykit.plugins.hookimpl, "
                "or it returns None"
            )
        if not isinstance(answers[0], BackendSpec):
            kind = type(answers[0]).__qualname__
            raise self.failure(f"historykit_backend returns {kind}; return a BackendSpec")
        return answers[0]

    def _answers(self, plugin: object) -> list[object]:
        plugins = pluggy.PluginManager("historykit")
        plugins.add_hookspecs(Hooks)
        plugins.register(plugin, name=self.name)
        plugins.check_pending()
        answers: list[object] = plugins.hook.historykit_backend()
        return answers

    def _check_version(self, spec: BackendSpec) -> None:
        if spec.api_version in API_VERSIONS:
            return
        ours = ", ".join(map(str, sorted(API_VERSIONS)))
        newer = spec.api_version > max(API_VERSIONS)
        behind = "historykit" if newer else self.distribution or self.value
        raise IncompatibleBackendError(
            f"backend {self.name!r} ({self}) is written for version {spec.api_version} of the "
            f"backend API and this historykit speaks {ours}; upgrade {behind}",
            backend=self.name,
            details={"api_version": spec.api_version, "supported": sorted(API_VERSIONS)},
        )

    def _guarded(self, function: Callable[[], T]) -> T:
        """Call something of the plugin; what it raises becomes the cause of the failure."""
        try:
            return function()
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] == self.package:
                raise self.failure(f"ModuleNotFoundError: {error}") from error
            raise self.failure(
                f"its dependency {error.name!r} is missing; install it with: "
                f"pip install {self.distribution or error.name}"
            ) from error
        except Exception as error:
            raise self.failure(f"{type(error).__name__}: {error}") from error
