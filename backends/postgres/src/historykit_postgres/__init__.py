"""PostgreSQL backend of historykit."""
