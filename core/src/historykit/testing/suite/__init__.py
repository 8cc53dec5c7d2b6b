"""The tests of the suite, one module for each topic."""
