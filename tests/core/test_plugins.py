from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from historykit.errors import (
    BackendConflictError,
    BackendError,
    BackendLoadError,
    BackendNotFoundError,
    IncompatibleBackendError,
)
from historykit.memory import MemoryConfig, MemoryStore
from historykit.plugins import (
    BackendRegistry,
    BackendSpec,
    hookimpl,
    installed_entry_points,
    list_backends,
    load_backend,
    register,
    unregister,
)
from tests.core.plugin_folder import PluginFolder

SPEC = """
    from historykit.memory import MemoryConfig, MemoryStore
    from historykit.plugins import BackendSpec, hookimpl

    @hookimpl
    def historykit_backend():
        fields = {"name": "NAME", "store": lambda: MemoryStore, "config": lambda: MemoryConfig}
        return BackendSpec(**fields | {FIELDS})
"""


def plugin(**fields: str) -> str:
    """The source of a plugin with some fields of its `BackendSpec` written otherwise."""
    return SPEC.replace("FIELDS", ", ".join(f'"{name}": {code}' for name, code in fields.items()))


def spec(name: str = "acme", *, summary: str = "") -> BackendSpec:
    return BackendSpec(
        name=name, store=lambda: MemoryStore, config=lambda: MemoryConfig, summary=summary
    )


def module(name: str, backend: BackendSpec) -> ModuleType:
    """A module with the hook, as an application would have it."""

    @hookimpl
    def historykit_backend() -> BackendSpec:
        return backend

    made = ModuleType(name)
    made.historykit_backend = historykit_backend  # type: ignore[attr-defined]  # a module's names
    return made


def nothing() -> Iterable[EntryPoint]:
    return ()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PluginFolder:
    monkeypatch.syspath_prepend(tmp_path)
    return PluginFolder(tmp_path)


def refusal(folder: PluginFolder, name: str = "acme") -> BackendLoadError:
    """The error that loading the backend ends in."""
    with pytest.raises(BackendLoadError) as caught:
        folder.registry().load(name)
    assert caught.value.backend == name
    return caught.value


# -- installed backends


def test_an_installed_backend_is_loaded_by_its_name(folder: PluginFolder) -> None:
    """The name of an entry point loads the backend that its module describes."""
    folder.install("acme")
    loaded = folder.registry().load("acme")
    assert (loaded.name, loaded.store(), loaded.config()) == ("acme", MemoryStore, MemoryConfig)


def test_only_the_backend_that_was_asked_for_is_loaded(folder: PluginFolder) -> None:
    """A backend beside it that cannot be imported is not touched."""
    folder.install("acme")
    broken = folder.install("broken", "raise SystemError('touched')")
    folder.registry().load("acme")
    assert broken not in sys.modules


def test_a_loaded_backend_is_the_same_the_next_time(folder: PluginFolder) -> None:
    """A second load gives the description that the first one gave."""
    folder.install("acme")
    registry = folder.registry()
    assert registry.load("acme") is registry.load("acme")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "redis",
            "no backend 'redis' is installed (installed: acme, other); "
            "install it with: pip install 'historykit[redis]'",
        ),
        (
            "redis://user:secret@host",
            "a backend is selected by its name, not by a URL; the URL is a setting, as in "
            'open_history("redis", url="redis://...")',
        ),
        (
            "historykit.toml",
            "'historykit.toml' is no backend; to read a file of configuration: "
            "open_history(load_config('historykit.toml'))",
        ),
        (
            "mongodb",
            "no backend 'mongodb' is installed (installed: acme, other); did you mean 'mongo'?; "
            "install it with: pip install 'historykit[mongo]'",
        ),
        (
            "amce",
            "no backend 'amce' is installed (installed: acme, other); did you mean 'acme'?",
        ),
        (
            "ACME",
            "no backend 'ACME' is installed (installed: acme, other); did you mean 'acme'?",
        ),
        (
            "xyz",
            "no backend 'xyz' is installed (installed: acme, other); "
            "install the distribution that provides it, or register it",
        ),
    ],
)
def test_a_backend_that_is_not_installed(folder: PluginFolder, name: str, message: str) -> None:
    """The error lists what is installed, the nearest name, and how to install one of ours."""
    folder.install("acme")
    folder.install("other")
    with pytest.raises(BackendNotFoundError) as caught:
        folder.registry().load(name)
    assert str(caught.value) == message
    assert caught.value.installed == ("acme", "other")


def test_nothing_is_installed(folder: PluginFolder) -> None:
    """Without any backend the error says that there is none."""
    with pytest.raises(BackendNotFoundError, match=r"installed: none"):
        folder.registry().load("acme")


def test_two_distributions_claim_a_name(folder: PluginFolder) -> None:
    """Neither is loaded: the error names both, with versions and entry points."""
    first = folder.install("acme", distribution="acme-history")
    second = folder.install("acme", distribution="zzz-history", version="1.0")
    with pytest.raises(BackendConflictError) as caught:
        folder.registry().load("acme")
    assert sorted(caught.value.distributions) == ["acme-history", "zzz-history"]
    assert f"{first} of acme-history 9.9" in str(caught.value)
    assert f"{second} of zzz-history 1.0" in str(caught.value)
    assert str(caught.value).endswith("uninstall all but one")
    assert not {first, second} & set(sys.modules)


def test_one_distribution_with_two_values_for_a_name(folder: PluginFolder) -> None:
    """A name with two values is a conflict, also within one distribution."""
    folder.install("acme", distribution="acme-history")
    folder.describe("acme", "elsewhere", "acme-history", version="9.8")
    with pytest.raises(BackendConflictError, match=r"elsewhere of acme-history 9\.8"):
        folder.registry().load("acme")


def test_an_editable_install_that_shows_twice_is_one(folder: PluginFolder) -> None:
    """The same distribution with the same value twice, as a stale copy of metadata, is merged."""
    value = folder.install("acme", distribution="acme-history")
    folder.describe("acme", value, "Acme_History", version="9.8")
    assert len(list(folder.entry_points())) == 2
    assert folder.registry().load("acme").name == "acme"


def test_a_plugin_that_cannot_be_imported(folder: PluginFolder) -> None:
    """The error names distribution, version, entry point and the real cause."""
    value = folder.install("acme", "1 / 0")
    error = refusal(folder)
    assert str(error) == (
        f"backend 'acme' ({value} of acme-history 9.9) does not load: "
        "ZeroDivisionError: division by zero"
    )
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert error.details == {
        "distribution": "acme-history",
        "version": "9.9",
        "entry_point": value,
    }


def test_a_plugin_whose_module_is_not_there(folder: PluginFolder) -> None:
    """A module of the plugin's own that is missing is no missing dependency."""
    folder.describe("acme", "acme_nowhere.plugin", "acme-history")
    assert str(refusal(folder)).endswith("ModuleNotFoundError: No module named 'acme_nowhere'")


def test_a_dependency_that_the_plugin_imports_is_missing(folder: PluginFolder) -> None:
    """The error names the missing module and the line that installs it."""
    folder.install("acme", "import acmedb_driver.aio")
    assert str(refusal(folder)).endswith(
        "its dependency 'acmedb_driver' is missing; install it with: pip install acme-history"
    )


def test_a_driver_is_missing(folder: PluginFolder) -> None:
    """A driver that only the store imports is reported like any other dependency."""
    folder.install("acme", plugin(store="lambda: __import__('acmedb_driver')"))
    assert "its dependency 'acmedb_driver' is missing" in str(refusal(folder))


def test_a_plugin_without_the_hook(folder: PluginFolder) -> None:
    """A module in which no function is marked says which one to mark, and with what."""
    folder.install("acme", "def historykit_backend(): pass")
    assert "no function historykit_backend is marked with historykit.plugins.hookimpl" in str(
        refusal(folder)
    )


def test_a_hook_that_nobody_calls(folder: PluginFolder) -> None:
    """A misspelt hook is an error that names it."""
    folder.install("acme", plugin() + "\n    historykit_backnd = historykit_backend\n")
    assert "unknown hook 'historykit_backnd'" in str(refusal(folder))


def test_a_hook_that_wants_an_argument(folder: PluginFolder) -> None:
    """A hook with an argument that does not exist is an error that names it."""
    folder.install("acme", plugin().replace("historykit_backend()", "historykit_backend(config)"))
    assert "config" in str(refusal(folder))


def test_a_hook_that_fails(folder: PluginFolder) -> None:
    """What the hook raises is the cause, as for a field of a `BackendSpec` that is newer."""
    folder.install("acme", plugin(colour="'blue'"))
    error = refusal(folder)
    assert isinstance(error.__cause__, TypeError)
    assert "colour" in str(error)


def test_a_hook_that_returns_something_else(folder: PluginFolder) -> None:
    """A hook has to return a `BackendSpec`."""
    folder.install("acme", plugin().replace("return BackendSpec(**", "return ("))
    assert str(refusal(folder)).endswith("historykit_backend returns dict; return a BackendSpec")


def test_an_entry_point_that_names_a_class(folder: PluginFolder) -> None:
    """A class, whose hooks would lack their instance, is refused with what to name instead."""
    source = "class Plugin: pass"
    value = folder.install("acme", source)
    folder.path.joinpath("acme_history-9.9.dist-info", "entry_points.txt").write_text(
        f"[historykit.backends]\nacme = {value}:Plugin\n"
    )
    assert str(refusal(folder)).endswith("Plugin is a class; name a module with the hook")


def test_a_backend_that_calls_itself_otherwise(folder: PluginFolder) -> None:
    """Entry point and description have to agree on the name."""
    folder.install("acme", plugin(name="'acne'"))
    assert str(refusal(folder)).endswith(
        "it calls itself 'acne'; entry point and BackendSpec need one name"
    )


@pytest.mark.parametrize(
    ("version", "remedy"), [("2", "upgrade historykit"), ("0", "upgrade acme-history")]
)
def test_another_version_of_the_backend_api(
    folder: PluginFolder, version: str, remedy: str
) -> None:
    """The error says which side is behind."""
    folder.install("acme", plugin(api_version=version))
    with pytest.raises(IncompatibleBackendError) as caught:
        folder.registry().load("acme")
    assert f"version {version} of the backend API and this historykit speaks 1" in str(caught.value)
    assert str(caught.value).endswith(remedy)
    assert caught.value.details == {"api_version": int(version), "supported": [1]}


@pytest.mark.parametrize("store", ["object", "MemoryStore(MemoryConfig())", "None"])
def test_a_store_that_is_none(folder: PluginFolder, store: str) -> None:
    """The store has to be a subclass of `HistoryStore`, not an object and no other class."""
    folder.install("acme", plugin(store=f"lambda: {store}"))
    assert "is not a subclass of historykit.store.HistoryStore" in str(refusal(folder))


def test_a_store_without_a_method(folder: PluginFolder) -> None:
    """As one that was written for an earlier contract: the error names what it does not define."""
    folder.install("acme", plugin(store='lambda: type("Old", MemoryStore.__bases__, {})'))
    message = str(refusal(folder))
    assert "Old does not define _append, _close" in message
    assert "_read_message" in message


@pytest.mark.parametrize("config", ["dict", "MemoryConfig()"])
def test_a_config_that_is_no_dataclass(folder: PluginFolder, config: str) -> None:
    """The config has to be a dataclass, not an object of one and no other class."""
    folder.install("acme", plugin(config=f"lambda: {config}"))
    assert "is not a dataclass" in str(refusal(folder))


def test_what_was_repaired_is_found(folder: PluginFolder) -> None:
    """Nothing that failed is remembered: after the repair the same registry loads the backend."""
    value = folder.install("acme", "1 / 0")
    registry = folder.registry()
    with pytest.raises(BackendLoadError):
        registry.load("acme")
    folder.write(value, plugin(), "acme")
    assert registry.load("acme").name == "acme"


def test_discovery_recovers_from_a_failed_read_of_the_metadata(folder: PluginFolder) -> None:
    """A first read of the installed distributions that fails is an error; the second one works."""
    folder.install("acme")
    answers = iter([OSError("disk on fire")])

    def entry_points() -> Iterable[EntryPoint]:
        for error in answers:
            raise error
        return folder.entry_points()

    registry = BackendRegistry(entry_points=entry_points)
    with pytest.raises(BackendLoadError, match="OSError: disk on fire") as caught:
        registry.load("acme")
    assert isinstance(caught.value.__cause__, OSError)
    assert registry.load("acme").name == "acme"


# -- registered backends


def test_a_description_is_registered() -> None:
    """A `BackendSpec` is registered under its name, where nothing is installed at all."""
    registry = BackendRegistry(entry_points=nothing)
    assert registry.register(spec()) == registry.load("acme")


def test_a_module_is_registered() -> None:
    """A module with the hook is registered under the name that its backend has."""
    registry = BackendRegistry(entry_points=nothing)
    registry.register(module("application.storage", spec()))
    assert registry.load("acme").name == "acme"


def test_an_object_with_the_hook_is_registered() -> None:
    """An object works like a module."""
    registry = BackendRegistry(entry_points=nothing)
    registry.register(SimpleNamespace(**vars(module("m", spec()))))
    assert registry.load("acme").name == "acme"


def test_a_backend_is_registered_under_another_name() -> None:
    """With `name` it is loaded by that name and only that one."""
    registry = BackendRegistry(entry_points=nothing)
    registry.register(spec(), name="mine")
    assert registry.load("mine").name == "mine"
    with pytest.raises(BackendNotFoundError):
        registry.load("acme")


def test_a_registered_backend_comes_before_an_installed_one(folder: PluginFolder) -> None:
    """The program's own word counts, also where the other one was loaded before."""
    folder.install("acme")
    registry = folder.registry()
    assert registry.load("acme").summary == ""
    registry.register(spec(summary="ours"))
    assert registry.load("acme").summary == "ours"
    registry.unregister("acme")
    assert registry.load("acme").summary == ""


def test_the_same_backend_is_registered_twice() -> None:
    """Registering what is registered does nothing, also where the hook makes it anew."""

    @hookimpl
    def historykit_backend() -> BackendSpec:
        return spec()

    registry = BackendRegistry(entry_points=nothing)
    plugin = SimpleNamespace(historykit_backend=historykit_backend)
    registry.register(plugin)
    registry.register(plugin)
    assert registry.load("acme").name == "acme"


def test_another_backend_under_a_registered_name() -> None:
    """It is refused, and the first one stays."""
    registry = BackendRegistry(entry_points=nothing)
    registry.register(spec(summary="first"))
    with pytest.raises(BackendConflictError, match="another backend is registered as 'acme'"):
        registry.register(spec(summary="second"))
    assert registry.load("acme").summary == "first"


def test_a_registered_backend_is_checked_when_it_is_registered() -> None:
    """A module without the hook fails there and then, and says where it comes from."""
    registry = BackendRegistry(entry_points=nothing)
    with pytest.raises(BackendLoadError, match=r"application, registered by this program"):
        registry.register(ModuleType("application"))


def test_a_registered_backend_of_another_version() -> None:
    """A description for another version of the API is refused when it is registered."""
    registry = BackendRegistry(entry_points=nothing)
    newer = BackendSpec(
        name="acme", store=lambda: MemoryStore, config=lambda: MemoryConfig, api_version=0
    )
    with pytest.raises(IncompatibleBackendError, match="upgrade a BackendSpec"):
        registry.register(newer)


def test_the_driver_of_a_registered_backend_is_missing() -> None:
    """The error names the module to install: nothing is known of a distribution."""

    def store() -> type[MemoryStore]:
        import acmedb_driver  # type: ignore[import-not-found]  # which is the point

        raise AssertionError(acmedb_driver)

    registry = BackendRegistry(entry_points=nothing)
    registry.register(BackendSpec(name="acme", store=store, config=lambda: MemoryConfig))
    with pytest.raises(BackendLoadError, match="install it with: pip install acmedb_driver"):
        registry.load("acme")


def test_only_what_was_registered_is_unregistered() -> None:
    """An unknown name is an error."""
    with pytest.raises(BackendNotFoundError, match="no backend was registered as 'acme'"):
        BackendRegistry(entry_points=nothing).unregister("acme")


# -- listing


def test_every_backend_is_listed_with_its_state(folder: PluginFolder) -> None:
    """Good ones come with their description, broken ones with their reason, by name."""
    folder.install("good")
    folder.install("broken", "1 / 0")
    folder.install("clash", distribution="first")
    folder.install("clash", distribution="second")
    registry = folder.registry()
    registry.register(spec("ours"))
    states = {status.name: status for status in registry.states()}
    assert list(states) == ["broken", "clash", "good", "ours"]
    assert (states["good"].distribution, states["good"].version) == ("good-history", "9.9")
    assert states["good"].spec is registry.load("good")
    assert states["good"].error is None
    assert states["broken"].spec is None
    assert "ZeroDivisionError" in str(states["broken"].error)
    assert isinstance(states["clash"].error, BackendConflictError)
    assert (states["ours"].distribution, states["ours"].error) == (None, None)


def test_a_backend_without_its_driver_is_listed_as_that(folder: PluginFolder) -> None:
    """Listing says that the driver is missing, rather than that all is well."""
    folder.install("acme", plugin(store="lambda: __import__('acmedb_driver')"))
    (status,) = folder.registry().states()
    assert "'acmedb_driver' is missing" in str(status.error)


def test_metadata_that_cannot_be_read_is_listed() -> None:
    """It is one more entry; what the program registered is listed all the same."""

    def entry_points() -> Iterable[EntryPoint]:
        raise OSError("disk on fire")

    registry = BackendRegistry(entry_points=entry_points)
    registry.register(spec())
    unreadable, ours = registry.states()
    assert unreadable.name == "*"
    assert isinstance(unreadable.error, BackendError)
    assert ours.name == "acme"
    assert ours.error is None


# -- what this process really has


def test_core_brings_the_memory_backend() -> None:
    """`memory` is there wherever historykit is installed."""
    assert load_backend("memory").store() is MemoryStore
    assert "memory" in [status.name for status in list_backends()]
    assert "memory" in [entry_point.name for entry_point in installed_entry_points()]


def test_a_backend_is_registered_for_the_process() -> None:
    """The functions of the module share one registry."""
    register(spec("for-this-test"))
    try:
        assert load_backend("for-this-test").store() is MemoryStore
    finally:
        unregister("for-this-test")
    with pytest.raises(BackendNotFoundError):
        load_backend("for-this-test")


def test_a_store_is_made_from_its_config() -> None:
    """`make_store` gives the configuration and the clock to the store's class."""
    store = load_backend("memory").make_store(MemoryConfig(), clock=lambda: 42)
    assert isinstance(store, MemoryStore)
    assert store._clock() == 42


def test_importing_does_not_look_for_backends() -> None:
    """Importing the module reads no metadata of the installed distributions."""
    code = "import sys, historykit.plugins; sys.exit('importlib.metadata' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
