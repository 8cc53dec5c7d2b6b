"""SQLite backend of historykit."""
