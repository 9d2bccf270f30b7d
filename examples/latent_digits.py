"""Digits that stand anywhere on a canvas: which digit is seen, where is latent.

The handwritten digits that scikit-learn ships (8x8 pixels) are put at a random place of a larger
canvas with noise. A linear model of the canvas has to learn every digit at every place; a latent
model has one picture of each digit, and tries all places. Truths have digits only, no places.

    python examples/latent_digits.py

`ShiftedDigits` is all that has to be written for it. At the end, `LatentSVM` learns to tell one
digit from all others by the same windows.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from maxmargin import BinarySVM, Latent, LatentStructuralSVM, LatentSVM, MulticlassSVM

SIDE = 8  # of a digit
CANVAS = 12
NOISE = 0.1


class ShiftedDigits:
    """Outputs (digit, place); an input is the matrix of its windows, one row for each place."""

    n_classes = 10

    @property
    def n_features(self) -> int:
        """Number of weights: a picture of each digit, and a bias."""
        return self.n_classes * (SIDE * SIDE + 1)

    def joint_feature(self, x: NDArray[np.float64], z: tuple[int, int]) -> tuple[object, object]:
        """Return the window at the place, in the columns of the digit."""
        digit, place = z
        n = x.shape[1]
        return np.arange(digit * n, (digit + 1) * n), x[place]

    def loss(self, y: int, z: tuple[int, int]) -> float:
        """Return 1 for a wrong digit; places cost nothing."""
        return float(y != z[0])

    def argmax(
        self,
        x: NDArray[np.float64],
        w: NDArray[np.float64],
        truth: int | None = None,
        given: int | None = None,
    ) -> tuple[int, int]:
        """Return the best digit and place; of a given digit, the best place."""
        scores = w.reshape(self.n_classes, -1) @ x.T  # [digit][place]
        if given is not None:
            return given, int(scores[given].argmax())
        if truth is not None:
            scores = scores + 1.0
            scores[truth] -= 1.0
        digit, place = divmod(int(scores.argmax()), scores.shape[1])
        return digit, place


def canvases(rng: np.random.Generator, images: NDArray[np.float64]) -> NDArray[np.float64]:
    """Put each image at a random place of a canvas with noise."""
    found = NOISE * rng.random((len(images), CANVAS, CANVAS))
    for canvas, image in zip(found, images, strict=True):
        top, left = rng.integers(CANVAS - SIDE + 1, size=2)
        canvas[top : top + SIDE, left : left + SIDE] += image / 16.0
    return found


def windows(pictures: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return all windows of the size of a digit, one row each, with a constant for the bias."""
    views = np.lib.stride_tricks.sliding_window_view(pictures, (SIDE, SIDE), axis=(1, 2))
    rows = views.reshape(len(pictures), -1, SIDE * SIDE)
    return np.concatenate([rows, np.ones((*rows.shape[:2], 1))], axis=2)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=int, default=1797, help="digits, at most")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    rng = np.random.default_rng(args.seed)
    digits = load_digits()
    order = rng.permutation(len(digits.target))[: args.limit]
    pictures, labels = canvases(rng, digits.images[order]), digits.target[order].tolist()
    half = len(labels) // 2
    flat, rows = pictures.reshape(len(pictures), -1), windows(pictures)

    plain = MulticlassSVM(C=0.3, gap=0.01, random_state=0).fit(flat[:half], labels[:half])
    wrong = np.mean(plain.predict(flat[half:]) != np.array(labels[half:]))
    print(f"the canvas as it is:    {100 * wrong:5.1f} % wrong")

    begin = time.perf_counter()
    model = LatentStructuralSVM(Latent(ShiftedDigits()), C=0.3, gap=0.01, random_state=0)
    model.fit(list(rows[:half]), labels[:half])
    wrong = np.mean(np.array(model.predict(list(rows[half:]))) != np.array(labels[half:]))
    seconds = time.perf_counter() - begin
    print(f"with a latent place:    {100 * wrong:5.1f} % wrong ({seconds:.1f} s)")
    for record in model.outer_history_:
        print(
            f"  outer iteration {record.n_outer}: objective {record.objective:9.3f}, "
            f"{record.changed} places changed, gap {100 * record.gap:.2f} %"
        )
    print(f"  {model.stop_reason_}; {model.certificate_}")

    wanted = [label == 8 for label in labels]
    binary = BinarySVM(C=0.3, random_state=0).fit(flat[:half], wanted[:half])
    eight = LatentSVM(C=0.3, random_state=0).fit(rows[:half, :, :-1], wanted[:half])
    truths = np.array(wanted[half:])
    print(
        f"is it an eight? {100 * np.mean(binary.predict(flat[half:]) != truths):.1f} % wrong as it "
        f"is, {100 * np.mean(eight.predict(rows[half:, :, :-1]) != truths):.1f} % with a latent "
        f"place; {100 * np.mean(truths):.1f} % are"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
