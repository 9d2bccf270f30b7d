"""Checks of what a structure says about the true outputs: their features, loss and encoding."""

from __future__ import annotations

from maxmargin.errors import StructureError
from maxmargin.structures.adapter import LOSS_TOLERANCE
from maxmargin.structures.check_calls import MethodFailed, StructureCalls
from maxmargin.structures.check_values import copied, same_features
from maxmargin.structures.duck import declared_n_features, offers
from maxmargin.structures.vectors import Features, SparseVector

__all__ = ["check_truths"]


def check_truths(calls: StructureCalls) -> dict[int, SparseVector]:
    """Check features and loss of the truths; return the features if weights can be tried."""
    features: dict[int, Features] = {}
    for i in calls.examples:
        try:
            features[i] = _truth_features(calls, i)
        except MethodFailed:
            continue
    for i in calls.examples:
        try:
            _check_truth_loss(calls, i)
        except MethodFailed:
            continue
    _check_encoders(calls)
    if not features or not _find_n_features(calls, features):
        return {}
    good: dict[int, SparseVector] = {}
    for i, returned in features.items():
        try:
            good[i] = calls.parsed(i, returned, f"Y[{i}]", calls.n_features)
        except MethodFailed:
            continue
    wrong_size = any(
        (kind, "joint_feature") in calls.found for kind in ("features: size", "features: index")
    )
    return {} if wrong_size else good


def _truth_features(calls: StructureCalls, i: int) -> Features:
    args = {"x": calls.X[i], "y": calls.true_output(i)}
    first = copied(calls.call("joint_feature", i, args))
    second = calls.call("joint_feature", i, args)
    calls.report.checks += 1
    if not same_features(first, second):
        calls.problem(
            "not deterministic",
            "joint_feature",
            i,
            f"two calls of joint_feature(X[{i}], Y[{i}]) returned different vectors",
            "let it depend on x and y alone: no random numbers, no state kept between calls",
        )
    return first


def _check_truth_loss(calls: StructureCalls, i: int) -> None:
    y = calls.true_output(i)
    value = calls.loss(i, y, f"Y[{i}]")
    again = calls.loss(i, y, f"Y[{i}]")
    calls.report.checks += 2
    if value != again:
        _loss_not_deterministic(calls, i, value, again)
    if value > LOSS_TOLERANCE:
        calls.problem(
            "loss of the truth",
            "loss",
            i,
            f"loss(Y[{i}], Y[{i}]) is {value}; expected 0",
            "the truth itself costs nothing; subtract its own cost",
        )
    calls.report.checks += 1
    if not calls.equal(i, y, copied(y)):
        calls.warning(
            "equal",
            "equal",
            i,
            f"equal(Y[{i}], a copy of Y[{i}]) is False",
            "write equal(y, y_hat), or give the class of the outputs an __eq__",
        )


def _loss_not_deterministic(calls: StructureCalls, i: int, value: float, again: float) -> None:
    calls.problem(
        "not deterministic",
        "loss",
        i,
        f"two calls of loss with the same outputs returned {value} and {again}",
        "let it depend on y and y_hat alone: no random numbers, no state kept between calls",
    )


def _check_encoders(calls: StructureCalls) -> None:
    if not offers(calls.structure, "encode") and not offers(calls.structure, "decode"):
        return
    for i in calls.examples:
        try:
            truth = calls.true_output(i)
            code = calls.call("encode", i, {"y": truth})
            again = calls.call("encode", i, {"y": truth})
            calls.report.checks += 1
            try:
                useful = hash(code) == hash(again) and code == again
            except TypeError:
                useful = False
            if not useful:
                calls.problem(
                    "key",
                    "encode",
                    i,
                    f"encode(Y[{i}]) gave no hashable key that is the same for equal outputs",
                    "return a number, a string, or a tuple of such",
                )
            if not offers(calls.structure, "decode"):
                continue
            decoded = calls.call("decode", i, {"code": code})
            calls.report.checks += 1
            if not calls.equal(i, truth, decoded):
                calls.problem(
                    "decode",
                    "decode",
                    i,
                    f"decode(encode(Y[{i}])) is not equal to Y[{i}]",
                    "let decode undo encode",
                )
        except MethodFailed:
            continue


def _find_n_features(calls: StructureCalls, features: dict[int, Features]) -> bool:
    calls.report.checks += 1
    try:
        n_features = declared_n_features(calls.structure)
    except StructureError as error:
        calls.problem(
            "n_features",
            "n_features",
            None,
            str(error),
            "set n_features to the size of the joint feature vector",
        )
        return False
    if n_features is None:
        for i, returned in features.items():
            try:
                n_features = calls.parsed(i, returned, f"Y[{i}]", None).size
            except MethodFailed:
                continue
            if n_features is not None:
                break
    if not n_features:
        if not any(kind.startswith("features: ") for kind, _ in calls.found):
            calls.problem(
                "n_features",
                "n_features",
                None,
                "the number of features is not known: joint_feature returns dicts or tuples "
                "(indices, values), which do not tell it, or an empty vector",
                "set n_features on the structure (an attribute or a property; prepare(X, Y) "
                "may set it)",
            )
        return False
    calls.n_features = n_features
    return True
