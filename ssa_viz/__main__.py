"""`python -m ssa_viz`."""

import sys

from ssa_viz.cli import main

sys.exit(main())
