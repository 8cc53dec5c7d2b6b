"""How secrets are kept out of what people read: reprs, errors, reports.

A backend's config marks a secret field with `secret` and takes `redacted_repr` for its repr. A
text that may be a URL goes through `redact_url` before it is shown anywhere."""

from __future__ import annotations

import re
from dataclasses import MISSING, field, fields
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["HIDDEN", "redact_url", "redacted_repr", "redacted_settings", "secret"]

HIDDEN: Final = "***"
"""What stands in the place of a secret."""

# Greedy up to the last @, because a password that was not percent-encoded may hold one too.
_USER_INFO = re.compile(r"(?s)(?P<start>[a-zA-Z][\w+.-]*://[^:@]*):.*@")
_PARAMETER = re.compile(
    r"(?i)(?P<name>[\w.-]*(?:pass|pwd|secret|token|credential|authmechanismproperties|api_?key"
    r"|signature)[\w.-]*|(?<![\w.-])sig)\s*=\s*(?:'[^']*'|\"[^\"]*\"|[^\s&;]*)"
)


def redact_url(url: str) -> str:
    """Return a URL or a connection string with `HIDDEN` for its passwords.

    It hides the password before the host and the values of parameters that are named like a secret.
    Where a text is ambiguous it hides too much rather than too little.
    """
    # Functions, because a template imports a module, which fails while the interpreter shuts down:
    # then an object that was never closed says so with its repr.
    shown = _USER_INFO.sub(lambda found: f"{found['start']}:{HIDDEN}@", url)
    return _PARAMETER.sub(lambda found: f"{found['name']}={HIDDEN}", shown)


def secret(*, default: Any = MISSING) -> Any:
    """Return a field of a config dataclass whose value is never shown: ``key: str = secret()``."""
    return field(default=default, repr=False, metadata={"secret": True})


def redacted_settings(config: DataclassInstance) -> dict[str, object]:
    """Return the fields of a config with their values, as they may be shown to anybody."""
    return {each.name: _shown(each.metadata, getattr(config, each.name)) for each in fields(config)}


def redacted_repr(config: DataclassInstance) -> str:
    """Return the repr of a config without its secrets: ``__repr__ = redacted_repr``."""
    shown = ", ".join(f"{name}={value!r}" for name, value in redacted_settings(config).items())
    return f"{type(config).__qualname__}({shown})"


def _shown(metadata: Any, value: object) -> object:
    if value is None:
        return None
    if metadata.get("secret"):
        return HIDDEN
    return redact_url(value) if isinstance(value, str) else value
