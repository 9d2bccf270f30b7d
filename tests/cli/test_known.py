"""`maxmargin tag --known`, and CoNLL-U in and out."""

from __future__ import annotations

from itertools import pairwise

import pytest

from cli_files import conllu, crfsuite, refused, run, sentences, text, write
from maxmargin.cli.main import main

TRAIN, TEST = sentences(), sentences(7, seed=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("known")
    files = {"m": text(TRAIN), "u": conllu(TRAIN), "i": crfsuite(TRAIN)}
    more = {"m": ["--allowed", "iob2"], "u": ["--columns", "form,xpos,upos"], "i": []}
    for name, content in files.items():
        data = write(path / f"{name}.data", content)
        assert main(["train", str(data), "-m", str(path / f"{name}.mm"), "-q", *more[name]]) == 0
    return path


def last(out):
    return [line.rpartition("\t")[2] for line in out.split("\n") if line]


def test_known_labels_stay(capsys, folder, tmp_path):
    model = folder / "m.mm"
    truth = [row[2] for rows in TEST for row in rows]
    half = [[(w, p, c if k % 2 else "_") for k, (w, p, c) in enumerate(rows)] for rows in TEST]
    path = write(tmp_path / "half.tsv", text(half))
    for column in ("2", "-1"):
        found = last(run(capsys, "tag", "-m", model, path, "--known", column))
        given = [row[2] for rows in half for row in rows]
        assert all(g in ("_", f) for g, f in zip(given, found, strict=True))
    all_known = write(tmp_path / "all.tsv", text(TEST))
    assert last(run(capsys, "tag", "-m", model, all_known, "--known", "2")) == truth
    none = write(tmp_path / "none.tsv", text([[(w, p, "_") for w, p, _ in r] for r in TEST]))
    plain = run(capsys, "tag", "-m", model, none)
    assert run(capsys, "tag", "-m", model, none, "--known", "2") == plain


def test_the_column_may_be_anywhere(capsys, folder, tmp_path):
    model = folder / "m.mm"
    truth = [row[2] for rows in TEST for row in rows]
    for columns, known in (((2, 0, 1), "0"), ((0, 2, 1), "1"), ((0, 1, 0, 2), "3")):
        path = write(tmp_path / "x.tsv", text(TEST, columns))
        assert last(run(capsys, "tag", "-m", model, path, "--known", known)) == truth
    message = refused(capsys, "tag", "-m", model, path, "--known", "4")
    assert "--known: column 4 is out of range" in message


def test_with_scores_and_several(capsys, folder, tmp_path):
    path = write(tmp_path / "x.tsv", text([[("the", "DT", "B-NP"), ("dog", "NN", "_")]]))
    out = run(capsys, "tag", "-m", folder / "m.mm", path, "--known", "2", "--scores")
    assert out.split("\n")[0].endswith("\tB-NP\tinf")
    out = run(capsys, "tag", "-m", folder / "m.mm", path, "--known", "2", "--nbest", "3")
    assert out.count("the\tDT\tB-NP\tB-NP") == 3


def test_items(capsys, folder, tmp_path):
    half = [[(w, p, c if k % 2 else "_") for k, (w, p, c) in enumerate(rows)] for rows in TEST]
    path = write(tmp_path / "x.crfsuite", crfsuite(half))
    found = run(capsys, "tag", "-m", folder / "i.mm", path, "--known", "0").split()
    given = [row[2] for rows in half for row in rows]
    assert all(g in ("_", f) for g, f in zip(given, found, strict=True))
    assert "expected 0" in refused(capsys, "tag", "-m", folder / "i.mm", path, "--known", "1")
    wrong = write(tmp_path / "w.crfsuite", crfsuite([[*TEST[0][:1], ("a", "b", "Q")]] * 2))
    message = refused(capsys, "tag", "-m", folder / "i.mm", wrong, "--known", "0")
    assert "w.crfsuite: sequence 0, token 1: the label: found the label 'Q'" in message


def test_bad_labels_are_named_with_their_lines(capsys, folder, tmp_path):
    model = folder / "m.mm"
    rows = "the\tDT\t_\n\nthe\tDT\t_\ndog\tNN\t{}\n"
    path = write(tmp_path / "x.tsv", rows.format("Q"))
    message = refused(capsys, "tag", "-m", model, path, "--known", "2", "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert f"{path}: line 4: column 2: found the label 'Q', which the model does not" in message
    assert "or _" in message
    path = write(tmp_path / "y.tsv", "the\tDT\tO\ndog\tNN\tI-NP\n")
    message = refused(capsys, "tag", "-m", model, path, "--known", "2")
    assert f"{path}: line 2: the known label 'I-NP' does not go" in message
    assert "expected the number of a column" in refused(
        capsys, "tag", "-m", model, path, "--known", "upos"
    )


UTEXT = """\
# sent_id = a
1-2\tthelight\t_\t_\t_\t_\t_\t_\t_\t_
1\tthe\t_\t_\tB-NP\t_\t0\t_\t_\tx=y
2\tlight\t_\tVB\tI-NP\t_\t0\t_\t_\t_
2.1\tempty\t_\tNN\t_\t_\t_\t_\t_\t_

# a comment at the end
"""


def test_conllu_in_conllu_out(capsys, folder, tmp_path):
    model = folder / "u.mm"
    for data in (UTEXT, UTEXT.replace("\n", "\r\n"), "\ufeff" + UTEXT, UTEXT.rstrip("\n")):
        path = write(tmp_path / "x.conllu", data.encode())
        out = tmp_path / "out.conllu"
        run(capsys, "tag", "-m", model, path, "-o", out)
        found = out.read_bytes().decode()
        lines, before = found.split("\n"), data.split("\n")
        assert len(lines) == len(before)
        for a, b in zip(lines, before, strict=True):
            cells, given = a.split("\t"), b.split("\t")
            if given[0] in ("1", "2"):
                assert cells[3] in {"DT", "NN", "VB", "JJ"}
                cells[3] = given[3]
            assert cells == given
    whole = write(tmp_path / "all.conllu", conllu(TEST))
    known = run(capsys, "tag", "-m", model, whole, "--known", "upos")
    assert known == conllu(TEST)  # all of them are known


def test_conllu_with_known_labels(capsys, folder, tmp_path):
    path = write(tmp_path / "x.conllu", UTEXT)
    found = run(capsys, "tag", "-m", folder / "u.mm", path, "--known", "upos")
    assert "2\tlight\t_\tVB\t" in found
    assert "1\tthe\t_\tDT\t" in found
    bad = write(tmp_path / "b.conllu", UTEXT.replace("\tVB\t", "\tQQ\t"))
    message = refused(capsys, "tag", "-m", folder / "u.mm", bad, "--known", "upos")
    assert "b.conllu: line 4: column upos: found the label 'QQ'" in message
    message = refused(capsys, "tag", "-m", folder / "u.mm", bad, "--known", "word")
    assert "found the column 'word'" in message


def test_conllu_scores_and_several(capsys, folder, tmp_path):
    path = write(tmp_path / "x.conllu", UTEXT)
    found = run(capsys, "tag", "-m", folder / "u.mm", path, "--scores")
    assert "\tx=y|Margin=" in found
    found = run(capsys, "tag", "-m", folder / "u.mm", path, "--nbest", "2")
    assert found.count("# nbest = 0\n# score = ") == 1
    assert found.count("# nbest = 1\n# score = ") == 1
    assert found.count("1-2\tthelight") == 2


def test_lines_of_bad_conllu_are_counted_over_pieces(capsys, folder, tmp_path, monkeypatch):
    from maxmargin.cli.tagging import streams

    monkeypatch.setattr(streams, "CHUNK", 10)
    path = write(tmp_path / "x.conllu", UTEXT.replace("# a comment at the end\n", "x\ty\n"))
    assert main(["tag", "-m", str(folder / "u.mm"), str(path)]) == 2
    assert "x.conllu: line 7: found 2 columns" in capsys.readouterr().err


def test_probabilities_are_conditional_on_what_is_known(capsys, folder, tmp_path):
    """Of all labellings with the known labels the probabilities add up to 1."""
    rows = [("the", "DT", "_"), ("book", "NN", "B-VP"), ("run", "VB", "_")]
    path = write(tmp_path / "x.tsv", text([rows]))
    # Labels of which some are wrong, so that the model is not sure of everything.
    odd = [[(w, p, "O" if k % 3 == 1 else c) for k, (w, p, c) in enumerate(r)] for r in TRAIN]
    odd = [r for r in odd if not any(b[2][0] == "I" and a[2] == "O" for a, b in pairwise(r))]
    dev = write(tmp_path / "dev.tsv", text(odd))
    run(capsys, "calibrate", "-m", folder / "m.mm", dev, "-o", tmp_path / "c.mm")
    given = ["tag", "-m", tmp_path / "c.mm", path, "--marginals"]
    free = [line.split("\t") for line in run(capsys, *given).splitlines() if line]
    held = [line.split("\t") for line in run(capsys, *given, "--known", "2").splitlines() if line]
    assert held[1][-2:] == ["B-VP", "1.0000"]
    assert [line[-1] for line in held] != [line[-1] for line in free]
    several = run(capsys, *given, "--known", "2", "--nbest", "1000").split("\n\n")
    shares, mass = [], {}
    for part in several:
        head, *lines = part.strip().split("\n")
        if not lines:
            continue
        shares.append(float(head.split()[3]))
        assert lines[1].endswith("\tB-VP")
        for t, line in enumerate(lines):
            label = line.rpartition("\t")[2]
            mass[t, label] = mass.get((t, label), 0) + shares[-1]
    assert sum(shares) == pytest.approx(1, abs=1e-4)
    for t, line in enumerate(held):
        assert float(line[-1]) == pytest.approx(mass[t, line[-2]], abs=2e-4)
    none = write(tmp_path / "none.tsv", text([[(w, p, "_") for w, p, _ in rows]]))
    given[3] = none
    assert run(capsys, *given) == run(capsys, *given, "--known", "2")
    bad = write(tmp_path / "bad.tsv", text([[("the", "DT", "O"), ("dog", "NN", "I-NP")]]))
    message = refused(capsys, "tag", "-m", tmp_path / "c.mm", bad, "--marginals", "--known", "2")
    assert "bad.tsv: line 2" in message


def test_conllu_with_probabilities(capsys, folder, tmp_path):
    """The probability is a note of MISC, not one more column."""
    run(
        capsys,
        *("calibrate", "-m", folder / "u.mm", folder / "u.data", "-o", tmp_path / "c.mm"),
    )
    path = write(tmp_path / "x.conllu", conllu(TEST))
    given = ["tag", "-m", tmp_path / "c.mm", path, "--marginals"]
    tokens = [line.split("\t") for line in run(capsys, *given).splitlines() if line[:1].isdigit()]
    assert {len(cells) for cells in tokens} == {10}
    assert all(cells[9].startswith("Probability=") for cells in tokens)
    assert all(0 <= float(cells[9].partition("=")[2]) <= 1 for cells in tokens)
    out = run(capsys, *given, "--nbest", "2")
    assert out.count("# probability = ") == out.count("# score = ") == out.count("# nbest = ") > 7
    known = run(capsys, *given, "--known", "upos")
    assert all(
        line.endswith("Probability=1.0000") for line in known.splitlines() if line[:1].isdigit()
    )
