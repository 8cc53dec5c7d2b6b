"""Which backend keeps the history, and with which settings.

Each of them is taken from the arguments of `load_config`, else from a TOML file, else from the
environment::

    [history]
    backend = "redis"
    namespace = "support"
    attachments = "/var/lib/support/attachments"

    [history.redis]
    url = "redis://localhost:6379/0"

    HISTORYKIT_BACKEND=redis HISTORYKIT_REDIS_URL=redis://localhost:6379/0
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from historykit.errors import ConfigError, InvalidRequestError
from historykit.ids import check_id
from historykit.settings import Text, build_config, environment_variable
from historykit.suggestions import nearest, suggest

__all__ = ["DEFAULT_NAMESPACE", "HistoryConfig", "Text", "build_config", "load_config"]

DEFAULT_NAMESPACE: Final = "default"
"""The namespace of those who name none."""

CHOICES: Final = ("backend", "namespace", "user_id", "attachments")


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryConfig:
    """What `open_history` needs to know.

    `settings` are those of the backend, as they were found: they are checked when the backend is
    loaded. They are not shown, because they may hold secrets. A `user_id` of "" is nobody in
    particular. `attachments` is what `open_history` takes under that name, or a dict with the
    arguments of `Attachments`. Raises `ConfigError`.
    """

    backend: str
    namespace: str = DEFAULT_NAMESPACE
    user_id: str = ""
    attachments: object = field(default=None, repr=False)
    settings: Mapping[str, object] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for name in ("backend", "namespace", "user_id"):
            try:
                if name != "user_id" or self.user_id != "":
                    check_id(getattr(self, name), name)
            except InvalidRequestError as error:
                raise ConfigError(str(error), field=name) from None


def load_config(
    path: str | os.PathLike[str] | None = None,
    /,
    *,
    environ: Mapping[str, str] | None = None,
    **arguments: object,
) -> HistoryConfig:
    """Return the configuration out of arguments, a TOML file and the environment.

    `arguments` are `backend`, `namespace`, `user_id`, `attachments` (None: not given) and settings
    of the backend.
    What is not among them is read from the file at `path`, if one is named, else from `environ`,
    which is `os.environ` unless given; a variable that is empty is not set. Settings of other
    backends in the file and the environment are left alone. Raises `ConfigError`, for a variable
    with almost the name of one of these too.
    """
    environ = os.environ if environ is None else environ
    table = {} if path is None else _table(Path(os.path.expanduser(path)))
    choices = {name: _choice(name, arguments, table, environ) for name in CHOICES}
    backend = choices["backend"]
    _check_variables(environ, str(backend or ""))
    if backend is None:
        raise ConfigError(
            'no backend is configured: name one as an argument (backend="sqlite", to the command '
            "--backend sqlite), as backend under [history] in the TOML file, or as "
            "HISTORYKIT_BACKEND in the environment",
            field="backend",
        )
    if not isinstance(backend, str):
        raise ConfigError("backend must be the name of a backend, as text", field="backend")
    settings = _environment(backend, environ) | _subtable(backend, table, path) | arguments
    return HistoryConfig(
        settings={name: value for name, value in settings.items() if name not in CHOICES},
        **{name: value for name, value in choices.items() if value is not None},
    )


def _check_variables(environ: Mapping[str, str], backend: str) -> None:
    """Refuse a variable whose name is almost that of a choice; others are of backends."""
    prefix, known = "HISTORYKIT_", {name.upper() for name in CHOICES}
    own = environment_variable(backend, "") if backend else "HISTORYKIT__"
    for name in environ:
        word = name.removeprefix(prefix)
        if name.startswith(prefix) and not name.startswith(own) and word not in known:
            meant = nearest(word, known)
            if meant is not None:
                raise ConfigError(
                    f"{name} in the environment means nothing; did you mean {prefix}{meant}?",
                    field=meant.lower(),
                )


def _choice(
    name: str,
    arguments: Mapping[str, object],
    table: Mapping[str, object],
    environ: Mapping[str, str],
) -> Any:
    for source in (arguments, table):
        if source.get(name) is not None:
            return source[name]
    return environ.get(f"HISTORYKIT_{name}".upper()) or None


def _table(path: Path) -> dict[str, object]:
    """Return the table `history` of a TOML file."""
    import tomllib  # most configuration is not in a file

    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}; check the path") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not TOML in UTF-8: {error}") from error
    table = document.get("history")
    if not isinstance(table, dict):
        raise ConfigError(f"{path} has no table [history]; begin it with [history] and backend = …")
    for name, value in table.items():
        if name not in CHOICES and not isinstance(value, dict):
            raise ConfigError(
                f"{path}: [history] has no key {name!r}; {suggest(name, CHOICES)} "
                "(settings of a backend belong in a table of its own, as [history.sqlite])",
                field=name,
            )
    return table


def _subtable(
    backend: str, table: Mapping[str, object], path: str | os.PathLike[str] | None
) -> dict[str, object]:
    """Return the backend's own table. One whose name is almost right is not passed over."""
    others = [
        name for name, value in table.items() if isinstance(value, dict) and name not in CHOICES
    ]
    similar = nearest(backend, others)
    if backend not in others and similar is not None:
        raise ConfigError(
            f"{path} has a table [history.{similar}] and none for the backend {backend!r}; "
            f"rename it to [history.{backend}]",
            field=similar,
        )
    settings = table.get(backend)
    return settings if isinstance(settings, dict) else {}


def _environment(backend: str, environ: Mapping[str, str]) -> dict[str, object]:
    """Return the settings of a backend that the environment has, by the names of their fields."""
    prefix = environment_variable(backend, "")
    return {
        name.removeprefix(prefix).lower(): Text(value, name)
        for name, value in environ.items()
        if name.startswith(prefix) and value
    }
