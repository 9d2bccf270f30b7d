"""Read handwritten dates: what a chain knows that a classifier of single digits does not.

The same as ``maxmargin demo``. The experiment is in `maxmargin.demo`, what is printed in
`maxmargin.cli.demo`, and the picture in `maxmargin.report.dates_picture`.

Run it: ``make demo``.
"""

from __future__ import annotations

import argparse
import sys

from maxmargin.cli.demo import configure, run


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Read handwritten dates, with and without a chain."
    )
    configure(parser)
    code, _ = run(parser.parse_args(argv))
    return code


if __name__ == "__main__":
    sys.exit(main())
