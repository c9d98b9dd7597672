"""`python -m detent.cli`."""

from __future__ import annotations

import sys

from detent.cli import main

if __name__ == "__main__":
    sys.exit(main())
