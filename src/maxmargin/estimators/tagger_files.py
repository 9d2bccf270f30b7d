"""Model files of a tagger: what it writes of itself, and how it is restored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators.argument_types import PathLike
from maxmargin.estimators.chain_predictions import ChainPredictions
from maxmargin.estimators.trained_meta import set_training
from maxmargin.io.objective import OBJECTIVE
from maxmargin.io.tagger_file.confidence import confidence_meta, restore_confidence
from maxmargin.structures.kernels import KINDS, KernelWeights
from maxmargin.types import FeatureFunction

__all__ = ["TaggerFiles"]

#: Parameters that a model file keeps beside the others: with the constraints themselves.
CONSTRAINT_PARAMS = (
    *("constraints", "decode", "penalty", "constraint_features", "infeasible", "beam"),
)


class TaggerFiles(ChainPredictions):
    """The methods of a tagger that write and read model files."""

    _file_meta: dict[str, Any]
    _trained: dict[str, Any]
    _objective_unknown: bool

    def save(self, path: PathLike) -> int:
        """Write the model to a file, as a whole or not at all.

        Features whose weights are all zero are left out where features have names: they change no
        prediction. The file has the objective too (C, loss, solver and regulariser with their
        parameters, ...), so that a loaded tagger trains as this one was trained. Of solvers,
        regularisers and functions that are not maxmargin's own it has the names only; ``fit`` of a
        loaded tagger then asks for them. ``callbacks``, ``checkpoint`` and ``resume`` are not kept.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        int
            Its size in bytes.
        """
        from maxmargin.io.tagger_file import KIND, TaggerModel
        from maxmargin.io.training_meta import training_meta
        from maxmargin.models.kinds import kind_named

        check_is_fitted(self, "weights_")
        settings = {
            "n_sequences": self.n_examples_,
            "n_features": self.structure_.layout.n_token_features,
            "passes": self.n_iter_,
            "oracle_calls": self.history_[-1].oracle_calls if len(self.history_) else 0,
            "converged": self.converged_,
            "stop_reason": self.stop_reason_,
        }
        params = self.get_params(deep=False)
        # A file does not hold what this was adapted from; constraints and vectors are apart.
        apart = ("prior", "embeddings", *CONSTRAINT_PARAMS)
        params = {k: v for k, v in params.items() if k not in apart}
        # What was minimised, not what the parameters have been set to since.
        trained = getattr(self, "_trained", None)
        if trained is None and not getattr(self, "_objective_unknown", False):
            trained = {name: params[name] for name in OBJECTIVE}
        if trained is not None:  # it has them all, and these may be long
            params = {k: v for k, v in params.items() if k not in ("loss", "labels")} | {
                k: v for k, v in trained.items() if k not in ("loss", "labels")
            }
        meta = training_meta(self.certificate_, settings, params)
        # What the file said from which this model came; a new fit forgets it.
        meta |= getattr(self, "_file_meta", {})
        meta |= confidence_meta(self)
        objective = None if trained is None else trained.copy
        model = TaggerModel(self._decoder(), self.weights_, meta, objective)
        return kind_named(KIND).save(path, model)

    @classmethod
    def load(
        cls, path: PathLike, template: FeatureFunction | None = None, *, mmap: bool = False
    ) -> Self:
        """Read a model from a file that `save` or ``maxmargin train`` wrote.

        Parameters
        ----------
        path : str or path
            The file.
        template : callable, optional
            Of a model whose features were made by a function: that function.
        mmap : bool, default=False
            Whether to map the file into memory and not to read it, so that processes on one
            machine share the memory of large models. Nobody may then change the file in place
            (``cp new.mm model.mm``) while the tagger is in use: it would predict by whatever is in
            the file now, or the process would be killed (SIGBUS). Replacing it (``save``,
            ``maxmargin train``, ``mv``) does no harm.

        Returns
        -------
        SequenceTagger
            Fitted; its ``history_`` is empty. Its parameters are those of the training, so that
            ``fit`` minimises the same objective; where the file could not hold one (a solver, a
            regulariser or a function of your own), ``fit`` asks for it.

        Raises
        ------
        ModelFormatError
            If the file is damaged, of a newer version, or no model file.
        """
        from maxmargin.io.tagger_file import dense_weights, load_tagger
        from maxmargin.io.training_meta import NOT_KEPT

        model = load_tagger(path, template, mmap=mmap)
        meta = model.meta
        names = set(cls._get_param_names())
        known = names - {*NOT_KEPT, "prior", "embeddings", *CONSTRAINT_PARAMS}
        params = {k: v for k, v in meta.get("params", {}).items() if k in known}
        if model.objective is not None:
            params |= model.objective()
        encoder = model.chain.encoder
        params["template"] = getattr(encoder, "template", getattr(encoder, "function", None))
        params["embeddings"] = getattr(encoder, "embeddings", None)
        rules = model.chain.constraints
        if rules is not None:
            params |= {
                "constraints": rules.rules,
                "decode": rules.decode,
                "penalty": rules.penalty,
                "constraint_features": rules.features,
                "infeasible": rules.infeasible,
                "beam": rules.width,
            }
        if isinstance(model.weights, KernelWeights) and params.get("kernel") not in KINDS:
            params["kernel"] = model.weights.kernel  # which was no text
        create: Callable[..., Self] = cls  # a subclass names its parameters itself
        tagger = create(**{k: v for k, v in params.items() if k in names})
        if model.objective is None:
            tagger._objective_unknown = True
        else:
            tagger._trained = {name: params[name] for name in OBJECTIVE}
        tagger.structure_ = model.chain
        tagger.weights_ = dense_weights(model)
        set_training(tagger, meta)
        said = ("training", "format", "columns_conllu", "reading")
        tagger._file_meta = {name: meta[name] for name in said if name in meta}
        restore_confidence(tagger, meta)
        tagger._after_load()
        return tagger

    def _after_load(self) -> None:
        """Set the attributes that a subclass has beside those of every tagger."""
