"""A user's structure with latent parts, as training sees it.

The user's structure has complete outputs z, of which the truth y is the visible part. `Completions`
asks it for the best z of a truth (``argmax(x, w, given=y)``, or ``outputs(x)`` where they are
listed) and checks every answer. `completed` makes of it a structure of the ordinary kind, whose
truths are complete outputs: the references.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import NotCompatibleError, ObjectiveRoseError, StructureError
from maxmargin.structures.adapter import LOSS_TOLERANCE, PythonProblem, real_number, value_tolerance
from maxmargin.structures.base import Structure
from maxmargin.structures.duck import (
    declared_n_features,
    describe_exception,
    offers,
    structure_name,
    users_object,
)
from maxmargin.structures.equality import equal_outputs
from maxmargin.structures.vectors import BadFeatures, SparseVector, sparse_vector

__all__ = ["Completions", "PythonImputer", "completed"]


class Completions:
    """Complete outputs of a user's structure.

    Parameters
    ----------
    structure : Structure
        From `as_structure`, prepared.

    Raises
    ------
    NotCompatibleError
        If it can neither be asked with ``given`` nor list its outputs.
    """

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.user = users_object(structure)
        self.name = structure_name(structure)
        self.constrained = offers(structure, "argmax") and _accepts(self.user.argmax, "given")
        if not self.constrained and not offers(structure, "outputs"):
            raise NotCompatibleError(
                f"{self.name} has no latent parts: write argmax(x, w, truth=None, given=None), "
                "which with given=y returns the best complete output whose visible part is y, or "
                "outputs(x), which lists all complete outputs"
            )

    def visible(self, z: Any, i: int) -> Any:
        """Return the visible part y of a complete output: by default its first entry."""
        own = getattr(self.user, "visible", None)
        try:
            return own(z) if callable(own) else z[0]
        except MemoryError:
            raise
        except Exception as error:
            raise self._error("visible", i, f"failed: {describe_exception(error)}") from error

    def best(self, x: Any, w: NDArray[np.float64], y: Any, i: int) -> Any:
        """Return the best complete output whose visible part is y.

        Parameters
        ----------
        x, y : object
            An input and its truth.
        w : ndarray of shape (n_features,)
            The weights.
        i : int
            Number of the example, for messages.

        Returns
        -------
        object
            The output, checked.
        """
        if not self.constrained:
            listed = self.listed(x, y, i)
            scores = [self._score(x, z, w, i) for z in listed]
            return listed[int(np.argmax(scores))]
        try:
            z = self.user.argmax(x, w, given=y)
        except MemoryError:
            raise
        except Exception as error:
            raise self._error("argmax", i, f"failed: {describe_exception(error)}") from error
        if z is None:
            raise self._error(
                "argmax",
                i,
                "returned None with given=y: the latent space is empty; expected at least one "
                "complete output for each truth",
            )
        if not self._shows(z, y, i):
            raise self._error(
                "argmax",
                i,
                "with given=y returned an output whose visible part is "
                f"{self.visible(z, i)!r:.80}; expected the truth, {y!r:.80}",
            )
        return z

    def overall(self, x: Any, w: NDArray[np.float64], i: int) -> Any:
        """Return the best complete output of an input."""
        z = self._call("argmax", i, x, w)
        if z is None:
            raise self._error("argmax", i, "returned None; expected a complete output")
        return z

    def listed(self, x: Any, y: Any, i: int) -> list[Any]:
        """Return all complete outputs whose visible part is y."""
        try:
            found = list(self.structure.outputs(x))
        except MemoryError:
            raise
        except Exception as error:
            raise self._error("outputs", i, f"failed: {describe_exception(error)}") from error
        fitting = [z for z in found if self._shows(z, y, i)]
        if not fitting:
            raise self._error(
                "outputs",
                i,
                f"has {len(found)} outputs, none of which has the truth {y!r:.80} as its visible "
                "part: the latent space is empty",
            )
        return fitting

    def first(self, x: Any, y: Any, i: int, start: str, rng: np.random.Generator) -> Any:
        """Return the complete output that training begins with.

        Parameters
        ----------
        x, y : object
            An input and its truth.
        i : int
            Number of the example.
        start : {"first", "random"}
            The best one under weights of zero, or a random one: the best one under random weights,
            or any of those listed.
        rng : numpy.random.Generator
            For "random".

        Returns
        -------
        object
            What ``initial(x, y, rng)`` of the structure says, if it has that.
        """
        own = getattr(self.user, "initial", None)
        if callable(own):
            try:
                z = own(x, y, rng)
            except MemoryError:
                raise
            except Exception as error:
                raise self._error("initial", i, f"failed: {describe_exception(error)}") from error
            if z is None or not self._shows(z, y, i):
                raise self._error(
                    "initial", i, f"did not return a complete output of the truth {y!r:.80}"
                )
            return z
        if not self.constrained:
            listed = self.listed(x, y, i)
            return listed[0] if start == "first" else listed[int(rng.integers(len(listed)))]
        n = declared_n_features(self.structure)
        if n is None:
            raise StructureError(
                f"the number of features of {self.name} is not known when latent parts are first "
                "imputed: set n_features on the structure, or write initial(x, y, rng)",
                method="n_features",
            )
        return self.best(x, np.zeros(n) if start == "first" else rng.normal(size=n), y, i)

    def require_no_loss(self, y: Any, z: Any, i: int) -> None:
        """Refuse a complete output of the truth that has a loss."""
        loss = real_number(self._call("loss", i, y, z))
        if loss is None or not abs(loss) <= LOSS_TOLERANCE:
            raise self._error(
                "loss", i, f"is {loss} for a complete output of the truth itself; expected 0"
            )

    def features(self, x: Any, z: Any, n: int, i: int) -> SparseVector:
        """Return the joint features of a complete output."""
        try:
            return sparse_vector(self._call("joint_feature", i, x, z), n)
        except BadFeatures as error:
            raise self._error("joint_feature", i, f"returned {error}") from error

    def _score(self, x: Any, z: Any, w: NDArray[np.float64], i: int) -> float:
        score = real_number(self._call("score", i, x, z, w))
        if score is None or not np.isfinite(score):
            raise self._error("score", i, f"returned {score}; expected a finite number")
        return score

    def same(self, z: Any, other: Any, i: int) -> bool:
        """Tell whether two complete outputs are the same."""
        return bool(self._call("equal", i, z, other))

    def _shows(self, z: Any, y: Any, i: int) -> bool:
        """Tell whether y is the visible part of z."""
        return equal_outputs(self.visible(z, i), y)

    def _call(self, method: str, i: int, *args: Any) -> Any:
        try:
            return getattr(self.structure, method)(*args)
        except MemoryError:
            raise
        except Exception as error:
            raise self._error(method, i, f"failed: {describe_exception(error)}") from error

    def _error(self, method: str, i: int, what: str) -> StructureError:
        return StructureError(
            f"{method} of {self.name} {what}, for example {i}", method=method, example=i
        )


def _accepts(method: Any, name: str) -> bool:
    try:
        inspect.signature(method).bind(None, None, **{name: None})
    except TypeError:
        return False
    except ValueError:  # compiled functions may not tell
        return True
    return True


class _Completed:
    """A structure over complete outputs, whose truths are complete too."""

    def __init__(self, completions: Completions) -> None:
        structure = completions.structure
        self.joint_feature = structure.joint_feature
        self._completions = completions
        for name in ("outputs", "score", "equal", "encode", "decode"):
            if offers(structure, name):
                setattr(self, name, getattr(structure, name))
        if offers(structure, "argmax"):
            self.argmax = self._argmax

    @property
    def n_features(self) -> int | None:
        return self._completions.structure.n_features

    def loss(self, z: Any, z_hat: Any) -> float:
        return self._completions.structure.loss(self._completions.visible(z, -1), z_hat)

    def _argmax(self, x: Any, w: NDArray[np.float64], truth: Any = None) -> Any:
        if truth is None:
            return self._completions.user.argmax(x, w)
        return self._completions.user.argmax(x, w, truth=self._completions.visible(truth, -1))


def completed(completions: Completions) -> Any:
    """Return the structure over complete outputs, as an object with a structure's methods.

    Parameters
    ----------
    completions : Completions
        Of the user's structure.

    Returns
    -------
    object
        Its class is called as the user's, for the sake of messages.
    """
    return type(completions.name, (_Completed,), {})(completions)


class PythonImputer:
    """Imputes the latent parts of a user's structure; as ``_native.Imputer`` does for native ones.

    Parameters
    ----------
    completions : Completions
        Of the user's structure.
    adapter : PythonProblem
        The training problem over complete outputs.
    X, Y, references : list
        Inputs, truths, and the complete outputs that planes are relative to.
    outputs : list or None
        What was imputed last; None: the references.
    """

    def __init__(
        self,
        completions: Completions,
        adapter: PythonProblem,
        X: list[Any],
        Y: list[Any],
        references: list[Any],
        *,
        outputs: list[Any] | None = None,
    ) -> None:
        self._completions, self._adapter = completions, adapter
        self._X, self._Y = X, Y
        self.outputs = list(references if outputs is None else outputs)
        self._features = [
            adapter.truth_features(i)
            if z is references[i]
            else completions.features(X[i], z, adapter.n_weights, i)
            for i, z in enumerate(self.outputs)
        ]

    def impute(
        self, weights: NDArray[np.float64], threads: int = 1
    ) -> tuple[NDArray[np.float64], int]:
        """Impute under these weights.

        Parameters
        ----------
        weights : ndarray of float64
            The weights.
        threads : int
            Not used: a user's methods are called one at a time.

        Returns
        -------
        values : ndarray of shape (n_examples,)
            w·(f(x_i, z_i) - f(x_i, reference)).
        changed : int
            How many z_i are others than before.

        Raises
        ------
        ObjectiveRoseError
            If an imputed output is worse than the one before it under the same weights.
        """
        w = weights.view()
        w.flags.writeable = False
        own = self._completions
        n = self._adapter.n_weights
        values, changed = np.zeros(len(self._X)), 0
        for i, (x, y) in enumerate(zip(self._X, self._Y, strict=True)):
            z = own.best(x, w, y, i)
            before = self._features[i]
            if not own.same(z, self.outputs[i], i):
                own.require_no_loss(y, z, i)
                features = own.features(x, z, n, i)
                gain = features.dot(w) - before.dot(w)
                if gain < -value_tolerance(w, 0.0, features, before):
                    raise ObjectiveRoseError(
                        f"argmax of {own.name} with given=y returned an output of example {i} "
                        f"whose score is {-gain:.6g} below that of the one that it returned "
                        "before: it does not find the maximum"
                    )
                # (Of equals the new one is taken: what is imputed shall follow from w alone.)
                self.outputs[i], self._features[i] = z, features
                changed += 1
            values[i] = self._features[i].dot(w) - self._adapter.truth_features(i).dot(w)
        return values, changed

    def linear_term(self, C: float, single: bool = False) -> NDArray[np.float64]:
        """Return u₀ = C Σ_i weight_i (f(x_i, z_i) - f(x_i, reference)) of what was imputed last.

        Parameters
        ----------
        C : float
            Weight of the loss.
        single : bool
            Not used: weights are 8-byte.

        Returns
        -------
        ndarray of float64
            One entry for each weight.
        """
        u = np.zeros(self._adapter.n_weights)
        factors = self._adapter.example_weight
        for i, features in enumerate(self._features):
            factor = C if factors is None else C * factors[i]
            # (Also where the reference is imputed: rounding must not depend on what was before.)
            reference = self._adapter.truth_features(i)
            np.add.at(u, features.indices, factor * features.values)
            np.subtract.at(u, reference.indices, factor * reference.values)
        return u
