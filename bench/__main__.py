"""Entry point of `python -m bench`."""

import signal
import sys

from bench.cli import main

# So that a run that is ended from outside removes its databases, as one that is interrupted does.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
sys.exit(main())
