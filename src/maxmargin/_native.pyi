"""Types of the native module. Made by `make stubs` with nanobind 3.1.0; do not edit."""

from collections.abc import Sequence
from typing import Any, TypeAlias, overload

import numpy
from numpy.typing import NDArray

Bytes: TypeAlias = bytes | bytearray | memoryview | NDArray[numpy.uint8]
F32: TypeAlias = NDArray[numpy.float32]
F64: TypeAlias = NDArray[numpy.float64]
I32: TypeAlias = NDArray[numpy.int32]
I64: TypeAlias = NDArray[numpy.int64]
U16: TypeAlias = NDArray[numpy.uint16]
U32: TypeAlias = NDArray[numpy.uint32]
U64: TypeAlias = NDArray[numpy.uint64]

class Vocabulary:
    def __init__(self, max_size: int = 4294967295) -> None: ...
    @staticmethod
    def from_names(names: object | None, max_size: int = 4294967295) -> Vocabulary: ...
    def __len__(self) -> int: ...
    def __contains__(self, name: object) -> bool: ...
    def __repr__(self) -> str: ...
    def get(self, name: str) -> int | None: ...
    def add(self, name: str) -> int: ...
    def name(self, id: int) -> str: ...
    def names(self) -> list[str]: ...
    def table(self) -> tuple[bytes, I64]: ...
    @staticmethod
    def from_table(text: Bytes, ends: NDArray[numpy.int64]) -> Vocabulary: ...
    def hashes(self) -> U64: ...
    @property
    def memory_bytes(self) -> int: ...
    def __getstate__(self) -> tuple[Any, ...]: ...
    def __setstate__(self, arg: tuple[Any, ...], /) -> None: ...

def encode_tokens(
    X: object | None, vocabulary: Vocabulary, grow: bool, wide: bool = False, threads: int = 1
) -> tuple[I64, I64, U32, F32 | F64 | None]: ...
@overload
def renumber(
    indptr: NDArray[numpy.int64],
    indices: NDArray[numpy.uint32],
    values: NDArray[numpy.float32] | None,
    number: NDArray[numpy.uint32],
) -> tuple[I64, U32, F32 | F64 | None]: ...
@overload
def renumber(
    indptr: NDArray[numpy.int64],
    indices: NDArray[numpy.uint32],
    values: NDArray[numpy.float64] | None,
    number: NDArray[numpy.uint32],
) -> tuple[I64, U32, F32 | F64 | None]: ...
def encode_labels(y: object | None, labels: dict[Any, int], grow: bool) -> tuple[I64, I32]: ...

class Problem:
    @property
    def n_examples(self) -> int: ...
    @property
    def slow_oracle(self) -> bool: ...
    @property
    def exact_oracle(self) -> bool: ...
    @property
    def has_kernel(self) -> bool: ...
    @property
    def offers_single(self) -> bool: ...
    def data_hash(self) -> int: ...
    linear_term: NDArray[Any] | None = None
    windows: Any = None

class ChainProblem(Problem):
    def __init__(
        self,
        n_labels: int,
        n_sparse: int,
        offsets: NDArray[numpy.int64],
        indptr: NDArray[numpy.int64] | None = None,
        indices: NDArray[numpy.uint32] | None = None,
        values: NDArray[numpy.float32] | None = None,
        dense32: NDArray[numpy.float32] | None = None,
        dense64: NDArray[numpy.float64] | None = None,
        labels: NDArray[numpy.int32] | None = None,
        token_weight: NDArray[numpy.float32] | None = None,
        cost: NDArray[numpy.float64] | None = None,
        example_weight: NDArray[numpy.float64] | None = None,
        n_pair: int = 0,
        pair_indptr: NDArray[numpy.int64] | None = None,
        pair_indices: NDArray[numpy.uint32] | None = None,
        values64: NDArray[numpy.float64] | None = None,
        token_weight64: NDArray[numpy.float64] | None = None,
        mapping: NDArray[numpy.uint8] | None = None,
        file_hash: int = 0,
    ) -> None: ...
    @overload
    def predict(
        self,
        weights: NDArray[numpy.float32],
        threads: int = 1,
        transition: NDArray[numpy.uint8] | None = None,
        start: NDArray[numpy.uint8] | None = None,
        end: NDArray[numpy.uint8] | None = None,
        table_bytes: int = 67108864,
        known: NDArray[numpy.int32] | None = None,
    ) -> tuple[I32, F64]: ...
    @overload
    def predict(
        self,
        weights: NDArray[numpy.float64],
        threads: int = 1,
        transition: NDArray[numpy.uint8] | None = None,
        start: NDArray[numpy.uint8] | None = None,
        end: NDArray[numpy.uint8] | None = None,
        table_bytes: int = 67108864,
        known: NDArray[numpy.int32] | None = None,
    ) -> tuple[I32, F64]: ...
    @overload
    def predict(
        self,
        weights: SparseWeights,
        threads: int = 1,
        transition: NDArray[numpy.uint8] | None = None,
        start: NDArray[numpy.uint8] | None = None,
        end: NDArray[numpy.uint8] | None = None,
        table_bytes: int = 67108864,
        known: NDArray[numpy.int32] | None = None,
    ) -> tuple[I32, F64]: ...
    @overload
    def score(
        self,
        weights: NDArray[numpy.float32],
        labels: NDArray[numpy.int32],
        threads: int = 1,
        table_bytes: int = 67108864,
    ) -> F64: ...
    @overload
    def score(
        self,
        weights: NDArray[numpy.float64],
        labels: NDArray[numpy.int32],
        threads: int = 1,
        table_bytes: int = 67108864,
    ) -> F64: ...
    @overload
    def score(
        self,
        weights: SparseWeights,
        labels: NDArray[numpy.int32],
        threads: int = 1,
        table_bytes: int = 67108864,
    ) -> F64: ...
    @overload
    def max_marginals(
        self,
        weights: NDArray[numpy.float32],
        threads: int = 1,
        table_bytes: int = 67108864,
        known: NDArray[numpy.int32] | None = None,
    ) -> F64: ...
    @overload
    def max_marginals(
        self,
        weights: NDArray[numpy.float64],
        threads: int = 1,
        table_bytes: int = 67108864,
        known: NDArray[numpy.int32] | None = None,
    ) -> F64: ...
    @overload
    def max_marginals(
        self,
        weights: SparseWeights,
        threads: int = 1,
        table_bytes: int = 67108864,
        known: NDArray[numpy.int32] | None = None,
    ) -> F64: ...
    @overload
    def marginals(
        self,
        weights: NDArray[numpy.float32],
        temperature: float,
        tokens: bool = True,
        threads: int = 1,
        transition: NDArray[numpy.uint8] | None = None,
        start: NDArray[numpy.uint8] | None = None,
        end: NDArray[numpy.uint8] | None = None,
        table_bytes: int = 67108864,
        known: NDArray[numpy.int32] | None = None,
    ) -> tuple[Any, ...]: ...
    @overload
    def marginals(
        self,
        weights: NDArray[numpy.float64],
        temperature: float,
        tokens: bool = True,
        threads: int = 1,
        transition: NDArray[numpy.uint8] | None = None,
        start: NDArray[numpy.uint8] | None = None,
        end: NDArray[numpy.uint8] | None = None,
        table_bytes: int = 67108864,
        known: NDArray[numpy.int32] | None = None,
    ) -> tuple[Any, ...]: ...
    @overload
    def marginals(
        self,
        weights: SparseWeights,
        temperature: float,
        tokens: bool = True,
        threads: int = 1,
        transition: NDArray[numpy.uint8] | None = None,
        start: NDArray[numpy.uint8] | None = None,
        end: NDArray[numpy.uint8] | None = None,
        table_bytes: int = 67108864,
        known: NDArray[numpy.int32] | None = None,
    ) -> tuple[Any, ...]: ...
    @overload
    def kbest(
        self,
        weights: NDArray[numpy.float32],
        k: int,
        threads: int = 1,
        transition: NDArray[numpy.uint8] | None = None,
        start: NDArray[numpy.uint8] | None = None,
        end: NDArray[numpy.uint8] | None = None,
        table_bytes: int = 67108864,
        known: NDArray[numpy.int32] | None = None,
    ) -> list[list[tuple[float, I32]]]: ...
    @overload
    def kbest(
        self,
        weights: NDArray[numpy.float64],
        k: int,
        threads: int = 1,
        transition: NDArray[numpy.uint8] | None = None,
        start: NDArray[numpy.uint8] | None = None,
        end: NDArray[numpy.uint8] | None = None,
        table_bytes: int = 67108864,
        known: NDArray[numpy.int32] | None = None,
    ) -> list[list[tuple[float, I32]]]: ...
    @overload
    def kbest(
        self,
        weights: SparseWeights,
        k: int,
        threads: int = 1,
        transition: NDArray[numpy.uint8] | None = None,
        start: NDArray[numpy.uint8] | None = None,
        end: NDArray[numpy.uint8] | None = None,
        table_bytes: int = 67108864,
        known: NDArray[numpy.int32] | None = None,
    ) -> list[list[tuple[float, I32]]]: ...
    @overload
    def hinge(self, weights: NDArray[numpy.float32], threads: int = 1) -> float: ...
    @overload
    def hinge(self, weights: NDArray[numpy.float64], threads: int = 1) -> float: ...
    @overload
    def hinge(self, weights: SparseWeights, threads: int = 1) -> float: ...
    @overload
    def gather(self, weights: NDArray[numpy.float32]) -> float: ...
    @overload
    def gather(self, weights: NDArray[numpy.float64]) -> float: ...
    @overload
    def gather(self, weights: SparseWeights) -> float: ...

class SparseWeights:
    @overload
    def __init__(
        self,
        n_labels: int,
        starts: NDArray[numpy.uint32],
        labels: NDArray[numpy.uint8],
        weights: NDArray[numpy.float32],
        tail: NDArray[numpy.float32],
    ) -> None: ...
    @overload
    def __init__(
        self,
        n_labels: int,
        starts: NDArray[numpy.uint32],
        labels: NDArray[numpy.uint16],
        weights: NDArray[numpy.float32],
        tail: NDArray[numpy.float32],
    ) -> None: ...
    @overload
    def __init__(
        self,
        n_labels: int,
        starts: NDArray[numpy.uint32],
        labels: NDArray[numpy.uint32],
        weights: NDArray[numpy.float32],
        tail: NDArray[numpy.float32],
    ) -> None: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_labels(self) -> int: ...
    @property
    def n_entries(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    def dense(self) -> F32: ...
    def arrays(self) -> tuple[U32, U32, F32, F32]: ...

def padded_labels(n_labels: int, single: bool) -> int: ...
def select_vector_code(name: str) -> None: ...
def vector_code_name() -> str: ...
@overload
def count_nonzero(weights: NDArray[numpy.float32], threads: int = 1) -> int: ...
@overload
def count_nonzero(weights: NDArray[numpy.float64], threads: int = 1) -> int: ...
@overload
def row_counts(matrix: NDArray[numpy.float32], n_columns: int) -> Any: ...
@overload
def row_counts(matrix: NDArray[numpy.float64], n_columns: int) -> Any: ...
@overload
def row_entries(
    matrix: NDArray[numpy.float32], rows: NDArray[numpy.uint64], n_columns: int
) -> tuple[Any, ...]: ...
@overload
def row_entries(
    matrix: NDArray[numpy.float64], rows: NDArray[numpy.uint64], n_columns: int
) -> tuple[Any, ...]: ...
def aligned_array(n: int, single: bool) -> Any: ...

class ChunkedProblem(Problem):
    def __init__(self, first: object) -> None: ...
    def append(self, problem: object) -> None: ...
    def merge(self, count: int, problem: object) -> None: ...
    @property
    def sizes(self) -> list[int]: ...

class Automaton:
    def __init__(
        self,
        kind: str,
        first: NDArray[numpy.int64],
        per_token: bool = False,
        labels: Sequence[int] = [],
        low: int = 0,
        high: int = -1,
        increments: Sequence[int] = [],
        active: NDArray[numpy.uint8] | None = None,
        order: int = 0,
        grams: Sequence[int] = [],
    ) -> None: ...

class ConstrainedProblem(Problem):
    def __init__(
        self,
        chain: object,
        offsets: NDArray[numpy.int64],
        token_indptr: NDArray[numpy.int64] | None,
        token_coordinates: NDArray[numpy.int64] | None,
        token_tables: NDArray[numpy.uint32] | None,
        token_values: NDArray[numpy.float64],
        edge_indptr: NDArray[numpy.int64] | None,
        edge_coordinates: NDArray[numpy.int64] | None,
        edge_tables: NDArray[numpy.uint32] | None,
        edge_values: NDArray[numpy.float64],
        automata: list[Any],
        groups: NDArray[numpy.int32] | None = None,
        n_groups: int = 0,
        group_weights: bool = False,
        auxiliary: bool = False,
        chain_loss: bool = True,
        kappa: float = 0.0,
        tau: float = 0.0,
        width: int = 1000,
        free: NDArray[numpy.int32] | None = None,
        b: NDArray[numpy.float64] | None = None,
    ) -> None: ...
    @property
    def n_coordinates(self) -> int: ...
    def n_weights(self, single: bool) -> int: ...
    def group_places(self, single: bool) -> Any: ...
    def auxiliary_places(self, single: bool) -> Any: ...
    def phi(self, labels: NDArray[numpy.int32]) -> Any: ...
    def sum_features(
        self,
        labels: NDArray[numpy.int32],
        amounts: NDArray[numpy.float64],
        kappa: float | None = None,
        single: bool = True,
    ) -> Any: ...
    @overload
    def best(
        self,
        weights: NDArray[numpy.float32],
        c: NDArray[numpy.float64],
        q: float = 0.0,
        width: int = 1000,
        threads: int = 1,
        transition: NDArray[numpy.uint8] | None = None,
        start: NDArray[numpy.uint8] | None = None,
        end: NDArray[numpy.uint8] | None = None,
    ) -> tuple[Any, ...]: ...
    @overload
    def best(
        self,
        weights: NDArray[numpy.float64],
        c: NDArray[numpy.float64],
        q: float = 0.0,
        width: int = 1000,
        threads: int = 1,
        transition: NDArray[numpy.uint8] | None = None,
        start: NDArray[numpy.uint8] | None = None,
        end: NDArray[numpy.uint8] | None = None,
    ) -> tuple[Any, ...]: ...
    @overload
    def best(
        self,
        weights: SparseWeights,
        c: NDArray[numpy.float64],
        q: float = 0.0,
        width: int = 1000,
        threads: int = 1,
        transition: NDArray[numpy.uint8] | None = None,
        start: NDArray[numpy.uint8] | None = None,
        end: NDArray[numpy.uint8] | None = None,
    ) -> tuple[Any, ...]: ...

class IntervalProblem(Problem):
    def __init__(
        self,
        constrained: object,
        indptr: NDArray[numpy.int64],
        indices: NDArray[numpy.int64],
        values: NDArray[numpy.float64],
        low: NDArray[numpy.float64],
        high: NDArray[numpy.float64],
        weight: NDArray[numpy.float64],
    ) -> None: ...

class JointProblem(Problem):
    def __init__(self, problems: list[Any]) -> None: ...

class DependencyProblem(Problem):
    def __init__(
        self,
        *,
        offsets: NDArray[numpy.int64],
        atoms: NDArray[numpy.uint64],
        specials: NDArray[numpy.uint64],
        program: NDArray[numpy.int32],
        seeds: NDArray[numpy.uint64],
        arc_bits: int,
        row_bits: int,
        n_labels: int = 0,
        heads: NDArray[numpy.int32] | None = None,
        labels: NDArray[numpy.int32] | None = None,
        projective: bool = True,
        one_root: bool = True,
        zero_one: bool = False,
        example_weight: NDArray[numpy.float64] | None = None,
    ) -> None: ...
    @property
    def n_weights(self) -> int: ...
    @overload
    def predict(self, weights: NDArray[numpy.float32], threads: int = 1) -> Any: ...
    @overload
    def predict(self, weights: NDArray[numpy.float64], threads: int = 1) -> Any: ...
    def oracle(self, weights: NDArray[numpy.float64]) -> Any: ...
    @overload
    def score(
        self,
        weights: NDArray[numpy.float32],
        heads: NDArray[numpy.int32],
        labels: NDArray[numpy.int32],
        threads: int = 1,
    ) -> Any: ...
    @overload
    def score(
        self,
        weights: NDArray[numpy.float64],
        heads: NDArray[numpy.int32],
        labels: NDArray[numpy.int32],
        threads: int = 1,
    ) -> Any: ...
    def features(self, heads: NDArray[numpy.int32], labels: NDArray[numpy.int32]) -> Any: ...

def decode_tree(
    scores: NDArray[numpy.float64], projective: bool = True, one_root: bool = True
) -> Any: ...
def text_hashes(texts: Sequence[str]) -> Any: ...

class Link:
    def __init__(
        self,
        *,
        lower: object = 0.0,
        upper: object = 0.0,
        scale: object = 1.0,
        offset: object = 0.0,
        least: object = float("-inf"),
        most: object = float("inf"),
    ) -> None: ...
    @property
    def lower(self) -> Any: ...
    @property
    def upper(self) -> Any: ...
    @property
    def scale(self) -> Any: ...
    @property
    def offset(self) -> Any: ...
    @property
    def least(self) -> Any: ...
    @property
    def most(self) -> Any: ...
    def check(self, n_weights: int) -> None: ...
    def __eq__(self, other: object) -> bool: ...

class PassOptions:
    def __init__(
        self,
        *,
        tau: float = 0.0,
        tau_inner: float = 0.0,
        tau_relative: float = 0.0,
        max_smo: int = 1000,
        rounds: int = 1,
        relaxation: float = 1.0,
        recombine: bool = False,
        min_violation: float = 0.0,
        prune: bool = True,
        mu: float = 0.0,
        beta_steps: bool = True,
        epsilon: float = -1.0,
        frank_wolfe: bool = False,
        average: bool = False,
        coordinate: bool = False,
        seed: int = 0,
        open: float = 0.0,
        share: float = 0.0,
        tolerance: float = float("inf"),
        replay: int = 0,
        seen: int = 0,
        joint: bool = False,
        sweeps: int = 1,
        measure: bool = False,
        steepness: float = 0.0,
    ) -> None: ...

def core_latency(rounds: int) -> float: ...

class NewtonOptions:
    def __init__(
        self, *, products: int = 30, solves: int = 10, flat: float = 0.02, worth: float = 0.0
    ) -> None: ...

class CoordinateOptions:
    def __init__(
        self,
        *,
        rounds: int = 10,
        enough: float = 0.1,
        goal: float = 0.0,
        shrink: float = float("inf"),
        seed: int = 0,
    ) -> None: ...

class PassResult:
    @property
    def gap(self) -> float: ...
    @property
    def cached_gap(self) -> float: ...
    @property
    def hinge(self) -> float: ...
    @property
    def gain(self) -> float: ...
    @property
    def work(self) -> float: ...
    @property
    def psi_max(self) -> float: ...
    @property
    def psi_cached_max(self) -> float: ...
    @property
    def looked(self) -> int: ...
    @property
    def oracle_calls(self) -> int: ...
    @property
    def visits(self) -> int: ...
    @property
    def added(self) -> int: ...
    @property
    def solved(self) -> int: ...
    @property
    def smo_steps(self) -> int: ...
    @property
    def merges(self) -> int: ...
    @property
    def interrupted(self) -> bool: ...

class Engine:
    def __init__(
        self,
        problem: Problem,
        C: float,
        single: bool = True,
        factored: bool = True,
        link: Link = ...,
        nu: float = 0.0,
        slack: str = "linear",
        rescale: str = "margin",
    ) -> None: ...
    def exact_pass(
        self,
        order: NDArray[numpy.uint32],
        options: PassOptions,
        seconds: float | None = None,
        batch: int = 0,
        threads: int = 1,
    ) -> PassResult: ...
    def cached_pass(
        self,
        order: NDArray[numpy.uint32],
        options: PassOptions,
        seconds: float | None = None,
        threads: int = 1,
    ) -> PassResult: ...
    def newton_pass(self, options: NewtonOptions, seconds: float | None = None) -> PassResult: ...
    def coordinate_pass(
        self, order: NDArray[numpy.uint32], options: CoordinateOptions, seconds: float | None = None
    ) -> PassResult: ...
    @property
    def offers_coordinates(self) -> bool: ...
    @property
    def quadratic(self) -> bool: ...
    def collect_pass(
        self, threads: int = 1, seconds: float | None = None, measured: bool = True
    ) -> PassResult: ...
    def interior_pass(
        self,
        accuracy: float = 0.0,
        max_iterations: int = 100,
        warm: bool = True,
        prune: bool = False,
        seconds: float | None = None,
    ) -> PassResult: ...
    def interior_size(self) -> dict[str, float]: ...
    def hinge(self, threads: int = 1) -> float: ...
    def expected_loss(self) -> float: ...
    def penalty(self) -> float: ...
    def conjugate(self) -> float: ...
    def dual(self) -> float: ...
    def objective(self, threads: int = 1) -> float: ...
    def average(self) -> Any: ...
    def forget_average(self) -> None: ...
    @property
    def unbounded(self) -> bool: ...
    def block_gaps(self) -> F64: ...
    def slacks(self, threads: int = 1) -> Any: ...
    def planes(self) -> tuple[I64, F64, F64, I64, I64, F64]: ...
    @property
    def oracle_error_bound(self) -> float: ...
    @property
    def missed(self) -> int | None: ...
    def beta_step(self) -> None: ...
    def unsettled(self) -> float: ...
    def sums(self) -> Any: ...
    def beta(self) -> Any: ...
    def certify(self, threads: int = 1) -> tuple[float, float]: ...
    @overload
    def primal_of(self, weights: NDArray[numpy.float32], threads: int = 1) -> float: ...
    @overload
    def primal_of(self, weights: NDArray[numpy.float64], threads: int = 1) -> float: ...
    def rounding(self, threads: int = 1) -> float: ...
    def widen(self) -> None: ...
    def widened_array(self, array: NDArray[numpy.float64]) -> Any: ...
    @property
    def widened(self) -> bool: ...
    def rescale(self, C: float) -> None: ...
    def relink(self, link: Link) -> None: ...
    def set_fixed(self, fixed: object | None) -> None: ...
    def receive(self, change: object) -> None: ...
    def changes(self, base: object, scale: float) -> tuple[Any, ...]: ...
    def settle(self, sums: object, C: float) -> None: ...
    def own_sums(self) -> Any: ...
    def place(self, sums: NDArray[numpy.float64], threads: int = 1) -> tuple[Any, ...]: ...
    def risk_and_worth(self) -> tuple[float, float]: ...
    def grow(self) -> None: ...
    def refresh(self) -> None: ...
    def release(self, examples: NDArray[numpy.uint32]) -> None: ...
    def shed(self, budget: int) -> int: ...
    @property
    def fixed(self) -> Any: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...
    def size(self) -> dict[str, int]: ...
    @property
    def C(self) -> float: ...
    @property
    def link(self) -> Link: ...
    @property
    def formulation(self) -> tuple[str, str]: ...
    @property
    def nu(self) -> float: ...
    @property
    def factored(self) -> bool: ...
    def solves(self, problem: Problem) -> bool: ...
    def set_windows(self, ends: Sequence[int], limit: int, descriptor: int) -> None: ...
    @property
    def windowed(self) -> bool: ...
    def window_state(self, k: int) -> Any: ...
    def restore_window(self, k: int, piece: NDArray[numpy.uint8]) -> None: ...
    def window_size(self) -> dict[Any, Any]: ...
    def joins(self, threads: int) -> bool: ...
    @property
    def agrees(self) -> bool: ...
    @property
    def n_weights(self) -> int: ...
    @property
    def weight_bytes(self) -> int: ...
    @property
    def weights(self) -> Any: ...

class Member:
    def __init__(self, engine: Engine) -> None: ...
    def reads(self) -> tuple[U32, int]: ...
    def share(self, common: NDArray[numpy.uint8]) -> None: ...
    def open(self, C: float, steepness: float) -> tuple[NDArray[numpy.uint8], U32, U64, F32]: ...
    def measure(self, steepness: float) -> tuple[NDArray[numpy.uint8], U32, U64, F32]: ...
    def follow(
        self,
        chunks: NDArray[numpy.uint32],
        lanes: NDArray[numpy.uint64],
        codes: NDArray[numpy.uint16],
        base: int,
        show: bool,
    ) -> None: ...
    def aim(self) -> None: ...
    def begin_steps(self) -> None: ...
    def end_steps(self) -> None: ...
    def take(self, relaxation: float) -> tuple[U32, U64, U16, int, float]: ...
    def own(self) -> tuple[float, float]: ...
    def exact(self, threads: int = 1) -> tuple[U32, U64, F64, float]: ...
    def place(
        self, chunks: NDArray[numpy.uint32], lanes: NDArray[numpy.uint64], values: object
    ) -> None: ...
    def look(self, threads: int = 1) -> tuple[float, float]: ...
    def weights(self) -> tuple[U32, NDArray[Any]]: ...

class Meeting:
    def __init__(
        self,
        link: Link,
        n_weights: int,
        row: int,
        reads: Sequence[NDArray[numpy.uint32]],
        single: bool,
    ) -> None: ...
    @property
    def n_shared(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def penalty(self) -> float: ...
    @property
    def conjugate(self) -> float: ...
    @property
    def zero(self) -> bool: ...
    def common(self, k: int) -> NDArray[numpy.uint8]: ...
    def begin(self) -> None: ...
    def forget(self, k: int) -> None: ...
    def measure(self) -> None: ...
    def open(
        self,
        k: int,
        metric: NDArray[numpy.uint8],
        chunks: NDArray[numpy.uint32],
        lanes: NDArray[numpy.uint64],
        sums: NDArray[numpy.float32],
    ) -> None: ...
    def add(
        self,
        k: int,
        chunks: NDArray[numpy.uint32],
        lanes: NDArray[numpy.uint64],
        codes: NDArray[numpy.uint16],
        base: int,
    ) -> None: ...
    def meet(self, relaxation: float) -> None: ...
    def tell(self, k: int) -> tuple[U32, U64, U16, int]: ...
    def begin_exact(self) -> None: ...
    def add_exact(
        self,
        k: int,
        chunks: NDArray[numpy.uint32],
        lanes: NDArray[numpy.uint64],
        sums: NDArray[numpy.float64],
    ) -> None: ...
    def exact_conjugate(self) -> float: ...
    def place_sums(self) -> None: ...
    def place_held(self) -> None: ...
    def placed(self, k: int) -> tuple[U32, U64, NDArray[Any]]: ...
    def values(self) -> NDArray[Any]: ...
    def set_values(self, values: object) -> None: ...
    def write(self, weights: object) -> None: ...
    def write_own(
        self, k: int, chunks: NDArray[numpy.uint32], values: object, weights: object
    ) -> None: ...

def sparse_entries(
    features: object | None, n_features: int | None = None
) -> tuple[U32, F64] | None: ...
def sparse_plane(
    truth_indices: object, truth_values: object, features: object | None, w: object
) -> tuple[U32, F64, float, float] | None: ...

class ListedPlanes:
    def __init__(self, truth_indices: object, truth_values: object, n_features: int) -> None: ...
    def __len__(self) -> int: ...
    def add(self, features: object | None, loss: float) -> bool: ...
    def add_truth(self) -> None: ...
    def shrink(self) -> None: ...
    def best(self, w: object) -> tuple[int, float, float]: ...
    def best_by_loss(self, w: object, any_loss: bool) -> list[tuple[int, float]]: ...
    def plane(self, k: int) -> tuple[U32, F64, float, bool]: ...
    @property
    def nbytes(self) -> int: ...

class GrammarRules:
    def __init__(
        self,
        n_labels: int,
        n_inner: int,
        n_terminals: int,
        left: NDArray[numpy.uint32],
        right: NDArray[numpy.uint32],
        lhs: NDArray[numpy.uint32],
        inner_left: NDArray[numpy.uint32],
        inner_right: NDArray[numpy.uint32],
        inner_lhs: NDArray[numpy.uint32],
        unary_lhs: NDArray[numpy.uint32],
        unary_child: NDArray[numpy.uint32],
        lexical_lhs: NDArray[numpy.uint32],
        lexical_terminal: NDArray[numpy.uint32],
        label_class: NDArray[numpy.int32],
        root: NDArray[numpy.int32],
        chain_label: NDArray[numpy.uint32],
        chain_parent: NDArray[numpy.uint32],
        chain_rule: NDArray[numpy.uint32],
    ) -> None: ...

class GrammarProblem(Problem):
    def __init__(
        self,
        rules: object,
        offsets: NDArray[numpy.int64],
        terminals: NDArray[numpy.int32],
        entry_ptr: NDArray[numpy.int64],
        entry_label: NDArray[numpy.uint32],
        first_ptr: NDArray[numpy.int64] | None = None,
        first_ids: NDArray[numpy.uint32] | None = None,
        last_ptr: NDArray[numpy.int64] | None = None,
        last_ids: NDArray[numpy.uint32] | None = None,
        length_ptr: NDArray[numpy.int64] | None = None,
        length_ids: NDArray[numpy.uint32] | None = None,
        span_ptr: NDArray[numpy.int64] | None = None,
        span_ids: NDArray[numpy.uint32] | None = None,
        code_ptr: NDArray[numpy.int64] | None = None,
        codes: NDArray[numpy.uint32] | None = None,
        example_weight: NDArray[numpy.float64] | None = None,
        loss: str = "f1",
        count_root: bool = True,
        count_preterminals: bool = True,
        search_limit: int = 20000000,
    ) -> None: ...
    @overload
    def parse(self, weights: NDArray[numpy.float32], threads: int = 1) -> tuple[I64, U32]: ...
    @overload
    def parse(self, weights: NDArray[numpy.float64], threads: int = 1) -> tuple[I64, U32]: ...
    @overload
    def score(
        self,
        weights: NDArray[numpy.float32],
        code_ptr: NDArray[numpy.int64],
        codes: NDArray[numpy.uint32],
        threads: int = 1,
    ) -> F64: ...
    @overload
    def score(
        self,
        weights: NDArray[numpy.float64],
        code_ptr: NDArray[numpy.int64],
        codes: NDArray[numpy.uint32],
        threads: int = 1,
    ) -> F64: ...
    @overload
    def oracle(
        self, weights: NDArray[numpy.float32], sentence: int, scale: float = 1.0
    ) -> tuple[U32, float, int, int]: ...
    @overload
    def oracle(
        self, weights: NDArray[numpy.float64], sentence: int, scale: float = 1.0
    ) -> tuple[U32, float, int, int]: ...
    @overload
    def bare(self, weights: NDArray[numpy.float32], sentence: int) -> float: ...
    @overload
    def bare(self, weights: NDArray[numpy.float64], sentence: int) -> float: ...

MAX_VALUE: float = 1000000000000.0

def parse_items(
    data: Bytes,
    format: str,
    vocabulary: Vocabulary,
    grow: bool,
    labels_wanted: bool,
    first_line: int = 1,
) -> tuple[I64, I64, U32, F32 | None, I32 | None, list[str], F32 | None]: ...

class Imputer:
    def __init__(self, problem: Problem) -> None: ...
    @overload
    def impute(self, weights: NDArray[numpy.float32], threads: int = 1) -> tuple[Any, ...]: ...
    @overload
    def impute(self, weights: NDArray[numpy.float64], threads: int = 1) -> tuple[Any, ...]: ...
    def linear_term(self, C: float, single: bool) -> Any: ...
    def codes(self) -> tuple[Any, ...]: ...
    def set_codes(self, starts: NDArray[numpy.int64], codes: NDArray[numpy.uint32]) -> None: ...

class SimplexQpResult:
    @property
    def gap(self) -> float: ...
    @property
    def steps(self) -> int: ...
    @property
    def rounds(self) -> int: ...

def solve_simplex_qp(
    gram: NDArray[numpy.float64],
    group: NDArray[numpy.uint32],
    b: NDArray[numpy.float64],
    C: float,
    alpha: NDArray[numpy.float64],
    tolerance: float,
    kappa: float = 1.0,
    max_rounds: int = 10000,
) -> SimplexQpResult: ...
@overload
def blend(
    a: NDArray[numpy.float32],
    b: NDArray[numpy.float32],
    share: float,
    out: NDArray[numpy.float32],
    threads: int = 1,
) -> float: ...
@overload
def blend(
    a: NDArray[numpy.float64],
    b: NDArray[numpy.float64],
    share: float,
    out: NDArray[numpy.float64],
    threads: int = 1,
) -> float: ...
@overload
def square(w: NDArray[numpy.float32], threads: int = 1) -> float: ...
@overload
def square(w: NDArray[numpy.float64], threads: int = 1) -> float: ...

class PlaneStore:
    def __init__(self, n_weights: int, single: bool = True) -> None: ...
    def __len__(self) -> int: ...
    def add(
        self,
        indptr: NDArray[numpy.int64],
        indices: NDArray[numpy.uint32],
        values: object,
        threads: int = 1,
    ) -> None: ...
    def combine(self, alpha: NDArray[numpy.float64], out: object, threads: int = 1) -> None: ...
    def square(self, alpha: NDArray[numpy.float64]) -> float: ...
    def multiply(self, weights: object, threads: int = 1) -> F64: ...
    def keep(self, kept: NDArray[numpy.bool_]) -> None: ...
    def solve(
        self,
        group: NDArray[numpy.uint32],
        b: NDArray[numpy.float64],
        C: float,
        alpha: NDArray[numpy.float64],
        tolerance: float,
        kappa: float = 1.0,
        max_rounds: int = 10000,
    ) -> SimplexQpResult: ...
    def gram(self) -> F64: ...
    def planes(self) -> tuple[I64, U32, Any]: ...
    @property
    def nbytes(self) -> int: ...

class TokenKernel:
    @property
    def size(self) -> int: ...
    def rows(self, which: NDArray[numpy.uint32]) -> F64: ...
    def block(self, first: NDArray[numpy.uint32], second: NDArray[numpy.uint32]) -> F64: ...

class FeatureKernel(TokenKernel):
    def __init__(
        self,
        kind: str,
        gamma: float,
        coef0: float,
        degree: int,
        n_sparse: int,
        indptr: NDArray[numpy.int64] | None = None,
        indices: NDArray[numpy.uint32] | None = None,
        values: NDArray[numpy.float32] | None = None,
        dense: NDArray[numpy.float64] | None = None,
        values64: NDArray[numpy.float64] | None = None,
    ) -> None: ...
    def rows_of(
        self,
        indptr: NDArray[numpy.int64] | None = None,
        indices: NDArray[numpy.uint32] | None = None,
        values: NDArray[numpy.float32] | None = None,
        dense: NDArray[numpy.float64] | None = None,
        values64: NDArray[numpy.float64] | None = None,
    ) -> F64: ...

class MatrixKernel(TokenKernel):
    def __init__(self, matrix: NDArray[numpy.float64], places: NDArray[numpy.uint32]) -> None: ...

class PythonKernel(TokenKernel):
    def __init__(self, block: object, size: int) -> None: ...

class KernelProblem(Problem):
    def __init__(self, chain: ChainProblem, kernel: TokenKernel, cache_bytes: int) -> None: ...

class SweepResult:
    @property
    def loss(self) -> float: ...
    @property
    def hinge(self) -> float: ...
    @property
    def oracle_calls(self) -> int: ...
    @property
    def violated(self) -> int: ...
    @property
    def interrupted(self) -> bool: ...

class SubgradientOptions:
    def __init__(
        self,
        *,
        lambda_: float = 0.0,
        eta: float = 1.0,
        radius: float = 0.0,
        each: bool = False,
        average: bool = False,
    ) -> None: ...

class Primal:
    def __init__(self, problem: Problem, single: bool = True, rescale: str = "margin") -> None: ...
    def hinge(self, threads: int = 1) -> SweepResult: ...
    def hinge_of(self, order: NDArray[numpy.uint32], threads: int = 1) -> SweepResult: ...
    def exact_hinge(self, threads: int = 1) -> float: ...
    def slacks(self) -> F64: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...
    def sweep(self, threads: int = 1, seconds: float | None = None) -> SweepResult: ...
    def find(self, threads: int = 1, seconds: float | None = None) -> SweepResult: ...
    def remember(self, limit: int) -> None: ...
    def recall(self, threads: int = 1, seconds: float | None = None) -> SweepResult: ...
    def cache(self) -> tuple[U32, U32, U32]: ...
    def restore_cache(
        self,
        example: NDArray[numpy.uint32],
        size: NDArray[numpy.uint32],
        codes: NDArray[numpy.uint32],
    ) -> None: ...
    def shares(self, groups: int = 1, threads: int = 1) -> tuple[F64, I64, U32, Any]: ...
    def cuts(
        self, least: NDArray[numpy.float64], threads: int = 1, seconds: float | None = None
    ) -> tuple[I64, F64, F64, I64, I64, F64, SweepResult]: ...
    def subgradient_pass(
        self,
        order: NDArray[numpy.uint32],
        options: SubgradientOptions,
        done: float = 0.0,
        seconds: float | None = None,
    ) -> SweepResult: ...
    def project(self, radius: float) -> float: ...
    def forget_average(self) -> None: ...
    def written(self) -> None: ...
    def average(self) -> Any: ...
    def average_into(self, out: object, threads: int = 1) -> None: ...
    @property
    def example_weights(self) -> F64: ...
    def solves(self, problem: Problem) -> bool: ...
    @property
    def oracle_error_bound(self) -> float: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def weights(self) -> Any: ...
    @property
    def plane(self) -> Any: ...

class PythonProblem(Problem):
    def __init__(self, problem: object) -> None: ...
    def set_pool(self, pool: object | None) -> None: ...
    @property
    def asked(self) -> Any: ...

class Oracle:
    def __init__(
        self, problem: Problem, slack: str = "linear", rescale: str = "margin"
    ) -> None: ...
    def set_weights(self, w: NDArray[numpy.float64]) -> None: ...
    def find(self, i: int) -> tuple[U32, float, float, float]: ...

class RowProblem(Problem):
    def __init__(
        self,
        above: NDArray[numpy.float64],
        below: NDArray[numpy.float64],
        n_sparse: int,
        indptr: NDArray[numpy.int64] | None = None,
        indices: NDArray[numpy.uint32] | None = None,
        values: NDArray[numpy.float32] | None = None,
        values64: NDArray[numpy.float64] | None = None,
        dense32: NDArray[numpy.float32] | None = None,
        dense64: NDArray[numpy.float64] | None = None,
        example_weight: NDArray[numpy.float64] | None = None,
    ) -> None: ...

class MulticlassProblem(Problem):
    def __init__(
        self,
        n_classes: int,
        n_sparse: int,
        labels: NDArray[numpy.int32],
        indptr: NDArray[numpy.int64] | None = None,
        indices: NDArray[numpy.uint32] | None = None,
        values: NDArray[numpy.float32] | None = None,
        values64: NDArray[numpy.float64] | None = None,
        dense32: NDArray[numpy.float32] | None = None,
        dense64: NDArray[numpy.float64] | None = None,
        cost: NDArray[numpy.float64] | None = None,
        example_weight: NDArray[numpy.float64] | None = None,
    ) -> None: ...
    @overload
    def scores(self, weights: NDArray[numpy.float32], threads: int = 1) -> F64: ...
    @overload
    def scores(self, weights: NDArray[numpy.float64], threads: int = 1) -> F64: ...
    @overload
    def predict(self, weights: NDArray[numpy.float32], threads: int = 1) -> I32: ...
    @overload
    def predict(self, weights: NDArray[numpy.float64], threads: int = 1) -> I32: ...
    @overload
    def own_scores(self, weights: NDArray[numpy.float32], threads: int = 1) -> F64: ...
    @overload
    def own_scores(self, weights: NDArray[numpy.float64], threads: int = 1) -> F64: ...

class ListedProblem(Problem):
    def __init__(
        self,
        n_features: int,
        offsets: NDArray[numpy.int64],
        indptr: NDArray[numpy.int64],
        indices: NDArray[numpy.uint32],
        values: NDArray[numpy.float64],
        loss: NDArray[numpy.float64],
        example_weight: NDArray[numpy.float64] | None = None,
    ) -> None: ...

class TaxonomyProblem(Problem):
    def __init__(
        self,
        n_columns: int,
        begins: NDArray[numpy.int64],
        columns: NDArray[numpy.uint32],
        lambdas: NDArray[numpy.float64],
        n_sparse: int,
        labels: NDArray[numpy.int32],
        indptr: NDArray[numpy.int64] | None = None,
        indices: NDArray[numpy.uint32] | None = None,
        values: NDArray[numpy.float32] | None = None,
        values64: NDArray[numpy.float64] | None = None,
        dense32: NDArray[numpy.float32] | None = None,
        dense64: NDArray[numpy.float64] | None = None,
        cost: NDArray[numpy.float64] | None = None,
        example_weight: NDArray[numpy.float64] | None = None,
    ) -> None: ...
    @overload
    def scores(self, weights: NDArray[numpy.float32], threads: int = 1) -> F64: ...
    @overload
    def scores(self, weights: NDArray[numpy.float64], threads: int = 1) -> F64: ...
    @overload
    def predict(self, weights: NDArray[numpy.float32], threads: int = 1) -> I32: ...
    @overload
    def predict(self, weights: NDArray[numpy.float64], threads: int = 1) -> I32: ...
    @overload
    def own_scores(self, weights: NDArray[numpy.float32], threads: int = 1) -> F64: ...
    @overload
    def own_scores(self, weights: NDArray[numpy.float64], threads: int = 1) -> F64: ...

class AlignmentProblem(Problem):
    def __init__(
        self,
        mode: int,
        free_ends: int,
        loss: int,
        fixed_homolog: bool,
        table: NDArray[numpy.uint32],
        open: int,
        extend: int,
        n_weights: int,
        letters: NDArray[numpy.uint8],
        sequences: NDArray[numpy.int64],
        native: NDArray[numpy.int64],
        candidates_from: NDArray[numpy.int64],
        candidates: NDArray[numpy.int64],
        matches_from: NDArray[numpy.int64],
        matches: NDArray[numpy.int32],
        position_score: int = 0,
        position: NDArray[numpy.float64] | None = None,
        example_weight: NDArray[numpy.float64] | None = None,
    ) -> None: ...
    @overload
    def predict(
        self, weights: NDArray[numpy.float32], threads: int = 1
    ) -> tuple[I32, I64, I32, F64]: ...
    @overload
    def predict(
        self, weights: NDArray[numpy.float64], threads: int = 1
    ) -> tuple[I32, I64, I32, F64]: ...
    @overload
    def score(self, weights: NDArray[numpy.float32], threads: int = 1) -> F64: ...
    @overload
    def score(self, weights: NDArray[numpy.float64], threads: int = 1) -> F64: ...
    @overload
    def candidate_scores(self, weights: NDArray[numpy.float32], threads: int = 1) -> F64: ...
    @overload
    def candidate_scores(self, weights: NDArray[numpy.float64], threads: int = 1) -> F64: ...
    @overload
    def augmented(
        self, weights: NDArray[numpy.float32], scale: float = 1.0
    ) -> tuple[I32, I64, I32, F64]: ...
    @overload
    def augmented(
        self, weights: NDArray[numpy.float64], scale: float = 1.0
    ) -> tuple[I32, I64, I32, F64]: ...

def checksum(data: Bytes, mapped: bool = False) -> int: ...

class Columns:
    @staticmethod
    def parse(
        data: Bytes,
        separator: str = "auto",
        comment: str = "",
        n_columns: int = 0,
        first_line: int = 1,
    ) -> Columns: ...
    @staticmethod
    def from_rows(X: object, n_columns: int = 0) -> Columns: ...
    @property
    def n_tokens(self) -> int: ...
    @property
    def n_sequences(self) -> int: ...
    @property
    def n_columns(self) -> int: ...
    @property
    def n_lines(self) -> int: ...
    @property
    def separator(self) -> str: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def offsets(self) -> I64: ...
    def cell(self, token: int, column: int) -> str: ...
    def line_of(self, token: int) -> int: ...
    def codes(self, column: int) -> tuple[I32, list[str]]: ...
    def rows(self, sequence: int, columns: Sequence[int]) -> list[list[str]]: ...
    def with_column(
        self, codes: NDArray[numpy.int32], names: Sequence[str], comment: str = ""
    ) -> bytes: ...

class FeatureIndex:
    def __init__(self, keys: NDArray[numpy.uint64]) -> None: ...
    def __len__(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...

class TemplateProgram:
    def __init__(self, lines: list[Any]) -> None: ...
    def __len__(self) -> int: ...
    @property
    def n_columns(self) -> int: ...
    def learn(
        self, columns: Columns, which: Sequence[int], min_count: int = 1, threads: int = 1
    ) -> tuple[I64, U32, U64, U32, U32]: ...
    def known(
        self, columns: Columns, which: Sequence[int], index: FeatureIndex, threads: int = 1
    ) -> tuple[I64, U32]: ...
    def hashed(
        self, columns: Columns, which: Sequence[int], bits: int, threads: int = 1
    ) -> tuple[I64, U32]: ...
    def names(
        self,
        columns: Columns,
        which: Sequence[int],
        token: NDArray[numpy.uint32],
        line: NDArray[numpy.uint32],
    ) -> tuple[bytes, I64]: ...
    def learner(self) -> FeatureLearner: ...
    def named_rows(
        self, columns: Columns, which: Sequence[int], sequence: int
    ) -> list[list[str]]: ...

class FeatureLearner:
    def add(self, columns: Columns, which: Sequence[int], threads: int = 1) -> tuple[Any, ...]: ...
    def counts(self) -> Any: ...
    @property
    def memory_bytes(self) -> int: ...
    def __len__(self) -> int: ...

unicode_version: str = "14.0.0"

def word_function(name: str, text: str, n: int = 0) -> str | None: ...
def regex_match(pattern: str, text: str) -> tuple[int, int] | None: ...
def char_class(cp: int) -> str: ...
def decode_utf8(data: bytes) -> list[int]: ...
