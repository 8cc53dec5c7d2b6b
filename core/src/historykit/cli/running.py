"""How a command runs: its options, its event loop, its errors and its exit code."""

from __future__ import annotations

import asyncio
import functools
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click

from historykit.config import HistoryConfig, Text, load_config
from historykit.errors import BackendError, ConfigError, HistoryKitError
from historykit.history import History, open_history
from historykit.plugins import load_backend
from historykit.redaction import redact_url

__all__ = ["CommandGroup", "opened", "store_options"]

CHOICES = ("backend", "namespace", "user_id")

FAILED = 1
NOT_STARTED = 2


class CommandGroup(click.Group):
    """A group whose commands end with one line for an error, and with the exit code for it."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except (HistoryKitError, OSError) as error:
            if isinstance(error, BrokenPipeError):
                raise
            if ctx.params["debug"]:
                traceback.print_exc()
            click.echo(f"Error: {_line(error)}", err=True)
            started = not isinstance(error, ConfigError | BackendError | NotOpenedError)
            ctx.exit(FAILED if started else NOT_STARTED)


class NotOpenedError(HistoryKitError):
    """The store did not open. The real error is the cause."""


def store_options(*names: str) -> Callable[[Callable[..., Coroutine[Any, Any, Any]]], Any]:
    """Return a decorator that gives an async command the options that name a store.

    `names` are the names of the option for the backend: without any, the command has an argument
    `backend`. The command is called with a `HistoryConfig` and its own arguments.
    """
    options = _options()
    if names:
        backend = click.option(*names, "backend", metavar="NAME", help="The backend of the store.")
        options.insert(0, backend)

    def decorate(function: Callable[..., Coroutine[Any, Any, Any]]) -> Any:
        @functools.wraps(function)
        def command(
            *, settings: dict[str, Text], config_file: Path | None, **arguments: Any
        ) -> None:
            given: dict[str, Any] = {name: arguments.pop(name) for name in CHOICES} | settings
            config = load_config(config_file, **given)
            asyncio.run(function(config, **arguments))

        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _options() -> list[Any]:
    return [
        click.option(
            "--set",
            "settings",
            multiple=True,
            metavar="KEY=VALUE",
            callback=_settings,
            help="A setting of the backend; may be given several times.",
        ),
        click.option(
            "--config",
            "config_file",
            type=click.Path(path_type=Path),
            metavar="FILE.toml",
            help="A file with the table [history].",
        ),
        click.option("--namespace", help="The namespace of the sessions."),
        click.option("--user", "user_id", help="The user whose sessions they are."),
    ]


@asynccontextmanager
async def opened(config: HistoryConfig, *, create: bool = True) -> AsyncIterator[History]:
    """Open the history that is configured, and close it at the end.

    Without `create`, a backend that can tell makes no storage that is not there: a mistyped name
    would be an empty history. Raises `NotOpenedError` where opening does not succeed, and the
    errors of `open_history`.
    """
    history = open_history(config if create else _without_creating(config))
    try:
        await history.open()
    except HistoryKitError as error:
        raise NotOpenedError(str(error)) from error
    async with history:
        yield history


def _without_creating(config: HistoryConfig) -> HistoryConfig:
    known = {each.name for each in fields(load_backend(config.backend).config())}
    if "create" not in known or "create" in config.settings:
        return config
    return replace(config, settings={**config.settings, "create": False})


def _settings(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, Text]:
    settings = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{name!r} is not KEY=VALUE, as in path=chat.db")
        if name in (*CHOICES, "attachments", "environ"):
            raise click.BadParameter(f"{name} is no setting of a backend")
        settings[name.replace("-", "_")] = Text(text, f"--set {name}")
    return settings


def _line(error: Exception) -> str:
    """Return the message of an error as one line, without secrets."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(redact_url(str(error)).split())
