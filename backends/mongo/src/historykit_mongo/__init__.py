"""MongoDB backend of historykit."""
