"""The tools of an agent, run when the model calls them."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from historykit.contents import Content
from historykit.messages import Message

Tool: TypeAlias = Callable[..., Any]


def calls_to_run(messages: Sequence[Message], tools: Iterable[Any]) -> list[Content]:
    """Return the calls in the messages that the agent has to run, none if they are the caller's.

    They are the caller's where no tool can be called, where one of them names a tool that is only
    declared, and where the model waits for the user. What the service ran itself has a result
    already, or is marked as `hosted` or `informational_only`.
    """
    contents = [content for message in messages for content in message.contents]
    answered = {content.call_id for content in contents if content.type == "function_result"}
    calls = [
        content
        for content in contents
        if content.type == "function_call"
        and content.call_id not in answered
        and not (content.hosted or content.informational_only)
    ]
    runnable = {_name(tool): tool for tool in tools}
    declared = {name for name, tool in runnable.items() if not callable(tool)}
    waits = any(content.user_input_request for content in contents)
    if waits or len(declared) == len(runnable) or declared & {call.name for call in calls}:
        return []
    return calls


def fixed_arguments(
    tools: Iterable[Any], given: Iterable[Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return the arguments that are fixed for a run, by the name of the tool.

    `given` has the form of the tools of a session's message, where a tool is known by its ``id`` or
    by its name.
    """
    fixed: dict[str, dict[str, Any]] = {}
    for tool in tools:
        name = _name(tool)
        for override in given:
            if name is not None and override["id"] in (name, getattr(tool, "id", None)):
                values = {each["name"]: each["value"] for each in override.get("parameters", ())}
                fixed.setdefault(name, {}).update(values)
    return fixed


def set_inputs(tools: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the inputs that are set on tools, in the form of the tools of a session's message.

    They are the values of a tool's ``inputs`` that are not None; a tool without any is left out.
    """
    found = []
    for tool in tools:
        inputs = getattr(tool, "inputs", None)
        values = inputs.items() if isinstance(inputs, Mapping) else ()
        parameters = [{"name": name, "value": value} for name, value in values if value is not None]
        if parameters:
            found.append({"id": getattr(tool, "id", None) or _name(tool), "parameters": parameters})
    return found


async def run_calls(
    calls: Iterable[Content],
    tools: Iterable[Any],
    fixed: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> Message:
    """Return the message with the results of the calls, which are run at the same time.

    `fixed` are arguments by the name of the tool, which go before those of the model. A call that
    fails has the error as its result; so has one of an unknown tool, or one whose arguments are not
    a JSON object.
    """
    by_name = {_name(tool): tool for tool in tools if callable(tool)}
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_run_call(call, by_name, fixed)) for call in calls]
    return Message("tool", [task.result() for task in tasks])


def refuse_calls(calls: Iterable[Content], reason: str) -> Message:
    """Return the message that answers each call with the reason why it was not run."""
    return Message("tool", [_failure(call, reason) for call in calls])


async def _run_call(
    call: Content, tools: Mapping[str | None, Tool], fixed: Mapping[str, Mapping[str, Any]]
) -> Content:
    tool = tools.get(call.name)
    if tool is None:
        return _failure(call, f"there is no tool {call.name!r}")
    try:
        result = tool(**{**_arguments(call), **fixed.get(call.name or "", {})})
        if inspect.isawaitable(result):
            result = await result
        return Content.from_function_result(call.call_id or "", result=result)
    except Exception as error:
        return _failure(call, f"{type(error).__name__}: {error}")


def _failure(call: Content, reason: str) -> Content:
    return Content.from_function_result(
        call.call_id or "", result=f"Error: {reason}", exception=reason
    )


def _arguments(call: Content) -> Mapping[str, Any]:
    arguments: Any = call.arguments or {}
    if isinstance(arguments, str):
        arguments = json.loads(arguments) if arguments.strip() else {}
    if not isinstance(arguments, Mapping):
        raise TypeError("the arguments of a call are a JSON object")
    return arguments


def _name(tool: Any) -> str | None:
    if isinstance(tool, Mapping):
        name = tool.get("name") or (tool.get("function") or {}).get("name")
    else:
        name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    return name if isinstance(name, str) else None
