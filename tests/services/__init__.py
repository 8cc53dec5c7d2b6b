"""Real servers for the tests: given by a URL, in a container, or as a private process."""
