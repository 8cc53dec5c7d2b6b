from __future__ import annotations

from historykit import Content, Message
from historykit.windows import whole_groups

SYSTEM = Message("system", "s")
ASK = Message("user", "u")
CALL = Message(
    "assistant",
    [Content.from_function_call("1", "f"), Content.from_function_call("2", "g")],
)
FIRST = Message("tool", [Content.from_function_result("1", result="a")])
SECOND = Message("tool", [Content.from_function_result("2", result="b")])
ANSWER = Message("assistant", "done")
REQUEST = Message(
    "assistant",
    [
        Content(
            "function_approval_request",
            id="p",
            function_call={"type": "function_call", "call_id": "3"},
        ),
    ],
)
RESPONSE = Message("user", [Content("function_approval_response", id="p", approved=True)])
APPROVED = Message("tool", [Content.from_function_result("3", result="c")])
PICTURE = Message("assistant", [Content("image_generation_tool_call", image_id="i")])
PAINTED = Message("assistant", [Content("image_generation_tool_result", image_id="i")])
BARE = Message("tool", "just text")


def test_whole_histories_stay_as_they_are():
    """Messages whose calls and results are all there are returned as they are."""
    history = [
        SYSTEM,
        ASK,
        CALL,
        FIRST,
        SECOND,
        ANSWER,
        REQUEST,
        RESPONSE,
        APPROVED,
        PICTURE,
        PAINTED,
    ]
    assert whole_groups(history) == history


def test_every_window_of_a_history_is_whole():
    """Of any window, results without their call are left out and nothing else."""
    history = [ASK, CALL, FIRST, SECOND, ASK, ANSWER]
    windows = [whole_groups(history[-size:]) for size in range(1, 7)]
    assert windows == [
        [ANSWER],
        [ASK, ANSWER],
        [ASK, ANSWER],
        [ASK, ANSWER],
        [CALL, FIRST, SECOND, ASK, ANSWER],
        history,
    ]


def test_a_result_apart_from_its_call_is_left_out_alone():
    """A result that stands later than other messages goes without them."""
    assert whole_groups([ASK, FIRST, ANSWER]) == [ASK, ANSWER]


def test_a_call_whose_results_are_cut_goes_too():
    """Where one message answers a call that is there and one that is not, both go."""
    both = Message("tool", [*FIRST.contents, *APPROVED.contents])
    one = Message("assistant", [Content.from_function_call("1", "f")])
    assert whole_groups([ASK, one, both, ANSWER]) == [ASK, ANSWER]


def test_a_call_without_result_stays():
    """A call that has no result yet, or waits for approval, stays."""
    assert whole_groups([ASK, CALL]) == [ASK, CALL]
    assert whole_groups([ASK, REQUEST]) == [ASK, REQUEST]


def test_an_answer_to_an_approval_that_is_cut_goes():
    """An approval, its answer and its result stand together or go together."""
    assert whole_groups([RESPONSE, APPROVED, ANSWER]) == [ANSWER]


def test_tool_messages_without_calls_do_not_begin_a_window():
    """A tool message that names no call goes at the beginning and stays elsewhere."""
    assert whole_groups([BARE, BARE, ASK, BARE, ANSWER]) == [ASK, BARE, ANSWER]


def test_results_of_hosted_tools_are_held_to_their_calls():
    """The result of a hosted tool goes where its call is cut."""
    assert whole_groups([PAINTED, ANSWER]) == [ANSWER]
