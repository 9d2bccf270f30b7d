"""Trainings on a real cluster: worker processes on this machine."""

from __future__ import annotations

import importlib.metadata
import os
import re
import signal
import threading

import numpy as np
import pytest
from sklearn.base import clone

from maxmargin import ElasticNet, NotCompatibleError, SequenceTagger, Structure
from maxmargin.distributed import DaskSequenceTagger, DaskStructuralSVM
from maxmargin.distributed.cluster import (
    DaskShares,
    check_workers,
    local_client,
    require_client,
    require_dask,
)
from maxmargin.distributed.data import token_pairs
from maxmargin.distributed.group import SharesLostError
from maxmargin.errors import ClusterError, ConvergenceWarning

pytest.importorskip("distributed", exc_type=ImportError)

db = pytest.importorskip("dask.bag")

KINDS = {
    "D": ["the", "a"],
    "N": ["dog", "cat", "bird", "dogs", "cats", "birds"],
    "V": ["barks", "sleeps", "sings", "bark", "sleep", "sing"],
    "R": ["loudly", "well"],
}
TAGS = {word: tag for tag, words in KINDS.items() for word in words}
WORDS = list(TAGS)

#: Seconds after which a test of this file counts as hanging.
HANGS = 180


@pytest.fixture(autouse=True)
def no_test_hangs():
    """Turn a hang into a failure."""

    def fail(number, frame):
        pytest.fail(f"still running after {HANGS} s")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(HANGS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def sentences(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words = [WORDS[k] for k in rng.integers(0, len(WORDS), rng.integers(2, 7))]
        X.append([{"w": word, "end": word[-1]} for word in words])
        y.append(["X" if rng.random() < 0.05 else TAGS[word] for word in words])
    return X, y


@pytest.fixture(scope="module")
def client():
    with local_client(2) as found:
        yield found


def bag_of(X, y, npartitions=4):
    return db.from_sequence(list(zip(X, y, strict=True)), npartitions=npartitions)


def certified(tagger, X, y, C, regularizer=None):
    """Recompute the primal of a model in one process."""
    from maxmargin.estimators.training import training_of

    own = SequenceTagger(C=C, regularizer=regularizer, labels=list(tagger.classes_))
    training = training_of(own, X, y)
    chain = tagger.model_.structure_
    problem = chain.make_problem(X, y)
    engine = training.solver.start(problem, C, training.bound.regularizer, True)
    return engine.primal_of(np.array(tagger.weights_))


@pytest.mark.slow
@pytest.mark.parametrize("regularizer", [None, ElasticNet(l1_ratio=0.3)])
def test_a_bag_gives_the_model_of_one_process(client, tmp_path, regularizer):
    X, y = sentences()
    options = {"C": 0.5, "gap": 1e-3, "random_state": 0, "regularizer": regularizer}
    tagger = DaskSequenceTagger(client=client, **options).fit(bag_of(X, y))
    local = SequenceTagger(**options).fit(X, y)
    assert tagger.converged_
    assert tagger.certificate_.gap <= 1e-3
    assert tagger.n_shares_ == 2
    assert tagger.certificate_.n_examples == 60
    assert tagger.certificate_.primal == pytest.approx(local.certificate_.primal, rel=2e-3)
    assert certified(tagger, X, y, 0.5, regularizer) == pytest.approx(
        tagger.certificate_.primal, rel=1e-9
    )
    assert list(tagger.classes_) == list(local.classes_)
    assert sorted(tagger.get_feature_names_out()) == sorted(local.get_feature_names_out())
    assert tagger.score(X, y) == pytest.approx(local.score(X, y), abs=0.02)
    assert sum(r.bytes_up for r in tagger.history_) > 0
    tagger.save(tmp_path / "model.mm")
    loaded = SequenceTagger.load(tmp_path / "model.mm")
    assert list(loaded.predict(X)) == list(tagger.predict(X))
    assert isinstance(tagger.to_local(), SequenceTagger)


@pytest.mark.slow
def test_a_label_and_features_that_one_worker_has_seen(client):
    X, y = sentences(40)
    X.append([{"w": "unheard"}])
    y.append(["RARE"])
    tagger = DaskSequenceTagger(client=client, C=1.0, gap=0.01).fit(bag_of(X, y))
    assert "RARE" in tagger.classes_
    assert tagger.predict([[{"w": "unheard"}]]).tolist() == [["RARE"]]
    rare = DaskSequenceTagger(client=client, C=1.0, gap=0.01, min_count=2).fit(bag_of(X, y))
    local = SequenceTagger(C=1.0, gap=0.01, min_count=2).fit(X, y)
    assert sorted(rare.get_feature_names_out()) == sorted(local.get_feature_names_out())
    assert "w:unheard" not in rare.get_feature_names_out()
    hashed = DaskSequenceTagger(client=client, C=1.0, gap=0.01, hash_bits=10).fit(bag_of(X, y))
    assert hashed.certificate_.gap <= 0.01
    assert hashed.score(X, y) > 0.9


@pytest.mark.slow
def test_files_of_which_each_worker_reads_its_own(client, tmp_path):
    X, y = sentences(30)
    files = []
    for k in range(3):
        files.append(tmp_path / f"part{k}.tsv")
        text = "".join(
            "".join(f"{t['w']}\t{label}\n" for t, label in zip(x, labels, strict=True)) + "\n"
            for x, labels in zip(X[k::3], y[k::3], strict=True)
        )
        files[-1].write_text(text)
    options = {"C": 0.5, "gap": 1e-3, "template": "words", "random_state": 0}
    tagger = DaskSequenceTagger(client=client, **options).fit(files)
    rows = [[[t["w"]] for t in x] for k in range(3) for x in X[k::3]]
    local = SequenceTagger(**options).fit(rows, [labels for k in range(3) for labels in y[k::3]])
    assert tagger.certificate_.primal == pytest.approx(local.certificate_.primal, rel=2e-3)
    assert sorted(tagger.get_feature_names_out()) == sorted(local.get_feature_names_out())
    files[1].write_text("dogs\tN\nbark\n\n")
    with pytest.raises(ValueError, match=r"part1\.tsv"):
        DaskSequenceTagger(client=client, **options).fit(files)
    with pytest.raises(FileNotFoundError, match="missing"):
        DaskSequenceTagger(client=client, **options).fit([tmp_path / "missing.tsv"])


@pytest.mark.slow
def test_a_data_frame_of_tokens(client):
    pandas = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    X, y = sentences(20)
    rows = [
        (i, token["w"], token["end"], label)
        for i, (x, labels) in enumerate(zip(X, y, strict=True))
        for token, label in zip(x, labels, strict=True)
    ]
    frame = pandas.DataFrame(rows, columns=["sentence", "w", "end", "tag"])
    assert token_pairs(frame, "sentence", "tag", rows=False) == list(zip(X, y, strict=True))
    cut = int(np.flatnonzero(frame["sentence"] == 10)[0])
    ddf = dd.concat(
        [dd.from_pandas(frame[:cut], npartitions=1), dd.from_pandas(frame[cut:], npartitions=1)]
    )
    tagger = DaskSequenceTagger(client=client, C=0.5, gap=1e-3, random_state=0)
    tagger.fit(ddf, sequence="sentence", label="tag")
    local = SequenceTagger(C=0.5, gap=1e-3, random_state=0).fit(X, y)
    assert tagger.certificate_.primal == pytest.approx(local.certificate_.primal, rel=2e-3)
    with pytest.raises(ValueError, match="no column 'label'"):
        tagger.fit(ddf, sequence="sentence", label="label")
    with pytest.raises(ValueError, match="names of two columns"):
        tagger.fit(ddf)
    torn = dd.concat(
        [
            dd.from_pandas(frame[: cut + 1], npartitions=1),
            dd.from_pandas(frame[cut + 1 :], npartitions=1),
        ]
    )
    with pytest.raises(ValueError, match="sequence '10' is in partitions 0 and 1"):
        tagger.fit(torn, sequence="sentence", label="tag")


class Points(Structure):
    """Classes of points in the plane."""

    n_features = 6

    def joint_feature(self, x, y):
        return np.kron(np.eye(3)[y], x)

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def outputs(self, x):
        return range(3)


class Locked(Points):
    """It cannot be pickled."""

    def __init__(self):
        self.lock = threading.Lock()

    def __deepcopy__(self, memo):
        return Locked()


def points(n=30):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return list(X), [int(k) for k in np.argmax(X @ rng.normal(size=(2, 3)), axis=1)]


@pytest.mark.slow
def test_a_structure_of_ones_own(client):
    from maxmargin import StructuralSVM

    X, y = points()
    model = DaskStructuralSVM(Points(), client=client, C=1.0, gap=1e-3).fit(bag_of(X, y, 3))
    local = StructuralSVM(Points(), C=1.0, gap=1e-4).fit(X, y)
    assert model.certificate_.gap <= 1e-3
    assert model.certificate_.primal == pytest.approx(local.certificate_.primal, rel=2e-3)
    assert model.score(X, y) == pytest.approx(local.score(X, y), abs=0.05)
    with pytest.raises(NotCompatibleError, match=r"cannot be pickled: TypeError: .*lock"):
        DaskStructuralSVM(Locked(), client=client, C=1.0).fit(bag_of(X, y, 3))


@pytest.mark.slow
def test_empty_partitions_of_any_structure_are_left_out(client):
    X, y = points()
    empty = bag_of(X, y, 1).filter(lambda pair: False)
    bag = db.concat([empty, bag_of(X, y, 2), empty])
    model = DaskStructuralSVM(Points(), client=client, C=1.0).fit(bag)
    assert model.certificate_.gap <= 0.01
    assert model.certificate_.n_examples == len(X)


def kill_one(client):
    """Kill a worker process, which its nanny replaces."""
    pids = client.run(os.getpid)
    os.kill(sorted(pids.values())[0], signal.SIGKILL)


@pytest.mark.slow
def test_a_worker_that_dies_before_its_result_is_fetched_is_lost():
    """Dask would make the task anew on a worker that is not there, and wait for ever."""
    from distributed import wait

    with local_client(2) as client:
        workers = check_workers(client)
        shares = DaskShares(client, abs, [(1,), (2,)], workers)
        told = client.submit(os.getpid, workers=[workers[0]], pure=False)
        futures = {0: told, 1: client.submit(os.getpid, workers=[workers[1]], pure=False)}
        wait(list(futures.values()))
        os.kill(told.result(), signal.SIGKILL)
        with pytest.raises(SharesLostError) as lost:
            shares._gathered(futures)
        assert lost.value.shares == [0]


@pytest.mark.slow
@pytest.mark.parametrize("reports", [0.0, 1e9])
def test_a_worker_that_is_killed_is_replaced(reports):
    X, y = sentences(80, seed=1)
    killed = []
    with local_client(2) as client:

        def kill(record):
            if record.n_pass == 4:
                killed.append(record.dual)
                kill_one(client)

        tagger = DaskSequenceTagger(
            client=client, C=0.5, gap=1e-3, random_state=0, callbacks=[kill],
            checkpoint_seconds=reports,
        )
        tagger.fit(bag_of(X, y))
    assert len(killed) == 1
    assert tagger.n_faults_ >= 1
    assert tagger.certificate_.gap <= 1e-3
    assert certified(tagger, X, y, 0.5) == pytest.approx(tagger.certificate_.primal, rel=1e-9)
    whole = SequenceTagger(C=0.5, gap=1e-4, dtype="float64").fit(X, y).certificate_
    assert all(record.dual <= whole.primal * (1 + 1e-4) for record in tagger.history_)
    assert any(record.recovered for record in tagger.history_)


@pytest.mark.slow
def test_a_scheduler_that_goes_away_leaves_a_checkpoint(tmp_path, monkeypatch):
    from maxmargin.distributed import cluster as module

    monkeypatch.setattr(module, "PATIENCE", 3.0)
    distributed = require_dask()
    X, y = sentences(60, seed=2)
    file = tmp_path / "run.npz"
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    client = distributed.Client(cluster, timeout="3s")

    def leave(record):
        if record.n_pass == 5:
            cluster.close()

    options = {"C": 0.5, "gap": 1e-4, "random_state": 0, "checkpoint": file}
    tagger = DaskSequenceTagger(
        client=client, callbacks=[leave], checkpoint_seconds=0.0, **options
    )
    with pytest.raises(ClusterError, match=r"run\.npz has the last report; go on with resume=True"):
        tagger.fit(bag_of(X, y))
    client.close()
    with local_client(1) as other:  # another number of workers
        again = DaskSequenceTagger(client=other, resume=True, **options).fit(bag_of(X, y))
    assert again.n_shares_ == 1
    assert again.certificate_.gap <= 1e-4
    assert len(again.history_) > 4
    with pytest.raises(ClusterError, match="client is closed"):
        require_client(client)
    with pytest.raises(ClusterError, match="client is closed"):
        DaskSequenceTagger(client=client).fit(bag_of(X, y))


@pytest.mark.slow
def test_bad_input_is_told(client, monkeypatch):
    X, y = sentences(10)
    with pytest.raises(TypeError, match="expected a dask bag"):
        DaskSequenceTagger(client=client).fit(12)
    with pytest.raises(TypeError, match="expected a distributed"):
        DaskSequenceTagger(client="tcp://here").fit(bag_of(X, y))
    with pytest.raises(ValueError, match="all partitions are empty"):
        DaskSequenceTagger(client=client).fit(db.from_sequence([], npartitions=1))
    empty = bag_of(X, y, 1).filter(lambda pair: False)
    gaps = db.concat([bag_of(X, y, 2), empty, bag_of(X, y, 1)])
    assert DaskSequenceTagger(client=client, C=0.5).fit(gaps).certificate_.gap <= 0.01
    with pytest.raises(TypeError, match="pair"):
        DaskSequenceTagger(client=client).fit(db.from_sequence([1, 2, 3], npartitions=1))
    with pytest.raises(NotCompatibleError, match="automatic schedule"):
        DaskSequenceTagger(client=client, solver="bcfw").fit(bag_of(X, y))
    with pytest.raises(NotCompatibleError, match="kernel='rbf'"):
        DaskSequenceTagger(client=client, kernel="rbf").fit(bag_of(X, y))
    with pytest.warns(ConvergenceWarning, match="max_rounds = 1"):
        DaskSequenceTagger(client=client, gap=0.0, max_passes=1).fit(bag_of(X, y))


@pytest.mark.slow
def test_workers_with_another_version_or_none_are_named(client, monkeypatch):
    from maxmargin.distributed import cluster as module

    assert len(check_workers(client)) == 2
    own = importlib.metadata.version("maxmargin")
    monkeypatch.setattr(module, "own_version", lambda: "9.9")
    told = rf"worker tcp://\S+ has maxmargin {re.escape(own)}, and this is 9\.9"
    with pytest.raises(ClusterError, match=told):
        check_workers(client)
    monkeypatch.setattr(module, "PACKAGE", "maxmargin-is-not-there")
    told = r"worker tcp://\S+ has no maxmargin; install maxmargin 9\.9 there"
    with pytest.raises(ClusterError, match=told):
        check_workers(client)


def test_a_worker_that_dies_while_it_is_asked_is_none():
    own = importlib.metadata.version("maxmargin")
    answers = [
        {"tcp://a:1": ConnectionResetError("gone"), "tcp://b:1": own},
        {"tcp://b:1": own},
        {"tcp://b:1": ConnectionResetError("always")},
    ]

    class Client:
        def nthreads(self):
            return {"tcp://b:1": 1}

        def run(self, *args, on_error):
            return answers.pop(0) if len(answers) > 1 else answers[0]

    assert check_workers(Client(), 5.0) == ["tcp://b:1"]
    with pytest.raises(ClusterError, match="tcp://b:1 does not answer"):
        check_workers(Client(), 0.0)


def test_without_dask_the_extra_is_named(monkeypatch):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"maxmargin\[dask\]"):
        require_dask()


def test_parameters():
    tagger = DaskSequenceTagger(C=0.3, n_shares=4)
    assert tagger.get_params()["C"] == 0.3
    assert clone(tagger).get_params()["n_shares"] == 4
    assert tagger.set_params(gap=0.5, aggregation="safe").get_params()["gap"] == 0.5
    with pytest.raises(ValueError, match="C_"):
        tagger.set_params(C_=1)
    with pytest.raises(AttributeError):
        tagger.weights_  # noqa: B018
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        tagger.predict([])
