"""Read handwritten dates, with a chain and with a classifier of single digits.

The images are scikit-learn's handwritten digits (UCI; 8 x 8 grey pixels, by 43 people). Calendar
days of the 20th century are drawn at random and written as eight digits, ddmmyyyy, with an image
for each. No image that is used for training is used for testing.

Two models see the same pixels and are trained by the same solver: one reads every digit by itself
(sequences of length one), the other reads the whole date (a chain of eight). The dates are read
from clean scans, and from bad ones in which three pixels out of ten are lost.

This file has the experiment; `maxmargin.cli.demo` prints it and `maxmargin.report.dates_picture`
draws it.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from maxmargin.solvers import Certificate

__all__ = ["Comparison", "Reading", "day_of", "run_demo"]

DAYS = (datetime.date(1900, 1, 1).toordinal(), datetime.date(1999, 12, 31).toordinal())
LENGTH = 8  # digits of a date
SIDE = 8  # pixels of a digit, across and down
LOST = 0.3  # share of the pixels that a bad scan loses

Image = NDArray[np.float32]  # 64 pixels from 0 to 1, or [8][64] for those of a date
Dates = tuple[list[Image], list[list[int]]]  # one (8, 64) array and eight labels per date
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Reading:
    """What a model read, and what it cost to train it.

    Attributes
    ----------
    digits : int array of shape (n_dates, 8)
        The digits, as read.
    seconds : float
        Time of training.
    certificate : Certificate
        The model's certificate.
    """

    digits: NDArray[np.int64]
    seconds: float
    certificate: Certificate


@dataclass(frozen=True, eq=False)
class Comparison:
    """Both models on the same dates.

    Attributes
    ----------
    scans : str
        What was read, in words.
    n_train : int
        Number of dates that both learned from.
    images : list of arrays of shape (8, 64)
        The dates to read; pixels from 0 (paper) to 1 (ink).
    truth : int array of shape (n_dates, 8)
        Their digits.
    single, chain : Reading
        What was read digit by digit, and what was read as a chain.
    """

    scans: str
    n_train: int
    images: list[Image]
    truth: NDArray[np.int64]
    single: Reading
    chain: Reading

    def rates(self, reading: Reading) -> tuple[float, float]:
        """Share of the digits, and of the whole dates, that a reading has right."""
        right = reading.digits == self.truth
        return float(right.mean()), float(right.all(axis=1).mean())

    def dates_right(self, reading: Reading) -> Flags:
        """Return for each date whether a reading has all of its digits right."""
        right: Flags = (reading.digits == self.truth).all(axis=1)
        return right

    @property
    def only_chain(self) -> Flags:
        """The dates that only the chain read right."""
        return self.dates_right(self.chain) & ~self.dates_right(self.single)

    @property
    def only_single(self) -> Flags:
        """The dates that only the single digits read right."""
        return self.dates_right(self.single) & ~self.dates_right(self.chain)


def day_of(digits: Sequence[int] | NDArray[np.int64]) -> datetime.date | None:
    """Day that eight digits ddmmyyyy name; None where there is no such day."""
    d = [int(digit) for digit in digits]
    year = 1000 * d[4] + 100 * d[5] + 10 * d[6] + d[7]
    try:
        return datetime.date(year, 10 * d[2] + d[3], 10 * d[0] + d[1])
    except ValueError:
        return None


def split_images(rng: np.random.Generator) -> tuple[list[list[Image]], list[list[Image]]]:
    """Split the images at random, half for training and half for testing; each sorted by digit."""
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    images = (pixels / 16).astype(np.float32)
    order = rng.permutation(len(images))
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    train, test = (
        [[images[i] for i in half if digits[i] == d] for d in range(10)] for half in halves
    )
    return train, test


def write_dates(n: int, images: list[list[Image]], rng: np.random.Generator) -> Dates:
    """Draw n random days of the 20th century, with an image for each of their digits."""
    X, y = [], []
    for day in rng.integers(DAYS[0], DAYS[1] + 1, n):
        digits = [int(c) for c in datetime.date.fromordinal(int(day)).strftime("%d%m%Y")]
        X.append(np.stack([images[d][rng.integers(len(images[d]))] for d in digits]))
        y.append(digits)
    return X, y


def bad_scan(dates: Dates, lost: float, rng: np.random.Generator) -> Dates:
    """Set a share of the pixels to 0, at random."""
    X, y = dates
    return [x * (rng.random(x.shape) >= lost).astype(np.float32) for x in X], y


def one_by_one(dates: Dates) -> Dates:
    """Return each digit as a sequence of length one."""
    X, y = dates
    return [row[None] for x in X for row in x], [[digit] for digits in y for digit in digits]


def read(train: Dates, test: Dates, whole: bool) -> Reading:
    """Train a model on some dates and read others with it."""
    from maxmargin.estimators import SequenceTagger

    if not whole:
        train, test = one_by_one(train), one_by_one(test)
    begin = time.perf_counter()
    tagger = SequenceTagger(C=0.1, gap=0.001, random_state=0).fit(*train)
    seconds = time.perf_counter() - begin
    digits = np.array(tagger.predict(test[0]).tolist(), dtype=np.int64).reshape(-1, LENGTH)
    return Reading(digits, seconds, tagger.certificate_)


def compare(scans: str, train: Dates, test: Dates) -> Comparison:
    """Train both models on some dates and let both read the others."""
    return Comparison(
        scans=scans,
        n_train=len(train[0]),
        images=test[0],
        truth=np.array(test[1], dtype=np.int64),
        single=read(train, test, whole=False),
        chain=read(train, test, whole=True),
    )


def run_demo(n_train: int = 400, n_test: int = 500, seed: int = 1) -> dict[str, Comparison]:
    """Run the experiment.

    Parameters
    ----------
    n_train : int
        Dates to learn from.
    n_test : int
        Dates to read.
    seed : int
        Seed of all draws: of the split, the days, the images and the lost pixels.

    Returns
    -------
    dict of Comparison
        ``"clean"`` and ``"bad"``: both models on clean and on bad scans of the same dates.

    Raises
    ------
    ValueError
        If there is no date to learn from or to read, or the seed is negative.
    """
    for name, value, least in (("n_train", n_train, 1), ("n_test", n_test, 1), ("seed", seed, 0)):
        if value < least:
            raise ValueError(f"{name} is {value}; it must be at least {least}")
    rng = np.random.default_rng(seed)
    train_images, test_images = split_images(rng)
    train = write_dates(n_train, train_images, rng)
    test = write_dates(n_test, test_images, rng)
    return {
        "clean": compare("Clean scans", train, test),
        "bad": compare(
            f"Bad scans, {100 * LOST:.0f} % of the pixels lost",
            bad_scan(train, LOST, rng),
            bad_scan(test, LOST, rng),
        ),
    }
