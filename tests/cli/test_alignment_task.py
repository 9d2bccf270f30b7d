"""``maxmargin train --task alignment`` and what follows."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from cli_files import refused, run, summary, write
from maxmargin import Aligner, load
from maxmargin.io.substitution import read_substitution

PAIRS = "a\tb\tACGT\tACT\tMM1M\nc\td\tGATTACA\tGTACA\tM11MMMM\ne\tf\tCCGA\tCGA\t1MMM\n"
FASTA = ">x\nACG\nGT\n>y\nACT\n>p\nGATTACA\n>q\nGTACA\n"
DECOYS = "a\tz\tACGT\tGGGG\nz\tc\tCCCC\tGATTACA\n"
DNA = ("--task", "alignment", "--alphabet", "dna")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("alignment")
    write(path / "p.tsv", PAIRS)
    write(path / "q.fa", FASTA)
    write(path / "d.tsv", DECOYS)
    return path


@pytest.fixture
def model(capsys, folder):
    path = folder / "m.mm"
    if not path.exists():
        run(capsys, "train", *DNA, folder / "p.tsv", "-m", path, "-C", 10, "--seed", 0)
    return path


def test_a_model_is_that_of_python(capsys, folder, model):
    loaded = load(model)
    X = [("ACGT", "ACT"), ("GATTACA", "GTACA"), ("CCGA", "CGA")]
    expected = Aligner("dna", C=10.0, random_state=0).fit(X, ["MM1M", "M11MMMM", "1MMM"])
    assert isinstance(loaded, Aligner)
    assert np.array_equal(loaded.weights_, expected.weights_)
    found = summary(capsys, "eval", "-m", model, folder / "p.tsv")
    assert found["match_accuracy"] == found["match_precision"] == 1.0
    assert (found["n_pairs"], found["n_matches"]) == (3, 11)
    assert found["pairs_per_second"] > 0
    assert "match accuracy 100.00 %" in run(capsys, "eval", "-m", model, folder / "p.tsv")


def test_predictions_are_texts(capsys, folder, model):
    shown = run(capsys, "predict", "-m", model, folder / "q.fa")
    assert "x                  1 ACGGT      5" in shown
    assert "y                  1 AC--T      3" in shown
    assert shown.count("Aligned_sequences") == 2
    write(folder / "plain.tsv", "ACGGT\tACT\n")
    assert "AC--T" in run(capsys, "tag", "-m", model, folder / "plain.tsv")
    with gzip.open(folder / "z.fa.gz", "wt") as file:
        file.write(FASTA)
    assert run(capsys, "tag", "-m", model, folder / "z.fa.gz") == shown


def test_rows_with_gaps_are_read(capsys, folder):
    rows = "a\tb\tACGT\tAC-T\nc\td\tGATTACA\tG--TACA\n"
    write(folder / "rows.tsv", rows)
    found = summary(capsys, "train", *DNA, folder / "rows.tsv", "-m", folder / "r.mm", "-C", 10)
    assert found["n_pairs"] == 2
    assert summary(capsys, "eval", "-m", folder / "r.mm", folder / "p.tsv")["n_matches"] == 11


def test_info_shows_the_matrix(capsys, folder, model):
    shown = run(capsys, "info", model)
    assert "gap_open" in shown
    assert "matrix.A" in shown
    run(capsys, "info", model, "--text", folder / "m.txt")
    letters, scores = read_substitution(folder / "m.txt")
    assert letters == "ACGTN"
    assert scores == pytest.approx(load(model).substitution_matrix_.scores, abs=1e-4)


def test_options_reach_the_estimator(capsys, folder):
    arguments = (
        *("--mode", "semiglobal", "--free-ends", "start1, end2", "--gaps", "linear"),
        *("--substitution", "identity", "--loss", "residues", "--unknown", "N"),
    )
    run(capsys, "train", *DNA, folder / "p.tsv", "-m", folder / "o.mm", *arguments)
    model = load(folder / "o.mm")
    assert (model.mode, model.free_ends, model.gaps) == ("semiglobal", ("start1", "end2"), "linear")
    assert (model.substitution, model.loss, model.unknown) == ("identity", "residues", "N")
    write(folder / "odd.tsv", "AC?T\tACT\n")
    assert "AC?T" in run(capsys, "tag", "-m", folder / "o.mm", folder / "odd.tsv")
    protein = "ACDE\tACE\tMM1M\n"
    write(folder / "protein.tsv", protein)
    run(
        capsys, "train", "--task", "alignment", folder / "protein.tsv", "-m", folder / "b.mm",
        "--prior", "blosum62", "--prior-scale", 0.5, "-C", 1e-6,
    )  # fmt: skip
    assert load(folder / "b.mm").gap_open_ == pytest.approx(-5.5, abs=1e-3)


def test_local_alignments_are_shown_without_their_ends(capsys, folder):
    arguments = ("train", *DNA, folder / "p.tsv", "-m", folder / "l.mm", "-C", 10)
    run(capsys, *arguments, "--mode", "local")
    shown = run(capsys, "tag", "-m", folder / "l.mm", folder / "q.fa")
    assert shown.count("Aligned_sequences") == 2


def test_decoys(capsys, folder):
    arguments = ("train", *DNA, folder / "p.tsv", "-m", folder / "d.mm", "-C", 1)
    run(capsys, *arguments, "--decoys", folder / "d.tsv", "--mode", "local", "--homolog", "free")
    model = load(folder / "d.mm")
    assert model.homolog == "free"
    data = [("ACGT", "ACT", ["GGGG"]), ("GATTACA", "GTACA", ["CCCC"])]
    assert [answer.which for answer in model.predict(data)] == [0, 0]
    write(folder / "other.tsv", "GGGG\tCCCC\n")
    message = refused(capsys, *arguments, "--decoys", folder / "other.tsv")
    assert "no first sequence of a pair is in the file of decoys" in message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("ACGT\tACZ\tMMM1\n", "line 1: found 'Z' at position 3 of sequence 2"),
        ("ACGT\tACT\tMMM\n", "line 1"),
        ("ACGT\tACT\tMMxM\n", "line 1"),
        ("ACGT\n", "line 1: found 1 columns"),
        (">x\nACGT\n>y\nACT\n", "is FASTA, which has no alignments"),
        ("", "holds no pairs"),
    ],
)
def test_bad_files(capsys, folder, content, message):
    write(folder / "bad.tsv", content)
    found = refused(capsys, "train", *DNA, folder / "bad.tsv", "-m", folder / "bad.mm")
    assert message in found
    assert "bad.tsv" in found


def test_bad_options(capsys, folder, model):
    arguments = ("train", *DNA, folder / "p.tsv", "-m", folder / "bad.mm")
    assert "--free-ends is for" in refused(capsys, *arguments, "--free-ends", "start1")
    odd = refused(capsys, *arguments, "--mode", "semiglobal", "--free-ends", "middle")
    assert "must be one of" in odd
    assert "is not in the alphabet" in refused(capsys, *arguments, "--unknown", "Z")
    assert "each once" in refused(capsys, *arguments[:3], *("--alphabet", "AA"), *arguments[5:])
    write(folder / "three.fa", FASTA + ">r\nA\n")
    assert "expected an even number" in refused(capsys, "tag", "-m", model, folder / "three.fa")
