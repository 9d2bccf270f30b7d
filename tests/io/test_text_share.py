"""Parts of files for workers: the shares of a file, one after the other, are the file."""

from __future__ import annotations

import gzip

import pytest

from cli_files import sentences, svmhmm, text
from maxmargin.io.pieces import text_share

COLUMNS, QIDS = text(sentences(37)).encode(), svmhmm(sentences(37)).encode()


@pytest.mark.parametrize("n_bytes", [1, 500, 1 << 20])
@pytest.mark.parametrize("K", [1, 2, 5, 64])
@pytest.mark.parametrize("qids", [False, True])
def test_shares_are_the_file(tmp_path, K, n_bytes, qids):
    whole = QIDS if qids else COLUMNS
    file = tmp_path / "data.gz"
    file.write_bytes(gzip.compress(whole))
    shares = [list(text_share(file, n_bytes, (k, K), qids=qids)) for k in range(K)]
    assert b"".join(piece.text for share in shares for piece in share) == whole
    sizes = [sum(len(piece.text) for piece in share) for share in shares]
    longest = max(map(len, whole.split(b"\n\n"))) + 2
    if K < 5 and not qids:
        assert max(sizes) <= len(whole) / K + longest
    for share in shares:
        for piece in share:  # lines are those of the file
            lines = whole.split(b"\n")
            assert piece.text.split(b"\n")[0] == lines[piece.first_line - 1]
