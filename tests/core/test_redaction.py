from __future__ import annotations

from dataclasses import dataclass

import pytest

from historykit.redaction import redact_url, redacted_repr, redacted_settings, secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    __repr__ = redacted_repr

    url: str
    size: int = 5
    key: str | None = secret(default=None)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://localhost:6379/0", "redis://localhost:6379/0"),
        ("redis://ada:hunter2@localhost:6379/0", "redis://ada:***@localhost:6379/0"),
        ("redis://:hunter2@localhost", "redis://:***@localhost"),
        ("https://e/a?X-Amz-Signature=hunter2&b=c", "https://e/a?X-Amz-Signature=***&b=c"),
        ("https://e/a?sv=1&sig=hunter2", "https://e/a?sv=1&sig=***"),
        ("postgresql+asyncpg://ada:p@:/?#%@db/x", "postgresql+asyncpg://ada:***@db/x"),
        ("mongodb://ada:hunter2@one:1,two:2/db", "mongodb://ada:***@one:1,two:2/db"),
        ("redis://ada:hunter\n2@localhost", "redis://ada:***@localhost"),
        ("postgresql://db/x?user=ada&password=hunter2&a=b", "postgresql://db/x?user=ada&password=***&a=b"),
        ("host=db password='hunter 2' user=ada", "host=db password=*** user=ada"),
        ("host=db sslpassword = hunter2", "host=db sslpassword=***"),
        ("acme://db?api_key=hunter2;token=hunter2", "acme://db?api_key=***;token=***"),
        ("chat.db", "chat.db"),
        ("C:\\data\\chat@home.db", "C:\\data\\chat@home.db"),
    ],
)  # fmt: skip
def test_a_url_is_shown_without_its_passwords(url: str, shown: str) -> None:
    """Passwords go, wherever they stand and whatever characters they have; the rest stays."""
    assert redact_url(url) == shown


def test_a_repr_shows_no_secret() -> None:
    """A secret field is hidden, a password in a URL as well."""
    config = Config(url="redis://ada:hunter2@localhost", key="hunter2")
    assert repr(config) == "Config(url='redis://ada:***@localhost', size=5, key='***')"


def test_a_secret_that_is_not_set_is_shown_as_that() -> None:
    """None is no secret."""
    assert redacted_settings(Config(url="x")) == {"url": "x", "size": 5, "key": None}


def test_a_secret_field_can_be_required() -> None:
    """Without a default, a secret has to be given."""

    @dataclass(frozen=True)
    class Strict:
        key: str = secret()

    with pytest.raises(TypeError, match="key"):
        Strict()
    assert "hunter2" not in repr(Strict("hunter2"))
