from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import pytest

import historykit
from historykit import (
    AgentResponse,
    AgentSession,
    BaseContextProvider,
    BaseHistoryProvider,
    ContextProvider,
    HistoryProvider,
    InMemoryHistoryProvider,
    Message,
    SessionContext,
)

pytestmark = pytest.mark.asyncio


class ListProvider(BaseHistoryProvider):
    """Keeps messages by session id and notes each save."""

    def __init__(self, source_id: str = "list", **flags: Any) -> None:
        super().__init__(source_id, **flags)
        self.stored: dict[str | None, list[Message]] = {}
        self.saves: list[list[str]] = []

    async def get_messages(self, session_id: str | None, **kwargs: Any) -> list[Message]:
        return list(self.stored.get(session_id, []))

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], **kwargs: Any
    ) -> None:
        self.saves.append([message.text for message in messages])
        self.stored.setdefault(session_id, []).extend(messages)


def finished_context(session_id: str | None = "s") -> SessionContext:
    context = SessionContext(session_id=session_id, input_messages=[Message("user", "question")])
    context.extend_messages("rag", [Message("system", "fact")])
    context.extend_messages("memory", [Message("system", "note")])
    context.extend_messages("list", [Message("user", "old")])
    context._response = AgentResponse(messages=Message("assistant", "answer"))
    return context


async def run_hook(hook: Any, context: SessionContext, state: dict[str, Any] | None = None) -> None:
    session = AgentSession(session_id="another id than the context's")
    await hook(agent=None, session=session, context=context, state=state)


class TestContextProvider:
    async def test_the_aliases_are_the_classes(self) -> None:
        """The later names of agent_framework are the same classes."""
        assert ContextProvider is BaseContextProvider
        assert HistoryProvider is BaseHistoryProvider

    async def test_the_hooks_do_nothing(self) -> None:
        """The hooks of the base take agent=None and leave the context as it is."""
        provider, context = BaseContextProvider("x"), finished_context()
        await run_hook(provider.before_run, context)
        await run_hook(provider.after_run, context)
        assert list(context.context_messages) == ["rag", "memory", "list"]
        assert provider.source_id == "x"

    @pytest.mark.parametrize("source_id", ["", None, 3])
    @pytest.mark.parametrize("cls", [BaseContextProvider, BaseHistoryProvider])
    async def test_a_source_id_is_a_text(self, cls: type, source_id: Any) -> None:
        """A provider without a name for its source is refused."""
        with pytest.raises(ValueError, match="source_id"):
            cls(source_id)


class TestHistoryProvider:
    async def test_the_flags_have_their_defaults(self) -> None:
        """A history provider loads, and stores input and output but no context."""
        provider = BaseHistoryProvider("x")
        assert (provider.load_messages, provider.store_inputs, provider.store_outputs) == (
            True,
            True,
            True,
        )
        assert (provider.store_context_messages, provider.store_context_from) == (False, None)

    async def test_the_flags_are_keywords_and_kept(self) -> None:
        """Each flag is kept as given, and none is taken by position."""
        provider = ListProvider(
            load_messages=False,
            store_inputs=False,
            store_context_messages=True,
            store_context_from={"rag"},
            store_outputs=False,
        )
        assert (provider.load_messages, provider.store_inputs, provider.store_outputs) == (
            False,
            False,
            False,
        )
        assert (provider.store_context_messages, provider.store_context_from) == (True, {"rag"})
        with pytest.raises(TypeError):
            BaseHistoryProvider("x", False)  # type: ignore[misc]

    async def test_methods_that_are_not_overridden_say_so(self) -> None:
        """A provider without get_messages or save_messages is an error that names what is missing,
        and not an empty history."""
        provider = BaseHistoryProvider("x")
        with pytest.raises(NotImplementedError, match="get_messages"):
            await run_hook(provider.before_run, finished_context())
        with pytest.raises(NotImplementedError, match="save_messages"):
            await run_hook(provider.after_run, finished_context())

    async def test_it_loads_the_session_of_the_context(self) -> None:
        """The history of the context's session id comes under the source id, even if empty."""
        provider = ListProvider()
        provider.stored["s"] = [Message("user", "a"), Message("assistant", "b")]
        context = SessionContext(session_id="s", input_messages=[])
        await run_hook(provider.before_run, context)
        loaded = context.context_messages["list"]
        assert [message.text for message in loaded] == ["a", "b"]
        assert loaded[0].additional_properties["_attribution"]["source_type"] == "ListProvider"
        empty = SessionContext(session_id="other", input_messages=[])
        await run_hook(provider.before_run, empty)
        assert empty.context_messages == {"list": []}

    @pytest.mark.parametrize(
        ("flags", "saved"),
        [
            ({}, ["question", "answer"]),
            ({"store_inputs": False}, ["answer"]),
            ({"store_outputs": False}, ["question"]),
            ({"store_context_messages": True}, ["fact", "note", "question", "answer"]),
            (
                {"store_context_messages": True, "store_context_from": {"memory"}},
                ["note", "question", "answer"],
            ),
            (
                {"store_context_messages": True, "store_context_from": set()},
                ["question", "answer"],
            ),
            ({"store_context_from": {"memory"}}, ["question", "answer"]),
            (
                {
                    "store_context_messages": True,
                    "store_context_from": ["memory"],
                    "store_inputs": False,
                    "store_outputs": False,
                },
                ["note"],
            ),
        ],
    )
    async def test_it_saves_what_the_flags_choose(
        self, flags: dict[str, Any], saved: list[str]
    ) -> None:
        """Context, input and output are saved in this order, in one call, as far as chosen."""
        provider = ListProvider(**flags)
        await run_hook(provider.after_run, finished_context())
        assert provider.saves == [saved]
        assert list(provider.stored) == ["s"]

    async def test_its_own_source_is_saved_when_it_is_named(self) -> None:
        """Naming its own source is honoured, and warned of, since it doubles the history."""
        with pytest.warns(UserWarning, match="'list'"):
            provider = ListProvider(store_context_messages=True, store_context_from={"list"})
        await run_hook(provider.after_run, finished_context())
        assert provider.saves == [["old", "question", "answer"]]

    async def test_nothing_is_no_save(self) -> None:
        """Where the flags choose nothing, or there is nothing, save_messages is not called."""
        silent = ListProvider(store_inputs=False, store_outputs=False)
        await run_hook(silent.after_run, finished_context())
        provider = ListProvider()
        empty = SessionContext(session_id="s", input_messages=[])
        await run_hook(provider.after_run, empty)
        empty._response = AgentResponse()
        await run_hook(provider.after_run, empty)
        assert silent.saves == provider.saves == []

    async def test_input_and_output_are_saved_without_attribution(self) -> None:
        """Saved context messages say where they came from, the others are as they were."""
        provider, context = ListProvider(store_context_messages=True), finished_context()
        await run_hook(provider.after_run, context)
        attributed = ["_attribution" in m.additional_properties for m in provider.stored["s"]]
        assert attributed == [True, True, False, False]
        assert provider.stored["s"][2] is context.input_messages[0]

    async def test_the_state_is_passed_by_keyword(self) -> None:
        """Both methods get the provider's state, and a signature without a place for it fails."""
        seen: list[Any] = []

        class Noting(ListProvider):
            async def get_messages(
                self, session_id: str | None, *, state: Any = None, **kwargs: Any
            ) -> list[Message]:
                seen.append((state, kwargs))
                return []

        class Narrow(ListProvider):
            async def get_messages(self, session_id: str | None) -> list[Message]:  # type: ignore[override]
                return []

        state = {"k": 1}
        await run_hook(Noting().before_run, finished_context(), state)
        assert seen == [(state, {})]
        with pytest.raises(TypeError, match="state"):
            await run_hook(Narrow().before_run, finished_context(), state)

    async def test_a_bare_provider_has_no_storage_identity(self) -> None:
        """What a provider by hand writes to is not known."""
        assert ListProvider()._storage_identity() is None


class TestInMemory:
    async def test_the_source_id_has_a_default(self) -> None:
        """Without a source id, or with an empty one, it is in_memory."""
        assert InMemoryHistoryProvider.DEFAULT_SOURCE_ID == "in_memory"
        assert InMemoryHistoryProvider().source_id == "in_memory"
        assert InMemoryHistoryProvider("").source_id == "in_memory"
        assert InMemoryHistoryProvider("mine").source_id == "mine"

    async def test_the_flags_have_the_same_defaults(self) -> None:
        """It loads and stores as every history provider does, and skips nothing."""
        provider, base = vars(InMemoryHistoryProvider("x")), vars(BaseHistoryProvider("x"))
        assert provider == {**base, "skip_excluded": False}

    async def test_it_passes_the_flags_on(self) -> None:
        """All flags of history providers are its flags too."""
        provider = InMemoryHistoryProvider(
            load_messages=False,
            store_inputs=False,
            store_context_messages=True,
            store_context_from={"rag"},
            store_outputs=False,
        )
        assert (provider.load_messages, provider.store_inputs, provider.store_outputs) == (
            False,
            False,
            False,
        )
        assert (provider.store_context_messages, provider.store_context_from) == (True, {"rag"})

    async def test_without_state_it_has_nothing(self) -> None:
        """Without a state nothing is loaded and nothing saved."""
        provider = InMemoryHistoryProvider()
        await provider.save_messages("s", [Message("user", "a")])
        assert await provider.get_messages("s") == []
        assert await provider.get_messages("s", state={}) == []

    async def test_it_appends_in_order(self) -> None:
        """Messages are kept in the order of the saves, equal ones too, whatever the session id."""
        provider, state = InMemoryHistoryProvider(), {}
        await provider.save_messages("s", [Message("user", "yes")], state=state)
        await provider.save_messages("t", [Message("user", "yes")], state=state)
        loaded = await provider.get_messages(None, state=state)
        assert [message.text for message in loaded] == ["yes", "yes"]
        assert all(isinstance(message, Message) for message in state["messages"])

    async def test_a_save_makes_a_new_list(self) -> None:
        """The list that was there is left as it was, and an empty save makes an empty one."""
        provider, state = InMemoryHistoryProvider(), {}
        await provider.save_messages("s", [], state=state)
        before = state["messages"]
        await provider.save_messages("s", [Message("user", "a")], state=state)
        assert before == []
        assert len(state["messages"]) == 1

    async def test_it_stores_copies(self) -> None:
        """A message that is changed after it was saved is loaded as it was saved."""
        provider, state = InMemoryHistoryProvider(), {}
        message = Message("user", "a", additional_properties={"k": [1]})
        await provider.save_messages("s", [message], state=state)
        message.contents[0].text = "changed"
        message.additional_properties["k"].append(2)
        [loaded] = await provider.get_messages("s", state=state)
        assert loaded.text == "a"
        assert loaded.additional_properties == {"k": [1]}

    async def test_it_hands_out_copies(self) -> None:
        """A message that is changed after it was loaded is as it was in the next load."""
        provider, state = InMemoryHistoryProvider(), {}
        await provider.save_messages("s", [Message("user", "a")], state=state)
        before = deepcopy(state["messages"][0].to_dict())
        (await provider.get_messages("s", state=state))[0].contents[0].text = "changed"
        assert (await provider.get_messages("s", state=state))[0].to_dict() == before

    async def test_excluded_messages_can_be_skipped(self) -> None:
        """Messages marked as excluded stay in the state, and are not loaded with the flag."""
        state: dict[str, Any] = {}
        messages = [
            Message("user", "a", additional_properties={"_excluded": True}),
            Message("user", "b", additional_properties={"_excluded": False}),
        ]
        await InMemoryHistoryProvider().save_messages("s", messages, state=state)
        skipping = InMemoryHistoryProvider(skip_excluded=True)
        assert [m.text for m in await skipping.get_messages("s", state=state)] == ["b"]
        all_of_them = await InMemoryHistoryProvider().get_messages("s", state=state)
        assert [m.text for m in all_of_them] == ["a", "b"]

    async def test_its_identity_is_its_place_in_the_state(self) -> None:
        """Two providers of one source id write to the same place."""
        one, same, other = (InMemoryHistoryProvider(name) for name in ("a", "a", "b"))
        assert one._storage_identity() == same._storage_identity() != other._storage_identity()


async def test_the_names_are_public() -> None:
    """What the document imports from agent_framework is there under the same names."""
    names = [
        "Agent",
        "AgentSession",
        "SessionContext",
        "BaseContextProvider",
        "BaseHistoryProvider",
        "InMemoryHistoryProvider",
        "Message",
        "register_state_type",
    ]
    assert all(name in historykit.__all__ and hasattr(historykit, name) for name in names)
