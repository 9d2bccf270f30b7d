"""`Latent`: outputs of which the truth gives a part only.

An output is z = (y, h); the truth gives y. Training (Yu and Joachims, ICML 2009; sections 1.4 and
1.5 of the dual-coordinate paper) minimises

    Ω(w) + C Σ_i [ max_{(y, h)} (loss(y_i, y, h) + w·f(x_i, y, h)) - max_h w·f(x_i, y_i, h) ]

by the concave-convex procedure (`maxmargin.solvers.cccp`). What that needs of a structure is one
question: which is the best complete output whose visible part is y? There are three ways to have an
answer.

- A structure of the user's own answers it: ``argmax(x, w, given=y)``, or it lists its outputs.
- A chain or classes with states (`maxmargin.structures.latent_labels`): the native chain of pairs
  (label, state) answers it by Viterbi.
- Any other native structure whose loss ignores what is latent: the outputs that cost nothing beside
  a truth are its completions, and the native oracle finds the best of them
  (``native/impute.hpp``). Truths are given as any one of their completions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.checks import check_choice
from maxmargin.errors import NotCompatibleError
from maxmargin.memory import require_memory
from maxmargin.structures.adapter import PythonProblem, example_list, paired_examples
from maxmargin.structures.chain import Chain
from maxmargin.structures.class_labels import example_weights
from maxmargin.structures.duck import as_structure, structure_name
from maxmargin.structures.latent_labels import STARTS, LabelStates
from maxmargin.structures.latent_python import Completions, PythonImputer, completed
from maxmargin.structures.multiclass import Multiclass
from maxmargin.structures.native import NativeStructure, PreparedProblem

__all__ = [
    "Imputer",
    "Latent",
    "LatentSide",
    "LatentTraining",
    "NativeSide",
    "PythonSide",
    "StatesSide",
]


class Imputer(Protocol):
    """Finds the best completions of all truths: ``_native.Imputer`` or `PythonImputer`."""

    def impute(self, weights: Any, threads: int = 1) -> tuple[NDArray[np.float64], int]:
        """Return w·(f(x_i, z_i) - f(x_i, reference)) of all examples, and how many z_i changed."""

    def linear_term(self, C: float, single: bool) -> NDArray[np.float64]:
        """Return C Σ_i (f(x_i, z_i) - f(x_i, reference)) of what was imputed last."""


class LatentTraining(NamedTuple):
    """What a latent training works on.

    Attributes
    ----------
    prepared : PreparedProblem
        The convex part: the problem whose truths are the references.
    imputer : Imputer
        Of the same truths.
    dtype : str
        Type of the weights.
    factors : ndarray
        The weights of the examples, as native code sees them: a change here is one of the
        problem.
    groups : ndarray of int or None
        The class of each example, where it has one: a part of the examples shall have all classes.
    """

    prepared: PreparedProblem
    imputer: Imputer
    dtype: str
    factors: NDArray[np.float64]
    groups: NDArray[Any] | None = None


class Latent:
    """A structure whose truths leave a part of the output open.

    Parameters
    ----------
    structure : Chain, Multiclass, another native structure, or a structure of your own
        With ``states``: a `Chain` or `Multiclass`, whose labels get states. Without: a structure
        over complete outputs z, as the module explains.
    states : int, dict of label to int, or None
        How many latent states each label has. Each pair (label, state) has weights of its own, and
        errors are counted in labels only. Labels that a dict does not name have one state.

    Notes
    -----
    A structure of your own has complete outputs z, which its methods take and return; by default
    z = (y, h).

    - ``joint_feature(x, z)``: the joint features f(x, y, h);
    - ``loss(y, z)``: the loss of z where y is the truth; 0 for every z whose visible part is y;
    - ``argmax(x, w, truth=None, given=None)``: the z with the highest score; with a truth y, the
      highest ``loss(y, z) + score``; with ``given=y``, the highest score among those whose visible
      part is y;
    - ``visible(z)``, optional: the visible part, by default ``z[0]``;
    - ``initial(x, y, rng)``, optional: the z that training begins with;
    - or ``outputs(x)``, all z, in the place of ``argmax``.

    Examples
    --------
    Boxes of numbers, of which the largest counts, whatever its place (h) is:

    >>> import numpy as np
    >>> from maxmargin import Latent, LatentStructuralSVM
    >>> class Box:
    ...     n_features = 2
    ...
    ...     def joint_feature(self, x, z):
    ...         y, h = z
    ...         return y * np.array([x[h], 1.0])
    ...
    ...     def loss(self, y, z):
    ...         return float(y != z[0])
    ...
    ...     def outputs(self, x):
    ...         return [(y, h) for y in (-1, 1) for h in range(len(x))]
    >>> X = [[0.1, 2.0], [1.9, 0.3, 0.2], [0.2, 0.1], [0.3, 0.3, 0.1]]
    >>> model = LatentStructuralSVM(Latent(Box()), C=100.0).fit(X, [1, 1, -1, -1])
    >>> model.predict([[0.0, 0.0, 2.1], [0.2]])
    [1, -1]
    """

    def __init__(self, structure: Any, states: int | Mapping[Any, int] | None = None) -> None:
        self.structure = structure
        self.states = states
        self._side: LatentSide | None = None

    def __repr__(self) -> str:
        states = "" if self.states is None else f", states={self.states!r}"
        return f"Latent({self.structure!r}{states})"

    @property
    def prepared(self) -> LatentSide:
        """What training has learned of the data."""
        if self._side is None:
            raise NotCompatibleError("Latent knows no data yet: fit an estimator first")
        return self._side

    def prepare_training(
        self,
        X: Any,
        Y: Any,
        *,
        start: str = "first",
        rng: np.random.Generator | None = None,
        dtype: str = "float32",
        sample_weight: Any = None,
    ) -> LatentTraining:
        """Learn what the data have, choose the references, make the training problem.

        Parameters
        ----------
        X, Y : object
            Inputs and their truths.
        start : {"cluster", "random", "first"}
            The latent parts of the references, which the first convex step takes for true.
            "cluster": states of labels by k-means on the features of their tokens. "random".
            "first": the first state, or the best output under weights of zero.
        rng : numpy.random.Generator or None
            For "cluster" and "random".
        dtype : "float32" or "float64"
            Type of the weights; structures written in Python have float64.
        sample_weight : array or None
            A factor of C for each example.

        Returns
        -------
        LatentTraining
            The problem, and what imputes.
        """
        check_choice("start", start, STARTS)
        side = self.new_side()
        rng = np.random.default_rng() if rng is None else rng
        n = len(X) if hasattr(X, "__len__") and not hasattr(X, "shape") else int(np.shape(X)[0])
        factors = example_weights(sample_weight, n)
        # A copy, which may be changed: those of the self-paced order are.
        factors = np.ones(n) if factors is None else factors.copy()
        training = side.prepare(X, Y, _How(start, rng, dtype, factors))
        self._side = side
        return training

    @property
    def ready(self) -> bool:
        """Whether it knows data."""
        return self._side is not None

    def take_side(self, side: LatentSide) -> None:
        """Know the data that a side has learned from.

        Parameters
        ----------
        side : LatentSide
            From `new_side`, prepared.
        """
        self._side = side

    def new_side(self) -> LatentSide:
        """Return what answers for the structure, not prepared yet."""
        if self.structure is None:
            raise NotCompatibleError("Latent needs a structure: Latent(Chain(), states=2), say")
        if self.states is not None:
            if not isinstance(self.structure, Chain | Multiclass):
                raise NotCompatibleError(
                    f"states are for Chain and Multiclass; {structure_name(self.structure)} says "
                    "itself what is latent: leave states out"
                )
            return StatesSide(LabelStates(self.structure, self.states))
        if isinstance(self.structure, NativeStructure):
            return NativeSide(self.structure)
        return PythonSide(self.structure)

    def predict(self, X: Any, weights: Any, n_jobs: int = 1) -> list[Any]:
        """Return the visible part of the best complete output of every input.

        Parameters
        ----------
        X : object
            The inputs.
        weights : array
            The weights.
        n_jobs : int
            Number of threads.

        Returns
        -------
        list
            One y for each.
        """
        side = self.prepared
        return [side.visible(z) for z in side.complete(X, weights, n_jobs, None)]

    def complete(self, X: Any, weights: Any, n_jobs: int = 1, given: Any = None) -> list[Any]:
        """Return the best complete output of every input.

        Parameters
        ----------
        X : object
            The inputs.
        weights : array
            The weights.
        n_jobs : int
            Number of threads.
        given : object or None
            Truths, one for each input: the outputs then have these as their visible parts.

        Returns
        -------
        list
            One z for each: a list of pairs (label, state) of a chain with states.
        """
        return self.prepared.complete(X, weights, n_jobs, given)

    def loss(self, y: Any, z: Any) -> float:
        """Return the loss of a complete output where y is the truth.

        Parameters
        ----------
        y : object
            The truth.
        z : object
            As `complete` gives it.

        Returns
        -------
        float
            At least 0.
        """
        return self.prepared.loss(y, z)


class _How(NamedTuple):
    """How a training is to be prepared."""

    start: str
    rng: np.random.Generator
    dtype: str
    factors: NDArray[np.float64]  # weights of the examples, to be used as they are


class LatentSide(Protocol):
    """One of the three ways."""

    inner: Any  # the structure whose weights are trained

    def prepare(self, X: Any, Y: Any, how: _How) -> LatentTraining:
        """Learn what the data have, and make the training problem."""

    def complete(self, X: Any, weights: Any, n_jobs: int, given: Any) -> list[Any]:
        """Return the best complete output of every input, of given truths if there are any."""

    def visible(self, z: Any) -> Any:
        """Return the visible part of a complete output."""

    def loss(self, y: Any, z: Any) -> float:
        """Return the loss of a complete output."""


class StatesSide:
    """A chain or classes over pairs of a label and a state."""

    def __init__(self, labels: LabelStates) -> None:
        self.labels = labels
        self.inner: Any = None

    def prepare(self, X: Any, Y: Any, how: _How) -> LatentTraining:
        """Learn what the data have, and make the training problem."""
        prepared = self.labels.prepare(
            X, Y, start=how.start, rng=how.rng, dtype=how.dtype, sample_weight=how.factors
        )
        self.inner = self.labels.inner
        training = _native_training(self.inner, prepared, how)
        return training._replace(groups=self.labels.groups_)

    def complete(self, X: Any, weights: Any, n_jobs: int, given: Any) -> list[Any]:
        """Return the best complete output of every input, of given truths if there are any."""
        return self.labels.complete(X, weights, n_jobs, given)

    def visible(self, z: Any) -> Any:
        """Return the visible part of a complete output."""
        return self.labels.visible(z)

    def loss(self, y: Any, z: Any) -> float:
        """Return the loss of a complete output."""
        return self.labels.loss(y, self.labels.visible(z))


class NativeSide:
    """A native structure whose loss ignores what is latent."""

    def __init__(self, structure: Any) -> None:
        self.inner = structure

    def prepare(self, X: Any, Y: Any, how: _How) -> LatentTraining:
        """Learn what the data have, and make the training problem."""
        prepared = self.inner.prepare_problem(X, Y, sample_weight=how.factors, dtype=how.dtype)
        return _native_training(self.inner, prepared, how)

    def complete(self, X: Any, weights: Any, n_jobs: int, given: Any) -> list[Any]:
        """Return the best complete output of every input, of given truths if there are any."""
        if given is not None:
            raise NotCompatibleError(
                f"{structure_name(self.inner)} cannot be asked for the completions of given outputs"
            )
        found: list[Any] = self.inner.predict(X, weights, n_jobs)
        return found

    def visible(self, z: Any) -> Any:
        """Return the visible part of a complete output."""
        return z

    def loss(self, y: Any, z: Any) -> float:
        """Return the loss of a complete output."""
        return float(self.inner.loss(y, z))


def _native_training(structure: Any, prepared: PreparedProblem, how: _How) -> LatentTraining:
    require_memory(*structure.memory_needed(how.dtype))
    return LatentTraining(prepared, _native.Imputer(prepared.problem), how.dtype, how.factors)


class PythonSide:
    """A structure of the user's own."""

    def __init__(self, structure: Any) -> None:
        self.inner = as_structure(structure)
        self.completions: Completions | None = None

    def begin(
        self, inputs: list[Any], truths: list[Any], start: str, rng: np.random.Generator
    ) -> list[Any]:
        """Prepare the structure, and return the completions that training begins with.

        Parameters
        ----------
        inputs, truths : list
            The first examples.
        start : {"random", "first"}
            As for `Latent.prepare_training`.
        rng : numpy.random.Generator
            For "random".
        """
        self.inner.prepare(inputs, truths)
        own = Completions(self.inner)
        references = [
            own.first(x, y, i, start, rng)
            for i, (x, y) in enumerate(zip(inputs, truths, strict=True))
        ]
        for i, (y, z) in enumerate(zip(truths, references, strict=True)):
            own.require_no_loss(y, z, i)
        self.completions = own
        return references

    def prepare(self, X: Any, Y: Any, how: _How) -> LatentTraining:
        """Learn what the data have, and make the training problem."""
        check_choice("start", how.start, ("random", "first"))
        inputs, truths = paired_examples(X, Y)
        references = self.begin(inputs, truths, how.start, how.rng)
        own = self.completions
        assert own is not None
        adapter = PythonProblem(completed(own), inputs, references, example_weight=how.factors)
        require_memory(
            f"the weights ({adapter.n_weights} features, float64, with a copy and the certificate)",
            3 * 8 * adapter.n_weights,
            advice="use fewer features",
        )
        parts = {
            "n_weights": adapter.n_weights,
            "examples": (inputs, truths, how.factors, references),
        }
        prepared = PreparedProblem(_native.PythonProblem(adapter), parts)
        imputer = PythonImputer(own, adapter, inputs, truths, references)
        return LatentTraining(prepared, imputer, "float64", how.factors)

    def complete(self, X: Any, weights: Any, n_jobs: int, given: Any) -> list[Any]:
        """Return the best complete output of every input, of given truths if there are any."""
        assert self.completions is not None
        w = weights.view()
        w.flags.writeable = False
        inputs = example_list(X, "X")
        if not inputs:
            raise ValueError("X is empty; expected at least one example")
        if given is None:
            return [self.completions.overall(x, w, i) for i, x in enumerate(inputs)]
        inputs, truths = paired_examples(X, given)
        pairs = enumerate(zip(inputs, truths, strict=True))
        return [self.completions.best(x, w, y, i) for i, (x, y) in pairs]

    def visible(self, z: Any) -> Any:
        """Return the visible part of a complete output."""
        assert self.completions is not None
        return self.completions.visible(z, -1)

    def loss(self, y: Any, z: Any) -> float:
        """Return the loss of a complete output."""
        return float(self.inner.loss(y, z))
