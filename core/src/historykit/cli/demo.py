"""The demonstration: a conversation that is there again on the next run."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from historykit.agent import Agent
from historykit.cli.output import printable
from historykit.cli.running import opened
from historykit.clients import ChatOptions
from historykit.config import HistoryConfig
from historykit.history import History
from historykit.messages import Message
from historykit.sessions import AgentSession

__all__ = ["demo"]

NAMESPACE = "demo"
SESSION = "demo"
FIRST = ("Hello! I am Ada, and I grow carrots.", "What do I grow?")
LATER = ("I am back. What was the first thing I said?", "How many messages do you have from us?")


@click.command()
@click.option(
    "--path",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("historykit-demo.db"),
    show_default=True,
    help="The SQLite file that keeps the conversation.",
)
def demo(path: Path) -> None:
    """Hold a conversation that goes on with the next run.

    It is kept on SQLite. The model is a script, so that this needs neither a key nor a network.
    What it answers it finds in the messages that the agent gives it, which come out of the file.
    """
    asyncio.run(_demo(path))


async def _demo(path: Path) -> None:
    config = HistoryConfig(backend="sqlite", namespace=NAMESPACE, settings={"path": path})
    async with opened(config) as history:
        earlier = await history.load(SESSION)
        if earlier:
            click.secho(f"{path} has {len(earlier)} messages of earlier runs:", bold=True)
            _print(earlier)
        else:
            click.secho(f"{path} is new: there is no conversation yet.", bold=True)
        click.secho("\nThis run:", bold=True)
        await _talk(history, LATER if earlier else FIRST)
        stored = len(await history.load(SESSION))
    click.secho(f"\n{path} has {stored} messages now.", bold=True)
    click.echo("Run the same command again, in a new process: the conversation is there.")
    click.echo(f"To look at it: {_show_command(path)}")


def _show_command(path: Path) -> str:
    """Return the command that shows the conversation, as it can be called from here."""
    program = ["historykit"] if shutil.which("historykit") else [sys.executable, "-m", "historykit"]
    store = ["--backend", "sqlite", "--set", f"path={path}", "--namespace", NAMESPACE]
    return shlex.join([*program, "show", SESSION, *store])


async def _talk(history: History, questions: Iterable[str]) -> None:
    agent = Agent(_script, name="demo", context_providers=[history.provider()])
    session = AgentSession(session_id=SESSION)
    for question in questions:
        answer = await agent.run(question, session=session)
        _print([Message("user", [question]), *answer.messages])


async def _script(messages: list[Message], options: ChatOptions) -> str:
    """Answer as a model would that has read the messages, and knows nothing else."""
    question = messages[-1].text
    if question == FIRST[0]:
        return "Hello Ada! Stop me whenever you like. I will know it when you are back."
    if question == FIRST[1]:
        return f"Carrots. You said: {messages[0].text!r}"
    if question == LATER[0]:
        return f"Welcome back! It was: {messages[0].text!r}"
    return f"{len(messages)}, with this question of yours."


def _print(messages: Iterable[Message]) -> None:
    for message in messages:
        click.echo(f"  {message.role:<10} {printable(message.text)}")
