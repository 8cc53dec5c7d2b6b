"""The group of all commands. Each command is in a module with those that are like it."""

from __future__ import annotations

from importlib.metadata import version

import click

from historykit.cli.attachments import attachments
from historykit.cli.backends import backends, check
from historykit.cli.conformance import conformance
from historykit.cli.demo import demo
from historykit.cli.running import CommandGroup
from historykit.cli.sessions import sessions
from historykit.cli.showing import show
from historykit.cli.transfers import export, import_

__all__ = ["historykit"]


@click.group(cls=CommandGroup)
@click.option("--debug", is_flag=True, help="Show where an error comes from.")
@click.version_option(version("historykit"), message="historykit %(version)s")
def historykit(debug: bool) -> None:
    """Look after the conversation history of AI agents.

    Which store: --backend and --set, else the file of --config, else the variables
    HISTORYKIT_BACKEND, HISTORYKIT_NAMESPACE, HISTORYKIT_USER_ID and HISTORYKIT_<BACKEND>_<SETTING>.
    Give passwords in the file or in a variable: others can see the arguments of a command.

    Exit codes: 0 done; 1 failed; 2 could not start, because of the arguments, the configuration,
    the backend or the server.
    """


for command in (demo, import_, export, show, sessions, attachments, backends, check, conformance):
    historykit.add_command(command)
