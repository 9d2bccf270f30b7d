"""``maxmargin train --kernel poly|rbf``: labels scored through a kernel between tokens."""

from __future__ import annotations

import argparse
from typing import Any

from maxmargin.cli.options import at_least, number
from maxmargin.printable import quoted

__all__ = ["add_kernel", "check_kernel", "kernel_options", "learned_figures"]


def add_kernel(group: Any) -> None:
    """Add the options for the kernel."""
    group.add_argument(
        "--kernel",
        choices=("linear", "poly", "rbf"),
        default="linear",
        help="score labels through a kernel between tokens: poly is (G x·x' + R)^D, rbf "
        "exp(-G ‖x - x'‖²); the model then has support tokens in the place of weights, and "
        "training takes time by the square of the number of different tokens (default: linear)",
    )
    group.add_argument(
        "--degree", type=at_least(1, 1000), default=2, metavar="D", help="D of poly (default: 2)"
    )
    group.add_argument(
        "--gamma",
        type=_gamma,
        default="scale",
        metavar="G",
        help="G of poly and rbf: a number, scale (1 / (features · their variance)) or auto "
        "(1 / features) (default: scale)",
    )
    group.add_argument(
        "--coef0", type=_finite, default=1.0, metavar="R", help="R of poly (default: 1)"
    )
    group.add_argument(
        "--cache-mb",
        type=number(0, open_low=True),
        default=200.0,
        metavar="MB",
        help="megabytes in which rows of the kernel's matrix are kept (default: 200)",
    )


def _gamma(text: str) -> float | str:
    return text if text in ("scale", "auto") else number(0, open_low=True)(text)


def _finite(text: str) -> float:
    import math

    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not a finite number")
    return value


def check_kernel(options: argparse.Namespace) -> None:
    """Refuse options that do not go with a kernel.

    Parameters
    ----------
    options : argparse.Namespace
        The arguments of the command.
    """
    if options.kernel == "linear":
        return
    others = ("l1_ratio", "l1_ball", "nonzeros", "debias", "prior", "start")
    for name in others:
        if getattr(options, name, None):
            raise ValueError(
                f"--{name.replace('_', '-')} is about the weights of features, and with --kernel "
                f"{options.kernel} there are none"
            )


def kernel_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of a `Chain` or `SequenceTagger` that are about the kernel.

    Parameters
    ----------
    options : argparse.Namespace
        With the options of `add_kernel`; a command that does not have them has no kernel.
    """
    if getattr(options, "kernel", "linear") == "linear":
        return {}
    return {name: getattr(options, name) for name in ("kernel", "degree", "gamma", "coef0")} | {
        "cache_mb": options.cache_mb
    }


def learned_figures(weights: Any, n_weights: int) -> dict[str, Any]:
    """Return how much was learned, for the summary.

    Parameters
    ----------
    weights : array or KernelWeights
        What was learned.
    n_weights : int
        How many weights there are without a kernel.
    """
    import numpy as np

    from maxmargin import _native

    if isinstance(weights, np.ndarray):
        return {"n_weights": n_weights, "n_nonzero": _native.count_nonzero(weights)}
    nonzero = np.count_nonzero(weights.dual_coef) + np.count_nonzero(weights.edges)
    return {
        "n_weights": int(weights.dual_coef.size + weights.edges.size),
        "n_nonzero": int(nonzero),
        "kernel": weights.kernel.name,
        "gamma": float(weights.kernel.gamma),
        "n_support": weights.n_support,
    }
