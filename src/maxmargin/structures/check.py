"""`check_structure`: try a user's structure out, and say in words what is wrong with it.

A wrong argmax or loss does not crash a solver; it only makes the result worse, silently. So the
methods are tried here on some examples under weight vectors of several kinds (zero, small, unit,
large, sparse), and what they return is compared with what the protocol promises: the oracle is
never below the truth, no sampled output is better than the maximum, losses are not negative,
feature vectors have one size, nothing is changed in place, and so on.

The checks are ``check_setup.py`` (methods, pickling, preparing), ``check_truths.py`` (true outputs)
and ``check_argmax.py``; they call the user's methods through ``check_calls.py``, and what they find
is a `Finding` in ``check_report.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.errors import StructureError
from maxmargin.structures.adapter import paired_examples
from maxmargin.structures.check_argmax import ArgmaxChecks
from maxmargin.structures.check_calls import MethodFailed, StructureCalls
from maxmargin.structures.check_report import StructureReport
from maxmargin.structures.check_setup import check_pickle, check_prepare, check_protocol
from maxmargin.structures.check_truths import check_truths
from maxmargin.structures.duck import structure_name

__all__ = ["check_structure"]


def check_structure(
    structure: Any,
    X: Any,
    Y: Any,
    *,
    n_weights: int = 5,
    n_samples: int = 20,
    random_state: Any = 0,
    raise_on_error: bool = False,
) -> StructureReport:
    """Try a structure out under random weights and report in words what is wrong with it.

    Parameters
    ----------
    structure : Structure or object with its methods
        The structure to check. It is not changed: a deep copy is prepared and used.
    X, Y : sequence
        Inputs and their true outputs, as they would be given to ``fit``.
    n_weights : int
        How many weight vectors are tried on each example: zero, small, unit, large and sparse
        ones in turn.
    n_samples : int
        How many examples are tried, at most; they are drawn at random.
    random_state : int, Generator or None
        Seed of the draws.
    raise_on_error : bool
        If True, raise a `StructureError` with the report's text if there are problems.

    Returns
    -------
    StructureReport
        Print it to read it.

    Raises
    ------
    ValueError
        If X and Y differ in length or are empty, or a number above is out of range.
    StructureError
        If there are problems and ``raise_on_error`` is True.

    Notes
    -----
    An argmax is compared with outputs that were seen elsewhere: all of ``outputs(x)`` if the
    structure offers it, what argmax returned for the same x under other weights, and the truths
    of other examples, as far as they are of the same kind and length and ``joint_feature`` and
    ``loss`` accept them. So no report of a problem is no proof that there is none, and a structure
    should raise a ValueError for an output that is not possible for an x.

    Examples
    --------
    >>> import numpy as np
    >>> class Classes:  # two classes; the loss has the wrong sign
    ...     def joint_feature(self, x, y):
    ...         return np.kron([y == 0, y == 1], x)
    ...
    ...     def loss(self, y, y_hat):
    ...         return -float(y != y_hat)
    ...
    ...     def outputs(self, x):
    ...         return [0, 1]
    >>> report = check_structure(Classes(), [np.array([1.0, 2.0])], [1])
    >>> report.ok
    False
    >>> report.problems[0].message
    'loss(Y[0], an output) is -1.0; expected at least 0'
    """
    if n_weights < 1:
        raise ValueError(f"n_weights is {n_weights}; expected at least 1")
    if n_samples < 1:
        raise ValueError(f"n_samples is {n_samples}; expected at least 1")
    rng = np.random.default_rng(random_state)
    inputs, truths = paired_examples(X, Y)
    n = len(inputs)
    chosen = rng.choice(n, size=min(n, n_samples), replace=False)
    report = StructureReport(structure_name(structure))
    calls = StructureCalls(inputs, truths, sorted(int(i) for i in chosen), report)
    try:
        has_truth = check_protocol(calls, structure)
        check_pickle(calls, structure)
        check_prepare(calls, structure, X, Y)
        features = check_truths(calls)
        if features:
            ArgmaxChecks(calls, n_weights=n_weights, rng=rng, has_truth=has_truth).run(features)
    except MethodFailed:  # what depends on the failed method cannot be checked
        pass
    if raise_on_error and not report.ok:
        first = report.problems[0]
        raise StructureError(str(report), method=first.method, example=first.example)
    return report
