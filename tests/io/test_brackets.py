"""Files of trees."""

from __future__ import annotations

import gzip
import io

import pytest

from maxmargin.errors import EmptyFileError, FileFormatError
from maxmargin.io.brackets import read_trees, write_trees
from maxmargin.trees import Tree
from real_data import data_file

TREES = [Tree.parse("(S (NP (NN ärger)) (VP (VB x)))"), Tree.parse("(NP (NN b))")]


@pytest.mark.parametrize("name", ["trees.mrg", "trees.mrg.gz"])
def test_files_and_back(tmp_path, name):
    path = tmp_path / name
    write_trees(path, TREES)
    assert read_trees(path) == TREES


def test_lines_do_not_matter(tmp_path):
    path = tmp_path / "penn.mrg"
    path.write_bytes(b"\xef\xbb\xbf\n( (S\r\n  (NP (NN a))\n  (VP (VB b)) ))\n(X (Y z)) (X (Y z))")
    first, *rest = read_trees(path)
    assert str(first) == "(S (NP (NN a)) (VP (VB b)))"
    assert rest == [Tree.parse("(X (Y z))")] * 2
    assert read_trees(io.BytesIO(path.read_bytes())) == [first, *rest]


def test_files_that_are_no_trees(tmp_path):
    path = tmp_path / "bad.mrg"
    path.write_text("(S (NN a))\n(S (NN b)\n")
    with pytest.raises(FileFormatError, match=r"bad.mrg: line 2, column 1: .* not closed"):
        read_trees(path)
    path.write_bytes(b"(S (NN a))\n(S (NN \xff))\n")
    with pytest.raises(FileFormatError, match=r"bad.mrg: line 2: found bytes that are not UTF-8"):
        read_trees(path)
    path.write_text(" \n")
    with pytest.raises(EmptyFileError, match="holds no trees"):
        read_trees(path)
    path.write_bytes(gzip.compress(b"(A" * 1_000_000))
    with pytest.raises(FileFormatError, match="line 1, column 1001: found more than 500 brackets"):
        read_trees(path)


@pytest.mark.data
def test_the_sample_of_the_treebank(tmp_path):
    train = read_trees(data_file("wsj_sample_trees/train.mrg.gz"))
    assert len(train) == 3401
    lengths = [len(tree.words()) for tree in train]
    assert [sum(n <= most for n in lengths) for most in (10, 15, 20)] == [349, 812, 1402]
    assert max(lengths) == 249
    write_trees(tmp_path / "again.mrg", train)
    with gzip.open(data_file("wsj_sample_trees/train.mrg.gz")) as file:
        assert (tmp_path / "again.mrg").read_bytes() == file.read()
