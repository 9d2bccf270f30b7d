"""``maxmargin demo``: read handwritten dates, with and without a chain."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from maxmargin.cli.console import note, say
from maxmargin.cli.options import at_least

if TYPE_CHECKING:
    from maxmargin.demo import Comparison, Reading

__all__ = ["configure", "run"]

PICTURE = "maxmargin-demo.svg"
SHADES = " .:-=+*#%@"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The parser of the command.
    """
    parser.add_argument(
        "--train",
        type=at_least(1),
        default=400,
        metavar="N",
        help="dates to learn from (default: %(default)s)",
    )
    parser.add_argument(
        "--test",
        type=at_least(1),
        default=500,
        metavar="N",
        help="dates to read (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=at_least(0, None),
        default=1,
        metavar="N",
        help="of all draws (default: %(default)s)",
    )
    picture = parser.add_mutually_exclusive_group()
    picture.add_argument(
        "--picture",
        default=PICTURE,
        metavar="PATH",
        help="where to write the picture, a file that ends with .svg (default: %(default)s)",
    )
    picture.add_argument(
        "--no-picture", dest="picture", action="store_const", const=None, help="write none"
    )


def run(options: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Run the command.

    Parameters
    ----------
    options : argparse.Namespace
        ``train``, ``test``, ``seed`` and ``picture`` as `configure` describes them. With a true
        ``json`` the text goes to standard error, and standard output stays free.

    Returns
    -------
    int
        Exit code, 0.
    dict
        What was reached, in values that JSON can hold.

    Raises
    ------
    OSError
        If the picture cannot be written.
    """
    from maxmargin.demo import run_demo
    from maxmargin.report.dates_picture import write_picture
    from maxmargin.report.endings import picture_format

    if options.picture is not None:
        picture_format(options.picture)  # before any work is done

    show = note if getattr(options, "json", False) else say
    begin = time.perf_counter()
    results = run_demo(options.train, options.test, options.seed)
    for comparison in results.values():
        for line in describe(comparison):
            show(line)
    if options.picture is not None:
        write_picture(options.picture, list(results.values()))
        show(f"The picture is in {options.picture}")
    summary: dict[str, Any] = {
        "train": options.train,
        "test": options.test,
        "seed": options.seed,
        **{name: summarize(comparison) for name, comparison in results.items()},
        "seconds": time.perf_counter() - begin,
        "picture": options.picture,
    }
    return 0, summary


def summarize(comparison: Comparison) -> dict[str, Any]:
    """Put the numbers of a comparison into a dictionary that JSON can hold."""

    def numbers(reading: Reading) -> dict[str, float]:
        digits, dates = comparison.rates(reading)
        return {
            "digits_right": digits,
            "dates_right": dates,
            "gap": reading.certificate.gap,
            "primal": reading.certificate.primal,
            "dual": reading.certificate.dual,
            "seconds": reading.seconds,
        }

    return {
        "single": numbers(comparison.single),
        "chain": numbers(comparison.chain),
        "dates_only_chain": int(comparison.only_chain.sum()),
        "dates_only_single": int(comparison.only_single.sum()),
    }


def describe(comparison: Comparison) -> Iterator[str]:
    """Say what both models reached, and draw a date that only the chain read right.

    Parameters
    ----------
    comparison : Comparison
        What both models read.

    Yields
    ------
    str
        The lines.
    """
    truth, single, chain = comparison.truth, comparison.single, comparison.chain
    yield f"{comparison.scans}: {comparison.n_train} dates to learn from, {len(truth)} to read"
    yield ""
    yield f"{'':22s}{'digits right':>14s}{'dates right':>14s}{'training':>12s}"
    for model, reading in (("each digit by itself", single), ("the date as a chain", chain)):
        digits, dates = comparison.rates(reading)
        numbers = f"{100 * digits:12.1f} %{100 * dates:12.1f} %{reading.seconds:10.2f} s"
        yield f"  {model:20s}{numbers}"
    pairs = zip(comparison.rates(single), comparison.rates(chain), strict=True)
    gain = [100 * (after - before) for before, after in pairs]
    yield f"  {'gain, in points':20s}{gain[0]:+12.1f}  {gain[1]:+12.1f}"
    yield ""
    yield f"  certificate of the chain: {chain.certificate}"
    yield ""
    wrong = single.digits != truth
    rescued = comparison.only_chain & (wrong.sum(axis=1) == 1)
    if rescued.any():
        i = int(rescued.argmax())
        where = int(wrong[i].argmax())
        yield (
            f"  A {truth[i, where]} that by itself looks like a {single.digits[i, where]}; "
            "its neighbours put it right:"
        )
        yield ""
        yield from draw(comparison, i)
        yield ""


def draw(comparison: Comparison, i: int) -> Iterator[str]:
    """Draw the images of a date side by side, and below it what was read.

    Parameters
    ----------
    comparison : Comparison
        What both models read.
    i : int
        Which date.

    Yields
    ------
    str
        The lines.
    """
    from maxmargin.demo import SIDE

    images = comparison.images[i].reshape(-1, SIDE, SIDE)
    shades = (images * len(SHADES)).astype(int).clip(0, len(SHADES) - 1)
    for row in range(SIDE):
        digits = ("".join(SHADES[shade] for shade in digit[row]) for digit in shades)
        yield " " * 12 + "  ".join(digits)
    for name, reading in (("by itself", comparison.single), ("as a chain", comparison.chain)):
        yield f"{name:>12s}" + "  ".join(f"{digit:^{SIDE}d}" for digit in reading.digits[i])
