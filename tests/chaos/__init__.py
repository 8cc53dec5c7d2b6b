"""What is there after servers and writers were killed with -9, again and again, under load.

``python -m tests.chaos`` prints the count for every backend."""
