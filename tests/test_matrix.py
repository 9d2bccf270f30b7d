"""Every solver with every formulation, regulariser and kind of problem: it trains, or it refuses.

A new solver, formulation, regulariser or kind of problem joins by one line in its table below, and
by what `DOES` says of it. A combination that trains reaches a small gap; the primal of its
certificate is that of the returned weights by brute force; and its certificate agrees with those of
all other solvers and kinds of problems that have the same objective. All other combinations are
refused before anything is trained, with a message that says what would work.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from alignment_reference import ListedAlignment
from kit import formulated, quietly, slacks
from maxmargin import _native, regularizers
from maxmargin.errors import NotCompatibleError
from maxmargin.links import Link
from maxmargin.regularizers import (
    L1,
    L2,
    Bounded,
    ElasticNet,
    GaussianPrior,
    L1Ball,
    Nonnegative,
    Regularizer,
)
from maxmargin.solvers import (
    BCFW,
    LP,
    SAP,
    SDM,
    SOLVERS,
    DualCoordinate,
    ExtraGradient,
    InteriorPoint,
    NSlack,
    OneSlack,
    Online,
    Subgradient,
    make_solver,
)
from maxmargin.structures import Taxonomy
from maxmargin.structures.base import Structure
from maxmargin.structures.grammar import Grammar
from maxmargin.structures.grammar_trees import leaves
from native_problems import (
    ChainCase,
    Flat,
    OuterProduct,
    listed_problem,
    native_python_problem,
    random_case,
)
from qp_reference import list_planes
from reference_chain import ReferenceChain
from reference_dependency import TEXT, ReferenceTrees, random_sentences
from reference_grammar import ReferenceGrammar

C = 0.2

# --- the tables ---


@dataclasses.dataclass(frozen=True)
class Skewed(Regularizer):
    """½‖w‖² and more for negative weights: a regulariser of a user's own."""

    @property
    def link(self):
        return Link(lower=-0.1)


#: As each is asked to come close to the optimum of these small problems.
ENTRANTS = {
    "sdm": SDM(),
    "sap": SAP(),
    "nslack": NSlack(epsilon=1e-6),
    "dualcoordinate": DualCoordinate(),
    "oneslack": OneSlack(),
    "bcfw": BCFW(),
    "subgradient": Subgradient(),
    "lp": LP(epsilon=1e-6),
    "extragradient": ExtraGradient(),
    "interiorpoint": InteriorPoint(),
    "online": Online(),
}
FORMULATIONS = list(itertools.product(("linear", "quadratic", "hard"), ("margin", "slack", "none")))
REGULARIZERS = {
    "l2": L2(),
    "elastic net": ElasticNet(0.05, 0.9),
    "own link": Skewed(),
    "not negative": Nonnegative(),
    "bounded": Bounded(-0.125, 0.25),
    "prior": GaussianPrior(precision=1.5),  # those with a mean are in test_priors.py
    "l1 ball": L1Ball(0.7),
    "l1": L1(0.1),
    "l1, not negative": L1(0.1, nonnegative=True),
}


@dataclasses.dataclass(frozen=True, eq=False)
class Kind:
    """A problem, its data's name, and every output of every example written down."""

    data: str  # kinds with the same data have the same objectives
    problem: _native.Problem
    planes: object
    unpadded: object = np.array
    dtype: str = "float64"
    metric: object = None  # of a kernel: ‖w‖² = w.metric(w)


@functools.cache
def case(data):
    """Sentences or words that can be separated, so that hard margins have a solution."""
    lengths = {"sentences": (3, 2, 3, 1), "words": (1,) * 8}[data]
    return random_case(np.random.default_rng(17), lengths=lengths, n_sparse=8, noise=0.0)


@functools.cache
def planes(data):
    return list_planes(case(data).reference, case(data).X, case(data).Y)


def chain(data="sentences", dtype="float64"):
    return Kind(data, case(data).problem(), planes(data), case(data).unpadded, dtype)


def python():
    origin = case("sentences")
    problem = native_python_problem(origin.reference, origin.X, origin.Y)
    return Kind("sentences", problem, planes("sentences"))


def listed(dtype="float64"):
    origin = case("sentences")
    problem = listed_problem(origin.reference, origin.X, origin.Y)
    return Kind("sentences", problem, planes("sentences"), dtype=dtype)


def kernel():
    """Return the sentences by way of the linear kernel; w has the scores of the tokens."""
    origin = case("sentences")
    tokens, labels = np.vstack(origin.X), origin.n_labels
    n = len(tokens)
    arrays = {
        **origin.arrays,
        "n_sparse": n,
        "indptr": np.arange(n + 1, dtype=np.int64),
        "indices": np.arange(n, dtype=np.uint32),
    }
    X = origin.per_sequence(np.eye(n))
    own = ChainCase(ReferenceChain(labels, n), X, origin.Y, arrays)
    gram = np.ascontiguousarray(tokens @ tokens.T)
    matrix = _native.MatrixKernel(gram, np.arange(n, dtype=np.uint32))
    inverse = np.linalg.pinv(gram)

    def metric(w):
        scores = inverse @ w[: n * labels].reshape(n, labels)
        return np.concatenate([scores.ravel(), w[n * labels :]])

    problem = _native.KernelProblem(own.problem(), matrix, 2**20)
    outputs = list_planes(own.reference, own.X, own.Y)
    return Kind("sentences", problem, outputs, own.unpadded, metric=metric)


def multiclass(dtype="float64"):
    """Return the words as classes; start and end of a sequence are two features that are one."""
    origin = case("words")
    tokens, labels = np.vstack(origin.X), origin.n_labels
    rows = np.hstack([tokens, np.ones((len(tokens), 2))])

    def unpadded(weights):
        emissions, ends = np.split(np.asarray(weights, float).reshape(rows.shape[1], -1), [-2])
        assert not emissions[:, labels:].any()
        nothing = np.zeros((labels, labels))  # the transitions
        return np.vstack([emissions[:, :labels], nothing, ends[:, :labels]]).ravel()

    problem = _native.MulticlassProblem(
        n_classes=labels, n_sparse=0, labels=origin.arrays["labels"], dense64=rows
    )
    return Kind("words", problem, planes("words"), unpadded, dtype)


class SignedReference(Structure):
    """Rows with a sign, written out: an example is its Δf, its truth the margin."""

    n_features = 4

    def joint_feature(self, x, y):
        return -x if isinstance(y, str) else np.zeros(4)

    def loss(self, y, y_hat):
        return float(y) if isinstance(y_hat, str) else 0.0

    def outputs(self, x):
        return ["wrong"]


@functools.cache
def signed_rows():
    draw = np.random.default_rng(3)
    X, margins = draw.normal(size=(9, 4)), draw.uniform(0.5, 2, 9)
    up = X @ draw.normal(size=4) > 0
    problem = _native.RowProblem(
        above=np.where(up, margins, -np.inf),
        below=np.where(up, -np.inf, margins),
        n_sparse=0,
        dense64=X,
    )
    return np.where(up, 1.0, -1.0)[:, None] * X, margins, problem


def rows(listed=False, dtype="float64"):
    """Return two classes of points as rows with a sign, or as outputs that are listed."""
    delta, margins, problem = signed_rows()
    reference = SignedReference()
    if listed:
        problem = listed_problem(reference, delta, margins)
    return Kind("rows", problem, list_planes(reference, delta, margins), dtype=dtype)


@functools.cache
def costs():
    """Return classes with a cost for each pair of them, and the same problem in Python."""
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(7, 5)), [0, 1, 2, 0, 1, 2, 0]
    cost = np.array([[0.0, 0.5, 2.0], [1.0, 0.0, 0.7], [1.5, 0.6, 0.0]])
    return Flat(cost, 5), X, Y


def classes_with_costs():
    reference, X, Y = costs()
    labels = np.array(Y, np.int32)
    problem = _native.MulticlassProblem(
        n_classes=3, n_sparse=0, labels=labels, dense64=X, cost=reference.cost
    )

    def unpadded(weights):
        return np.asarray(weights, float).reshape(5, -1)[:, :3].T.ravel()

    return Kind("costs", problem, list_planes(reference, list(X), Y), unpadded)


def listed_costs():
    reference, X, Y = costs()
    problem = listed_problem(reference, list(X), Y)
    return Kind("costs", problem, list_planes(reference, list(X), Y))


@functools.cache
def sub_classes():
    """Return classes of two sub-classes each, which cost nothing beside each other: latent ones."""
    rng = np.random.default_rng(12)
    X, Y = rng.normal(size=(7, 5)), [0, 1, 2, 0, 3, 2, 0]
    group = np.arange(4) // 2
    return Flat((group[:, None] != group[None, :]).astype(float), 5), X, Y


def classes_with_states(written_out=False):
    reference, X, Y = sub_classes()
    outputs = list_planes(reference, list(X), Y)
    if written_out:
        return Kind("states", listed_problem(reference, list(X), Y), outputs)
    problem = _native.MulticlassProblem(
        n_classes=4,
        n_sparse=0,
        labels=np.array(Y, np.int32),
        dense64=X,
        cost=np.ascontiguousarray(reference.cost),
    )

    def unpadded(weights):
        return np.asarray(weights, float).reshape(5, -1)[:, :4].T.ravel()

    return Kind("states", problem, outputs, unpadded)


@functools.cache
def lattice():
    """Return classes below two nodes, one of them below both, with the tree loss; by hand too."""
    parents = {"a": "top", "b": "top", 0: "a", 1: ["a", "b"], 2: "b"}
    structure = Taxonomy(parents, node_weight={"a": 2.0, 2: 0.25})
    rng = np.random.default_rng(4)
    X, Y = rng.normal(size=(7, 5)), [0, 1, 2, 0, 1, 2, 0]
    problem, _ = structure.prepare_problem(X, Y, dtype="float64")
    order = ["a", "b", 0, 1, 2]
    root = np.sqrt(2.0)
    attributes = np.array([[root, 0, 1, 0, 0], [root, 1, 0, 1, 0], [0, 1, 0, 0, 0.5]])
    costs = np.array([[0.0, 1, 2], [1, 0, 1], [2, 1, 0]])
    columns = [structure.nodes_.index(z) for z in order]
    return OuterProduct(attributes, costs, 5), X, Y, problem, columns


def taxonomy():
    reference, X, Y, problem, columns = lattice()

    def unpadded(weights):
        return np.asarray(weights, float).reshape(5, -1)[:, columns].ravel()

    return Kind("lattice", problem, list_planes(reference, list(X), Y), unpadded)


def listed_taxonomy():
    reference, X, Y, _, _ = lattice()
    problem = listed_problem(reference, list(X), Y)
    return Kind("lattice", problem, list_planes(reference, list(X), Y))


@functools.cache
def alignment_case():
    """Return pairs that can be separated, and every output of them."""
    structure = ListedAlignment("AB", loss="residues")
    X = [("AB", "AB"), ("ABA", "AA"), ("BAB", "AB")]
    Y = [np.array(y) for y in ([(0, 0), (1, 1)], [(0, 0), (2, 1)], [(1, 0), (2, 1)])]
    return structure, X, Y, list_planes(structure, X, Y)


def alignment(written_out=False):
    structure, X, Y, outputs = alignment_case()
    if written_out:
        return Kind("pairs", listed_problem(structure, X, Y), outputs)
    return Kind("pairs", structure.prepare_problem(X, Y, dtype="float64").problem, outputs)


@functools.cache
def tree_case():
    """Sentences with labelled projective trees that can be separated."""
    rng = np.random.default_rng(8)
    reference = ReferenceTrees(TEXT, n_labels=2, bits=6)
    X = random_sentences(rng, (3, 2, 3, 1))
    teacher = rng.normal(size=reference.n_features)
    return reference, X, [reference.argmax(x, teacher) for x in X]


def heads(dtype="float64", *, written_out=False):
    """Return dependency trees with relations, native or with all trees written out."""
    reference, X, Y = tree_case()
    made = listed_problem(reference, X, Y) if written_out else reference.problem(X, Y)
    return Kind("heads", made, list_planes(reference, X, Y), dtype=dtype)


@functools.cache
def parse_case():
    """Sentences whose trees are the best of a teacher's, with the loss 1 - F₁."""
    treebank = [
        ("S", [("N", ["a"]), ("V", ["b", ("N", ["a"])])]),
        ("S", [("N", ["a", "a"]), ("V", ["b"])]),
        ("V", ["b", ("S", [("V", ["b", "a"])])]),
        ("S", [("N", ["a", ("N", ["a"])]), ("V", [("S", ["b"]), "a"])]),
    ]
    X = [leaves(y) for y in treebank]
    grammar = Grammar("f1", node_features=("first", "length", "before+after"))
    grammar.prepare(X, treebank)
    X += [["b", "a"], ["a", "a", "b"]]
    teacher = np.random.default_rng(0).normal(size=grammar.n_features)
    Y = [grammar.argmax(x, teacher) for x in X]
    return grammar.make_problem(X, Y), ReferenceGrammar(grammar), X, Y


def parses(written_out=False):
    problem, reference, X, Y = parse_case()
    made = listed_problem(reference, X, Y) if written_out else problem
    return Kind("parses", made, list_planes(reference, X, Y))


KINDS = {
    "chain float32": functools.partial(chain, dtype="float32"),
    "chain float64": chain,
    "one token": functools.partial(chain, "words"),
    "python": python,
    "listed float32": functools.partial(listed, "float32"),
    "listed float64": listed,
    "kernel chain": kernel,
    "multiclass float32": functools.partial(multiclass, "float32"),
    "multiclass float64": multiclass,
    "rows float32": functools.partial(rows, dtype="float32"),
    "rows float64": rows,
    "rows listed": functools.partial(rows, listed=True),
    "classes with costs": classes_with_costs,
    "listed costs": listed_costs,
    "classes with states": classes_with_states,
    "listed states": functools.partial(classes_with_states, written_out=True),
    "taxonomy": taxonomy,
    "listed taxonomy": listed_taxonomy,
    "alignment": alignment,
    "alignment, listed": functools.partial(alignment, written_out=True),
    "heads float64": heads,
    "heads, written out": functools.partial(heads, written_out=True),
    "parses": parses,
    "parses, written out": functools.partial(parses, written_out=True),
}
KINDS = {name: functools.cache(make) for name, make in KINDS.items()}

#: With which kind all others that have the same data are compared. A structure joins with its
#: native problem, and with the same problem written out by `listed_problem`.
REFERENCES = {
    "sentences": "chain float64",
    "words": "one token",
    "rows": "rows listed",
    "costs": "listed costs",
    "states": "listed states",
    "lattice": "listed taxonomy",
    "pairs": "alignment, listed",
    "heads": "heads, written out",
    "parses": "parses, written out",
}

PLAIN = {("linear", "margin")}
ALL = set(FORMULATIONS) - {("hard", "slack")}  # which has nothing to rescale
LINEAR = {pair for pair in ALL if pair[0] == "linear"}
LINKED = {"l2", "elastic net", "own link", "not negative", "bounded", "prior"}
#: Which formulations and regularisers each solver does.
DOES = {
    "sdm": (ALL, LINKED),
    "sap": (ALL, {"l2", "elastic net"}),
    "nslack": (ALL, LINKED),
    "dualcoordinate": (PLAIN, LINKED),
    "oneslack": (LINEAR, {"l2"}),
    "bcfw": (PLAIN, {"l2"}),
    "subgradient": (PLAIN, {"l2", "l1 ball"}),
    "lp": (PLAIN, {"l1", "l1, not negative"}),
    "extragradient": (PLAIN, {"l1, not negative"}),
    "interiorpoint": (ALL, LINKED),
    "online": (ALL, LINKED),
}
#: What does not go together: hard margins scale w by one factor, and bounds may forbid that.
APART = set(
    itertools.product([("hard", "margin"), ("hard", "none")], ["not negative", "bounded"])
)
#: What goes with a kernel: of these solvers the plain formulation with L2.
WITH_KERNEL = {"sdm", "sap", "nslack", "dualcoordinate", "online"}
#: The relative gap that is asked for; this one comes close to the optimum slowly.
GAP, GAPS = 1e-3, {"subgradient": 0.02}

#: How a refusal says what would work.
ADVICE = "|".join(
    [
        r"has no parameter '(slack|rescale)'; it has .* goes with solver 'sdm' or 'sap'",
        r'take rescale="margin" or "none", or slack="linear" or "quadratic"',
        r"cannot do .*; it does \w+.* goes with solver '\w+'",
        r"hard margins .*: the link must be one pair of thresholds and one scale for all",
        r"use solver 'sdm' or 'sap' or 'nslack' or .* or 'online', or kernel=\"linear\"",
        r'use slack="linear" and rescale="margin", or kernel="linear"',
        r'use L2\(\) \(and nu = 0\), or kernel="linear"',
    ]
)


def trains(solver, formulation, regularizer, kind):
    """Whether the tables say that a combination trains."""
    formulations, regularizers = DOES[solver]
    if kind == "kernel chain" and not (
        solver in WITH_KERNEL and formulation in PLAIN and regularizer == "l2"
    ):
        return False
    together = (formulation, regularizer) not in APART
    return formulation in formulations and regularizer in regularizers and together


#: With outputs that cost nothing (latent parts) there is no talk of a margin that all w have by
#: some factor; the latent estimators take linear slacks only.
LATENT = {"classes with states", "listed states"}
EVERYTHING = [
    combination
    for combination in itertools.product(ENTRANTS, FORMULATIONS, REGULARIZERS, KINDS)
    if not (combination[3] in LATENT and combination[1][0] == "hard")
]
TRAINED = [combination for combination in EVERYTHING if trains(*combination)]


@functools.cache
def trained(solver, formulation, regularizer, kind, n_jobs=1):
    """Train a combination."""
    slack, rescale = formulation
    # Not all solvers have these parameters; the defaults of those that have them are PLAIN.
    options = {
        "slack": None if slack == "linear" else slack,
        "rescale": None if rescale == "margin" else rescale,
    }
    made = KINDS[kind]()
    return quietly(
        made.problem,
        make_solver(ENTRANTS[solver], **options),
        C=C,
        dtype=made.dtype,
        regularizer=REGULARIZERS[regularizer],
        gap=GAPS.get(solver, GAP),
        max_passes=3000,
        random_state=0,
        n_jobs=n_jobs,
    )


def primal(kind, w, formulation, regularizer):
    """Return the objective of weights, with every output written down."""
    slack, rescale = formulation
    by_kernel = kind.metric is not None
    penalty = 0.5 * w @ kind.metric(w) if by_kernel else regularizer.penalty(w)
    outputs = formulated(kind.planes, slack, rescale)
    if slack == "hard":  # that of the multiple of w that has all margins
        margin = outputs.delta @ w
        assert margin.min() > 0
        return penalty * max(1.0, (outputs.loss / margin).max()) ** 2
    xi = slacks(outputs, w)
    return penalty + C * (xi if slack == "linear" else 0.5 * xi**2).sum()


def rounding(kind):
    """Return what rounding may change of a primal, relatively."""
    return 1e-5 if kind.dtype == "float32" else 1e-7


@pytest.mark.parametrize(("solver", "formulation", "regularizer", "kind"), TRAINED, ids=str)
def test_it_trains(solver, formulation, regularizer, kind):
    result, made = trained(solver, formulation, regularizer, kind), KINDS[kind]()
    certificate, tolerance = result.certificate, rounding(made)
    assert result.converged, result.stop_reason
    assert not certificate.approximate
    assert certificate.gap <= GAPS.get(solver, GAP) + 1e-5
    w = made.unpadded(result.weights).astype(float)
    by_hand = primal(made, w, formulation, REGULARIZERS[regularizer])
    assert certificate.primal == pytest.approx(by_hand, rel=tolerance)
    assert certificate.dual <= certificate.primal * (1 + tolerance)
    # Another solver of the same objective, written in another way: neither dual is above a primal.
    first = next(name for name in DOES if trains(name, formulation, regularizer, "chain float64"))
    other = trained(first, formulation, regularizer, REFERENCES[made.data]).certificate
    assert certificate.dual <= other.primal * (1 + tolerance)
    assert other.dual <= certificate.primal * (1 + tolerance)


#: A kind of each family of planes, both precisions, and a structure in Python ...
FAMILIES = ["chain float32", "chain float64", "python", "multiclass float64", "parses"]
#: ... with each solver and each of its formulations.
THREADED = [
    (solver, formulation, kind)
    for solver, formulation, kind in itertools.product(ENTRANTS, FORMULATIONS, FAMILIES)
    if formulation in DOES[solver][0]
]


@pytest.mark.parametrize(("solver", "formulation", "kind"), THREADED, ids=str)
def test_two_threads(solver, formulation, kind):
    """What two threads certify, one finds again; and it is the objective that one thread has."""
    regularizer = "l2" if "l2" in DOES[solver][1] else "l1, not negative"
    two = trained(solver, formulation, regularizer, kind, n_jobs=2)
    one = trained(solver, formulation, regularizer, kind)
    assert two.converged, two.stop_reason
    assert two.certificate.gap <= GAPS.get(solver, GAP) + 1e-5
    tolerance = rounding(KINDS[kind]())
    for a, b in ((one, two), (two, one)):
        assert a.certificate.dual <= b.certificate.primal * (1 + tolerance)
    assert two.engine.primal_of(two.weights, 1) == pytest.approx(two.certificate.primal, rel=1e-9)
    if ENTRANTS[solver].name not in {"oneslack", "subgradient", "lp", "extragradient"}:
        assert two.engine.dual() == pytest.approx(two.certificate.dual, rel=1e-6)
    by_one = two.engine.certify(1)
    assert by_one == pytest.approx((two.certificate.primal, two.certificate.dual), rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ENTRANTS)
def test_or_it_refuses(solver, kind):
    for formulation, regularizer in itertools.product(FORMULATIONS, REGULARIZERS):
        if not trains(solver, formulation, regularizer, kind):
            with pytest.raises((NotCompatibleError, ValueError), match=ADVICE):
                trained(solver, formulation, regularizer, kind)


def test_every_solver_and_regulariser_has_joined():
    assert ENTRANTS.keys() == DOES.keys() == SOLVERS.keys()
    assert all(ENTRANTS[name].name == name for name in ENTRANTS)
    # The base, those with a layout, a maker.
    known = {"Regularizer", "BoundRegularizer", "WeightLayout", "Selected", "make_regularizer"}
    assert {type(r).__name__ for r in REGULARIZERS.values()} - {"Skewed"} == (
        set(regularizers.__all__) - known
    )


def test_the_page_about_formulations_says_the_same():
    page = (Path(__file__).parents[1] / "docs" / "formulations.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| [^|]* \| ([^|]*) \| ([^|]*) \|$", page, re.MULTILINE)
    formulations = {"all": ALL, "linear, all": LINEAR, "linear, margin": PLAIN}
    penalties = {
        "L2": {"l2"},
        "elastic net": {"elastic net"},
        "others with a link": LINKED - {"l2", "elastic net"},
        "L1 ball": {"l1 ball"},
        "L1": {"l1", "l1, not negative"},
        "L1 without negative weights": {"l1, not negative"},
    }
    assert {
        name: (formulations[pairs], set().union(*(penalties[r] for r in those.split(", "))))
        for name, pairs, those in rows
    } == DOES


def test_the_objectives_are_not_trivial():
    """No two objectives of the same data have the same optimum."""
    optima = {}
    for formulation, regularizer in itertools.product(FORMULATIONS, REGULARIZERS):
        for name in DOES:
            if trains(name, formulation, regularizer, "chain float64"):
                result = trained(name, formulation, regularizer, "chain float64")
                assert np.any(result.weights)
                assert result.certificate.primal > 0.05
                optima[formulation, regularizer] = result.certificate.primal
    assert len(optima) == len(LINKED) * len(ALL) - len(APART) + 3
    for regularizer in REGULARIZERS:
        values = sorted(v for (_, r), v in optima.items() if r == regularizer)
        assert all(b > 1.05 * a for a, b in itertools.pairwise(values))
    free, not_negative = (optima[("linear", "margin"), r] for r in ("l1", "l1, not negative"))
    assert not_negative > 1.05 * free
