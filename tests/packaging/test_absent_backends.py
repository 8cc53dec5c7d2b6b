from __future__ import annotations

import pytest

from historykit.errors import BackendError
from historykit.plugins import list_backends, load_backend
from tests.packaging.workspace import BACKENDS

PLANNED = "Development Status :: 1 - Planning"
ABSENT = [each.folder.name for each in BACKENDS if PLANNED in each.project["classifiers"]]


@pytest.mark.parametrize("name", ABSENT)
def test_a_backend_without_a_store_says_so(name: str) -> None:
    """Loading a backend that is still to come says that it is not there yet and what is."""
    with pytest.raises(BackendError, match=r"not part of this release yet; use another one") as caught:
        load_backend(name)
    assert caught.value.backend == name


def test_a_backend_without_a_store_is_listed_with_its_reason() -> None:
    """The backends to come are listed, each as one that does not load and why."""
    listed = {status.name: str(status.error) for status in list_backends()}
    assert all("not part of this release yet" in listed[name] for name in ABSENT)
