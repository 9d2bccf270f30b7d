"""Windows: planes in a file, certificates, checkpoints and the budget of memory."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from maxmargin import ElasticNet, SequenceTagger
from maxmargin.cli.main import main
from maxmargin.errors import ConvergenceWarning, ModelFormatError, NotCompatibleError
from maxmargin.io import container
from maxmargin.solvers import SDM, solve
from maxmargin.streams import EncodedCorpus, budget, encode, plan_windows
from maxmargin.streams.parts import GrowingArray
from maxmargin.structures.chain import Chain
from stream_data import ROOM, column_text, in_memory, sentences, tiny_windows


@pytest.mark.parametrize("solver", ["sdm", "sap", "nslack", "dualcoordinate"])
def test_planes_in_a_file_change_no_bit(corpus, solver):
    regularizer = ElasticNet(l1_ratio=0.5) if solver == "sap" else None
    models = [
        SequenceTagger(random_state=0, solver=solver, regularizer=regularizer, gap=1e-3).fit(
            tiny_windows(corpus, limit=limit)
        )
        for limit in (0, 2000, 10**9)
    ]
    for model in models[1:]:
        assert np.array_equal(models[0].weights_, model.weights_)
        assert models[0].certificate_ == model.certificate_
    assert solver == "nslack" or models[0].certificate_.gap <= 1e-3  # which has its own criterion


def test_planes_do_go_to_the_file(corpus):
    chain = Chain()
    batch, codes = chain.learn(tiny_windows(corpus), None)
    result = solve(chain.encoded_problem(batch, codes), SDM(), C=0.1, gap=0.5, random_state=0)
    size = result.engine.window_size()
    assert size["windows"] == 20
    assert size["away"] >= 10
    assert size["file_bytes"] > 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("slack", ["linear", "quadratic"])
def test_the_certificate_of_windows_is_that_of_the_model(corpus, columns, dtype, slack):
    """Recomputed from the weights, on the data in memory; the optimum is that of memory."""
    tagger = SequenceTagger(solver=SDM(slack=slack), random_state=0, dtype=dtype, gap=1e-4)
    streamed = tagger.fit(tiny_windows(corpus))
    direct = in_memory(columns, template="pos", solver=SDM(slack=slack), dtype=dtype, gap=1e-4)
    engine = solve_engine(direct, columns, dtype, slack)
    primal = engine.primal_of(streamed.weights_)
    assert primal == pytest.approx(streamed.certificate_.primal, rel=1e-6)
    assert streamed.certificate_.dual <= direct.certificate_.primal * (1 + 1e-6)
    assert direct.certificate_.dual <= streamed.certificate_.primal * (1 + 1e-6)
    assert streamed.certificate_.gap <= 1e-4


def solve_engine(tagger, path, dtype, slack):
    from maxmargin.io.columns import read_columns

    X, labels = read_columns(path).labelled()
    problem = tagger.structure_.make_problem(X, labels)
    return solve(problem, SDM(slack=slack), C=0.1, dtype=dtype, max_passes=1, warn=False).engine


def test_another_order_gives_a_certificate_as_good(tmp_path):
    data = sentences(80)
    gaps = []
    for seed in (None, 1, 2):
        if seed is not None:
            random.Random(seed).shuffle(data)
        encode([(list(map(list, w)), t) for w, t in data], tmp_path / "d.mme")
        model = SequenceTagger(random_state=0, gap=1e-3).fit(
            tiny_windows(EncodedCorpus.open(tmp_path / "d.mme"))
        )
        gaps.append((model.certificate_.gap, model.certificate_.primal))
    assert all(gap <= 1e-3 for gap, _ in gaps)
    assert np.ptp([primal for _, primal in gaps]) <= 3e-3 * gaps[0][1]


def test_more_passes_narrow_the_certificate(corpus):
    gaps = []
    for passes in (1, 5, 40):
        model = SequenceTagger(random_state=0, gap=1e-6, max_passes=passes)
        with pytest.warns(ConvergenceWarning) if passes < 40 else _nothing():
            model.fit(tiny_windows(corpus))
        gaps.append(model.certificate_.gap)
        assert model.certificate_.dual <= model.certificate_.primal
    assert 1 > gaps[0] > gaps[1] > gaps[2]


def _nothing():
    return warnings.catch_warnings(action="ignore")


@pytest.mark.parametrize("solver", ["bcfw", "oneslack", "subgradient", "interiorpoint"])
def test_solvers_that_need_everything_are_refused(corpus, solver):
    with pytest.raises(NotCompatibleError, match="windows"):
        SequenceTagger(solver=solver).fit(tiny_windows(corpus))
    SequenceTagger(solver=solver, max_passes=5, gap=0.99).fit(corpus)  # mapped, but all at once


def test_threads_change_nothing(corpus):
    one, two = (SequenceTagger(random_state=0, n_jobs=n).fit(tiny_windows(corpus)) for n in (1, 3))
    assert np.array_equal(one.weights_, two.weights_)


def test_grids_reuse_the_windows(corpus, columns, tmp_path, capsys):
    valid = ["--valid", str(columns), "--grid", "C=0.01,0.1"]
    args = ["train", corpus.path, "-m", str(tmp_path / "m.mm"), *valid, "--json", "-q"]
    assert main([*args, "--memory", ROOM]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert len(found["grid"]) == 2
    assert found["n_windows"] == 1  # small data are worked on as if they were in memory


@pytest.mark.parametrize("limit", [0, 10**9])
def test_a_checkpoint_of_windows_resumes_bit_for_bit(corpus, tmp_path, limit):
    windows = tiny_windows(corpus, limit=limit)
    whole = SequenceTagger(random_state=0, gap=1e-4).fit(windows)
    for stop in (1, 4, 11):
        path = tmp_path / f"{stop}.ckpt"
        part = SequenceTagger(random_state=0, gap=1e-4, max_passes=stop, checkpoint=path)
        with pytest.warns(ConvergenceWarning):
            part.fit(windows)
        rest = SequenceTagger(random_state=0, gap=1e-4, checkpoint=path, resume=True).fit(windows)
        assert np.array_equal(whole.weights_, rest.weights_)
        assert whole.certificate_ == rest.certificate_
    with pytest.raises(ModelFormatError, match=r"windows is .* they follow from the memory budget"):
        SequenceTagger(random_state=0, gap=1e-4, checkpoint=path, resume=True).fit(
            tiny_windows(corpus, 4)
        )


def test_checkpoints_of_damaged_windows(corpus, tmp_path):
    path = tmp_path / "c.ckpt"
    windows = tiny_windows(corpus)
    with pytest.warns(ConvergenceWarning):
        SequenceTagger(random_state=0, gap=1e-6, max_passes=3, checkpoint=path).fit(windows)
    with np.load(path) as stored:
        arrays = dict(stored)
    big = max((k for k in arrays if k.startswith("engine_window_")), key=lambda k: arrays[k].size)
    for change in ("cut", "flip", "gone"):
        changed = dict(arrays)
        if change == "gone":
            del changed[big]
        else:
            changed[big] = arrays[big][:-3] if change == "cut" else arrays[big] ^ 0x5A
        with path.open("wb") as file:
            np.savez(file, **changed)
        with pytest.raises(ModelFormatError):
            SequenceTagger(random_state=0, gap=1e-6, checkpoint=path, resume=True).fit(windows)


@pytest.mark.slow
def test_a_killed_stream_resumes_to_the_same_model(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text(column_text(sentences(3000, longest=12)), encoding="utf-8")
    encode(path, tmp_path / "d.mme", template="pos")
    program = (
        "import sys\nfrom maxmargin import SequenceTagger\n"
        "import maxmargin.solvers.driver as driver\n"
        "from maxmargin.streams import EncodedCorpus\n"
        "from maxmargin.features.batch import WindowPlan\n"
        "import functools, tempfile, maxmargin.estimators.structural as structural\n"
        "structural.solve = functools.partial(driver.solve, checkpoint_seconds=0.0)\n"
        "path, model, resume = sys.argv[1:]\n"
        "c = EncodedCorpus.open(path)\nends = (*range(16, c.n_sequences, 16), c.n_sequences)\n"
        "c = c.in_windows(WindowPlan(ends, 100_000, tempfile.gettempdir()))\n"
        "t = SequenceTagger(random_state=0, gap=1e-4, C=1.0, max_passes=60, verbose=2,\n"
        "    checkpoint=model + '.ckpt', resume=resume == 'yes')\n"
        "import warnings; warnings.simplefilter('ignore')\nt.fit(c).save(model)\n"
    )

    def start(model, resume):
        command = [
            sys.executable,
            "-c",
            program,
            str(tmp_path / "d.mme"),
            str(tmp_path / model),
            resume,
        ]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    assert start("whole.mm", "no").communicate()[1].count("pass") >= 20
    victim = start("killed.mm", "no")
    for _ in range(12):
        victim.stderr.readline()
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    assert not (tmp_path / "killed.mm").exists()
    survivor = start("killed.mm", "yes")
    assert "pass    1 " not in survivor.communicate()[1]
    one, two = (container.read_container(tmp_path / name) for name in ("whole.mm", "killed.mm"))
    assert one.checksums == two.checksums


@pytest.mark.slow
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer takes more")
def test_the_budget_is_kept(tmp_path):
    """The process's own peak, with planes and data several times the budget's share."""
    path = tmp_path / "train.tsv"
    rng = random.Random(0)
    with path.open("w") as file:
        for words, tags in sentences(30_000, longest=14):
            file.writelines(
                f"{w}{rng.randrange(3000)}\t{w[:1]}\t{t}\n"
                for w, t in zip(words, tags, strict=True)
            )
            file.write("\n")
    base = run_cli(
        "encode", str(path), "-o", str(tmp_path / "d.mme"), "--template", "pos", "--hash-bits", "15"
    )
    data = (tmp_path / "d.mme").stat().st_size
    budget = 100_000_000
    found = run_cli(
        "train",
        str(tmp_path / "d.mme"),
        "-m",
        str(tmp_path / "m.mm"),
        "--memory",
        str(budget),
        "--max-passes",
        "4",
    )
    weights = 16 * 8 * 2**15
    assert found["n_windows"] > 100
    assert data < found["peak_rss_mb"] * 1e6 * 10
    assert found["peak_rss_mb"] * 1e6 < 1.15 * budget + weights
    assert base["peak_rss_mb"] * 1e6 < budget
    assert found["gap"] < 1


def run_cli(*arguments):
    command = [sys.executable, "-m", "maxmargin", *arguments, "--json", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_budget_that_is_too_small_says_what_is_needed(corpus, tmp_path, capsys):
    with pytest.raises(MemoryError, match=r"too small; these data need [0-9.]+ [MG]B"):
        plan_windows(corpus.batch, 1_000_000)
    assert plan_windows(corpus.batch, 10**10) is None
    assert main(["train", corpus.path, "-m", str(tmp_path / "m.mm"), "--memory", "1M"]) == 2
    assert "these data need" in capsys.readouterr().err
    assert not (tmp_path / "m.mm").exists()


def test_windows_cover_all_sequences(corpus):
    plan = plan_windows(corpus.batch, budget.LEAST + 10**6 + 80 * 60, base=10**6)
    assert plan is None or plan.ends[-1] == 60
    lengths = corpus.batch.lengths
    assert lengths.sum() == corpus.n_tokens


def test_a_list_of_features_beyond_the_budget(columns, tmp_path):
    with pytest.raises(MemoryError, match=r"list of features takes .* hash"):
        encode(columns, tmp_path / "d.mme", template="pos", memory=1000)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["train.tsv"]


def test_a_full_disk_is_a_clear_error_and_leaves_nothing(columns, tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    part = GrowingArray(np.int64, str(tmp_path))
    part._file.close()
    part._file = Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115
    with pytest.raises(OSError, match="No space left") as caught:
        part.append(np.zeros(10))
    assert caught.value.filename == str(tmp_path)
    part._file.close()


def test_a_full_disk_of_planes(corpus, monkeypatch, tmp_path):
    from maxmargin.solvers import windows

    monkeypatch.setattr(
        windows.tempfile,
        "TemporaryFile",
        lambda **_: Path("/dev/full").open("r+b", buffering=0),  # noqa: SIM115
    )
    with pytest.raises(OSError, match="No space left"):
        SequenceTagger(random_state=0).fit(tiny_windows(corpus))


def test_spill_directories(columns, tmp_path):
    with pytest.raises(OSError, match="No such file"):
        SequenceTagger(template="pos").fit_stream(columns, spill=tmp_path / "missing")
    spill = tmp_path / "spill"
    spill.mkdir()
    model = SequenceTagger(template="pos", random_state=0).fit_stream(
        columns, memory=ROOM, spill=spill
    )
    assert list(spill.iterdir()) == []
    assert np.array_equal(model.weights_, in_memory(columns, template="pos").weights_)
