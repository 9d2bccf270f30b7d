"""Labels that a text file cannot hold: refused by `tag` and `train`, told with the label."""

from __future__ import annotations

import itertools

import pytest

from cli_files import refused, run, write
from maxmargin import SequenceTagger
from maxmargin.cli.cells import bad_cell

ENDS = ["\n", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]


@pytest.mark.parametrize(
    ("label", "found"),
    [("", "nothing"), ("  ", "nothing but white space"), ("a\tb", "a tab")]
    + [(f"a{end}b", "an end of line") for end in ENDS]
    + [(f"a{end}", "an end of line") for end in ENDS],
)
def test_what_no_cell_can_hold(label, found):
    assert bad_cell(label) == found
    assert bad_cell(label, spaces=False) == found


def test_what_a_cell_can_hold():
    for label in ("B-NP", "New York", "a\u00a0b", "\x1b", "ż", "0"):
        assert bad_cell(label) is None
    assert bad_cell("New York", spaces=False) == "a space, which stands between columns"


def model_with(label, path):
    """Write a model of which one label is as given, learned from Python lists."""
    X = [[["a"], ["b"]], [["b"]]] * 2
    tagger = SequenceTagger(template="words").fit(
        [[[word[0]] for word in x] for x in X], [["A", label], [label]] * 2
    )
    tagger.save(path)
    return path


@pytest.mark.parametrize("label", ["a\tb", "a\nb", "", " ", "a\u2028b", "a\x85", "a\r"])
@pytest.mark.parametrize("options", [[], ["--nbest", "2"], ["--scores"]])
def test_tag_refuses(capsys, tmp_path, label, options):
    model = model_with(label, tmp_path / "m.mm")
    data = write(tmp_path / "d.tsv", "a\nb\n")
    out = tmp_path / "out.tsv"
    for target in ([], ["-o", out]):
        message = refused(capsys, "tag", "-m", model, data, *options, *target)
        assert f"{model}: the label {label!r} holds " in message
    assert not out.exists()


def test_spaces_depend_on_the_separator(capsys, tmp_path):
    model = model_with("New York", tmp_path / "m.mm")
    data = write(tmp_path / "d.tsv", "a\nb\n")
    lines = run(capsys, "tag", "-m", model, data, "--separator", "tab")
    assert lines == "a\tA\nb\tNew York\n"
    message = refused(capsys, "tag", "-m", model, data, "--separator", "space")
    assert f"{model}: the label 'New York' holds a space, which stands between columns" in message


@pytest.mark.parametrize("label", ["a\u2028b", "a\x85b", "a\x0cb"])
def test_train_refuses(capsys, tmp_path, label):
    columns = write(tmp_path / "d.tsv", f"x\tA\n\ny\tA\nz\t{label}\n")
    items = write(tmp_path / "d.items", f"A\tx\n\nA\ty\n{label}\tz\n\n")
    model = tmp_path / "m.mm"
    for arguments in ([columns], [items, "--format", "crfsuite"]):
        message = refused(capsys, "train", *arguments, "-m", model)
        assert f"{arguments[0]}: sequence 1, token 1: the label {label!r} holds an end" in message
    assert not model.exists()


def test_convert_refuses(capsys, tmp_path):
    for label, target in itertools.product(["a\u2028b", "a\x85b"], ["o.crfsuite", "o.svm"]):
        source = write(tmp_path / "d.tsv", f"x\tA\nz\t{label}\n")
        message = refused(capsys, "convert", source, tmp_path / target)
        assert f"{source}: " in message
        assert f"the label {label!r}" in message
        assert not (tmp_path / target).exists()
