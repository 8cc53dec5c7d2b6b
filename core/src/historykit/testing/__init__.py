"""The conformance suite: proves or refutes a store."""
