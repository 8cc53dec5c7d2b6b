"""Backends: how one is found, loaded and checked by its name.

A backend is a module named by an entry point of the group `historykit.backends`. The entry point's
name is the backend's name; the module is thin, so that it can be read without the driver::

    # pyproject.toml
    [project.entry-points."historykit.backends"]
    acme = "historykit_acme.plugin"

    # historykit_acme/plugin.py
    from historykit.plugins import BackendSpec, hookimpl

    def store():
        from historykit_acme.store import AcmeStore
        return AcmeStore

    def config():
        from historykit_acme.config import AcmeConfig
        return AcmeConfig

    @hookimpl
    def historykit_backend():
        return BackendSpec(name="acme", store=store, config=config)

An application that does not package its backend calls `register` instead. Only the backend that was
asked for is loaded: another one that is broken is nobody's trouble until it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from historykit.backends import API_VERSIONS, BackendSpec, BackendStatus, hookimpl, hookspec
from historykit.candidates import Candidate
from historykit.errors import (
    BackendConflictError,
    BackendError,
    BackendLoadError,
    BackendNotFoundError,
)
from historykit.suggestions import nearest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "API_VERSIONS",
    "GROUP",
    "BackendRegistry",
    "BackendSpec",
    "BackendStatus",
    "hookimpl",
    "hookspec",
    "installed_entry_points",
    "list_backends",
    "load_backend",
    "register",
    "unregister",
]

GROUP: Final = "historykit.backends"
"""The group of entry points in which backends are found."""

EXTRAS: Final = frozenset({"mongo", "postgres", "redis", "sqlite"})
"""The backends that an extra of historykit installs."""


def installed_entry_points() -> Iterable[EntryPoint]:
    """Return the entry points of all backends that are installed."""
    from importlib.metadata import entry_points  # costs more than the rest of historykit

    return entry_points(group=GROUP)


class BackendRegistry:
    """The backends of a process: those that it registered, before those that are installed.

    Nothing that failed is remembered: what is repaired is found by the next call. The functions of
    this module are the methods of one registry that looks at the installed distributions.
    """

    def __init__(
        self, *, entry_points: Callable[[], Iterable[EntryPoint]] = installed_entry_points
    ) -> None:
        self._entry_points = entry_points
        self._registered: dict[str, tuple[Candidate, BackendSpec]] = {}
        self._loaded: dict[str, BackendSpec] = {}

    def load(self, name: str) -> BackendSpec:
        """Return the backend of that name, ready to use: its driver is imported.

        Raises `BackendNotFoundError`, `BackendConflictError` where several distributions claim the
        name, `BackendLoadError` with the real error as its cause, and `IncompatibleBackendError`.
        """
        if name in self._loaded:
            return self._loaded[name]
        if name in self._registered:
            candidate, spec = self._registered[name]
        else:
            candidate = self._only(name)
            spec = candidate.describe()
            if spec.name != name:
                raise candidate.failure(
                    f"it calls itself {spec.name!r}; entry point and BackendSpec need one name"
                )
        candidate.check_classes(spec)
        self._loaded[name] = spec
        return spec

    def register(self, plugin: object, *, name: str | None = None) -> BackendSpec:
        """Make a backend known to this process and return what it says about itself.

        `plugin` is a `BackendSpec`, or a module or object with the hook; `name` is the name to load
        it by, where that is not its own. Raises `BackendConflictError` if another one is registered
        under the name, `BackendLoadError` and `IncompatibleBackendError`.
        """
        candidate = Candidate.given(plugin)
        spec = candidate.describe()
        spec = replace(spec, name=name or spec.name)
        candidate = replace(candidate, name=spec.name)
        if spec.name in self._registered and self._registered[spec.name][0].load() != plugin:
            raise BackendConflictError(
                f"another backend is registered as {spec.name!r}; unregister it first, or register "
                "this one with another name",
                backend=spec.name,
                distributions=(),
            )
        self._loaded.pop(spec.name, None)
        self._registered[spec.name] = (candidate, spec)
        return spec

    def unregister(self, name: str) -> None:
        """Forget a backend that was registered; an installed one of that name is found again.

        Raises `BackendNotFoundError` where none was registered under the name.
        """
        if name not in self._registered:
            raise BackendNotFoundError(
                f"no backend was registered as {name!r}",
                backend=name,
                installed=sorted(self._registered),
            )
        del self._registered[name]
        self._loaded.pop(name, None)

    def states(self) -> list[BackendStatus]:
        """Return every backend with its state, by name; a broken one comes with its error.

        Each is loaded, so that one without its driver shows as what it is. Nothing is raised: where
        the installed distributions cannot be read, that is one more entry, named "*".
        """
        found = {name: candidate for name, (candidate, _) in self._registered.items()}
        states = []
        try:
            installed = self._installed("*")
        except BackendError as error:
            states.append(BackendStatus(name="*", error=error))
        else:
            found = {name: candidates[0] for name, candidates in installed.items()} | found
        return states + [self._state(found[name]) for name in sorted(found)]

    def _state(self, candidate: Candidate) -> BackendStatus:
        status = BackendStatus(
            name=candidate.name, distribution=candidate.distribution, version=candidate.version
        )
        try:
            return replace(status, spec=self.load(candidate.name))
        except BackendError as error:
            return replace(status, error=error)

    def _only(self, name: str) -> Candidate:
        """Return the one installed candidate for the name."""
        installed = self._installed(name)
        candidates = installed.get(name, [])
        if not candidates:
            raise _not_found(name, {*installed, *self._registered})
        if len(candidates) > 1:
            raise BackendConflictError(
                f"backend {name!r} is claimed by {' and by '.join(map(str, candidates))}; "
                "uninstall all but one",
                backend=name,
                distributions=[str(candidate.distribution) for candidate in candidates],
            )
        return candidates[0]

    def _installed(self, wanted: str) -> dict[str, list[Candidate]]:
        """Return the candidates for each name. An editable install may show one of them twice."""
        try:
            candidates = [Candidate.installed(entry) for entry in self._entry_points()]
        except Exception as error:
            raise BackendLoadError(
                "the metadata of the installed distributions cannot be read "
                f"({type(error).__name__}: {error}); reinstall the damaged one",
                backend=wanted,
            ) from error
        installed: dict[str, dict[tuple[str, str], Candidate]] = {}
        for candidate in candidates:
            identity = (_normalized(candidate.distribution), candidate.value)
            installed.setdefault(candidate.name, {}).setdefault(identity, candidate)
        return {name: [*same.values()] for name, same in installed.items()}


def _normalized(distribution: str | None) -> str:
    """Return a distribution's name in the one spelling that package indexes compare."""
    return (distribution or "").lower().replace("_", "-").replace(".", "-")


def _not_found(name: str, installed: set[str]) -> BackendNotFoundError:
    if "://" in name:  # which may have a password in it
        message = (
            "a backend is selected by its name, not by a URL; the URL is a setting, as in "
            'open_history("redis", url="redis://...")'
        )
        return BackendNotFoundError(message, backend="", installed=sorted(installed))
    if name.endswith(".toml"):
        message = (
            f"{name!r} is no backend; to read a file of configuration: "
            f"open_history(load_config({name!r}))"
        )
        return BackendNotFoundError(message, backend=name, installed=sorted(installed))
    match = name if name in EXTRAS else nearest(name, installed | EXTRAS)
    names = ", ".join(sorted(installed)) or "none"
    message = f"no backend {name!r} is installed (installed: {names})"
    if match not in (None, name):
        message += f"; did you mean {match!r}?"
    if match in EXTRAS and match not in installed:
        message += f"; install it with: pip install 'historykit[{match}]'"
    elif match is None:
        message += "; install the distribution that provides it, or register it"
    return BackendNotFoundError(message, backend=name, installed=sorted(installed))


_backends = BackendRegistry()
load_backend = _backends.load
register = _backends.register
unregister = _backends.unregister
list_backends = _backends.states
