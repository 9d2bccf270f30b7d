"""``python -m maxmargin`` is the command ``maxmargin``."""

import sys

from maxmargin.cli.main import main

sys.exit(main())
