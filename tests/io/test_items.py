"""Item files: native parser against a plain Python twin, writers, bad inputs."""

from __future__ import annotations

import contextlib
import gzip
import io
import re
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin._native import Vocabulary, parse_items
from maxmargin.errors import FileFormatError, MaxMarginError
from maxmargin.features import EncodedBatch, FeatureEncoder, LabelCodes
from maxmargin.io.crfsuite import crfsuite_texts, read_crfsuite
from maxmargin.io.named_features import NamedFeatures
from maxmargin.io.svmhmm import number_features, read_svmhmm, svmhmm_texts, tag_text

# --- twins -------------------------------------------------------------------------------------


def split_field(field):
    """(name, value text or None): escapes undone, cut at the last colon that is not escaped."""
    pieces = re.findall(r"\\[:\\]|.", field, re.DOTALL)
    colon = max((k for k, piece in enumerate(pieces) if piece == ":"), default=None)
    name = [p[1] if len(p) == 2 else p for p in pieces[:colon]]
    return "".join(name), None if colon is None else "".join(pieces[colon + 1 :])


def crfsuite_twin(text):
    """Sequences as (weight, [(label, {name: value})]), names in order of appearance."""
    names, sequences = {}, []
    weight, tokens = 1.0, []
    for line in [*text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n"), ""]:
        if not line.strip(" \t"):
            if tokens:
                sequences.append((weight, tokens))
            weight, tokens = 1.0, []
            continue
        fields = line.split("\t")
        if fields[0].startswith("@"):
            assert fields[0].startswith("@weight:")
            weight = float(fields[0].removeprefix("@weight:"))
            fields = fields[1:]
            if not fields:
                continue
        row = {}
        for field in fields[1:]:
            if not field:
                continue
            name, value = split_field(field)
            number = float(value) if value else 1.0
            if number != 0:
                names.setdefault(name, len(names))
                row[name] = row.get(name, 0.0) + number
        label = re.sub(r"\\([:\\])", r"\1", fields[0])
        tokens.append((label, {k: np.float32(v) for k, v in row.items() if np.float32(v) != 0}))
    return sequences, list(names)


def svmhmm_twin(text):
    names, sequences, last = {}, [], None
    for line in text.split("\n"):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        words = words[:1] + " ".join(words[1:]).split("#")[0].split()
        if words[1] != last:
            sequences.append((1.0, []))
            last = words[1]
        row = {}
        for word in words[2:]:
            number, value = word.split(":")
            if float(value) != 0:
                names.setdefault(str(int(number)), len(names))
                row[str(int(number))] = np.float32(float(value))
        sequences[-1][1].append((words[0], {k: v for k, v in row.items() if v != 0}))
    return sequences, list(names)


def content(parsed, names):
    """What parse_items gave, in the shape of the twins; its promises are checked on the way."""
    offsets, indptr, indices, values, codes, labels, weights = parsed
    assert offsets.dtype == indptr.dtype == np.int64
    assert indices.dtype == np.uint32
    assert codes.dtype == np.int32
    assert len(set(labels)) == len(labels)
    assert list(dict.fromkeys(codes.tolist())) == list(range(len(labels)))
    if values is not None:
        assert values.dtype == np.float32
        assert not (values == 1).all()
    if weights is not None:
        assert weights.dtype == np.float32
    sequences = []
    for i in range(len(offsets) - 1):
        tokens = []
        for t in range(offsets[i], offsets[i + 1]):
            ids = indices[indptr[t] : indptr[t + 1]]
            assert (np.diff(ids.astype(np.int64)) > 0).all()
            its = np.ones(len(ids)) if values is None else values[indptr[t] : indptr[t + 1]]
            row = {names[k]: v for k, v in zip(ids, its, strict=True)}
            tokens.append((labels[codes[t]], row))
        sequences.append((1.0 if weights is None else weights[i], tokens))
    return sequences


def parse(text, file_format="crfsuite", vocabulary=None):
    data = text if isinstance(text, bytes) else text.encode()
    grow = vocabulary is None
    vocabulary = Vocabulary() if grow else vocabulary
    parsed = parse_items(data, file_format, vocabulary, grow, True)
    return content(parsed, vocabulary.names()), vocabulary.names()


# --- CRFsuite ----------------------------------------------------------------------------------

ALPHABET = st.sampled_from("ab\\:é日 =0-@#\x00")
FIELD_NAMES = st.text(ALPHABET, min_size=1, max_size=6)
NUMBERS = st.one_of(
    st.sampled_from(["0", "1", "-1", "+2", "1.", ".5", "-.25", "1e3", "2E-2", "0.0"]),
    st.sampled_from(["1e-60", "1e-400", "007", "1.5e+2", "0.1000000000000000055", "1" + "0" * 11]),
    st.floats(-(2.0**36), 2.0**36, width=32).map(repr),
    st.integers(-(10**11), 10**11).map(str),
    st.decimals(-1000, 1000, places=7, allow_nan=False).map(lambda d: format(d, "f")),
)


def escaped(name):
    return name.replace("\\", "\\\\").replace(":", "\\:")


@st.composite
def crfsuite_text(draw):
    lines = []
    for _ in range(draw(st.integers(0, 4))):
        if draw(st.booleans()):
            lines.append("@weight:" + draw(st.sampled_from(["2", "0.5", "1", "0"])))
            lines[-1] += draw(st.sampled_from(["", "", "\tZ\tq"]))
        for _ in range(draw(st.integers(1, 3))):
            fields = [draw(st.sampled_from(["B", "I:x", "O\\:", "\\\\", "a\\b", "é"]))]
            for _ in range(draw(st.integers(0, 5))):
                # Some escapes that need not be there, and some backslashes that mean nothing.
                name = escaped(draw(FIELD_NAMES))
                field = draw(st.sampled_from([name, name + "\\x", ""]))
                if field and draw(st.booleans()):
                    field += ":" + draw(st.one_of(st.just(""), NUMBERS))
                fields.append(field)
            lines.append("\t".join(fields))
        lines += draw(st.sampled_from([[""], ["", ""], [" \t"]]))
    if draw(st.booleans()):
        lines.pop() if lines else None
    end = draw(st.sampled_from(["\n", "\r\n"]))
    bom = draw(st.sampled_from(["", "\ufeff"]))
    return bom + end.join(lines) + draw(st.sampled_from(["", end]))


@given(crfsuite_text())
def test_crfsuite_agrees_with_the_twin(text):
    assert parse(text) == crfsuite_twin(text)


@given(crfsuite_text(), crfsuite_text())
def test_known_features_only(first, second):
    _, names = parse(first)
    vocabulary = Vocabulary.from_names(names)
    found, same = parse(second, vocabulary=vocabulary)
    assert same == names
    wanted = [
        (w, [(y, {k: v for k, v in row.items() if k in names}) for y, row in tokens])
        for w, tokens in crfsuite_twin(second)[0]
    ]
    assert found == wanted


@given(NUMBERS)
def test_numbers_are_read_as_python_reads_them(text):
    found, _ = parse(f"A\tx:{text}")
    value = np.float32(float(text))
    assert found == [(1.0, [("A", {"x": value} if value != 0 else {})])]


def test_escapes_as_crfsuite_has_them():
    found, names = parse("A\\:b\ta\\:b\ta\\\\:2\t\\x\tend\\\tq:r:3\t\\:\tlast:")
    assert names == ["a:b", "a\\", "\\x", "end\\", "q:r", ":", "last"]
    assert found == [
        (1.0, [("A:b", dict(zip(names, [1.0, 2.0, 1.0, 1.0, 3.0, 1.0, 1.0], strict=True)))])
    ]


def test_repeated_attributes_add_up_and_zeros_go():
    found, names = parse("A\tx\ty:0\tx:2.5\tz\tz:-1")
    assert found == [(1.0, [("A", {"x": 3.5})])]
    assert names == ["x", "z"]


def test_values_are_none_where_all_are_one():
    assert parse_items(b"A\tx\ty:1\n", "crfsuite", Vocabulary(), True, True)[3] is None
    values = parse_items(b"A\tx\n\nB\ty:2\n", "crfsuite", Vocabulary(), True, True)[3]
    assert values.tolist() == [1.0, 2.0]


def test_labels_that_are_not_wanted():
    parsed = parse_items(b"A\tx\n", "crfsuite", Vocabulary(), True, False)
    assert parsed[4] is None
    assert parsed[5] == []


@pytest.mark.parametrize("text", ["@weight:2.5\nA\tx\n\nB\ty\n", "@weight:2.5\tA\tx\n\nB\ty\n"])
def test_weights(text):
    parsed = parse_items(text.encode(), "crfsuite", Vocabulary(), True, True)
    assert parsed[6].tolist() == [2.5, 1.0]
    assert parsed[5] == ["A", "B"]


BAD_CRFSUITE = {
    "A\tx\n\tx\n": "line 2: found no label before the first tab; expected a label",
    "A\tx:abc\n": r"line 1: found the value 'abc' of attribute 'x'; expected a number .*\\:",
    "A\tx:1:\tq:1x\n": "line 1: found the value '1x' of attribute 'q'; expected a number",
    "A\tx:nan": "line 1: found the value 'nan' of attribute 'x'; expected a number",
    "A\tx:-inf": "line 1: found the value '-inf'",
    "A\tx:0x10": "line 1: found the value '0x10'",
    "A\tx:1_0": "line 1: found the value '1_0'",
    "A\tx:+-1": "line 1: found the value",
    "A\tx:.": "line 1: found the value",
    "A\tx:-": "line 1: found the value",
    "A\tx:1e": "line 1: found the value",
    "A\tx:1.2.3": "line 1: found the value",
    "A\tx: ": "line 1: found the value",
    "A\n\nA\tx:1e39": "line 3: found the value '1e39' of attribute 'x'; expected .* 1e12$",
    "A\tx:1e999": "line 1: found the value '1e999' of attribute 'x'; expected .* 1e12$",
    "A\tx:6e11\tx:6e11": "line 1: found values of attribute 'x' that sum to more than 1e12",
    "A\t:2": "line 1: found an attribute without a name, ':2'; expected a name",
    "A\n@\tx": "line 2: found the declaration '@'; expected @weight:number",
    "@width:2\nA": "line 1: found the declaration '@width'",
    "@weight\t2\nA": "line 1: found '@weight'; expected @weight:number",
    "@weight:-1\nA": "line 1: found '@weight:-1'; expected .* not negative",
    "@weight:x\nA": "line 1: found '@weight:x'",
    "@weight:1e39\nA": "line 1: found '@weight:1e39'; expected a number between -1e12 and 1e12",
    "@weight:inf\nA": "line 1: found '@weight:inf'; expected @weight:number",
    "A\nB\tx:1\tw:1e30": "line 2: found the value '1e30' of attribute 'w'; expected .* 1e12$",
    "A\tw:-1.1e12": "line 1: found the value '-1.1e12' of attribute 'w'; expected .* 1e12$",
    "A\tw:inf": "line 1: found the value 'inf' of attribute 'w'; expected a number",
    "A\tw:NaN": "line 1: found the value 'NaN' of attribute 'w'; expected a number",
    "A\tw:-Infinity": "line 1: found the value '-Infinity' of attribute 'w'; expected a number",
    "@weight:1\nA\n@weight:1\nB": "line 3: found a second @weight .* on line 1; expected one",
    "A\n\n@weight:2\n\nB": "line 3: found @weight and no token after it; expected a sequence",
    "A\n@weight:2\n\nB\n\n@weight:3": "line 6: found @weight and no token",
    b"A\tx\nA\t\xff\n": "line 2: found bytes that are not UTF-8; expected text in UTF-8",
    b"A\tx\r\n\r\nA\t\xc3\n\xa9": "line 3: found bytes that are not UTF-8",
    "A\t" + "x" * 70 + ":\x01é": "line 1: found the value .* of attribute 'x{60}\\.\\.\\.'",
}


@pytest.mark.parametrize("text", BAD_CRFSUITE, ids=repr)
def test_bad_crfsuite(text, tmp_path):
    data = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(ValueError, match=BAD_CRFSUITE[text]):
        parse_items(data, "crfsuite", Vocabulary(), True, True)
    path = tmp_path / "items.txt"
    path.write_bytes(data)
    message = re.escape(str(path)) + ": " + BAD_CRFSUITE[text]
    with pytest.raises(FileFormatError, match=message):
        read_crfsuite(path)


# --- SVM^hmm -----------------------------------------------------------------------------------


@st.composite
def svmhmm_text(draw):
    lines = []
    for qid in draw(st.lists(st.integers(-3, 30), unique=True, max_size=4)):
        for _ in range(draw(st.integers(1, 3))):
            numbers = draw(st.lists(st.integers(1, 40), unique=True, max_size=6))
            words = [draw(st.sampled_from(["1", "2", "-1", "B-NP", "a#b", "é"])), f"qid:{qid}"]
            words += [f"{draw(st.sampled_from(['', '0']))}{k}:{draw(NUMBERS)}" for k in numbers]
            line = draw(st.sampled_from([" ", "\t", "  "])).join(words)
            line += draw(st.sampled_from(["", " # a comment 3:4", "#x", " "]))
            lines.append(line)
            lines += draw(st.sampled_from([[], [], [""], ["# 1 qid:1"], [" # x"]]))
    return draw(st.sampled_from(["\n", "\r\n"])).join(lines) + draw(st.sampled_from(["", "\n"]))


@given(svmhmm_text())
def test_svmhmm_agrees_with_the_twin(text):
    assert parse(text, "svmhmm") == svmhmm_twin(text)


BAD_SVMHMM = {
    "1 2:3": "line 1: found '2:3' after the tag '1'; expected qid:number",
    "# x\n\n1": "line 3: found no qid after the tag '1'; expected tag qid:number",
    "1 # qid:2": "line 1: found no qid after the tag '1'",
    "qid:1 2:3": "line 1: found '2:3' after the tag 'qid:1'; expected qid:number",
    "1 qid:x": "line 1: found 'qid:x'; expected qid: and an integer",
    "1 qid:": "line 1: found 'qid:'; expected",
    "1 qid:1.5": "line 1: found 'qid:1.5'; expected",
    "1 qid:1\n1 qid:2\n1 qid:1": "line 3: found qid 1 again, after another one; expected all lines",
    "1 qid:1 2:1 3:1 2:1": "line 1: found feature 2 twice; expected every number at most once",
    "1 qid:1 2:0 2:0": "line 1: found feature 2 twice",
    "1 qid:1 2:1 02:1": "line 1: found feature 2 twice",
    "1 qid:1 0:1": "line 1: found feature 0; expected numbers from 1 on",
    "1 qid:1 -1:1": "line 1: found '-1:1'; expected feature:value",
    "1 qid:1 x:1": "line 1: found 'x:1'; expected feature:value",
    "1 qid:1 :1": "line 1: found ':1'; expected feature:value",
    "1 qid:1 3": "line 1: found '3'; expected feature:value",
    "1 qid:1 99999999999999999999:1": "line 1: found '99999999999999999999:1'; expected",
    "1 qid:1 3:": "line 1: found the value '' of feature '3'; expected a number",
    "1 qid:1 3:x": "line 1: found the value 'x' of feature '3'; expected a number",
    "1 qid:1 3:1:2": "line 1: found the value '1:2' of feature '3'; expected a number",
    "1 qid:1 3:1e99": "line 1: found the value '1e99' of feature '3'; expected .* 1e12$",
    "1 qid:1 3:-1e13": "line 1: found the value '-1e13' of feature '3'; expected .* 1e12$",
    "1 qid:1 3:nan": "line 1: found the value 'nan' of feature '3'; expected a number",
    b"1 qid:1\n\xff": "line 2: found bytes that are not UTF-8",
}


@pytest.mark.parametrize("text", BAD_SVMHMM, ids=repr)
def test_bad_svmhmm(text, tmp_path):
    path = tmp_path / "items.dat"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FileFormatError, match=re.escape(str(path)) + ": " + BAD_SVMHMM[text]):
        read_svmhmm(path)


# --- both --------------------------------------------------------------------------------------


@given(st.binary(max_size=60), st.sampled_from(["crfsuite", "svmhmm"]))
def test_any_bytes(data, file_format):
    with contextlib.suppress(ValueError):
        parse_items(data, file_format, Vocabulary(), True, True)


@given(st.text("A1 :\t\n\\@weightqid#.-+e", max_size=40), st.sampled_from(["crfsuite", "svmhmm"]))
def test_any_text(text, file_format):
    message = None
    try:
        parse(text, file_format)
    except ValueError as error:
        message = str(error)
    assert message is None or re.match(r"line \d+: found .*; expected ", message)


def test_unknown_format():
    with pytest.raises(ValueError, match="format is 'libsvm'; expected 'crfsuite' or 'svmhmm'"):
        parse_items(b"", "libsvm", Vocabulary(), True, True)


@pytest.mark.parametrize("data", [b"", b"\n\n", b" \r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
@pytest.mark.parametrize("read", [read_crfsuite, read_svmhmm])
def test_empty_files(data, read, tmp_path):
    path = tmp_path / "empty"
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=re.escape(f"{path}: holds no sequences")):
        read(path)


def test_errors_are_of_the_family():
    assert issubclass(FileFormatError, MaxMarginError)
    assert issubclass(FileFormatError, ValueError)


def test_a_full_vocabulary():
    with pytest.raises(ValueError, match="at most 2 strings"):
        parse_items(b"A\tx\ty\tz\n", "crfsuite", Vocabulary(2), True, True)


def test_items(tmp_path):
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"@weight:2\nB\tx\ty:2\nI\ty\n\nB\tx\n"))
    items = read_crfsuite(path)
    assert len(items) == 2
    assert items.labels() == [["B", "I"], ["B"]]
    assert items.label_names == ["B", "I"]
    assert items.features(0) == [[("x", 1.0), ("y", 2.0)], [("y", 1.0)]]
    assert items.features(-1) == [[("x", 1.0)]]
    assert items.sequence_weight.tolist() == [2.0, 1.0]
    assert items.batch.n_sparse == len(items.vocabulary) == 2
    with pytest.raises(IndexError):
        items.features(2)
    again = read_crfsuite(io.BytesIO(b"B\tz\ty\n"), items.vocabulary)
    assert again.features(0) == [[("y", 1.0)]]
    assert again.sequence_weight is None
    assert len(items.vocabulary) == 2


def test_other_threads_run():
    text = ("A\t" + "\t".join(f"w{k}" for k in range(30)) + "\n").encode() * 30_000
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(1)
            stop.wait(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        parse_items(text, "crfsuite", Vocabulary(), True, True)
    finally:
        stop.set()
        thread.join()
    assert ticks


def parse_and_wait(text, vocabulary):
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    parse_items(text, "crfsuite", vocabulary, True, True)
    time.sleep(10)  # If it was faster than the timer, the exception comes here.


def test_large_files_can_be_interrupted():
    text = b"A\tx\tyyyyyyyyy\n" * 4_000_000 + b"A\tlast\n"  # 56 MB: three polls
    vocabulary = Vocabulary()

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            parse_and_wait(text, vocabulary)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert vocabulary.names() == ["x", "yyyyyyyyy"]


# --- writers -----------------------------------------------------------------------------------

NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="\t\n\r"), min_size=1, max_size=8
)
VALUES = st.floats(-(2.0**36), 2.0**36, width=32)
LABELS = NAMES.filter(lambda s: s.strip(" ") and not s.startswith(("@", "\ufeff")))
TOKENS = st.lists(st.one_of(NAMES, st.tuples(NAMES, VALUES)), max_size=5)
SEQUENCES = st.lists(st.lists(st.tuples(LABELS, TOKENS), min_size=1, max_size=4), min_size=1)


def as_row(token):
    row = {}
    for item in token:
        name, value = (item, 1.0) if isinstance(item, str) else item
        row[name] = row.get(name, 0.0) + value
    return {name: np.float32(value) for name, value in row.items() if np.float32(value) != 0}


def label_codes(sequences):
    """The labels of sequences as codes, in order of appearance."""
    every = [label for sequence in sequences for label in sequence]
    names = list(dict.fromkeys(every))
    offsets = np.cumsum([0] + [len(sequence) for sequence in sequences]).astype(np.int64)
    return LabelCodes(np.array([names.index(v) for v in every], np.int32), names, offsets)


def named(X, y, weights=None):
    """What is written of tokens and labels."""
    encoder = FeatureEncoder()
    batch = encoder.fit_transform([[dict(as_row(token)) for token in tokens] for tokens in X])
    factors = None if weights is None else np.array(weights, np.float32)
    return NamedFeatures(batch, encoder.feature_names(), label_codes(y), None, factors)


def written(texts):
    return io.BytesIO("".join(texts).encode())


@given(SEQUENCES, st.data())
def test_crfsuite_round_trip(sequences, data):
    X = [[token for _, token in sequence] for sequence in sequences]
    y = [[label for label, _ in sequence] for sequence in sequences]
    weights = data.draw(
        st.none()
        | st.lists(st.floats(0, 1e6, width=32), min_size=len(X), max_size=len(X))
    )
    items = read_crfsuite(written(crfsuite_texts(named(X, y, weights))))
    assert items.labels() == y
    for i, sequence in enumerate(X):
        found = [{n: np.float32(v) for n, v in token} for token in items.features(i)]
        assert found == [as_row(token) for token in sequence]
    if weights is None:
        assert items.sequence_weight is None
    else:
        assert items.sequence_weight.tolist() == weights
    # And what was read can be written and read again.
    names = items.vocabulary.names()
    features = NamedFeatures(items.batch, names, items.label_codes, None, items.sequence_weight)
    again = read_crfsuite(written(crfsuite_texts(features)))
    assert [again.features(i) for i in range(len(X))] == [items.features(i) for i in range(len(X))]


def test_how_crfsuite_files_are_written():
    encoder = FeatureEncoder()
    tokens = [
        {"w": "a:b", "cap": True, "len": np.float32(0.1), "n": np.int64(3)},
        {"back\\": 2},
        {},
        ["w", "v"],
    ]
    batch = encoder.fit_transform([tokens[:3], tokens[3:]])
    labels = label_codes([["A", "7", "a:b"], ["D"]])
    features = NamedFeatures(batch, encoder.feature_names(), labels)
    texts = list(crfsuite_texts(features))
    assert texts == [
        "A\tw\\:a\\:b\tcap\tlen:0.1\tn:3\n7\tback\\\\:2\na\\:b\n\n",
        "D\tw\tv\n\n",
    ]
    weighted = features._replace(weights=np.array([0.1, 2], np.float32))
    assert list(crfsuite_texts(weighted)) == [
        f"@weight:{weight}\n{text}" for weight, text in zip(["0.1", "2"], texts, strict=True)
    ]
    backwards = features._replace(order=np.array([3, 2, 1, 0, 4, 6, 5]))
    assert next(crfsuite_texts(backwards)).startswith("A\tn:3\tlen:0.1\tcap\tw\\:a\\:b\n")


BAD_WRITES = [
    ("a\tb", "A", r"found the attribute 'a\\tb'; expected one without tabs and ends of lines"),
    ("a\n", "A", "found the attribute"),
    ("a\r", "A", "found the attribute"),
    ("a", "@A", "found the label '@A'; expected one that is not blank and does not begin with @"),
    ("a", " ", "found the label ' '"),
    ("a", "", "found the label ''"),
    ("a", "\r", "found the label"),
]


@pytest.mark.parametrize(("name", "label", "message"), BAD_WRITES, ids=lambda x: repr(x)[:40])
def test_what_crfsuite_files_cannot_hold(name, label, message):
    features = named([[[name], ["b"]]], [["A", label]])
    with pytest.raises(ValueError, match=message):
        crfsuite_texts(features)  # before anything is written
    if label == "A":
        with pytest.raises(ValueError, match="name is empty"):
            crfsuite_texts(features._replace(names=["", "b"]))


TAGS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5).filter(
    lambda s: len(s.split()) == 1 and s.strip() == s and not s.startswith(("#", "qid:", "\ufeff"))
)


@given(
    st.lists(
        st.lists(
            st.tuples(
                TAGS,
                st.dictionaries(
                    st.integers(0, 2**32 - 2),
                    st.floats(-(2.0**39), 2.0**39, width=32).filter(bool),
                    max_size=5,
                ),
            ),
            min_size=1,
            max_size=3,
        ),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
def test_svmhmm_round_trip(sequences, ones):
    tokens = [token for sequence in sequences for token in sequence]
    rows = [sorted(row.items()) for _, row in tokens]
    batch = EncodedBatch(
        np.cumsum([0] + [len(s) for s in sequences]).astype(np.int64),
        2**32 - 1,
        np.cumsum([0] + [len(row) for row in rows]).astype(np.int64),
        np.array([k for row in rows for k, _ in row], np.uint32),
        None if ones else np.array([v for row in rows for _, v in row], np.float32),
    )
    labels = [[label for label, _ in sequence] for sequence in sequences]
    codes = label_codes(labels)
    tags = [tag_text(label) for label in codes.names]
    used = np.unique(batch.indices)  # of billions of features
    small = EncodedBatch(
        batch.offsets,
        max(len(used), 1),
        batch.indptr,
        np.searchsorted(used, batch.indices).astype(np.uint32),
        batch.values,
    )
    named_by_number = NamedFeatures(small, [str(k + 1) for k in used.tolist()], codes)
    features, numbers = number_features(named_by_number, named_by_number=True)
    items = read_svmhmm(written(svmhmm_texts(features, numbers, tags)))
    assert items.labels() == labels
    found = [dict(token) for i in range(len(items)) for token in items.features(i)]
    assert found == [{str(k + 1): 1.0 if ones else v for k, v in row} for row in rows]


def test_how_svmhmm_files_are_written():
    encoder = FeatureEncoder()
    batch = encoder.fit_transform([[{"30": 2.0, "4": 0.5}, {"4": 1.0}], [{"100": 1.0}]])
    codes = label_codes([["A", "B"], ["A"]])
    features = NamedFeatures(batch, encoder.feature_names(), codes)
    kept, numbers = number_features(features, named_by_number=True)
    assert list(svmhmm_texts(kept, numbers, ["A", "B"])) == [
        "A qid:1 4:0.5 30:2\nB qid:1 4:1\n",
        "A qid:2 100:1\n",
    ]
    counted, numbers = number_features(features, named_by_number=False)
    assert list(svmhmm_texts(counted, numbers, ["1", "2"])) == [
        "1 qid:1 1:2 2:0.5\n2 qid:1 2:1\n",
        "1 qid:2 3:1\n",
    ]


@pytest.mark.parametrize("label", ["a b", "#", "#A", "", " ", "qid:1", "A ", "\ufeffA", "A\x85B"])
def test_what_svmhmm_files_cannot_hold(label):
    with pytest.raises(ValueError, match="the labels: found the label"):
        tag_text(label)
