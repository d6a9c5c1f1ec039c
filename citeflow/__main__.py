"""`python -m citeflow` is the command `citeflow`."""

from __future__ import annotations

import sys

from citeflow.cli import main

if __name__ == "__main__":
    sys.exit(main())
