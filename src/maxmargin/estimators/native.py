"""`NativeEstimator`: what the estimators of native structures share, files above all.

A subclass has a ``kind`` (the name of its model files), a ``structure_type``, an ``__init__`` with
its parameters, and ``_new_structure``. It gets ``fit``, ``predict``, ``save`` and ``load``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin.errors import NotCompatibleError
from maxmargin.estimators.argument_types import EvalSet, ExampleWeights, In, Out, PathLike
from maxmargin.estimators.empty import predicted
from maxmargin.estimators.structural import StructuralEstimator
from maxmargin.estimators.trained_meta import require_stored, set_model, training_figures
from maxmargin.io.training_meta import NOT_KEPT

__all__ = ["NativeEstimator"]


class NativeEstimator(StructuralEstimator[In, Out]):
    """What every estimator of a native structure does.

    Attributes
    ----------
    kind : str
        What its model files are called; also the name of the task of ``maxmargin train --task``.
    structure_type : type
        The structure, which writes down its state and is restored from it (`StoredStructure`).
    """

    kind: ClassVar[str]
    structure_type: ClassVar[Any]

    #: What the command line must know to read files for this model; see ``maxmargin.cli.tasks``.
    file_meta_: dict[str, Any]
    _trained: dict[str, Any]

    def fit(
        self,
        X: In,
        y: Out,
        sample_weight: ExampleWeights = None,
        *,
        eval_set: EvalSet[In, Out] = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : sequence or matrix
            The inputs.
        y : sequence
            Their true outputs.
        sample_weight : array of shape (n_examples,), optional
            A factor of C for each example, finite and not negative.
        eval_set : tuple (X, y), optional
            Other data: the model of the pass with the best ``score`` on them is kept.

        Returns
        -------
        estimator
            Itself.

        Raises
        ------
        ValueError, TypeError
            If X, y or a parameter is not as it must be; the message names the example.
        MemoryError
            If the weights need more memory than there is.
        """
        return self._fit_checked(X, y, sample_weight=sample_weight, eval_set=eval_set)

    def _fit_checked(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Train, unless a parameter came from a file that could not hold it."""
        name = type(self).__name__
        if y is None:
            raise ValueError(f"{name} requires y to be passed, but the target y is None")
        require_stored(self)
        self._fit(X, y, **fit_params)
        return self

    def _learn_more(self, X: Any, y: Any, ids: Any, fit_params: Any) -> Self:
        super()._learn_more(X, y, ids, fit_params)
        NativeEstimator._after_fit(self)
        return self

    def _after_fit(self) -> None:
        """Remember with which parameters it was trained, which may be set to others later."""
        self.__dict__.pop("file_meta_", None)
        self._trained = self.get_params(deep=False)
        self._after_load()

    def predict(self, X: In) -> Any:
        """Return the best output of every input.

        Parameters
        ----------
        X : sequence or matrix
            The inputs.

        Returns
        -------
        array of objects, of shape (n_examples,)
            One output for each.
        """
        threads = self._threads()
        return predicted(self.structure_, X, self.weights_, threads)

    # --- files ---

    def save(self, path: PathLike) -> int:
        """Write the model to a file, as a whole or not at all.

        The file has the parameters too (C, loss, solver and regulariser with theirs, ...), so that
        a loaded model trains as this one was trained. Of solvers, regularisers and functions that
        are not maxmargin's own it has the names only; ``fit`` of a loaded model then asks for them.
        ``callbacks``, ``checkpoint`` and ``resume`` are not kept.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        int
            Its size in bytes.
        """
        from maxmargin.io.structure_file import StructureModel, save_structure

        check_is_fitted(self, "weights_")
        meta = {**training_figures(self), "reading": getattr(self, "file_meta_", {})}
        params = {k: v for k, v in self._trained.items() if k not in NOT_KEPT}
        model = StructureModel(self.structure_, self.weights_, params, meta)
        return save_structure(path, self.kind, model)

    @classmethod
    def load(cls, path: PathLike, *, mmap: bool = False) -> Self:
        """Read a model from a file that `save` or ``maxmargin train`` wrote.

        Parameters
        ----------
        path : str or path
            The file.
        mmap : bool, default=False
            Whether to map the file into memory and not to read it. Nobody may then change the file
            in place while the model is in use.

        Returns
        -------
        estimator
            Fitted; its ``history_`` is empty. Its parameters are those of the training.

        Raises
        ------
        ModelFormatError
            If the file is damaged, of a newer version, or no model file of this kind.
        """
        from maxmargin.io.structure_file import load_structure

        make: Any = cls  # whose own __init__ has a default for every parameter
        known = make().get_params(deep=False).keys() - set(NOT_KEPT)
        model = load_structure(path, cls.kind, cls.structure_type, known, mmap=mmap)
        loaded: Self = make(**model.params)
        set_model(loaded, model.structure, model)
        loaded._trained = loaded.get_params(deep=False)
        loaded.file_meta_ = dict(model.meta.get("reading", {}))
        loaded._after_load()
        return loaded

    def _after_load(self) -> None:
        """Set the attributes of a fitted model that follow from the structure."""

    def text_lines(self) -> Iterator[str]:
        """Give the lines of a text with all weights that are not zero, for ``info --text``.

        Returns
        -------
        iterator of str
            Lines without their ends; those that begin with ``#`` are comments.

        Raises
        ------
        NotCompatibleError
            If models of this kind have no such form.
        """
        raise NotCompatibleError(f"has no form as a text, as it is of the kind {self.kind!r}")

    def describe(self, top: int = 20) -> dict[str, Any]:
        """Say what the model holds; ``maxmargin info`` shows it.

        Parameters
        ----------
        top : int
            How many of the largest and of the smallest weights to list, where they have names.

        Returns
        -------
        dict
            Values that JSON can hold.
        """
        check_is_fitted(self, "weights_")
        return {
            "n_weights": len(self.weights_),
            "n_nonzero": int(np.count_nonzero(self.weights_)),
        }
