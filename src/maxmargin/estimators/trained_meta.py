"""What the model files of estimators say of their training, and estimators that come from files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from maxmargin.errors import NotCompatibleError
from maxmargin.io.objective import NotStored
from maxmargin.io.training_meta import restore_certificate, training_meta
from maxmargin.solvers.history import History

if TYPE_CHECKING:
    from maxmargin.io.structure_file import StructureModel

__all__ = ["require_stored", "set_model", "set_training", "training_figures"]


def training_figures(estimator: Any) -> dict[str, Any]:
    """Return certificate and figures of the training of an estimator, for a header.

    Parameters
    ----------
    estimator : StructuralEstimator
        Fitted.

    Returns
    -------
    dict
        The meta data.
    """
    history = estimator.history_
    settings = {
        "n_examples": estimator.n_examples_,
        "passes": estimator.n_iter_,
        "oracle_calls": history[-1].oracle_calls if len(history) else 0,
        "converged": estimator.converged_,
        "stop_reason": estimator.stop_reason_,
    }
    return training_meta(estimator.certificate_, settings, {})


def set_model(estimator: Any, structure: Any, model: StructureModel) -> None:
    """Give an estimator the model of a file.

    Parameters
    ----------
    estimator : StructuralEstimator
        With the parameters of the file.
    structure : Structure
        Restored.
    model : StructureModel
        The content of the file.
    """
    estimator.structure_ = structure
    estimator.weights_ = model.weights
    set_training(estimator, model.meta)


def set_training(estimator: Any, meta: Mapping[str, Any]) -> None:
    """Give an estimator what a file says of its training.

    Parameters
    ----------
    estimator : StructuralEstimator
        Gets the attributes.
    meta : mapping
        Of the file. Numbers may be null there, where they are not known.
    """
    training, certificate = meta.get("training", {}), meta.get("certificate", {})
    estimator.certificate_ = restore_certificate(certificate)
    estimator.history_ = History()
    estimator.converged_ = bool(training.get("converged", False))
    estimator.stop_reason_ = str(training.get("stop_reason", "unknown"))
    estimator.n_iter_ = int(training.get("passes") or 0)
    estimator.n_examples_ = int(certificate.get("n_examples", 0))


def require_stored(estimator: Any) -> None:
    """Refuse to train something else than the model that was loaded.

    Parameters
    ----------
    estimator : StructuralEstimator
        About to be trained.

    Raises
    ------
    NotCompatibleError
        If a parameter came from a file that could not hold it.
    """
    # The parameters are among these; get_params inspects signatures, which takes a while.
    for param, value in vars(estimator).items():
        if isinstance(value, NotStored):
            raise NotCompatibleError(
                f"{param} is not known: the model was loaded from a file, which cannot hold "
                f"{value.name[:200]!r}; give it with set_params({param}=...) before fit"
            )
