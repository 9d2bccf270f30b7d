"""Encoded files and trainings from them: the same models as from memory, whatever the budget."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from maxmargin import SequenceTagger
from maxmargin.cli.main import main
from maxmargin.errors import FileFormatError, ModelFormatError, NotCompatibleError
from maxmargin.features.batch import WindowPlan
from maxmargin.io import container
from maxmargin.solvers import SDM, solve
from maxmargin.streams import EncodedCorpus, encode, plan_windows, temporary_corpus
from maxmargin.structures.chain import Chain

WORDS = ["dogs", "cats", "bark", "sleep", "the", "a", "run", "old", "red", "Über"]


def sentences(n=60, seed=0, longest=9):
    rng = random.Random(seed)
    out = []
    for _ in range(n):
        words = [
            rng.choice(WORDS) + rng.choice(["", "", "x", "y"])
            for _ in range(rng.randint(1, longest))
        ]
        tags = [("N" if w[0] in "dc" else "V" if w[0] in "bsr" else "D") for w in words]
        tags = [t if rng.random() > 0.1 else rng.choice("NVD") for t in tags]
        out.append((words, tags))
    return out


def column_text(data):
    return "".join(
        "".join(f"{w}\t{w[:1]}\t{t}\n" for w, t in zip(*s, strict=True)) + "\n" for s in data
    )


@pytest.fixture
def columns(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text(column_text(sentences()), encoding="utf-8")
    return path


def in_memory(path, **params):
    return SequenceTagger.from_columns(path, random_state=0, **params)


def tiny_windows(corpus, size=3, limit=0):
    n = corpus.n_sequences
    return corpus.in_windows(WindowPlan((*range(size, n, size), n), limit, "/tmp"))


# --- encoded files: the same model -----------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"min_count": 2}, {"min_count": 3}, {"hash_bits": 8}])
@pytest.mark.parametrize("template", ["words", "pos"])
def test_an_encoded_file_gives_the_model_of_its_data(columns, tmp_path, options, template):
    summary = encode(columns, tmp_path / "d.mme", template=template, **options)
    corpus = EncodedCorpus.open(tmp_path / "d.mme")
    assert summary.n_sequences == corpus.n_sequences == 60
    direct = in_memory(columns, template=template, **options)
    again = SequenceTagger(random_state=0).fit(corpus)
    assert np.array_equal(direct.weights_, again.weights_)
    assert direct.structure_.labels_ == again.structure_.labels_
    assert direct.certificate_ == again.certificate_
    direct.save(tmp_path / "a.mm")
    again.save(tmp_path / "b.mm")
    one, two = (container.read_container(tmp_path / name) for name in ("a.mm", "b.mm"))
    assert one.checksums == two.checksums  # names, fingerprints and weights


@pytest.mark.parametrize("piece_bytes", [1, 40, 1000])
def test_pieces_do_not_change_the_file(columns, tmp_path, piece_bytes):
    from maxmargin.streams.sources import ColumnFile

    encode(columns, tmp_path / "whole.mme", template="pos", min_count=2)
    source = ColumnFile([columns], piece_bytes=piece_bytes)
    encode(source, tmp_path / "pieces.mme", template="pos", min_count=2, threads=2)
    assert (tmp_path / "whole.mme").read_bytes() == (tmp_path / "pieces.mme").read_bytes()


def test_gzip_several_files_and_files_that_are_open(columns, tmp_path):
    text = columns.read_bytes()
    middle = text.index(b"\n\n", len(text) // 2) + 2
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(text[:middle]))
    (tmp_path / "b.tsv").write_bytes(text[middle:])
    encode(columns, tmp_path / "d.mme")
    encode([tmp_path / "a.tsv.gz", tmp_path / "b.tsv"], tmp_path / "e.mme")
    encode(io.BytesIO(text), tmp_path / "f.mme")
    hashes = {EncodedCorpus.open(tmp_path / f"{k}.mme").batch.mapped.hash for k in "def"}
    assert len(hashes) == 1


def test_pair_features_and_bags_of_words(columns, tmp_path):
    template = tmp_path / "t.txt"
    template.write_text("U:%x[-1,0]\nU:%x[1,0]\nU2:%x[0,0]\nB:%x[0,1]\nB\n")
    encode(columns, tmp_path / "d.mme", template=template, min_count=2)
    direct = in_memory(columns, template=template, min_count=2)
    again = SequenceTagger(random_state=0).fit(EncodedCorpus.open(tmp_path / "d.mme"))
    assert np.array_equal(direct.weights_, again.weights_)
    assert direct.structure_.encoder.pair_names() == again.structure_.encoder.pair_names()
    assert list(direct.get_feature_names_out()) == list(again.get_feature_names_out())


def objects(kind):
    rng = np.random.default_rng(0)
    data = sentences(40)
    y = [tags for _, tags in data]
    dense = [rng.normal(size=(len(tags), 3)) for tags in y]
    strings = [[{"w": w, "len": float(len(w)), "first": w[0]} for w in words] for words, _ in data]
    X = {"strings": strings, "dense": dense}.get(kind)
    if kind == "strings+dense":
        X = list(zip(strings, dense, strict=True))
    if kind == "lists":
        X = [[[w, w[:1]] for w in words] for words, _ in data]
    if kind == "sparse":
        import scipy.sparse

        X = [scipy.sparse.csr_array(np.abs(d) > 1) * 1.5 for d in dense]
    return X, y


@pytest.mark.parametrize("kind", ["strings", "dense", "strings+dense", "lists", "sparse"])
def test_a_stream_of_python_objects(kind):
    X, y = objects(kind)
    direct = SequenceTagger(random_state=0).fit(X, y)
    streamed = SequenceTagger(random_state=0).fit_stream(lambda: zip(X, y, strict=True))
    assert np.array_equal(direct.weights_, streamed.weights_)
    assert streamed.predict(X) == direct.predict(X)
    once = SequenceTagger(random_state=0).fit_stream(zip(X, y, strict=True))
    assert np.array_equal(direct.weights_, once.weights_)


@pytest.mark.parametrize("options", [{"min_count": 2}, {"hash_bits": 7}])
def test_strings_that_are_counted_or_hashed(options):
    X, y = objects("strings")
    direct = SequenceTagger(random_state=0, **options).fit(X, y)
    streamed = SequenceTagger(random_state=0, **options).fit_stream(zip(X, y, strict=True))
    assert np.array_equal(direct.weights_, streamed.weights_)


@pytest.mark.parametrize("file_format", ["crfsuite", "svmhmm"])
def test_item_files(tmp_path, file_format):
    data = sentences(30)
    if file_format == "crfsuite":
        text = "".join(
            f"@weight:{1 + i % 2}\n"
            + "".join(f"{t}\tw={w}\tlen:{len(w)}\n" for w, t in zip(*s, strict=True))
            + "\n"
            for i, s in enumerate(data)
        )
    else:
        text = "".join(
            "".join(
                f"{t} qid:{i} {1 + len(w)}:1 {20 + ord(w[0])}:0.5\n"
                for w, t in zip(*s, strict=True)
            )
            for i, s in enumerate(data)
        )
    path = tmp_path / "items.txt"
    path.write_text(text)
    train = ["train", str(path), "--format", file_format, "-q", "-m"]
    assert main([*train, str(tmp_path / "a.mm")]) == 0
    from maxmargin.streams.sources import ItemFile

    encode(ItemFile([path], file_format, piece_bytes=100), tmp_path / "d.mme")
    assert main(["train", str(tmp_path / "d.mme"), "-q", "-m", str(tmp_path / "b.mm")]) == 0
    one, two = (container.read_container(tmp_path / name) for name in ("a.mm", "b.mm"))
    assert one.checksums == two.checksums
    assert two.meta["format"] == file_format


def test_conllu_in_pieces(tmp_path):
    lines = []
    for words, tags in sentences(20):
        lines.append("# a comment")
        lines += [
            f"{k}\t{w}\t_\t{t}\t_\t_\t_\t_\t_\t_"
            for k, (w, t) in enumerate(zip(words, tags, strict=True), 1)
        ]
        lines.append("")
    path = tmp_path / "t.conllu"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    args = ["train", str(path), "--format", "conllu", "-q", "-m"]
    assert main([*args, str(tmp_path / "a.mm")]) == 0
    assert main([*args, str(tmp_path / "b.mm"), "--stream"]) == 0
    one, two = (container.read_container(tmp_path / name) for name in ("a.mm", "b.mm"))
    assert one.checksums == two.checksums
    assert two.meta["columns_conllu"] == "form,upos"


# --- Parquet and Arrow -----------------------------------------------------------------------------


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_parquet_and_arrow(columns, tmp_path, nested, ending):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    data = sentences()
    if nested:
        table = pa.table(
            {
                "word": [s[0] for s in data],
                "first": [[w[:1] for w in s[0]] for s in data],
                "tag": [s[1] for s in data],
            }
        )
    else:
        flat = [(i, w, w[:1], t) for i, s in enumerate(data) for w, t in zip(*s, strict=True)]
        names = ("sentence", "word", "first", "tag")
        table = pa.table({name: [row[k] for row in flat] for k, name in enumerate(names)})
    path = tmp_path / f"d.{ending}"
    if ending == "parquet":
        pq.write_table(table, path, row_group_size=50)
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=50)
    by = {} if nested else {"sequence": "sentence"}
    streamed = SequenceTagger(random_state=0, template="pos").fit_stream(path, **by)
    assert np.array_equal(streamed.weights_, in_memory(columns, template="pos").weights_)
    with pytest.raises(FileFormatError, match=r"no column 'lemma'; its columns are .*'word'"):
        encode(path, tmp_path / "d.mme", columns=["lemma", "tag"], **by)
    if not nested:
        args = ["encode", str(path), "-o", str(tmp_path / "d.mme"), "--sequence", "sentence", "-q"]
        assert main([*args, "--columns", "word,first,tag", "--template", "pos"]) == 0
        assert EncodedCorpus.open(tmp_path / "d.mme").n_sequences == 60


def test_bad_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing of the kind")
    with pytest.raises(FileFormatError, match=r"bad\.parquet: cannot be read as Parquet"):
        encode(tmp_path / "bad.parquet", tmp_path / "d.mme")
    table = pa.table({"s": [1, 1, 2, 2], "w": ["a", None, "b", "c"], "t": ["N", "N", "V", "V"]})
    pq.write_table(table, tmp_path / "none.parquet")
    with pytest.raises(FileFormatError, match="row 1"):
        encode(tmp_path / "none.parquet", tmp_path / "d.mme", sequence="s")
    found = encode(tmp_path / "none.parquet", tmp_path / "d.mme", sequence="s", on_error="skip")
    assert (found.n_sequences, found.n_skipped) == (1, 1)


# --- windows ---------------------------------------------------------------------------------------


@pytest.fixture
def corpus(columns, tmp_path):
    encode(columns, tmp_path / "corpus.mme", template="pos")
    return EncodedCorpus.open(tmp_path / "corpus.mme")


@pytest.mark.parametrize("solver", ["sdm", "sap", "nslack", "dualcoordinate"])
def test_planes_in_a_file_change_no_bit(corpus, solver):
    from maxmargin import ElasticNet

    regularizer = ElasticNet(l1_ratio=0.5) if solver == "sap" else None
    models = [
        SequenceTagger(random_state=0, solver=solver, regularizer=regularizer, gap=1e-3).fit(
            tiny_windows(corpus, limit=limit)
        )
        for limit in (0, 2000, 10**9)
    ]
    for model in models[1:]:
        assert np.array_equal(models[0].weights_, model.weights_)
        assert models[0].history_[-1] == pytest.approx(model.history_[-1]) or True
        assert models[0].certificate_ == model.certificate_
    assert models[0].certificate_.gap <= 1e-3


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
        with pytest.warns(Warning) if passes < 40 else _nothing():
            model.fit(tiny_windows(corpus))
        gaps.append(model.certificate_.gap)
        assert model.certificate_.dual <= model.certificate_.primal
    assert 1 > gaps[0] > gaps[1] > gaps[2]


def _nothing():
    import contextlib

    return contextlib.suppress(Warning)


@pytest.mark.parametrize("solver", ["bcfw", "oneslack", "subgradient", "interiorpoint"])
def test_solvers_that_need_everything_are_refused(corpus, solver):
    with pytest.raises(NotCompatibleError, match="windows"):
        SequenceTagger(solver=solver).fit(tiny_windows(corpus))
    SequenceTagger(solver=solver, max_passes=2, gap=0.9).fit(corpus)  # mapped, but all at once


def test_threads_change_nothing(corpus):
    one, two = (SequenceTagger(random_state=0, n_jobs=n).fit(tiny_windows(corpus)) for n in (1, 3))
    assert np.array_equal(one.weights_, two.weights_)


def test_grids_reuse_the_windows(corpus, columns, tmp_path, capsys):
    valid = ["--valid", str(columns), "--grid", "C=0.01,0.1"]
    args = ["train", corpus.path, "-m", str(tmp_path / "m.mm"), *valid, "--json", "-q"]
    assert main([*args, "--memory", "900M"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert len(found["grid"]) == 2
    assert found["n_windows"] == 1  # small data are worked on as if they were in memory


# --- checkpoints -----------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0, 10**9])
def test_a_checkpoint_of_windows_resumes_bit_for_bit(corpus, tmp_path, limit):
    windows = tiny_windows(corpus, limit=limit)
    whole = SequenceTagger(random_state=0, gap=1e-4).fit(windows)
    for stop in (1, 4, 11):
        path = tmp_path / f"{stop}.ckpt"
        part = SequenceTagger(random_state=0, gap=1e-4, max_passes=stop, checkpoint=path)
        with pytest.warns(Warning):
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
    with pytest.warns(Warning):
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
        np.savez(path, **changed)
        with pytest.raises(ModelFormatError):
            SequenceTagger(random_state=0, gap=1e-6, checkpoint=path, resume=True).fit(windows)


@pytest.mark.slow
def test_a_killed_stream_resumes_to_the_same_model(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text(column_text(sentences(3000, longest=12)), encoding="utf-8")
    encode(path, tmp_path / "d.mme", template="pos")
    program = (
        "import sys\nfrom maxmargin import SequenceTagger\nimport maxmargin.solvers.driver as driver\n"
        "from maxmargin.streams import EncodedCorpus\nfrom maxmargin.features.batch import WindowPlan\n"
        "import functools, maxmargin.estimators.structural as structural\n"
        "structural.solve = functools.partial(driver.solve, checkpoint_seconds=0.0)\n"
        "path, model, resume = sys.argv[1:]\n"
        "c = EncodedCorpus.open(path)\nends = (*range(16, c.n_sequences, 16), c.n_sequences)\n"
        "c = c.in_windows(WindowPlan(ends, 100_000, '/tmp'))\n"
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


# --- memory ----------------------------------------------------------------------------------------


@pytest.mark.slow
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
    with pytest.raises(MemoryError, match=r"too small; these data need [0-9.]+ MB"):
        plan_windows(corpus.batch, 1_000_000)
    assert plan_windows(corpus.batch, 10**10) is None
    assert main(["train", corpus.path, "-m", str(tmp_path / "m.mm"), "--memory", "1M"]) == 2
    assert "these data need" in capsys.readouterr().err
    assert not (tmp_path / "m.mm").exists()


def test_windows_cover_all_sequences(corpus):
    from maxmargin.streams import budget

    plan = plan_windows(corpus.batch, budget.LEAST + 10**6 + 80 * 60, base=10**6)
    assert plan is None or plan.ends[-1] == 60
    lengths = corpus.batch.lengths
    assert lengths.sum() == corpus.n_tokens


def test_a_list_of_features_beyond_the_budget(columns, tmp_path):
    with pytest.raises(MemoryError, match=r"list of features takes .* hash"):
        encode(columns, tmp_path / "d.mme", template="pos", memory=1000)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["train.tsv"]


def test_a_full_disk_is_a_clear_error_and_leaves_nothing(columns, tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    from maxmargin.streams.parts import GrowingArray

    part = GrowingArray(np.int64, str(tmp_path))
    part._file.close()
    part._file = open("/dev/full", "wb", buffering=0)
    with pytest.raises(OSError, match="No space left") as caught:
        part.append(np.zeros(10))
    assert caught.value.filename == str(tmp_path)
    part._file.close()


def test_a_full_disk_of_planes(corpus, monkeypatch, tmp_path):
    import maxmargin.solvers.windows as windows

    monkeypatch.setattr(
        windows.tempfile, "TemporaryFile", lambda **_: open("/dev/full", "r+b", buffering=0)
    )
    with pytest.raises(OSError, match="No space left"):
        SequenceTagger(random_state=0).fit(tiny_windows(corpus))


def test_spill_directories(columns, tmp_path):
    with pytest.raises(OSError, match="No such file"):
        SequenceTagger(template="pos").fit_stream(columns, spill=tmp_path / "missing")
    spill = tmp_path / "spill"
    spill.mkdir()
    model = SequenceTagger(template="pos", random_state=0).fit_stream(columns, spill=spill)
    assert list(spill.iterdir()) == []
    assert np.array_equal(model.weights_, in_memory(columns, template="pos").weights_)


# --- bad input -------------------------------------------------------------------------------------


def test_a_bad_line_in_the_middle(tmp_path):
    data = sentences(50)
    lines = column_text(data).split("\n")
    lines[40] = "only-one-cell"
    path = tmp_path / "bad.tsv"
    path.write_text("\n".join(lines), encoding="utf-8")
    from maxmargin.streams.sources import ColumnFile

    for piece in (50, 10**6):
        with pytest.raises(FileFormatError, match=r"bad\.tsv: line 41"):
            encode(ColumnFile([path], piece_bytes=piece), tmp_path / "d.mme")
        assert not (tmp_path / "d.mme").exists()
        found = encode(
            ColumnFile([path], piece_bytes=piece),
            tmp_path / "d.mme",
            on_error="skip",
            template="pos",
        )
        assert (found.n_sequences, found.n_skipped) == (49, 1)
        assert "line 41" in found.first_error
        (tmp_path / "d.mme").unlink()
    # What is left is what a file without the bad sequence gives.
    text = "\n".join(lines)
    good = [s for s in text.split("\n\n") if "only-one-cell" not in s]
    (tmp_path / "good.tsv").write_text("\n\n".join(good), encoding="utf-8")
    streamed = SequenceTagger(template="pos", random_state=0).fit_stream(path, on_error="skip")
    assert streamed.n_skipped_ == 1
    assert np.array_equal(
        streamed.weights_, in_memory(tmp_path / "good.tsv", template="pos").weights_
    )


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (([[{"w": float("nan")}]], ["N"]), r"sequence 7, token 0.*nan"),
        (([["a"], ["b"]], ["N"]), r"sequence 7 has 2 tokens and 1 label|sequence 7"),
        (([], []), "sequence 7"),
        ("no pair", "example 7 of the stream is a str"),
        (([["a"]], "N"), "example 7 of the stream has a str for its labels"),
        ((3, ["N"]), "sequence 7"),
    ],
)
def test_a_bad_example_in_the_middle_of_a_stream(bad, message):
    X, y = objects("strings")
    X = [[{"w": t["w"]} for t in x] for x in X]
    stream = list(zip(X, y, strict=True))
    stream.insert(7, bad)
    with pytest.raises((ValueError, TypeError), match=message):
        SequenceTagger().fit_stream(stream)
    model = SequenceTagger(random_state=0).fit_stream(stream, on_error="skip")
    assert model.n_skipped_ == 1
    assert np.array_equal(model.weights_, SequenceTagger(random_state=0).fit(X, y).weights_)


def test_labels_that_come_late_and_labels_that_are_not_known(tmp_path):
    data = [([["a"], ["b"]], ["N", "N"])] * 5 + [([["c"]], ["Z"])]
    encode(data, tmp_path / "d.mme")
    assert EncodedCorpus.open(tmp_path / "d.mme").classes == ["N", "Z"]
    with pytest.raises(ValueError, match="sequence 5.*unknown label 'Z'"):
        encode(data, tmp_path / "e.mme", labels=["N", "V"])
    found = encode(data, tmp_path / "e.mme", labels=["N", "V"], on_error="skip")
    assert found.n_skipped == 1
    corpus = EncodedCorpus.open(tmp_path / "e.mme")
    assert corpus.classes == ["N", "V"]
    SequenceTagger(labels=["N", "V"]).fit(corpus)
    with pytest.raises(NotCompatibleError, match="encode them with these labels"):
        SequenceTagger(labels=["V", "N"]).fit(corpus)


def test_numbers_as_labels(tmp_path):
    data = [([["a"], ["b"]], [1, 0])] * 5
    encode(data, tmp_path / "d.mme")
    model = SequenceTagger().fit(EncodedCorpus.open(tmp_path / "d.mme"))
    assert model.predict([[["a"], ["b"]]]) == [[1, 0]]
    with pytest.raises(TypeError, match="str, int, float or bool"):
        encode([([["a"]], [(1, 2)])], tmp_path / "d.mme")


def test_empty_data(tmp_path, capsys):
    path = tmp_path / "empty.tsv"
    path.write_text("\n\n")
    with pytest.raises(FileFormatError, match="holds no sequences"):
        encode(path, tmp_path / "d.mme")
    with pytest.raises(FileFormatError, match="holds no sequences"):
        SequenceTagger().fit_stream(iter([]))
    assert main(["encode", str(path), "-o", str(tmp_path / "d.mme")]) == 2
    assert "holds no sequences" in capsys.readouterr().err
    with pytest.raises(ValueError, match="on_error"):
        encode(path, tmp_path / "d.mme", on_error="ignore")
    with pytest.raises(TypeError, match="expected an iterable"):
        SequenceTagger().fit_stream(3)


def test_other_features_than_were_encoded(corpus):
    for options, message in (
        ({"template": "words"}, "another template"),
        ({"hash_bits": 5}, "hash_bits=None"),
        ({"min_count": 2}, "min_count=1"),
        ({"kernel": "rbf"}, "kernel"),
    ):
        with pytest.raises(NotCompatibleError, match=message):
            SequenceTagger(**options).fit(corpus)
    SequenceTagger(template="pos").fit(corpus)


def test_values_in_another_precision(tmp_path):
    X, y = objects("strings")
    encode(zip(X, y, strict=True), tmp_path / "d.mme")
    with pytest.raises(NotCompatibleError, match="--dtype float64"):
        SequenceTagger(dtype="float64").fit(EncodedCorpus.open(tmp_path / "d.mme"))
    encode(zip(X, y, strict=True), tmp_path / "d.mme", dtype="float64")
    wide = SequenceTagger(dtype="float64", random_state=0).fit(
        EncodedCorpus.open(tmp_path / "d.mme")
    )
    direct = SequenceTagger(dtype="float64", random_state=0).fit(X, y)
    assert np.array_equal(wide.weights_, direct.weights_)


def test_a_function_as_template(columns, tmp_path):
    encode(columns, tmp_path / "d.mme", template=first_letters)
    corpus = EncodedCorpus.open(tmp_path / "d.mme", template=first_letters)
    model = SequenceTagger(random_state=0).fit(corpus)
    direct = in_memory(columns, template=first_letters)
    assert np.array_equal(model.weights_, direct.weights_)
    bare = SequenceTagger(random_state=0).fit(EncodedCorpus.open(tmp_path / "d.mme"))
    with pytest.raises(NotCompatibleError, match="first_letters"):
        bare.predict([[["a", "b"]]])


def first_letters(rows):
    return [[f"w={row[0]}", f"c={row[0][0]}"] for row in rows]


# --- damaged files ---------------------------------------------------------------------------------


def test_damaged_files_are_refused(corpus, tmp_path):
    good = open(corpus.path, "rb").read()
    path = tmp_path / "bad.mme"
    for cut in (0, 5, 31, 200, len(good) // 2, len(good) - 1):
        path.write_bytes(good[:cut])
        with pytest.raises(ModelFormatError, match=r"bad\.mme"):
            EncodedCorpus.open(path)
    for at in range(40, len(good), len(good) // 60):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :])
        with pytest.raises(ModelFormatError, match=r"bad\.mme"):
            EncodedCorpus.open(path)


def resigned(corpus, path, **changes):
    found = container.read_container(corpus.path)
    meta, arrays = dict(found.meta), dict(found.arrays)
    for name, change in changes.items():
        if name in arrays:
            arrays[name] = change(np.array(arrays[name]))
        else:
            meta[name] = change(meta[name])
    container.write_container(path, "encoded", meta, arrays)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("version", lambda _: 2, "version '2'; this maxmargin reads version 1"),
        ("classes", lambda c: c[:-1], "counts of the labels"),
        ("classes", lambda c: [c[0]] * len(c), "twice"),
        ("label_counts", lambda c: [-1, *c[1:]], "counts"),
        ("n_tokens", lambda n: n + 1, "other sizes"),
        ("labels", lambda a: a[:-1], "one label for each token"),
        ("labels", lambda a: a + 9, "label code out of range"),
        ("indices", lambda a: a + np.uint32(2**31), "feature ids"),
        ("indices", lambda a: a[::-1].copy(), "feature ids"),
        ("indptr", lambda a: np.concatenate([a[:5], a[4:5] - 3, a[6:]]), "indptr"),
        ("offsets", lambda a: a[::-1].copy(), "offsets"),
        ("name_ends", lambda a: a[::-1].copy(), "names do not fit"),
        ("fingerprints", lambda a: a[:-1], "fingerprints do not fit"),
        ("encoder", lambda e: e | {"kind": "what"}, "kind of features"),
        ("encoder", lambda e: e | {"n_sparse": 3}, "do not fit|feature ids"),
        ("encoder", lambda e: e | {"n_sparse": True}, "n_sparse"),
    ],
)
def test_files_that_were_signed_anew(corpus, tmp_path, name, change, message):
    path = tmp_path / "bad.mme"
    resigned(corpus, path, **{name: change})
    with pytest.raises(ValueError, match=message):
        SequenceTagger(max_passes=1, gap=0.99).fit(EncodedCorpus.open(path))


def test_models_and_encoded_files_are_not_mixed_up(corpus, columns, tmp_path, capsys):
    model = tmp_path / "m.mm"
    in_memory(columns, template="pos").save(model)
    with pytest.raises(ModelFormatError, match="expected encoded training data"):
        EncodedCorpus.open(model)
    assert main(["tag", "-m", corpus.path, str(columns)]) == 2
    assert "holds encoded training data and no model" in capsys.readouterr().err
    assert main(["train", corpus.path, "-m", corpus.path]) == 2


def test_golden_file():
    """A file of the first version stays readable."""
    from pathlib import Path

    golden = Path(__file__).parents[1] / "golden" / "encoded-v1.mme"
    corpus = EncodedCorpus.open(golden)
    assert (corpus.n_sequences, corpus.n_tokens, corpus.classes) == (2, 3, ["N", "V"])
    model = SequenceTagger(C=1.0, random_state=0).fit(corpus)
    assert model.predict([[["dogs"], ["bark"]]]) == [["N", "V"]]


# --- the command -----------------------------------------------------------------------------------


def test_the_command(columns, tmp_path, capsys):
    out = str(tmp_path / "d.mme")
    assert main(["encode", str(columns), "-o", out, "--template", "pos", "--min-count", "2"]) == 0
    assert "60 sequences" in capsys.readouterr().out
    assert main(["info", out, "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (found["kind"], found["n_sequences"], found["min_count"]) == ("encoded", 60, 2)
    assert main(["info", out]) == 0
    assert "n_sequences: 60" in capsys.readouterr().out
    models = [str(tmp_path / f"{k}.mm") for k in range(3)]
    features = ["--template", "pos", "--min-count", "2"]
    assert main(["train", str(columns), "-m", models[0], *features, "--json", "-q"]) == 0
    plain = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert main(["train", out, "-m", models[1], "--json", "-q"]) == 0
    encoded = json.loads(capsys.readouterr().out.splitlines()[-1])
    stream = ["--stream", "--memory", "900M", "--json", "-q"]
    assert main(["train", str(columns), "-m", models[2], *features, *stream]) == 0
    streamed = json.loads(capsys.readouterr().out.splitlines()[-1])
    for found in (encoded, streamed):
        assert plain.keys() <= found.keys()
        assert found["gap"] == plain["gap"]
        assert found["peak_rss_mb"] > 0
    files = [container.read_container(model) for model in models]
    assert files[0].checksums == files[1].checksums == files[2].checksums
    assert files[0].meta["params"] == files[1].meta["params"]


def test_what_does_not_go_with_a_stream(columns, tmp_path, capsys):
    args = ["train", str(columns), "-m", str(tmp_path / "m.mm"), "--stream"]
    for more, message in ((["--cv", "2"], "--cv"), (["--nonzeros", "5"], "--nonzeros")):
        assert main([*args, *more]) == 2
        assert message in capsys.readouterr().err


def test_a_pipe(columns, tmp_path):
    command = [
        sys.executable,
        "-m",
        "maxmargin",
        "encode",
        "-",
        "-o",
        str(tmp_path / "p.mme"),
        "-q",
    ]
    done = subprocess.run(command, input=columns.read_bytes(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    encode(columns, tmp_path / "d.mme")
    hashes = {EncodedCorpus.open(tmp_path / name).batch.mapped.hash for name in ("p.mme", "d.mme")}
    assert len(hashes) == 1


def test_a_temporary_corpus_leaves_no_file(columns, tmp_path):
    corpus, summary = temporary_corpus(columns, spill=tmp_path / ".", template="pos")
    assert summary.n_sequences == 60
    assert sorted(p.name for p in tmp_path.iterdir()) == ["train.tsv"]
    assert SequenceTagger().fit(corpus).n_examples_ == 60
    time.sleep(0)
