"""Run where only core and its own requirements are installed: is that enough?

Imports every module of core but those that an extra is for, and keeps a conversation in memory.
"""

from __future__ import annotations

import asyncio
import importlib
import pkgutil

import historykit
from historykit import Agent, AgentSession, ChatOptions, Message

EXTRAS = ("historykit.__main__", "historykit.cli", "historykit.testing")


def import_core() -> None:
    for module in pkgutil.walk_packages(historykit.__path__, "historykit."):
        if not module.name.startswith(EXTRAS):
            importlib.import_module(module.name)


async def echo(messages: list[Message], options: ChatOptions) -> str:
    return " / ".join(message.text for message in messages)


async def converse() -> str:
    session = AgentSession(session_id="s1")
    async with historykit.open_history("memory") as history:
        agent = Agent(client=echo, name="echo", context_providers=[history.provider()])
        await agent.run("one", session=session)
        return (await agent.run("two", session=session)).text


import_core()
answer = asyncio.run(converse())
assert answer == "one / one / two", answer
