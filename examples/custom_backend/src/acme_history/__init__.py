"""Conversation history of AI agents in plain files: a backend of historykit."""

from acme_history.config import AcmeConfig
from acme_history.store import AcmeStore

__all__ = ["AcmeConfig", "AcmeStore"]
