"""Commands that look at backends and servers."""

from __future__ import annotations

from typing import Any

import click

from historykit.backends import BackendSpec, BackendStatus
from historykit.capabilities import Capability, Guarantee
from historykit.cli.output import print_json, print_table
from historykit.cli.running import opened, store_options
from historykit.config import HistoryConfig
from historykit.plugins import list_backends, load_backend
from historykit.redaction import redacted_settings
from historykit.settings import build_config

__all__ = ["backends", "check"]


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def backends(as_json: bool) -> None:
    """List the installed backends, and why one is broken."""
    states = list_backends()
    if as_json:
        print_json([_fields(state) for state in states])
        return
    titles = ("backend", "from", "capabilities", "guarantees at best", "")
    print_table(titles, map(_row, states))


@click.command()
@click.argument("backend", required=False, metavar="[NAME]")
@store_options()
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
async def check(config: HistoryConfig, as_json: bool) -> None:
    """Open a store, and say what it can do.

    NAME is its backend, where none is configured. A guarantee is met or not by the server and the
    settings that were found. Exit code 2 if the store does not open.
    """
    async with opened(config, create=False) as history:
        server = await history.store.ping()
        spec = load_backend(config.backend)
        found: dict[str, Any] = {
            "backend": spec.name,
            "server": {
                "product": server.product,
                "version": server.version,
                "settings": dict(server.settings),
            },
            "settings": _shown(spec, config),
            "capabilities": _states(Capability, history.store.capabilities),
            "guarantees": _states(Guarantee, history.store.guarantees),
        }
    if as_json:
        print_json(found)
    else:
        _print_check(found)


def _shown(spec: BackendSpec, config: HistoryConfig) -> dict[str, str | None]:
    """Return the settings in force, without secrets."""
    settings = redacted_settings(build_config(spec, config.settings))
    return {name: None if value is None else str(value) for name, value in settings.items()}


def _states(names: type[Capability] | type[Guarantee], found: frozenset[Any]) -> dict[str, bool]:
    return {each.name: each in found for each in names}


def _print_check(found: dict[str, Any]) -> None:
    server = found["server"]
    rows = [("backend", found["backend"]), ("server", f"{server['product']} {server['version']}")]
    rows += [(f"server: {name}", value) for name, value in server["settings"].items()]
    rows += [(f"setting: {name}", str(value)) for name, value in found["settings"].items()]
    for kind, word in (("capabilities", "capability"), ("guarantees", "guarantee")):
        rows += [(f"{word}: {name}", "yes" if met else "no") for name, met in found[kind].items()]
    print_table(("", ""), rows)


def _names(values: frozenset[Any]) -> list[str]:
    return sorted(value.name for value in values)


def _row(state: BackendStatus) -> tuple[str, ...]:
    source = f"{state.distribution} {state.version}" if state.distribution else "this program"
    if state.spec is None:
        return state.name, source, "", "", f"broken: {state.error}"
    return (
        state.name,
        source,
        " ".join(_names(state.spec.capabilities)),
        " ".join(_names(state.spec.guarantees)),
        state.spec.summary,
    )


def _fields(state: BackendStatus) -> dict[str, Any]:
    spec = state.spec
    return {
        "name": state.name,
        "distribution": state.distribution,
        "version": state.version,
        "loads": spec is not None,
        "error": None if state.error is None else str(state.error),
        "capabilities": _names(spec.capabilities) if spec else [],
        "guarantees": _names(spec.guarantees) if spec else [],
        "api_version": spec.api_version if spec else None,
        "summary": spec.summary if spec else "",
    }
