"""The project's benchmark: historykit, its floors and its peers, side by side in one run.

`python -m bench --help` says how; README.md says what is measured.
"""
