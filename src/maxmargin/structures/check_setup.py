"""Checks before any example: are the methods there, can the structure be copied and prepared."""

from __future__ import annotations

import copy
import pickle
from typing import Any

from maxmargin.errors import NotCompatibleError
from maxmargin.structures.check_calls import MethodFailed, StructureCalls
from maxmargin.structures.duck import accepts_truth, as_structure, describe_exception, offers

__all__ = ["check_pickle", "check_prepare", "check_protocol"]


def check_protocol(calls: StructureCalls, original: Any) -> bool:
    """Check that the structure has its methods; return whether argmax takes a truth."""
    calls.report.checks += 2
    try:
        calls.structure = as_structure(original)
    except NotCompatibleError as error:
        calls.problem("not a structure", "structure", None, str(error), "write the missing methods")
        raise MethodFailed from error
    if accepts_truth(calls.structure):
        return True
    calls.problem(
        "signature",
        "argmax",
        None,
        "argmax cannot be called as argmax(x, w) and argmax(x, w, truth=y)",
        "give it a parameter truth=None: def argmax(self, x, w, truth=None)",
    )
    return False


def check_pickle(calls: StructureCalls, original: Any) -> None:
    """Check that the structure can be pickled."""
    calls.report.checks += 1
    try:
        pickle.dumps(original)
    except MemoryError:
        raise
    except Exception as error:
        calls.warning(
            "pickle",
            "structure",
            None,
            f"the structure cannot be pickled: {describe_exception(error)}",
            "define its class at the top of a module and keep no lambdas, open files or "
            "generators in it; else models cannot be pickled or sent to other processes",
        )


def check_prepare(calls: StructureCalls, original: Any, X: Any, Y: Any) -> None:
    """Check that a deep copy can be made and prepared; it is what the other checks call."""
    calls.report.checks += 1
    try:
        calls.structure = as_structure(copy.deepcopy(original))
    except MemoryError:
        raise
    except Exception as error:
        calls.problem(
            "copy",
            "structure",
            None,
            f"the structure cannot be deep-copied: {describe_exception(error)}",
            "an estimator trains a deep copy: keep nothing in it that copy.deepcopy refuses, "
            "or write __deepcopy__",
        )
        if offers(calls.structure, "prepare"):
            raise MethodFailed from error
    if offers(calls.structure, "prepare"):
        calls.call("prepare", None, {"X": X, "Y": Y})
