"""Estimators that train on a Dask cluster, in the manner of those of LightGBM and XGBoost.

``fit`` takes a dask bag of pairs, a dask DataFrame of tokens, or files; what it leaves is an
ordinary model (`model_`), which predicts, is scored and is saved like any other.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from maxmargin.checks import check_whole
from maxmargin.distributed.cluster import (
    DaskShares,
    check_sendable,
    check_workers,
    require_client,
)
from maxmargin.distributed.coordinator import Coordinator, agrees
from maxmargin.distributed.data import Cut, cut_data
from maxmargin.distributed.features import finish
from maxmargin.distributed.held import HeldExamples, HeldSequences, prepare_structure
from maxmargin.errors import ClusterError, NotCompatibleError
from maxmargin.estimators.structural import sum_weight
from maxmargin.estimators.structural_svm import StructuralSVM
from maxmargin.estimators.tagger import SequenceTagger
from maxmargin.solvers import make_solver
from maxmargin.solvers.driver import require_learned
from maxmargin.solvers.sdm import SDM
from maxmargin.structures.auto_weight import refuse_auto
from maxmargin.structures.chain import Chain

__all__ = ["DaskSequenceTagger", "DaskStructuralSVM"]

#: Parameters that the local estimator does not have.
OWN = ("client", "aggregation", "checkpoint_seconds", "n_shares")


class _DaskEstimator(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: parameters, the training, and the model that it leaves.

    The parameters are those of the local estimator and some more.
    """

    local: ClassVar[type[Any]]
    _held: ClassVar[type[Any]]
    model_: Any

    def __init__(
        self,
        *args: Any,
        client: Any = None,
        aggregation: str = "fast",
        checkpoint_seconds: float = 60.0,
        n_shares: int | None = None,
        **params: Any,
    ) -> None:
        self.client = client
        self.aggregation = aggregation
        self.checkpoint_seconds = checkpoint_seconds
        self.n_shares = n_shares
        self._local = self.local(*args, **params)

    # ---- parameters ----

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all parameters: those of the cluster, and those of the local estimator."""
        params: dict[str, Any] = {name: getattr(self, name) for name in OWN}
        params.update(self._local.get_params(deep=False))
        return params

    def set_params(self, **params: Any) -> Any:
        """Set some of them."""
        for name, value in params.items():
            if name in OWN:
                setattr(self, name, value)
            else:
                self._local.set_params(**{name: value})
        return self

    def __sklearn_clone__(self) -> Any:
        return type(self)(**self.get_params())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._local!r})"

    # ---- training ----

    def fit(
        self,
        data: Any,
        *,
        sequence: str | None = None,
        label: str | None = None,
        **reading: Any,
    ) -> Any:
        """Train on the cluster.

        Parameters
        ----------
        data : dask bag, dask DataFrame, or list of paths
            A bag of pairs (x, y); a DataFrame of tokens; or column, item or Parquet files, of which
            each worker reads its own (all workers must find them under these names).
        sequence, label : str
            Columns of a DataFrame: which sequence a token belongs to, and its label. Tokens of a
            sequence stand together, in one partition. For Parquet files, ``sequence`` is the column
            whose change begins another sequence.
        **reading
            Of files: ``label_column``, ``file_format`` and others of
            `maxmargin.streams.open_source`.

        Returns
        -------
        self
            With ``model_``, an ordinary estimator.

        Raises
        ------
        ClusterError
            If the cluster cannot be used, or its scheduler goes away.
        NotCompatibleError
            If structure, solver and regulariser do not go together, or not in shares.
        """
        local = self._local
        solver = make_solver(local.solver)
        if local.warm_start:
            raise NotCompatibleError("warm_start is not there on a cluster; use resume=True")
        refuse_auto(local.C, "a cluster")
        client = require_client(self.client)
        workers = check_workers(client)
        sent = self._sent(local)
        check_sendable(f"the {self.local.__name__}", sent)
        n_shares = len(workers)
        if self.n_shares is not None:
            n_shares = check_whole("n_shares", self.n_shares, 1)
        cuts = cut_data(
            data,
            n_shares,
            client,
            sequence=sequence,
            label=label,
            rows=getattr(local, "template", None) is not None,
            **reading,
        )
        seeds = [[_seed(local.random_state), k] for k in range(len(cuts))]
        given = [
            (sent, cut.reading, seed, *cut.parts) for cut, seed in zip(cuts, seeds, strict=True)
        ]
        shares = DaskShares(client, self._held, given, workers)
        try:
            self._train(shares, solver, cuts)
        finally:
            shares.close()
        return self

    @staticmethod
    def _sent(local: Any) -> Any:
        """Return the local estimator without what is of this process only."""
        params = local.get_params(deep=False)
        params |= {"callbacks": None, "checkpoint": None, "resume": False}
        return type(local)(**params)

    def _known(self, shares: DaskShares, cuts: list[Cut]) -> tuple[Any, int]:
        """Return what all shares must know before they are made, and the number of examples."""
        raise NotImplementedError

    def _train(self, shares: DaskShares, solver: Any, cuts: list[Cut]) -> None:
        local = self._local
        known, n_examples = self._known(shares, cuts)
        shares.adopt(known, n_examples, agrees(self.aggregation, shares.size))
        structure, regularizer = shares.model()
        coordinator = Coordinator(
            shares,
            solver if isinstance(solver, SDM) else SDM(),
            C=sum_weight(local.C, local.C_scale, n_examples),
            regularizer=regularizer,
            gap=local.gap,
            max_rounds=local.max_passes,
            time_limit=local.time_limit,
            aggregation=self.aggregation,
            verbose=local.verbose,
            callbacks=local.callbacks,
            checkpoint=local.checkpoint,
            checkpoint_seconds=self.checkpoint_seconds,
            resume=local.resume,
        )
        try:
            outcome = coordinator.run()
        except ClusterError as error:
            kept = coordinator.last_saved()
            raise ClusterError(f"{error}; {kept}") from error
        result: Any = SimpleNamespace(**vars(outcome))
        result.interrupted = outcome.stop_reason.startswith("interrupted")
        result.engine = SimpleNamespace(weights=outcome.weights)
        require_learned(result)
        model = self.local(**local.get_params(deep=False))
        model._keep(structure, result, SimpleNamespace(n_examples=n_examples))
        if isinstance(structure, Chain):
            model.weights_ = structure.native_weights(structure.own_weights(outcome.weights))
        model._after_fit()
        self.model_ = model
        self.bytes_sent_ = outcome.bytes_sent
        self.n_faults_ = coordinator.faults
        self.n_shares_ = shares.size
        if result.interrupted:
            raise KeyboardInterrupt

    # ---- the model ----

    def to_local(self) -> Any:
        """Return the ordinary estimator that was trained."""
        if "model_" not in self.__dict__:
            raise NotFittedError(f"this {type(self).__name__} is not fitted; call fit first")
        return self.model_

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in self.__dict__

    def __getattr__(self, name: str) -> Any:
        # Only for what is not found here: methods and attributes of the model.
        if name.startswith("_") or name in ("client", "local", "model_"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        if "model_" not in self.__dict__:
            if name.endswith("_") or not hasattr(self.local, name):
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
            return getattr(self.to_local(), name)
        return getattr(self.model_, name)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "client": None}  # a connection stays where it is


class DaskSequenceTagger(_DaskEstimator):
    """A `SequenceTagger` that is trained on a Dask cluster.

    Features and labels are learned by all workers together; each trains a share of the sequences
    with the dual engine, the shares come together in rounds (``aggregation``), and the certificate
    is over all of them.

    Parameters
    ----------
    client : distributed.Client or None
        Of the cluster; None: the client that was made last.
    aggregation : {"fast", "safe"}
        How the shares come together: by rounds of consensus, or so that the dual never falls.
    checkpoint_seconds : float
        Least time between two reports of all multipliers, from which lost shares go on; with
        ``checkpoint`` they are written to a file.
    n_shares : int or None
        Into how many shares the data are divided; None: one for each worker.
    **params
        Those of `SequenceTagger`. ``max_passes`` is the most rounds; ``checkpoint`` and ``resume``
        work with any number of workers; there are no kernels, priors or warm starts.

    Attributes
    ----------
    model_ : SequenceTagger
        What was trained. Its attributes and methods (``predict``, ``score``, ``save``, ...) are
        those of this estimator, too.
    history_ : History
        A record for each round, with ``bytes_up`` and ``bytes_down``.
    bytes_sent_ : int
        All bytes of rounds and certificates, both ways.
    n_faults_, n_shares_, n_tokens_ : int
        Shares that were lost and made anew, the number of shares, and of tokens.
    """

    local = SequenceTagger
    _held = HeldSequences

    def _known(self, shares: DaskShares, cuts: list[Cut]) -> tuple[Any, int]:
        local = self._local
        for name, plain in (("kernel", "linear"), ("prior", None), ("class_weight", None)):
            if getattr(local, name) != plain:
                raise NotCompatibleError(
                    f"{name}={getattr(local, name)!r:.60} needs all data in one place; many "
                    f"machines train with {name}={plain!r}"
                )
        shares.open()
        summary = finish(shares.merged(), local.min_count, local.labels)
        self.n_tokens_ = summary.n_tokens
        return summary, summary.n_sequences


class DaskStructuralSVM(_DaskEstimator):
    """A `StructuralSVM` that is trained on a Dask cluster.

    The structure is prepared once, by a worker that sees all examples, and sent to all of them.

    Parameters
    ----------
    client, aggregation, checkpoint_seconds, n_shares
        As in `DaskSequenceTagger`.
    **params
        Those of `StructuralSVM`.

    Attributes
    ----------
    model_ : StructuralSVM
        What was trained.
    history_, bytes_sent_, n_faults_, n_shares_
        As in `DaskSequenceTagger`.
    """

    local = StructuralSVM
    _held = HeldExamples

    def _known(self, shares: DaskShares, cuts: list[Cut]) -> tuple[Any, int]:
        structure = self._local._new_structure()
        check_sendable("the structure", structure)
        n_examples = sum(shares.open())
        files = tuple(path for cut in cuts for path in cut.reading.files)
        reading = cuts[0].reading
        whole = type(reading)(files, reading.options, reading.place)
        parts = [part for cut in cuts for part in cut.parts]
        prepared = shares.client.submit(prepare_structure, structure, whole, *parts, pure=False)
        return prepared.result(), n_examples


def _seed(random_state: Any) -> int:
    """Return a number for seeds of shares."""
    import numpy as np

    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    return int(random_state)
