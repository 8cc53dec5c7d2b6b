from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from historykit.session_records import SessionKey, SessionPosition
from historykit_redis.keys import Keys, pack_values, place_of, unpack_place, unpack_values

ids = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=8
)
users = st.just("") | ids
marks = st.text(st.sampled_from("a:%{}3A7B25"), min_size=1, max_size=6)
times = st.integers(-(1 << 63), (1 << 63) - 1)
positions = st.builds(SessionPosition, times, ids, users)


def slot_tag(key: bytes) -> bytes:
    """Return the part of a key that chooses its slot."""
    start = key.index(b"{") + 1
    return key[start : key.index(b"}", start)]


@example(("a:b", "c", "d"), ("a", "b:c", "d"))
@example(("a", "b:c", "d"), ("a", "b", "c:d"))
@example(("a", "b", ":"), ("a", "b", "%3A"))
@example(("a", "b", "}"), ("a", "b", "%7D"))
@given(st.tuples(marks, marks, marks), st.tuples(marks, marks, marks))
def test_different_sessions_have_different_keys(
    one: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    """Ids made of the marks that keys are made of never meet, not even as a namespace's name."""
    keys = Keys("")
    assert (keys.session(SessionKey(*one)) == keys.session(SessionKey(*other))) == (one == other)
    assert slot_tag(keys.session(SessionKey(*one))) != slot_tag(keys.index(other[0]))


@given(ids, users, ids, ids)
def test_keys_of_a_session_are_in_one_slot(
    namespace: str, user: str, session_id: str, stream: str
) -> None:
    """All keys of a session, whatever its ids, have the same tag, which is not empty."""
    keys = Keys("prefix:")
    all_keys = keys.stream(SessionKey(namespace, user, session_id), stream.encode())
    assert len({slot_tag(key) for key in all_keys} - {b""}) == 1
    assert len(set(all_keys)) == len(all_keys)
    assert all(key.startswith(b"prefix:hk1:") for key in all_keys)


@given(positions, positions)
def test_places_sort_as_positions_do(one: SessionPosition, other: SessionPosition) -> None:
    """The bytes of two places compare as their positions do, and lead back to them."""
    assert (place_of(one) < place_of(other)) == (one < other)
    assert unpack_place(place_of(one)) == one


@given(st.lists(st.binary(max_size=20)))
def test_values_come_back(values: list[bytes]) -> None:
    """Values that were packed as one come back as they were."""
    assert unpack_values(pack_values(values)) == values


def test_keys_are_the_documented_ones() -> None:
    """The names are those that the module describes, so that people find them."""
    keys = Keys("")
    assert keys.stream(SessionKey("support", "ada", "s1"), b"main") == [
        b"hk1:{support:ada:s1}:s",
        b"hk1:{support:ada:s1}:i",
        b"hk1:{support:ada:s1}:l",
        b"hk1:{support:ada:s1}:m:main",
        b"hk1:{support:ada:s1}:w:main",
    ]
    assert keys.index("support") == b"hk1:{support}:"
