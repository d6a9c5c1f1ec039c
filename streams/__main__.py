"""`python -m streams`."""

import sys

try:
    from streams.cli import main

    code = main()
except KeyboardInterrupt:  # while starting; later a signal is a command's own business
    code = 130
sys.exit(code)
