"""historykit without asyncio, on SQLite."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref
from concurrent.futures import CancelledError

import pytest

from historykit import (
    Agent,
    AgentSession,
    Message,
    NotFoundError,
    Page,
    ResourceError,
    StorageError,
    StoreClosedError,
    WrongLoopError,
    sync,
)
from historykit.history import History
from historykit.memory import MemoryStore
from historykit.sync.portal import Portal
from tests.core.scripted import ScriptedClient


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "chat.db")


@pytest.fixture
def history(path):
    with sync.open_history("sqlite", path=path) as history:
        yield history


@pytest.fixture
def session(history):
    return history.Session(id="s1", agent="helper", name="Carrots").save()


def program(text, path):
    """Run a program to its end and return what it printed."""
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", text, path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


# -- what it does


def test_a_conversation_is_there_after_a_restart(path):
    """What one history stored, another one finds."""
    with sync.open_history("sqlite", path=path) as history:
        history.append("s1", [Message("user", "Hi")])
    with sync.open_history("sqlite", path=path) as history:
        assert [message.text for message in history.load("s1")] == ["Hi"]


def test_sessions_are_saved_found_and_deleted(history, session):
    """The calls are those of the asynchronous class, and give blocking sessions."""
    assert (session.id, session.name, session.is_modified) == ("s1", "Carrots", False)
    session.name = "Beans"
    assert session.is_modified
    assert session.save() is session
    found = history.Session.get("s1")
    assert isinstance(found, sync.Session)
    assert found.name == "Beans"
    assert repr(found) == "Session(id='s1', name='Beans')"
    page = history.Session.search(agent="helper")
    assert isinstance(page, Page)
    assert ([each.id for each in page], page.total, page.complete) == (["s1"], 1, True)
    assert isinstance(page.results[0], history.Session)
    assert session.delete().completed
    with pytest.raises(NotFoundError):
        history.Session.get("s1")


def test_messages_are_added_and_read(session):
    """As in the asynchronous class."""
    session.add_message("user", "Hi")
    answer = session.add_message("assistant", "Hello")
    assert session.react(answer.id, "LIKE").reaction == "LIKE"
    assert [message.content for message in session.messages()] == ["Hi", "Hello"]


def test_sessions_copy_themselves(session):
    """A fork is a session that is stored, a clone one that is not."""
    session.add_message("user", "Hi")
    forked = session.fork(id="s2")
    assert isinstance(forked, sync.Session)
    assert len(forked.messages()) == 1
    assert session.clone(name="Copy").save().name == "Copy"


def test_a_session_is_made_of_a_dict(history, session):
    """`from_dict` gives a session of the history."""
    made = history.Session.from_dict(session.to_dict())
    assert isinstance(made, history.Session)
    assert made.messages() == []


def test_a_search_says_where_its_text_is(history, session):
    """As the asynchronous one."""
    message = session.add_message("user", "When do I sow carrots?")
    (hit,) = history.Session.search(query="sow").hits
    assert (hit.message_id, "sow" in hit.snippet) == (message.id, True)


def test_sessions_are_walked_through(history):
    """One after the other, and no further than somebody goes."""
    for number in range(3):
        history.Session(id=f"s{number}").save()
    walk = history.Session.iterate(page_size=1)
    assert {session.id for session in walk} == {"s0", "s1", "s2"}
    for session in history.Session.iterate(page_size=1):
        assert isinstance(session, sync.Session)
        break


def test_what_is_walked_through_ends_with_the_walk(history):
    """An iterator that is left has let go of everything."""
    log = []

    async def numbers():
        try:
            for number in range(3):
                yield number
        finally:
            log.append("closed")

    items = numbers()  # which is kept, so that nothing else closes it
    walk = history._portal.iterate(items)
    assert next(walk) == 0
    walk.close()
    assert log == ["closed"]


def test_an_agent_is_run_in_a_session(history, session):
    """By the history, and bound to it."""
    agent = Agent(ScriptedClient(), name="helper")
    assert history.run(agent, "Hi", session=session).data.output == "echo Hi"
    assert history.bind(agent).run("And?", session="s1").data.output == "echo And?"
    assert session.refresh().message_count == 4


def test_anything_is_called_on_the_loop(history):
    """Such as an agent with a provider of the history."""
    agent = Agent(ScriptedClient(), context_providers=[history.provider()])
    answer = history.call(agent.run, "Hi", session=AgentSession(session_id="s1"))
    assert answer.text == "echo Hi"
    assert len(history.load("s1")) == 2


def test_a_session_goes_to_the_loop_as_the_asynchronous_one(history, session):
    """So that `call` runs an agent in it."""
    assert history.call(Agent(ScriptedClient()).run, "Hi", session=session).text == "echo Hi"
    assert [message.content for message in session.messages()] == ["Hi", "echo Hi"]


def test_an_agent_that_is_run_outside_of_the_loop_names_what_runs_it_there(history, session):
    """Neither a blocking session nor the provider of a blocking history is for another loop."""
    agent = Agent(ScriptedClient())
    with pytest.raises(TypeError, match=r"historykit\.sync; .*history\.run\(agent.*history\.call"):
        asyncio.run(agent.run("Hi", session=session))
    agent = Agent(ScriptedClient(), context_providers=[history.provider()])
    with pytest.raises(WrongLoopError, match=r"historykit\.sync.*; history\.call\(function"):
        asyncio.run(agent.run("Hi", session=AgentSession(session_id="s1")))


def test_what_is_no_async_function_is_not_called_on_the_loop(history):
    """The error says what `call` takes; nothing warns of what was not awaited."""
    agent = Agent(ScriptedClient())
    with pytest.raises(TypeError, match=r"\(coroutine\); as in history\.call\(agent\.run, query\)"):
        history.call(agent.run("Hi"))
    with pytest.raises(TypeError, match=r"not what it returned \(str\)"):
        history.call("Hi")
    with pytest.raises(TypeError, match=r"returned AgentStream; historykit\.sync does not stream"):
        history.call(agent.run, "Hi", stream=True)
    with pytest.raises(TypeError, match=r"len returned int$"):
        history.call(len, "Hi")


def test_the_module_is_found_in_the_package():
    """`import historykit` is enough for `historykit.sync`, and for what errors name."""
    text = "import historykit as h; print(h.sync.__name__, h.chat_completions.__name__)"
    assert program(text, "") == "historykit.sync historykit.chat_completions\n"


def test_attachments_are_read_on_the_loop(tmp_path):
    """What belongs to no class of its own here is awaited by `call`."""
    picture = tmp_path / "a.txt"
    picture.write_text("Hello")
    with sync.open_history("memory", attachments=tmp_path / "kept") as history:
        session = history.Session(id="s1").save()
        message = session.add_message("user", "Look", attachments=[picture])
        assert history.call(message.attachments[0].read) == b"Hello"
        assert history.sweep_attachments(dry_run=True) is not None


def test_a_user_has_sessions_of_their_own(history, session):
    """A view of a user shares the loop, and closing it closes nothing."""
    with history.as_user("ada") as view:
        assert view.user_id == "ada"
        with pytest.raises(NotFoundError):
            view.Session.get("s1")
        view.Session(id="s1", name="Ada's").save()
    assert history.Session.get("s1").name == "Carrots"
    assert history._portal is view._portal


def test_attributes_are_those_of_the_asynchronous_object(history):
    """Others are an `AttributeError`, as they are there."""
    assert (history.namespace, history.user_id) == ("default", "")
    assert repr(history) == "History('sqlite', namespace='default', user_id='')"
    with pytest.raises(AttributeError, match="'History' object has no attribute 'sessions'"):
        _ = history.sessions


def test_a_session_needs_a_history():
    """Without one, a call says what is missing; what needs none works."""
    session = sync.Session(name="Carrots")
    assert session.to_dict()["name"] == "Carrots"
    for call in (session.save, lambda: sync.Session.get("s1")):
        with pytest.raises(ResourceError, match="context is required"):
            call()


# -- whose line, context and loop it is


def test_warnings_point_at_the_line_that_calls(history):
    """Though what warns runs in another thread."""
    with pytest.warns(UserWarning, match="critera") as caught:
        history.Session.search(critera="x")
    assert caught[0].filename == __file__


def test_the_context_of_the_caller_is_there(history):
    """Context variables have the values that they have where the call is made."""
    name = contextvars.ContextVar("name")
    name.set("ada")

    async def read():
        return name.get()

    assert history.call(read) == "ada"


def test_a_call_on_an_event_loop_is_refused(history):
    """It would keep the loop from running; the error says what to do."""

    async def main():
        history.load("s1")

    with pytest.raises(WrongLoopError, match="await it"):
        asyncio.run(main())


def test_many_threads_use_one_history(history):
    """Their calls go on at the same time."""
    threads = [
        threading.Thread(target=history.append, args=["s1", [Message("user", str(number))]])
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {message.text for message in history.load("s1")} == set("01234567")


# -- how it ends


def test_a_closed_history_says_so(path):
    """And can be opened again; closing twice does nothing."""
    history = sync.open_history("sqlite", path=path)
    history.close()
    history.open()
    history.append("s1", [Message("user", "Hi")])
    history.close()
    history.close()
    with pytest.raises(StoreClosedError, match=r"use it in `with`, or call open\(\) first"):
        history.load("s1")
    assert len(history.open().load("s1")) == 1
    history.close()


def threads():
    return [each for each in threading.enumerate() if each.name == "historykit.sync"]


def test_a_history_that_is_forgotten_ends_its_thread():
    """With the last reference to it the store is closed and the thread ends."""
    before = len(threads())
    history = sync.History(History(MemoryStore())).open()
    store = weakref.ref(history._target.store)
    assert len(threads()) == before + 1
    del history
    gc.collect()
    assert len(threads()) == before
    assert store() is None


def test_a_failure_to_close_is_raised():
    """The thread has ended all the same."""

    class Stuck(MemoryStore):
        async def _close(self):
            raise OSError("stuck")

        def _translate(self, error, operation):
            return StorageError(f"{operation} failed")

    before = len(threads())
    history = sync.History(History(Stuck())).open()
    with pytest.raises(StorageError, match="close failed"):
        history.close()
    assert len(threads()) == before


def test_a_loop_can_let_go_of_itself():
    """The last reference may be one that the loop holds: it does not wait for itself."""

    async def nothing():
        pass

    portal = Portal(nothing)
    gone = threading.Event()

    async def let_go(held):
        asyncio.get_running_loop().call_later(0.05, drop, held)

    def drop(held):
        held.clear()
        gone.set()

    portal.call(let_go, [portal])
    del portal
    assert gone.wait(5)
    deadline = time.monotonic() + 5
    while threads() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threads() == []


def test_what_is_under_way_ends_with_the_loop():
    """A call of another thread is cancelled."""
    history = sync.History(History(MemoryStore())).open()
    outcome = []
    begun = threading.Event()

    async def forever():
        begun.set()
        await asyncio.Event().wait()

    def call():
        try:
            history.call(forever)
        except CancelledError as error:
            outcome.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    begun.wait()
    history.close()
    thread.join(5)
    assert len(outcome) == 1


def test_a_walk_that_is_left_after_the_history_was_closed_begins_no_thread():
    """What it walked through has ended with the loop."""
    history = sync.History(History(MemoryStore())).open()
    for _ in range(2):
        history.Session().save()
    walk = history.Session.iterate(page_size=1)
    next(walk)
    history.close()
    before = len(threads())
    del walk
    gc.collect()
    assert len(threads()) == before


def test_a_call_while_another_thread_closes_the_history_says_so():
    """It does not begin a loop beside the one that ends."""
    closing, go_on = threading.Event(), threading.Event()

    class Slow(MemoryStore):
        async def _close(self):
            closing.set()
            await asyncio.to_thread(go_on.wait, 5)

    history = sync.History(History(Slow())).open()
    thread = threading.Thread(target=history.close)
    thread.start()
    closing.wait()
    before = len(threads())
    with pytest.raises(StoreClosedError, match="by another thread"):
        history.load("s1")
    assert len(threads()) == before
    go_on.set()
    thread.join(5)


def test_a_call_that_comes_too_late_for_the_loop_does_not_wait_for_ever():
    """Whether the loop is about to end, or has ended."""

    late = []

    async def finish():
        asyncio.get_running_loop().call_soon(begin)  # with which the loop stops

    def begin():
        late.append(life.begin(asyncio.Event().wait))

    portal = Portal(finish)
    life = portal._here()
    portal.close()
    with pytest.raises(StoreClosedError, match="before the call began"):
        late[0].result(5)
    with pytest.raises(StoreClosedError, match="before the call began"):
        life.begin(finish)


EXIT = """
import sys
from historykit import Message, sync
history = sync.open_history("sqlite", path=sys.argv[1]).open()
history.append("s1", [Message("user", "Hi")])
print(len(history.load("s1")))
"""


def test_the_interpreter_ends_without_a_close(path):
    """At once, without a warning, and with everything stored."""
    assert program(EXIT, path) == "1\n"
    with sync.open_history("sqlite", path=path) as history:
        assert len(history.load("s1")) == 1


INTERRUPT = """
import asyncio, signal, sys, threading
from historykit import sync

async def forever():
    main = threading.main_thread().ident
    threading.Timer(0.1, signal.pthread_kill, [main, signal.SIGINT]).start()
    try:
        await asyncio.Event().wait()
    finally:
        print("cancelled")

with sync.open_history("memory") as history:
    try:
        history.call(forever)
    except KeyboardInterrupt:
        print("interrupted", len(history.load("s1")))
"""


def test_an_interrupt_cancels_the_call(path):
    """And the history can be used on."""
    assert program(INTERRUPT, path) == "cancelled\ninterrupted 0\n"


FORK = """
import os, sys, warnings
from historykit import Message, sync
warnings.simplefilter("ignore", DeprecationWarning)
history = sync.open_history("sqlite", path=sys.argv[1]).open()
child = os.fork()
if child == 0:
    sys.exit()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
history.append("s1", [Message("user", "Hi")])
"""


def test_a_forked_process_ends_without_a_close(path):
    """It does not wait for a thread that it does not have, and leaves its parent's alone."""
    assert program(FORK, path) == "0\n"


def test_a_forked_process_has_a_thread_of_its_own(history):
    """Parent and child go on with the same history."""
    history.append("s1", [Message("user", "before")])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        signal.alarm(20)  # a child that waits for ever is nobody's to end
        status = 1
        try:
            history.append("s1", [Message("user", "child")])
            history.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    history.append("s1", [Message("user", "parent")])
    assert [message.text for message in history.load("s1")] == ["before", "child", "parent"]


def test_a_process_is_forked_while_a_call_begins(history):
    """The child does not wait for a thread that it does not have."""
    history.append("s1", [Message("user", "before")])
    with history._portal._lock, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            status = 1
            try:
                status = len(history.load("s1")) - 1
            finally:
                os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_lock_of_another_process_is_nobodys(history):
    """As the one that a forked process finds held."""
    history.append("s1", [Message("user", "before")])
    portal = history._portal
    with portal._lock:
        portal._process = 0
        assert len(history.load("s1")) == 1
