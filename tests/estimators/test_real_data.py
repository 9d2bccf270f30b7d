"""SequenceTagger on every sequence set: certified, and clearly better than the majority label."""

from __future__ import annotations

import collections

import numpy as np
import pytest

from maxmargin import SequenceTagger
from real_data import letters, tagged

pytestmark = pytest.mark.data

#: name -> (training file, sequences, test file, column of the label, C, least token accuracy)
COLUMN_SETS = {
    "conll2000 chunk": ("conll2000/train.tsv.gz", 500, "conll2000/test.tsv.gz", 2, 0.3, 0.85),
    "conll2000 pos": ("conll2000/train.tsv.gz", 500, "conll2000/test.tsv.gz", 1, 0.3, 0.85),
    "conll2002_esp": ("conll2002_esp/train.tsv.gz", 800, "conll2002_esp/dev.tsv.gz", 2, 0.3, 0.90),
    "brown_pos": ("brown_pos/train.tsv.gz", 300, "brown_pos/test.tsv.gz", 1, 0.3, 0.70),
    "wsj_sample_pos": (
        "wsj_sample_pos/train.tsv.gz",
        500,
        "wsj_sample_pos/test.tsv.gz",
        1,
        0.3,
        0.85,
    ),
    "bc2gm": ("bc2gm/train.tsv.gz", 600, "bc2gm/test.tsv.gz", 1, 0.3, 0.90),
    "jnlpba": ("jnlpba/train.tsv.gz", 600, "jnlpba/test.tsv.gz", 1, 0.3, 0.80),
    "ads": ("ads/train.tsv.gz", 60, "ads/test.tsv.gz", 1, 0.01, 0.60),
    "citations_cora": (
        "citations_cora/train.tsv.gz",
        300,
        "citations_cora/test.tsv.gz",
        1,
        0.3,
        0.85,
    ),
}
N_TEST = 300
#: Ads are hundreds of tokens long and few: the last per cent takes longer than all other sets.
GAPS = {"ads": 0.05}


def majority_share(y):
    counts = collections.Counter(label for labels in y for label in labels)
    return counts.most_common(1)[0][1] / sum(counts.values())


def assert_learned(tagger, train, test, least):
    (X, y), (X_test, y_test) = train, test
    tagger.fit(X, y)
    certificate = tagger.certificate_
    assert tagger.converged_, tagger.stop_reason_
    assert certificate.gap <= tagger.gap * 1.001
    assert 0 < certificate.dual <= certificate.primal
    assert certificate.n_examples == len(X)
    # Weak duality: no dual of any pass exceeds the primal of any pass that knows it.
    lowest = np.nanmin(tagger.history_.column("primal"))
    assert tagger.history_.column("dual").max() <= lowest * (1 + 1e-6)
    accuracy = tagger.score(X_test, y_test)
    assert accuracy >= least
    assert accuracy >= majority_share(y_test) + 0.02
    assert tagger.score(X, y) > accuracy - 0.02


@pytest.mark.parametrize("name", COLUMN_SETS)
def test_column_set(name):
    train, n_train, test, column, C, least = COLUMN_SETS[name]
    tagger = SequenceTagger(C=C, gap=GAPS.get(name, 0.01), random_state=0)
    assert_learned(tagger, tagged(train, n_train, column), tagged(test, N_TEST, column), least)


def test_letters():
    tagger = SequenceTagger(C=0.02, random_state=0)
    assert_learned(tagger, letters(400, fold=0), letters(300, fold=1), 0.70)
    assert tagger.n_features_in_ == 128


def test_iob2_decoding_of_real_text():
    X, y = tagged("conll2002_esp/train.tsv.gz", 200, 2)
    X_test, _ = tagged("conll2002_esp/dev.tsv.gz", 300, 2)
    tagger = SequenceTagger(C=0.3, allowed="iob2", random_state=0).fit(X, y)
    entities = 0
    for labels in tagger.predict(X_test):
        previous = "O"
        for label in labels:
            if label.startswith("I-"):
                assert previous[0] in "BI"
                assert previous[2:] == label[2:]
            entities += label.startswith("B-")
            previous = label
    assert entities > 20
