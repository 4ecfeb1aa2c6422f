"""``python -m hedgerow`` is the command line."""

import sys

from hedgerow.cli import main

if __name__ == "__main__":
    sys.exit(main())
