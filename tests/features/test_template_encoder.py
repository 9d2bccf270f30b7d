"""Native expansion of templates against the slow one; encoders that learn it; chains with them."""

from __future__ import annotations

import copy
import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from maxmargin._native import Columns, FeatureIndex, TemplateProgram
from maxmargin.features import ColumnTable, LabelCodes
from maxmargin.features.template import Template
from maxmargin.features.template_encoder import TemplateEncoder, as_table, column_layout
from maxmargin.structures import Chain
from reference_template import expand

# --- templates and sequences ----------------------------------------------------------------------

OFFSETS = st.one_of(
    st.integers(-2, 2).map(str),
    st.integers(-12, 12).map("{:+d}".format),  # markers beyond those that are made in advance
    st.sampled_from(["999999999", "-999999999"]),
    st.integers(-4, 4).map("@{}".format),
    st.just("*1"),
)
PATTERNS = st.sampled_from(
    [r"\d", r"^\u\l*$", r"\p", r".?.?.?$", r"\d\d*$", r"_B", r"", r"$", r"^.", r"\A", r"\s", r"b*"]
)
COLUMNS = st.integers(0, 1)
COMMANDS = st.one_of(
    st.builds("%{}[{},{}]".format, st.sampled_from("xXhc"), OFFSETS, COLUMNS),
    st.builds('%{}[{},{},"{}"]'.format, st.sampled_from("tTmM"), OFFSETS, COLUMNS, PATTERNS),
    st.builds(
        "%{}[{},{},{}]".format, st.sampled_from("pPsS"), OFFSETS, COLUMNS, st.integers(1, 3)
    ),
)
# Neither occurs in a cell: a name tells the text around its values, so that names are features.
GLUE = st.sampled_from("|¦")


@st.composite
def templates(draw, distinct=False):
    """Templates; unless distinct, several lines may give the same name."""
    lines = []
    for k in range(draw(st.integers(1, 6))):
        glue = draw(GLUE)
        head = f"U{k}" if distinct else draw(st.sampled_from(["U0", "U0", "u1", "*é"]))
        commands = [] if head[0] == "*" else draw(st.lists(COMMANDS, max_size=3))
        lines.append(glue.join([head, *commands]))
    return Template.parse("\n".join(["# made up", *lines, "B"]))


WORDS = st.one_of(
    st.text(st.sampled_from("aBc1-_ßİǅΣéÉ٣Ⅷ日😀\u0301\0 ."), max_size=5),
    st.sampled_from(["", "_B-1", "_B+1", "Dog-2", "true", "XXxx", "İstanbul", "\ufeff", "\u2028"]),
)
NUMBERS = st.sampled_from(
    ["0", "1", "-1", "+2", " -3x", "7", "-20", "", "x", "--1", "9" * 20, "-" + "9" * 30]
)
ROWS = st.tuples(WORDS, NUMBERS).map(list)
CORPUS = st.lists(st.lists(ROWS, min_size=1, max_size=6), min_size=1, max_size=4)
THREADS = (1, 2, 3)


def rows_of(batch):
    rows = []
    for a, b in zip(batch.indptr[:-1], batch.indptr[1:], strict=True):
        ids = batch.indices[a:b]
        assert (np.diff(ids.astype(np.int64)) > 0).all()
        assert (ids < batch.n_sparse).all()
        rows.append(ids.tolist())
    return rows


def reference_rows(template, X):
    """The names of the features of each token, in the order of the lines."""
    return [names for sequence in X for names in expand(template, sequence)]


def flat(rows):
    return [x for row in rows for x in row]


def assert_same(a, b):
    assert a.n_sparse == b.n_sparse
    for name in ("offsets", "indptr", "indices"):
        x, y = getattr(a, name), getattr(b, name)
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)
    assert a.values is b.values is None
    assert a.dense is b.dense is None


def named(encoder, batch):
    names = encoder.feature_names()
    return [{names[i] for i in row} for row in rows_of(batch)]


# --- against the slow expansion -------------------------------------------------------------------


@given(templates(), CORPUS)
def test_named_rows(template, X):
    program = TemplateProgram(template.program())
    assert len(program) == len(template.program())
    assert program.n_columns == template.n_columns_needed
    table = Columns.from_rows(X)
    for i, sequence in enumerate(X):
        assert program.named_rows(table, [0, 1], i) == expand(template, sequence)


@given(templates(), CORPUS)
def test_features_are_names(template, X):
    encoder = TemplateEncoder(template)
    expected = [set(names) for names in reference_rows(template, X)]
    if not any(expected):
        with pytest.raises(ValueError, match=r"^X: no feature occurs 1 times"):
            encoder.fit_transform(X)
        return
    batch = encoder.fit_transform(X)
    assert batch.lengths.tolist() == [len(s) for s in X]
    assert named(encoder, batch) == expected
    names = encoder.feature_names()
    assert sorted(names) == sorted(set().union(*expected))  # one number a name
    assert batch.n_sparse == encoder.n_sparse == len(names) == len(encoder.fingerprints)
    assert len(np.unique(encoder.fingerprints)) == len(names)
    some = np.arange(len(names))[::-2]
    assert encoder.names_of(some) == names[::-2]
    assert_same(encoder.transform(X), batch)
    assert_same(encoder.transform(ColumnTable.from_rows(X)), batch)


@given(templates(distinct=True), CORPUS)
def test_numbers_by_first_token_then_line(template, X):
    expected = reference_rows(template, X)
    if any(expected):
        encoder = TemplateEncoder(template)
        encoder.fit_transform(X)
        assert encoder.feature_names() == list(dict.fromkeys(flat(expected)))


@pytest.mark.parametrize("text", ["U%x[0,0]\nU%x[2,0]", "U%x[0,0]\nV%x[0,0]\nU%x[1,0]"])
def test_numbers_of_a_bag_of_words(text):
    template = Template.parse(text.replace("V", "U:"))
    X = [[["a"], ["b"], ["c"]]]
    encoder = TemplateEncoder(template)
    encoder.fit_transform(X)
    names = encoder.feature_names()
    assert names == list(dict.fromkeys(flat(reference_rows(template, X))))


@given(templates(), CORPUS, CORPUS)
def test_unknown_features_are_ignored(template, X, Z):
    encoder = TemplateEncoder(template)
    known = set(flat(reference_rows(template, X)))
    if known:
        encoder.fit_transform(X)
        batch = encoder.transform(Z)
        assert batch.n_sparse == len(known)
        expected = [known.intersection(names) for names in reference_rows(template, Z)]
        assert named(encoder, batch) == expected


@given(templates(distinct=True), CORPUS, st.integers(2, 4))
def test_min_count(template, X, least):
    counts = Counter(flat(reference_rows(template, X)))
    kept = {name for name, n in counts.items() if n >= least}
    encoder = TemplateEncoder(template, min_count=least)
    if not kept:
        with pytest.raises(ValueError, match=rf"X: no feature occurs {least} times; lower the"):
            encoder.fit_transform(X)
        return
    batch = encoder.fit_transform(X)
    assert encoder.feature_names() == [name for name in counts if name in kept]
    assert named(encoder, batch) == [kept.intersection(r) for r in reference_rows(template, X)]
    assert_same(encoder.transform(X), batch)


@settings(max_examples=50)
@given(templates(), CORPUS, st.integers(1, 31))
def test_hashed_features(template, X, bits):
    encoder = TemplateEncoder(template, hash_bits=bits)
    batch = encoder.fit_transform(X)
    assert batch.n_sparse == encoder.n_sparse == 2**bits
    assert encoder.fingerprints is None
    rows = rows_of(batch)
    assert [len(r) > 0 for r in rows] == [len(n) > 0 for n in reference_rows(template, X)]
    if any(rows):
        # A hashed feature is the top of its fingerprint, whatever else there is.
        listed = TemplateEncoder(template)
        of_list = rows_of(listed.fit_transform(X))
        top = [int(x) >> (64 - bits) for x in listed.fingerprints.tolist()]
        assert rows == [sorted({top[j] for j in row}) for row in of_list]
    for threads in THREADS:
        other = TemplateEncoder(template, hash_bits=bits, threads=threads)
        assert_same(other.fit_transform(X[::-1] + X).take(np.arange(len(X), 2 * len(X))), batch)
        assert_same(other.transform(X), batch)


@settings(max_examples=50)
@given(templates(), CORPUS, st.integers(1, 2))
def test_threads_do_not_matter(template, X, least):
    def run(threads):
        encoder = TemplateEncoder(template, min_count=least, threads=threads)
        return encoder, encoder.fit_transform(X), encoder.transform(X[::-1])

    try:
        encoder, batch, other = run(1)
    except ValueError:
        return
    for threads in (2, 3, 100, 0, -1):
        twin, same, same_other = run(threads)
        assert_same(same, batch)
        assert_same(same_other, other)
        np.testing.assert_array_equal(twin.fingerprints, encoder.fingerprints)
        assert twin.feature_names() == encoder.feature_names()


# --- features of two labels -----------------------------------------------------------------------


@st.composite
def pair_templates(draw, distinct=False):
    """Templates with B and * lines; one U line always gives a feature."""
    lines = ["U"]
    for k in range(draw(st.integers(1, 6))):
        heads = ["U0", "B", "B0", "b1", "*é"]
        head = draw(st.sampled_from([f"{h}{k}" for h in heads] if distinct else heads))
        lines.append(draw(GLUE).join([head, *draw(st.lists(COMMANDS, max_size=2))]))
    return Template.parse("\n".join(lines))


def pair_rows_of(batch):
    if batch.pair_indptr is None:
        assert batch.n_pair == 0
        return [[]] * batch.n_tokens
    rows = [ids.tolist() for ids in np.split(batch.pair_indices, batch.pair_indptr[1:-1])]
    assert all((np.diff(row) > 0).all() and max(row, default=-1) < batch.n_pair for row in rows)
    return rows


def reference_pairs(template, X):
    return [names for sequence in X for names in expand(template, sequence, bigrams=True)]


def named_pairs(encoder, batch):
    names = encoder.pair_names()
    return [{names[g] for g in row} for row in pair_rows_of(batch)]


def assert_same_pairs(a, b):
    assert_same(a, b)
    assert a.n_pair == b.n_pair
    for name in ("pair_indptr", "pair_indices"):
        x, y = getattr(a, name), getattr(b, name)
        assert (x is None) == (y is None)
        if x is not None:
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(x, y)


@given(pair_templates(), CORPUS, CORPUS)
def test_bigram_lines(template, X, Z):
    encoder = TemplateEncoder(template)
    batch = encoder.fit_transform(X)
    expected = [set(names) for names in reference_pairs(template, X)]
    known = set().union(*expected)
    assert named(encoder, batch) == [set(names) for names in reference_rows(template, X)]
    assert named_pairs(encoder, batch) == expected
    assert batch.n_pair == encoder.n_pair == len(encoder.pair_names()) == len(known)
    assert set(encoder.pair_names()) == known
    assert encoder.bigrams.names_of(np.arange(len(known))[::-2]) == encoder.pair_names()[::-2]
    assert_same_pairs(encoder.transform(X), batch)
    other = encoder.transform(Z)
    assert named_pairs(encoder, other) == [known & {*n} for n in reference_pairs(template, Z)]


@given(pair_templates(distinct=True), CORPUS, st.integers(1, 3))
def test_bigram_lines_with_min_count(template, X, least):
    counts = Counter(flat(reference_pairs(template, X)))
    kept = [name for name, n in counts.items() if n >= least]
    encoder = TemplateEncoder(template, min_count=least)
    try:
        batch = encoder.fit_transform(X)
    except ValueError:
        assert max(Counter(flat(reference_rows(template, X))).values()) < least
        return
    assert encoder.pair_names() == kept  # in order of appearance
    expected = [set(kept).intersection(names) for names in reference_pairs(template, X)]
    assert named_pairs(encoder, batch) == expected


@settings(max_examples=50)
@given(pair_templates(), CORPUS)
def test_bigram_lines_threads_and_copies(template, X):
    encoder = TemplateEncoder(template)
    batch = encoder.fit_transform(X)
    for threads in (2, 3, 100):
        twin = TemplateEncoder(template, threads=threads)
        assert_same_pairs(twin.fit_transform(X), batch)
        assert twin.pair_names() == encoder.pair_names()
        np.testing.assert_array_equal(twin.bigrams.fingerprints, encoder.bigrams.fingerprints)
    restored = TemplateEncoder.restore(
        template,
        n_columns=2,
        label_column=None,
        hash_bits=None,
        fingerprints=encoder.fingerprints,
        pair_fingerprints=encoder.bigrams.fingerprints,
        pair_names=encoder.pair_names,
    )
    for twin in (pickle.loads(pickle.dumps(encoder)), copy.deepcopy(encoder), restored):
        assert_same_pairs(twin.transform(X), batch)
        assert twin.pair_names() == encoder.pair_names()
    some = np.arange(len(X))[::-1]
    assert pair_rows_of(batch.take(some)) == pair_rows_of(encoder.transform(X[::-1]))


PAIRS = Template.parse("U0|%x[0,0]\nB\nB0|%x[0,0]\n*1|%x[-1,0]\n*", "pairs")


def test_bigram_lines_of_a_small_template():
    encoder = TemplateEncoder(PAIRS)
    batch = encoder.fit_transform([["a"], ["b"]])  # one column, sequences of one row each
    assert encoder.feature_names() == ["U0|a", "*1|_B-1", "*", "U0|b"]
    assert encoder.pair_names() == ["B0|a", "*1|_B-1", "B0|b"]
    assert pair_rows_of(batch) == [[0, 1], [1, 2]]
    assert (encoder.n_sparse, encoder.n_pair, encoder.fresh().n_pair) == (4, 3, 0)
    assert len(encoder.unigrams) == 4
    assert len(encoder.bigrams) == 3
    assert batch.nbytes > encoder.unigrams.known(as_table([["a"]]), [0], 1)[0].nbytes


def test_bigram_lines_do_not_go_with_hashing():
    message = r"^pairs: B lines with commands need a list of the features, which hash_bits"
    with pytest.raises(ValueError, match=message):
        TemplateEncoder(PAIRS, hash_bits=8)
    assert TemplateEncoder(Template.parse("U%x[0,0]\nB\n*"), hash_bits=8).n_pair == 0


@pytest.mark.parametrize("line", ["B%x[0,1]", "*%x[0,1]", "B%x[*1,0]"])
def test_bigram_lines_may_not_use_labels_or_missing_columns(line):
    template = Template.parse(f"U%x[0,0]\n{line}", "mine")
    with pytest.raises(ValueError, match=r"mine, line 2: .* which holds the labels"):
        TemplateEncoder(template, label_column=1).fit_transform([[["a", "N"]]])
    with pytest.raises(ValueError, match=r"mine, line 2: .* names column 1"):
        TemplateEncoder(template).fit_transform([[["a"]]])


def test_encoders_of_other_pair_features_differ():
    first, second = TemplateEncoder(PAIRS), TemplateEncoder(PAIRS)
    first.fit_transform([[["a"], ["b"]]])
    second.fit_transform([[["a"], ["c"]]])
    assert first.identity()[2][1].tolist() != second.identity()[2][1].tolist()


# --- more than a block ----------------------------------------------------------------------------

LONG = Template.parse(
    "U0|%x[0,0]\nU1|%x[-1,0]|%x[+1,0]\nU2|%s[0,0,2]\nU3|%x[-2,0]\nU3|%x[2,0]\nU4|%t[@1,0,\"9\"]"
)


def numbers(lengths, seed):
    rng = np.random.default_rng(seed)
    return [[[str(k)] for k in rng.integers(0, 300, n).tolist()] for n in lengths]


@pytest.mark.parametrize(
    "lengths",
    [[8191, 1, 1], [5, 9000, 3], [7] * 1300, [1] * 8193],
    ids=["just", "long", "short", "ones"],
)
def test_blocks(lengths):
    X = numbers(lengths, 1)
    expected = [set(names) for names in reference_rows(LONG, X)]
    results = []
    for threads in THREADS:
        encoder = TemplateEncoder(LONG, threads=threads)
        batch = encoder.fit_transform(X)
        assert_same(encoder.transform(X), batch)
        results.append((encoder, batch))
    assert named(*results[0]) == expected
    for encoder, batch in results[1:]:
        assert_same(batch, results[0][1])
        np.testing.assert_array_equal(encoder.fingerprints, results[0][0].fingerprints)


def test_a_sequence_in_several_blocks():
    # Neighbours in the same block, in the next one, and farther than what is kept around a block.
    lines = [f"U{k}|%x[{k},0]" for k in (-9000, -65, -64, -2, 0, 1, 64, 65, 8192)]
    lines += ["Ua|%x[@1,0]|%x[@-1,0]|%x[0,0]", "Ui|%x[*1,0]|%x[1,0]", "U|%s[-3,0,3]|%x[2,0]", "Uc"]
    template = Template.parse("\n".join(lines))
    X = [
        [[word, str(k % 17 - 8) if k % 1000 else "-10000"] for k, (word,) in enumerate(sequence)]
        for sequence in numbers([16390, 3, 8193, 8192], 3)
    ]
    encoder = TemplateEncoder(template)
    batch = encoder.fit_transform(X)
    assert named(encoder, batch) == [set(names) for names in reference_rows(template, X)]
    assert_same(encoder.transform(X), batch)
    program = TemplateProgram(template.program())
    assert program.named_rows(Columns.from_rows(X), [0, 1], 2) == expand(template, X[2])


def test_many_lines():
    # Rows that are too long for the simple sort, and half of them given twice.
    lines = [f"U{k % 40}|%x[{k % 7 - 3},0]" for k in range(120)]
    template = Template.parse("\n".join(lines))
    X = numbers([20, 3], 2)
    encoder = TemplateEncoder(template)
    batch = encoder.fit_transform(X)
    assert named(encoder, batch) == [set(names) for names in reference_rows(template, X)]
    assert np.diff(batch.indptr).min() > 48
    hashed = TemplateEncoder(template, hash_bits=3).fit_transform(X)
    assert max(map(len, rows_of(hashed))) <= 8


class Counted(str):
    """A text that counts how often it is written into another one."""

    __slots__ = ()
    formatted = 0

    def __format__(self, spec):
        Counted.formatted += 1
        return str(self)


def test_a_line_is_written_out_for_an_error_only():
    # For each command it would be a copy of the line: quadratic in the length of a line.
    template = Template.parse("U:" + "%x[0,0]" * 50)
    lines = tuple(line._replace(text=Counted(line.text)) for line in template.lines)
    counted = Template(template.text, Counted("mine"), lines)
    TemplateEncoder(counted).fit_transform([[["a"], ["b"]]])
    assert Counted.formatted == 0


def test_a_long_line_is_cut_in_messages():
    template = Template.parse("U:" + "%x[0,0]" * 900 + "%x[0,7]", "mine")
    with pytest.raises(ValueError, match=r"^mine, line 1: U:.*…: names column 7, but") as info:
        TemplateEncoder(template).fit_transform([[["a"]]])
    assert len(str(info.value)) < 200


def test_many_commands_and_groups_of_lines():
    lines = [f"U{k % 700}:%s[{k % 5},0,{1 + k % 9}]%p[0,0,{1 + k % 7}]" for k in range(2100)]
    template = Template.parse("\n".join([*lines, "U" + "%x[0,0]" * 1000]))
    X = [[["ab"], ["cdefghijkl"], ["m"], ["nopqrst"], ["uv"]]]
    encoder = TemplateEncoder(template)
    found = named(encoder, encoder.fit_transform(X))
    assert found == [set(row) for row in expand(template, X[0])]


def test_many_features():
    # The index grows many times.
    X = [[[str(k)] for k in range(20_000)]]
    encoder = TemplateEncoder(Template.parse("U%x[0,0]"))
    batch = encoder.fit_transform(X)
    assert batch.indices.tolist() == list(range(20_000))
    assert encoder.transform(X).indices.tolist() == list(range(20_000))
    assert encoder.names_of(np.array([19_999, 0])) == ["U19999", "U0"]


# --- columns --------------------------------------------------------------------------------------


def table_of(n, source="file.txt"):
    return ColumnTable.from_rows([[[f"c{k}" for k in range(n)]]], source)


@pytest.mark.parametrize(
    ("found", "trained", "label", "layout"),
    [
        (3, 3, None, [0, 1, 2]),
        (3, 3, 1, [0, 1, 2]),
        (2, 3, 2, [0, 1, 0]),
        (2, 3, 1, [0, 0, 1]),
        (2, 3, 0, [0, 0, 1]),
        (1, 2, 0, [0, 0]),
        (1, 1, None, [0]),
    ],
)
def test_layout(found, trained, label, layout):
    assert column_layout(table_of(found), trained, label) == layout


@pytest.mark.parametrize(
    ("found", "trained", "label", "message"),
    [
        (1, 2, None, "found 1 column; expected 2, as in training"),
        (4, 3, None, "found 4 columns; expected 3, as in training"),
        (
            4,
            3,
            2,
            "found 4 columns; expected 3, as in training (the label in column 2), or 2 without "
            "the label",
        ),
        (
            1,
            3,
            0,
            "found 1 column; expected 3, as in training (the label in column 0), or 2 without "
            "the label",
        ),
    ],
)
def test_bad_layout(found, trained, label, message):
    with pytest.raises(ValueError) as caught:
        column_layout(table_of(found), trained, label)
    assert str(caught.value) == f"file.txt: {message}"


@pytest.mark.parametrize("label", [0, 1, 2])
def test_the_label_may_be_left_out(label):
    columns = [k for k in range(3) if k != label]
    template = Template.parse("\n".join(f"U{k}|%x[0,{k}]|%x[-1,{k}]" for k in columns))
    X = [[["a", "b", "c"], ["d", "e", "f"]], [["a", "e", "c"]]]
    bare = [[[row[k] for k in columns] for row in sequence] for sequence in X]
    encoder = TemplateEncoder(template, label_column=label)
    batch = encoder.fit_transform(X)
    assert encoder.n_columns == 3
    assert_same(encoder.transform(bare), batch)
    assert_same(encoder.transform(X), batch)
    with pytest.raises(ValueError, match=r"^X: found 1 column; expected 3"):
        encoder.transform([["a"]])


@pytest.mark.parametrize(
    ("line", "n", "label", "message"),
    [
        ("U2:%x[0,5]", 2, None, "names column 5, but file.txt has columns 0 to 1"),
        ("U2:%x[0,0]%p[-1,1,3]", 1, None, "names column 1, but file.txt has column 0 only"),
        ("U2:%x[*3,0]", 3, 2, "names column 3, but file.txt has columns 0 to 2"),
        (
            "U2:%x[-1,1]",
            2,
            1,
            "names column 1, which holds the labels of file.txt; expected another column",
        ),
        (
            "U2:%x[*1,0]",
            2,
            1,
            "names column 1, which holds the labels of file.txt; expected another column",
        ),
    ],
)
def test_templates_that_do_not_fit(line, n, label, message):
    template = Template.parse(f"# comment\nU1:%x[0,0]\n\n  {line} \nB\n", "my.template")
    encoder = TemplateEncoder(template, label_column=label)
    with pytest.raises(ValueError) as caught:
        encoder.fit_transform(table_of(n))
    assert str(caught.value) == f"my.template, line 4: {line}: {message}"


def test_a_table_that_knows_its_labels():
    table, _ = ColumnTable.from_rows([[["a", "N"], ["b", "V"]]], "file.txt").labelled()
    encoder = TemplateEncoder(SMALL)
    batch = encoder.fit_transform(table)
    assert encoder.label_column == 1
    assert_same(encoder.transform([["a", "b"]]), batch)
    with pytest.raises(ValueError, match=r"names column 1, which holds the labels of file\.txt"):
        TemplateEncoder(Template.parse("U%x[0,1]")).fit_transform(table)


def test_a_label_column_is_forgotten_with_its_table():
    encoder = TemplateEncoder(Template.parse("U%x[0,0]"))
    table = ColumnTable.from_rows([[["N", "a"], ["V", "b"]]])
    encoder.fit_transform(table.labelled(1)[0])
    batch = encoder.fit_transform(table)  # no labels in this one
    assert encoder.label_column is None
    assert_same(encoder.fresh().fit_transform(table), batch)
    with pytest.raises(ValueError, match=r"found 1 column; expected 2, as in training$"):
        encoder.transform([["N"]])


def test_a_feature_counts_once_a_token():
    # As FeatureEncoder counts; see test_encode.
    encoder = TemplateEncoder(Template.parse("U%x[0,0]\nU%x[@1,0]"), min_count=2)
    encoder.fit_transform([["a"], ["b"], ["b"]])
    assert encoder.feature_names() == ["Ub"]


def test_as_table():
    table = table_of(2)
    assert as_table(table) is table
    assert as_table([["a"]]).n_columns == 1
    with pytest.raises(TypeError, match=r"X is an int"):
        as_table(3)


# --- the encoder ----------------------------------------------------------------------------------

SMALL = Template.parse("U0|%x[0,0]\nU1|%x[-1,0]", "small")
X_SMALL = [[["a"], ["b"], ["a"]], [["b"], ["c"]]]


def fitted(**options):
    encoder = TemplateEncoder(SMALL, **options)
    return encoder, encoder.fit_transform(X_SMALL)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_count": 0}, "min_count is 0; expected at least 1"),
        ({"hash_bits": 0}, "hash_bits is 0; expected 1 to 31"),
        ({"hash_bits": 32}, "hash_bits is 32; expected 1 to 31"),
        ({"hash_bits": 8, "min_count": 2}, "min_count needs a list of the features"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        TemplateEncoder(SMALL, **options)


def test_attributes():
    encoder, batch = fitted()
    assert (encoder.kind, encoder.n_dense, encoder.vocabulary) == ("columns", 0, None)
    assert encoder.feature_names() == ["U0|a", "U1|_B-1", "U0|b", "U1|a", "U1|b", "U0|c"]
    assert rows_of(batch) == [[0, 1], [2, 3], [0, 4], [1, 2], [4, 5]]
    assert encoder.identity()[:2] == (SMALL.text, None)
    hashed, _ = fitted(hash_bits=2)
    assert hashed.feature_names() == ["hash:0", "hash:1", "hash:2", "hash:3"]
    assert hashed.names_of(np.array([2])) == ["hash:2"]
    assert hashed.identity()[:2] == (SMALL.text, 2)
    assert [len(known) for known in hashed.identity()[2]] == [0, 0]
    assert hashed.fingerprints is None
    assert (encoder.n_pair, hashed.n_pair, encoder.pair_names()) == (0, 0, [])


def test_fresh():
    encoder, _ = fitted(min_count=2, label_column=3, threads=2)
    fresh = encoder.fresh()
    assert (fresh.min_count, fresh.label_column, fresh.threads) == (2, 3, 2)
    assert fresh.template is SMALL
    assert fresh.n_sparse == 0
    assert fresh.feature_names() == []
    assert fitted(hash_bits=5)[0].fresh().hash_bits == 5


def test_what_was_learned_before_is_forgotten():
    encoder, _ = fitted()
    encoder.transform(X_SMALL)
    encoder.fit_transform([["z", "a"]])
    assert encoder.feature_names() == ["U0|z", "U1|_B-1", "U0|a", "U1|z"]
    assert rows_of(encoder.transform([["a"], ["b"]])) == [[1, 2], [1]]


def test_a_failed_fit_leaves_the_columns_as_they_were():
    encoder, batch = fitted()
    for bad in (3, [], [[["a", 3]]]):
        with pytest.raises((TypeError, ValueError)):
            encoder.fit_transform(bad)
    assert_same(encoder.transform(X_SMALL), batch)


def test_a_fit_without_features_leaves_the_encoder_as_it_was():
    encoder, batch = fitted(min_count=2)
    encoder.transform(X_SMALL)
    names = encoder.feature_names()
    with pytest.raises(ValueError, match=r"no feature occurs 2 times"):
        encoder.fit_transform([["x", "y"]])
    assert_same(encoder.transform(X_SMALL), batch)
    assert encoder.feature_names() == names


def test_not_fitted():
    with pytest.raises(NotFittedError):
        TemplateEncoder(SMALL).transform(X_SMALL)


@pytest.mark.parametrize("options", [{}, {"min_count": 2}, {"hash_bits": 6}])
@pytest.mark.parametrize("used", [False, True])
def test_copies(options, used):
    encoder, batch = fitted(label_column=1, **options)
    if used:
        encoder.transform(X_SMALL)
    for twin in (pickle.loads(pickle.dumps(encoder)), copy.deepcopy(encoder), copy.copy(encoder)):
        assert_same(twin.transform(X_SMALL), batch)
        assert twin.feature_names() == encoder.feature_names()
        assert twin.names_of(np.array([1])) == encoder.names_of(np.array([1]))
        assert (twin.n_columns, twin.label_column) == (1, 1)
        again = pickle.loads(pickle.dumps(twin))
        assert again.feature_names() == encoder.feature_names()
        again.fit_transform([["z"], ["z"]])
        assert_same(encoder.transform(X_SMALL), batch)
        if not options:
            assert again.feature_names() == ["U0|z", "U1|_B-1"]
    unfitted = pickle.loads(pickle.dumps(encoder.fresh()))
    assert_same(unfitted.fit_transform(X_SMALL), batch)


def test_restore():
    encoder, batch = fitted()
    asked = []

    def names():
        asked.append(1)
        return encoder.feature_names()

    options = {"n_columns": 1, "label_column": None, "hash_bits": None}
    twin = TemplateEncoder.restore(
        SMALL, **options, fingerprints=encoder.fingerprints, names=names, min_count=3
    )
    assert_same(twin.transform(X_SMALL), batch)
    assert asked == []
    assert twin.feature_names() == encoder.feature_names()
    assert twin.names_of(np.array([5, 0])) == ["U0|c", "U0|a"]
    assert asked == [1]
    assert twin.min_count == 3
    nameless = TemplateEncoder.restore(SMALL, **options, fingerprints=encoder.fingerprints[:2])
    assert nameless.feature_names() == ["feature:0", "feature:1"]
    assert rows_of(nameless.transform(X_SMALL)) == [[0, 1], [], [0], [1], []]
    for copied in (pickle.loads(pickle.dumps(twin)), copy.deepcopy(nameless)):
        assert copied.n_sparse == len(copied.feature_names())


def test_restore_with_hashing():
    _, batch = fitted(hash_bits=7)
    twin = TemplateEncoder.restore(
        SMALL, n_columns=1, label_column=None, hash_bits=7, fingerprints=None
    )
    assert twin.n_sparse == 128
    assert_same(twin.transform(X_SMALL), batch)


def test_damaged_fingerprints():
    twice = np.array([5, 7, 5], np.uint64)
    encoder = TemplateEncoder.restore(
        SMALL, n_columns=1, label_column=None, hash_bits=None, fingerprints=twice
    )
    with pytest.raises(ValueError, match=r"two features have the same fingerprint"):
        encoder.transform(X_SMALL)


# --- the native classes ---------------------------------------------------------------------------


def test_feature_index():
    keys = np.random.default_rng(0).integers(0, 2**63, 5000, np.uint64) * np.uint64(2)
    keys = np.unique(np.concatenate([keys, np.array([0, 1, 2**64 - 1], np.uint64)]))
    index = FeatureIndex(keys)
    assert len(index) == len(keys)
    assert index.memory_bytes >= 16 * len(keys)
    assert len(FeatureIndex(np.zeros(0, np.uint64))) == 0
    # Neighbours in the table: the same top bits.
    assert len(FeatureIndex(np.arange(1000, dtype=np.uint64))) == 1000
    for bad in (None, 3, keys.reshape(1, -1)):
        with pytest.raises(TypeError):
            FeatureIndex(bad)


def test_an_empty_index_knows_nothing():
    program = TemplateProgram(SMALL.program())
    indptr, indices = program.known(
        Columns.from_rows(X_SMALL), [0], FeatureIndex(np.zeros(0, np.uint64)), 2
    )
    assert indptr.tolist() == [0] * 6
    assert indices.tolist() == []


PIECE = ("x", 0, 0, 0, "", False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({0: "y"}, "unknown command y"),
        ({0: "xx"}, "the kind of a piece is one letter"),
        ({0: ""}, "the kind of a piece is one letter"),
        ({1: 3}, "the mode of a piece is 0, 1 or 2"),
        ({1: -1}, "the mode of a piece is 0, 1 or 2"),
        ({2: 2**31}, "a number is out of range"),
        ({2: -(2**62)}, "a number is out of range"),
        ({3: -1}, "a number is out of range"),
        ({3: 2**40}, "a number is out of range"),
        ({1: 2, 2: -1}, "a column is negative"),
        ({0: "p"}, "at least one character"),
        ({0: "s", 4: "0"}, "at least one character"),
    ],
)
def test_bad_programs(change, message):
    piece = list(PIECE)
    for k, value in change.items():
        piece[k] = value
    with pytest.raises(ValueError, match=message):
        TemplateProgram([[tuple(piece)]])


@pytest.mark.parametrize(
    "lines", [None, 3, [3], [[3]], [[PIECE[:5]]], [[(*PIECE, 1)]], [[("x", "0", 0, 0, "", False)]]]
)
def test_programs_of_other_types(lines):
    # Which exception the caster chooses is its own business.
    with pytest.raises((TypeError, RuntimeError)):
        TemplateProgram(lines)


def test_native_arguments_out_of_range():
    program = TemplateProgram(Template.parse("U%x[0,1]\nU").program())
    table = Columns.from_rows([[["a", "b"], ["c", "d"]]])
    index = FeatureIndex(np.zeros(0, np.uint64))
    token = np.zeros(1, np.uint32)
    for which, message in [
        ([], "the template needs more columns"),
        ([0], "the template needs more columns"),
        ([0, 2], "the table has no column 2"),
        ([0, 1, 2**64 - 1], "the table has no column"),
    ]:
        for call in (
            lambda w: program.learn(table, w),
            lambda w: program.known(table, w, index),
            lambda w: program.hashed(table, w, 3),
            lambda w: program.names(table, w, token, token),
            lambda w: program.named_rows(table, w, 0),
        ):
            with pytest.raises(ValueError, match=message):
                call(which)
    for bits in (0, 32, 2**32 - 1):
        with pytest.raises(ValueError, match=rf"hash bits are {bits}; expected 1 to 31"):
            program.hashed(table, [0, 1], bits)
    with pytest.raises(ValueError, match=r"there is no sequence 1"):
        program.named_rows(table, [0, 1], 1)
    for bad in ([2, 0], [0, 2], [2**32 - 1, 0]):
        with pytest.raises(ValueError, match=r"there is no such token or line"):
            program.names(table, [0, 1], *(np.array([k], np.uint32) for k in bad))
    with pytest.raises(ValueError, match=r"a line for each token"):
        program.names(table, [0, 1], token, np.zeros(2, np.uint32))
    text, ends = program.names(table, [0, 1], *np.array([[1, 0, 0], [0, 1, 0]], np.uint32))
    assert (text, ends.tolist()) == (b"UdUUb", [0, 2, 3, 5])


def test_empty_tables_and_programs():
    empty, table = Columns.parse(b""), Columns.from_rows([["a", "b"]])
    bias = TemplateProgram([[("=", 0, 0, 0, "U", False)]])
    for threads in THREADS:
        assert [len(a) for a in bias.learn(empty, [], 1, threads)] == [1, 0, 0, 0, 0]
        assert [len(a) for a in bias.hashed(empty, [], 4, threads)] == [1, 0]
        nothing = TemplateProgram([])
        assert nothing.learn(table, [], 1, threads)[0].tolist() == [0, 0, 0]
        assert nothing.hashed(table, [], 1, threads)[0].tolist() == [0, 0, 0]
    assert TemplateProgram([]).named_rows(table, [0], 0) == [[], []]
    assert bias.learn(table, [0])[1].tolist() == [0, 0]


# --- chains ---------------------------------------------------------------------------------------

TAGGED = [
    [["the", "D"], ["dog", "N"], ["barks", "V"]],
    [["dogs", "N"], ["bark", "V"]],
    [["bark", "V"]],
]
WORDS_ONLY = [[[row[0]] for row in sequence] for sequence in TAGGED]
LABELS = [[row[1] for row in sequence] for sequence in TAGGED]


def learned(X, Y, **options):
    chain = Chain(encoder=TemplateEncoder(SMALL, label_column=1), **options)
    return chain, *chain.learn(X, Y)


def test_learning_from_a_table():
    table = ColumnTable.from_rows(TAGGED)
    chain, batch, codes = learned(table, table.labels(1))
    assert chain.classes_ == ["D", "N", "V"]
    assert chain.labels_ == ["V", "N", "D"]
    assert [chain.labels_[k] for k in codes] == flat(LABELS)
    assert chain.n_features == (batch.n_sparse + 3 + 2) * 3
    for X, Y in ((TAGGED, LABELS), (TAGGED, table.labels(1)), (table, LABELS)):
        other, same_batch, same_codes = learned(X, Y)
        assert_same(same_batch, batch)
        np.testing.assert_array_equal(same_codes, codes)
        assert other.labels_ == chain.labels_
    np.testing.assert_array_equal(chain.known_codes(table.labels(1)), codes)
    np.testing.assert_array_equal(chain.known_codes(LABELS), codes)


def test_labels_of_a_table():
    table = ColumnTable.from_rows(TAGGED)
    chain, _, codes = learned(table, table.labels(1), labels=["V", "X", "N", "D"])
    assert chain.classes_ == ["V", "X", "N", "D"]
    assert [chain.labels_[k] for k in codes] == flat(LABELS)
    with pytest.raises(
        ValueError, match=r"y: sequence 0, token 0: unknown label 'D'; .* the 2 known .*'V', 'N'"
    ):
        learned(table, table.labels(1), labels=["V", "N"])
    strange = LabelCodes(np.array([0, 1, 0], np.int32), ["?", "V"], np.array([0, 3]))
    assert chain.known_codes(strange).tolist() == [-1, chain.labels_.index("V"), -1]
    with pytest.raises(ValueError, match=r"X has 3 sequences and y has 1"):
        chain.learn(table, strange)
    with pytest.raises(ValueError, match=r"sequence 1 has 2 tokens in X and 1 labels in y"):
        chain.learn(table, LabelCodes(np.zeros(5, np.int32), ["V"], np.array([0, 3, 4, 5])))
    assert chain.classes_ == ["V", "X", "N", "D"]  # as it was


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from([None, "callable"]))
def test_predictions_and_restored_chains(seed, allowed):
    table = ColumnTable.from_rows(TAGGED)
    rule = None if allowed is None else lambda a, b: a != "N" or b is None or b == "V"
    chain, batch, _ = learned(table, table.labels(1), allowed=rule)
    weights = chain.pad(np.random.default_rng(seed).normal(size=chain.n_features), "float32")
    expected = chain.predict(WORDS_ONLY, weights)
    assert chain.predict(table, weights) == expected
    codes = chain.predict_encoded(batch, weights, 2)
    assert codes.dtype == np.int32
    assert [chain.labels_[k] for k in codes] == flat(expected)
    encoder = TemplateEncoder.restore(
        SMALL,
        n_columns=2,
        label_column=1,
        hash_bits=None,
        fingerprints=chain.encoder.fingerprints,
    )
    twin = Chain.restore(encoder, chain.classes_, chain.class_columns_, chain.mask)
    assert (twin.labels_, twin.n_features) == (chain.labels_, chain.n_features)
    assert twin.predict(WORDS_ONLY, weights) == expected
    assert twin.kbest(table, weights, 3) == chain.kbest(table, weights, 3)
    free = Chain.restore(encoder, chain.classes_, chain.class_columns_)
    assert free.mask is None
    if allowed is None:
        assert free.predict(WORDS_ONLY, weights) == expected


def test_encoded_problems():
    table = ColumnTable.from_rows(TAGGED)
    chain, batch, codes = learned(table, table.labels(1))
    weights = chain.pad(np.random.default_rng(3).normal(size=chain.n_features), "float64")
    prepared = Chain(encoder=TemplateEncoder(SMALL, label_column=1)).prepare_problem(table, LABELS)
    made = chain.make_problem(WORDS_ONLY, LABELS)
    encoded = chain.encoded_problem(batch, codes)
    assert encoded.n_examples == made.n_examples == 3
    hinge = encoded.hinge(weights)
    assert hinge > 0
    assert made.hinge(weights) == prepared.problem.hinge(weights) == hinge
    np.testing.assert_array_equal(encoded.score(weights, codes), made.score(weights, codes))
    weighted = chain.encoded_problem(batch, codes, [np.zeros(n) for n in batch.lengths])
    assert weighted.hinge(weights) < hinge
    with pytest.raises(ValueError):
        chain.encoded_problem(batch, codes[:-1])
    for wrong in (-1, 3):
        with pytest.raises(ValueError):
            chain.encoded_problem(batch, np.full_like(codes, wrong))


def test_batches_of_another_encoder_are_refused():
    chain, _, _ = learned(TAGGED, LABELS)
    _, other = fitted()
    weights = chain.pad(np.zeros(chain.n_features))
    with pytest.raises(ValueError):
        chain.predict_encoded(other, weights)


def test_chains_that_are_not_prepared():
    _, batch = fitted()
    chain = Chain(encoder=TemplateEncoder(SMALL))
    with pytest.raises(NotFittedError):
        chain.predict_encoded(batch, np.zeros(3))
    with pytest.raises(NotFittedError):
        chain.known_codes(LABELS)
    with pytest.raises(ValueError):
        chain.encoded_problem(batch)
