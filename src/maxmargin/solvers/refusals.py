"""What does not go together: refused before training, with the solvers that could do it."""

from __future__ import annotations

from maxmargin._native import Problem
from maxmargin.errors import NotCompatibleError
from maxmargin.regularizers import L2, Regularizer
from maxmargin.solvers.base import Solver
from maxmargin.solvers.registry import SOLVERS

__all__ = ["check_compatible", "check_linear_term", "check_regularizer"]


def check_compatible(solver: Solver, problem: Problem, regularizer: Regularizer) -> None:
    """Refuse a problem, a solver and a regulariser that do not go together.

    Parameters
    ----------
    solver : Solver
        The algorithm.
    problem : Problem
        What it would train.
    regularizer : Regularizer
        Ω.

    Raises
    ------
    NotCompatibleError
        With the nearest thing that works.
    ValueError
        If an option of the solver does not go with the regulariser.
    """
    if problem.has_kernel:
        _check_kernel(solver, regularizer)
    check_regularizer(solver, regularizer)
    if problem.linear_term is not None:
        check_linear_term(solver, problem)
    if problem.windows is not None:
        _check_windows(solver)


def check_regularizer(solver: Solver, regularizer: Regularizer) -> None:
    """Refuse a regulariser that a solver cannot do.

    Parameters
    ----------
    solver : Solver
        The algorithm.
    regularizer : Regularizer
        Ω.

    Raises
    ------
    NotCompatibleError
        With the solvers that can.
    ValueError
        If an option of the solver does not go with the regulariser.
    """
    if solver.supports(regularizer):
        solver.check_options(regularizer)
        return
    able = [name for name, kind in SOLVERS.items() if kind.supports(regularizer)]
    raise NotCompatibleError(
        f"solver {solver.name!r} cannot do {regularizer}; it does "
        f"{solver.supported_regularizers()}. "
        + (f"{regularizer} goes with solver " if able else "No solver does it")
        + " or ".join(map(repr, able))
    )


def _check_kernel(solver: Solver, regularizer: Regularizer) -> None:
    """Refuse to train with a kernel what needs the weights of features."""
    if not solver.kernels:
        able = " or ".join(repr(name) for name, kind in SOLVERS.items() if kind.kernels)
        raise NotCompatibleError(
            f"solver {solver.name!r} moves the weights of the features, and with a kernel there "
            f'are none; use solver {able}, or kernel="linear"'
        )
    if (solver.slack, solver.rescale) != ("linear", "margin"):
        raise NotCompatibleError(
            f"slack={solver.slack!r} with rescale={solver.rescale!r} is not done with kernels; use "
            'slack="linear" and rescale="margin", or kernel="linear"'
        )
    if not isinstance(regularizer, L2) or solver.nu > 0:
        what = f"{regularizer} with nu = {solver.nu:g}" if solver.nu > 0 else str(regularizer)
        raise NotCompatibleError(
            f"{what} is about the weights of the features, and with a kernel there are none; "
            'use L2() (and nu = 0), or kernel="linear"'
        )


def _check_windows(solver: Solver) -> None:
    """Refuse to train in windows what needs all planes or all examples at once."""
    if not solver.windows:
        able = " or ".join(repr(name) for name, kind in SOLVERS.items() if kind.windows)
        raise NotCompatibleError(
            f"solver {solver.name!r} needs all examples at once, and within this budget of memory "
            f"they are worked through in windows; use solver {able}, or a larger budget"
        )
    if solver.slack == "hard":
        raise NotCompatibleError(
            'slack="hard" needs all planes at once, to tell whether the data can be separated, and '
            "within this budget of memory they are kept in windows; use a larger budget"
        )


def check_linear_term(solver: Solver, problem: Problem) -> None:
    """Refuse a fixed linear term where the objective cannot have one.

    Parameters
    ----------
    solver : Solver
        The algorithm.
    problem : Problem
        What it would train.

    Raises
    ------
    NotCompatibleError
        With what would work.
    """
    if not solver.linear_terms:
        able = " or ".join(repr(name) for name, kind in SOLVERS.items() if kind.linear_terms)
        raise NotCompatibleError(
            f"the problem has a fixed linear term, which solver {solver.name!r} does not minimise: "
            f"it keeps a w of its own; use solver {able}"
        )
    if problem.has_kernel:
        raise NotCompatibleError(
            "the problem has a fixed linear term, which is one of the weights of the features, and "
            "with a kernel there are none"
        )
    if solver.slack == "hard":
        raise NotCompatibleError(
            'the problem has a fixed linear term, which does not go with slack="hard"; use '
            'slack="linear" or "quadratic"'
        )
