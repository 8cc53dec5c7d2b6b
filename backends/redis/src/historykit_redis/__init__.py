"""Redis backend of historykit."""
