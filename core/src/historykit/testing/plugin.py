"""What the conformance suite adds to pytest."""
