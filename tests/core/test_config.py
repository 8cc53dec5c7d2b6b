from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from historykit import sync
from historykit.config import DEFAULT_NAMESPACE, HistoryConfig, Text, load_config
from historykit.errors import ConfigError
from historykit.history import open_history
from historykit.memory import MemoryStore


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "historykit.toml"


def written(file: Path, text: str) -> Path:
    file.write_text(dedent(text), "utf-8")
    return file


def refusal(*arguments: Path, **others: object) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_config(*arguments, environ={}, **others)
    return caught.value


def test_arguments_alone() -> None:
    """Backend, namespace and user are named; all other arguments are settings of the backend."""
    config = load_config(environ={}, backend="acme", namespace="n", user_id="u", path="x", size=1)
    assert config == HistoryConfig(
        backend="acme", namespace="n", user_id="u", settings={"path": "x", "size": 1}
    )


def test_a_file_alone(file: Path) -> None:
    """The table `history` has the choices, a table in it the settings of the backend."""
    written(
        file,
        """
        [other]
        x = 1
        [history]
        backend = "acme"
        namespace = "support"
        user_id = "ada"
        [history.acme]
        url = "acme://"
        size = 3
        [history.elsewhere]
        colour = "blue"
        """,
    )
    assert load_config(file, environ={}) == HistoryConfig(
        backend="acme",
        namespace="support",
        user_id="ada",
        settings={"url": "acme://", "size": 3},
    )


def test_the_environment_alone() -> None:
    """Its variables are read for the backend that it names; their values are texts."""
    environ = {
        "HISTORYKIT_BACKEND": "acme",
        "HISTORYKIT_NAMESPACE": "support",
        "HISTORYKIT_USER_ID": "ada",
        "HISTORYKIT_ACME_URL": "acme://",
        "HISTORYKIT_ACME_POOL_SIZE": "3",
        "HISTORYKIT_OTHER_URL": "other://",
        "ACME_URL": "nothing of ours",
    }
    assert load_config(environ=environ) == HistoryConfig(
        backend="acme",
        namespace="support",
        user_id="ada",
        settings={
            "url": Text("acme://", "HISTORYKIT_ACME_URL"),
            "pool_size": Text("3", "HISTORYKIT_ACME_POOL_SIZE"),
        },
    )


def test_the_environment_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `environ`, the variables of the process count."""
    monkeypatch.setenv("HISTORYKIT_BACKEND", "acme")
    assert load_config().backend == "acme"


def test_an_empty_variable_is_not_set() -> None:
    """An empty variable gives neither a choice nor a setting."""
    config = load_config(
        environ={"HISTORYKIT_NAMESPACE": "", "HISTORYKIT_ACME_URL": ""}, backend="acme"
    )
    assert config == HistoryConfig(backend="acme", namespace=DEFAULT_NAMESPACE)


@pytest.mark.parametrize("name", ["backend", "namespace", "user_id"])
def test_arguments_go_before_the_file_and_the_file_before_the_environment(
    file: Path, name: str
) -> None:
    """Each choice is taken from the first of the three that has it."""
    environ = {"HISTORYKIT_BACKEND": "e", "HISTORYKIT_NAMESPACE": "e", "HISTORYKIT_USER_ID": "e"}
    written(file, '[history]\nbackend = "f"\nnamespace = "f"\nuser_id = "f"\n')
    assert getattr(load_config(file, environ=environ, **{name: "a"}), name) == "a"
    assert getattr(load_config(file, environ=environ, **{name: None}), name) == "f"
    assert getattr(load_config(file, environ=environ), name) == "f"
    written(file, "[history]\n")
    assert getattr(load_config(file, environ=environ), name) == "e"


def test_each_setting_has_its_own_source(file: Path) -> None:
    """The three sources are merged setting by setting, in the same order."""
    written(file, '[history]\nbackend = "acme"\n[history.acme]\none = "file"\ntwo = "file"\n')
    environ = {f"HISTORYKIT_ACME_{name}": "environment" for name in ("ONE", "TWO", "THREE")}
    assert load_config(file, environ=environ, one="argument").settings == {
        "one": "argument",
        "two": "file",
        "three": Text("environment", "HISTORYKIT_ACME_THREE"),
    }


def test_a_setting_that_is_none_is_given() -> None:
    """None is a value for a setting of the backend, unlike for backend, namespace and user."""
    environ = {"HISTORYKIT_ACME_LIMIT": "3"}
    assert load_config(environ=environ, backend="acme", limit=None).settings == {"limit": None}


def test_the_backend_that_is_chosen_decides_whose_settings_count(file: Path) -> None:
    """A backend given as an argument gets its own table, not that of the file's backend."""
    written(
        file, '[history]\nbackend = "acme"\n[history.acme]\nurl = "a"\n[history.other]\nurl = "o"\n'
    )
    assert load_config(file, environ={}, backend="other").settings == {"url": "o"}


def test_a_backend_with_a_dash_in_its_name() -> None:
    """In the environment an underscore stands for it."""
    config = load_config(environ={"HISTORYKIT_MY_DB_URL": "x"}, backend="my-db")
    assert config.settings == {"url": Text("x", "HISTORYKIT_MY_DB_URL")}


def test_no_backend_is_configured() -> None:
    """The error names the three ways to name one."""
    error = refusal()
    assert error.field == "backend"
    assert 'backend="sqlite"' in str(error)
    assert "[history]" in str(error)
    assert "HISTORYKIT_BACKEND" in str(error)


def test_a_file_that_is_not_there(file: Path) -> None:
    """The error names the file and the system's reason."""
    assert str(refusal(file)) == f"cannot read {file}: No such file or directory; check the path"


@pytest.mark.parametrize("content", [b"[history", b"\xff\xfe"])
def test_a_file_that_is_no_toml(file: Path, content: bytes) -> None:
    """The error names the file and what is wrong with it."""
    file.write_bytes(content)
    assert f"{file} is not TOML in UTF-8: " in str(refusal(file))


@pytest.mark.parametrize("content", ["", "history = 1", "[historykit]\nbackend = 'acme'"])
def test_a_file_without_the_table(file: Path, content: str) -> None:
    """The error says how the table begins."""
    assert "has no table [history]; begin it with" in str(refusal(written(file, content)))


def test_an_unknown_key_in_the_file(file: Path) -> None:
    """The error names the nearest key, and where settings of a backend belong."""
    error = refusal(written(file, '[history]\nbackennd = "acme"\n'))
    assert "[history] has no key 'backennd'; did you mean 'backend'?" in str(error)
    assert "[history.sqlite]" in str(error)
    assert error.field == "backennd"


def test_a_table_that_is_almost_the_backends(file: Path) -> None:
    """A table with a slip in its name is an error, where the backend has none."""
    error = refusal(written(file, '[history]\nbackend = "redis"\n[history.reddis]\nurl = "x"\n'))
    assert str(error) == (
        f"{file} has a table [history.reddis] and none for the backend 'redis'; "
        "rename it to [history.redis]"
    )


def test_a_similar_table_beside_the_backends(file: Path) -> None:
    """Where the backend has its table, one with a similar name is another backend's."""
    text = '[history]\nbackend = "redis"\n[history.redis]\nurl = "x"\n[history.redis2]\nurl = "y"\n'
    assert load_config(written(file, text), environ={}).settings == {"url": "x"}


@pytest.mark.parametrize(
    ("line", "field"), [("backend = 5", "backend"), ("namespace = 5", "namespace")]
)
def test_a_choice_of_another_type(file: Path, line: str, field: str) -> None:
    """The error names it."""
    error = refusal(written(file, f"[history]\n{line}\n"), **_others(field))
    assert error.field == field


def _others(field: str) -> dict[str, object]:
    return {} if field == "backend" else {"backend": "acme"}


@pytest.mark.parametrize(
    ("choice", "value"),
    [("backend", ""), ("namespace", ""), ("namespace", "a\0b"), ("user_id", "x" * 257)],
)
def test_a_choice_that_is_no_identifier(choice: str, value: str) -> None:
    """The error names it."""
    with pytest.raises(ConfigError) as caught:
        load_config(environ={}, **{"backend": "acme", choice: value})
    assert caught.value.field == choice


def test_the_repr_shows_no_setting() -> None:
    """Settings may be secrets."""
    assert "hunter2" not in repr(load_config(environ={}, backend="acme", key="hunter2"))


def test_a_history_is_opened_from_a_config(file: Path) -> None:
    """`open_history` takes what `load_config` returns."""
    written(file, '[history]\nbackend = "memory"\nnamespace = "support"\n')
    history = open_history(load_config(file, environ={}))
    assert (history.namespace, history.user_id) == ("support", "")
    assert isinstance(history.store, MemoryStore)


def test_a_wrong_setting_is_refused_when_the_history_is_made(file: Path) -> None:
    """An unknown setting in the file is found when the backend is loaded."""
    written(file, '[history]\nbackend = "memory"\n[history.memory]\nsize = 3\n')
    config = load_config(file, environ={})
    with pytest.raises(ConfigError, match="the memory backend has no setting 'size'; there are"):
        open_history(config)


def test_the_remedies_for_no_backend_do_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """The argument that the error shows is one of `open_history` and of `load_config`."""
    monkeypatch.delenv("HISTORYKIT_BACKEND", raising=False)
    with pytest.raises(ConfigError, match=r'an argument \(backend="sqlite", to the command'):
        open_history()
    assert open_history(backend="memory").store.backend == "memory"
    assert sync.open_history(backend="memory").store.backend == "memory"
    assert load_config(backend="memory", environ={}).backend == "memory"


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("HISTORYKIT_NAMESPASE", "HISTORYKIT_NAMESPACE"),
        ("HISTORYKIT_USER", "HISTORYKIT_USER_ID"),
    ],
)
def test_a_variable_with_almost_the_name_of_a_choice_is_refused(variable: str, meant: str) -> None:
    """It would be passed over, and the sessions would be elsewhere than was meant."""
    with pytest.raises(ConfigError, match=f"{variable} .* did you mean {meant}"):
        load_config(backend="memory", environ={variable: "x"})


def test_variables_of_other_backends_are_left_alone() -> None:
    """Their names begin with those of backends, of which not all may be installed."""
    environ = {"HISTORYKIT_REDIS_URL": "x", "HISTORYKIT_ACME_NAME": "y"}
    assert load_config(backend="memory", environ=environ).settings == {}
