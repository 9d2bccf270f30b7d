"""Read handwritten dates: what a chain knows that a classifier of single digits does not.

The images are scikit-learn's handwritten digits (UCI; 8 x 8 grey pixels, by 43 people). Calendar
days of the 20th century are drawn at random and written as eight digits, ddmmyyyy, with an image
for each. No image that is used for training is used for testing.

Two models see the same pixels and are trained by the same solver: one reads every digit by itself
(sequences of length one), the other reads the whole date (a chain of eight). The dates are read
from clean scans, and from bad ones in which three pixels out of ten are lost.

Run it: ``make demo``.
"""

from __future__ import annotations

import argparse
import datetime
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from maxmargin import SequenceTagger

DAYS = (datetime.date(1900, 1, 1).toordinal(), datetime.date(1999, 12, 31).toordinal())
LENGTH = 8  # digits of a date
SHADES = " .:-=+*#%@"

Image = NDArray[np.float32]  # 64 pixels from 0 to 1
Dates = tuple[list[Image], list[list[int]]]  # one (8, 64) array and eight labels per date


@dataclass(frozen=True)
class Reading:
    """What a model read, and what it cost to train it."""

    digits: NDArray[np.int64]  # [dates][8]
    seconds: float
    certificate: str


def split_images(rng: np.random.Generator) -> tuple[list[list[Image]], list[list[Image]]]:
    """Deal out the images, half for training and half for testing; each by digit."""
    pixels, digits = load_digits(return_X_y=True)
    images = (pixels / 16).astype(np.float32)
    order = rng.permutation(len(images))
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    train, test = (
        [[images[i] for i in half if digits[i] == d] for d in range(10)] for half in halves
    )
    return train, test


def write_dates(n: int, images: list[list[Image]], rng: np.random.Generator) -> Dates:
    """Write n random days of the 20th century by hand."""
    X, y = [], []
    for day in rng.integers(DAYS[0], DAYS[1] + 1, n):
        digits = [int(c) for c in datetime.date.fromordinal(int(day)).strftime("%d%m%Y")]
        X.append(np.stack([images[d][rng.integers(len(images[d]))] for d in digits]))
        y.append(digits)
    return X, y


def bad_scan(dates: Dates, lost: float, rng: np.random.Generator) -> Dates:
    """Lose a share of the pixels."""
    X, y = dates
    return [x * (rng.random(x.shape) >= lost).astype(np.float32) for x in X], y


def one_by_one(dates: Dates) -> Dates:
    """Take the dates apart: every digit is a sequence of its own."""
    X, y = dates
    return [row[None] for x in X for row in x], [[digit] for digits in y for digit in digits]


def read(train: Dates, test: Dates, whole: bool) -> Reading:
    """Train a model on some dates and read others with it."""
    if not whole:
        train, test = one_by_one(train), one_by_one(test)
    begin = time.perf_counter()
    tagger = SequenceTagger(C=0.1, gap=0.001, random_state=0).fit(*train)
    seconds = time.perf_counter() - begin
    digits = np.array(tagger.predict(test[0])).reshape(-1, LENGTH)
    return Reading(digits, seconds, str(tagger.certificate_))


def show(date: Image, lines: list[tuple[str, NDArray[np.int64]]]) -> None:
    """Draw the images of a date side by side, and below it what was read."""
    shades = np.array(list(SHADES))
    ink = shades[np.minimum((date * len(SHADES)).astype(int), len(SHADES) - 1)]
    for row in range(8):
        print(" " * 12 + "  ".join("".join(digit.reshape(8, 8)[row]) for digit in ink))
    for name, digits in lines:
        print(f"{name:>12s}" + "  ".join(f"{digit:^8d}" for digit in digits))


def compare(name: str, train: Dates, test: Dates) -> tuple[float, float]:
    """Train both models, print what they reach, draw a date that only the chain read right."""
    truth = np.array(test[1])
    single, chain = read(train, test, whole=False), read(train, test, whole=True)
    print(f"{name}: {len(train[1])} dates to learn from, {len(truth)} to read\n")
    print(f"{'':22s}{'digits right':>14s}{'dates right':>14s}{'training':>12s}")
    rates = []
    for model, reading in (("each digit by itself", single), ("the date as a chain", chain)):
        right = reading.digits == truth
        rates.append((right.mean(), right.all(axis=1).mean()))
        numbers = (
            f"{100 * rates[-1][0]:12.1f} %{100 * rates[-1][1]:12.1f} %{reading.seconds:10.2f} s"
        )
        print(f"  {model:20s}{numbers}")
    gain = [100 * (b - a) for a, b in zip(*rates, strict=True)]
    print(f"  {'gain, in points':20s}{gain[0]:+12.1f}  {gain[1]:+12.1f}")
    print(f"\n  certificate of the chain: {chain.certificate}\n")
    rescued = (chain.digits == truth).all(axis=1) & ((single.digits != truth).sum(axis=1) == 1)
    if rescued.any():
        i = int(np.argmax(rescued))
        where = int(np.argmax(single.digits[i] != truth[i]))
        print(
            f"  A {truth[i, where]} that by itself looks like a {single.digits[i, where]}; "
            "its neighbours put it right:\n"
        )
        show(test[0][i], [("by itself", single.digits[i]), ("as a chain", chain.digits[i])])
        print()
    return float(rates[0][0]), float(rates[1][0])


def main(argv: list[str] | None = None) -> dict[str, tuple[float, float]]:
    """Run the demo; returns the share of digits read right, singly and as a chain, per scan."""
    parser = argparse.ArgumentParser(
        description="Read handwritten dates, with and without a chain."
    )
    parser.add_argument("--train", type=int, default=400, help="dates to learn from (%(default)s)")
    parser.add_argument("--test", type=int, default=500, help="dates to read (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the draws (%(default)s)")
    options = parser.parse_args(argv)
    rng = np.random.default_rng(options.seed)
    train_images, test_images = split_images(rng)
    train = write_dates(options.train, train_images, rng)
    test = write_dates(options.test, test_images, rng)
    clean = compare("Clean scans", train, test)
    lost = 0.3
    bad = compare(
        f"Bad scans, {100 * lost:.0f} % of the pixels lost",
        bad_scan(train, lost, rng),
        bad_scan(test, lost, rng),
    )
    return {"clean": clean, "bad": bad}


if __name__ == "__main__":
    main()
