from __future__ import annotations

import copy
import hashlib
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import reference_features
from maxmargin.features import template as template_module
from maxmargin.features.builtin_templates import BUILTIN_TEMPLATES
from maxmargin.features.template import Command, Template, pattern_fault
from reference_template import collapse, expand, leading_integer, lower, search, shape

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "templates.md"
SENTENCE = [["the", "DT"], ["old", "JJ"], ["Dog-2", "NN"], ["barks", "VBZ"]]


def names(line, sequence=SENTENCE, t=2):
    """The names that one template line gives at a token."""
    return expand(Template.parse(line), sequence)[t]


# --- reading ---


def test_lines_and_pieces():
    template = Template.parse('# c\n\nU0:%x[-1,0]/%X[ +1 , 2 ]\n  u1:%t[@-1,0,"^a\\"$"]x\nB\n')
    first, second, third = template.lines
    assert first.text == "U0:%x[-1,0]/%X[ +1 , 2 ]"
    assert first.line == 3
    assert first.pieces == (
        "U0:",
        Command("x", -1, "relative", 0, None, False),
        "/",
        Command("x", 1, "relative", 2, None, True),
    )
    assert first.unigram
    assert not first.bigram
    assert second.line == 4
    assert second.pieces == ("u1:", Command("t", -1, "absolute", 0, '^a\\"$', False), "x")
    assert (third.text, third.unigram, third.bigram, third.commands) == ("B", False, True, ())


def test_all_commands():
    text = 'U%x[0,1]%X[0,1]%t[0,1,"a"]%T[0,1,"a"]%m[0,1,"a"]%M[0,1,"a"]%p[0,1,2]%P[0,1,2]'
    text += "%s[0,1,2]%S[0,1,2]%h[0,1]%c[0,1]"
    commands = Template.parse(text).lines[0].commands
    assert "".join(c.kind for c in commands) == "xxttmmppsshc"
    assert [c.lower for c in commands] == [False, True] * 5 + [False, False]
    assert [c.argument for c in commands] == [None] * 2 + ["a"] * 4 + [2] * 4 + [None] * 2


@pytest.mark.parametrize(
    ("offset", "mode", "value"),
    [
        ("-1", "relative", -1),
        ("0", "relative", 0),
        ("-0", "relative", 0),
        ("+12", "relative", 12),
        ("007", "relative", 7),
        ("999999999", "relative", 999999999),
        ("@0", "absolute", 0),
        ("@1", "absolute", 1),
        ("@-2", "absolute", -2),
        (" @ +3 ", "absolute", 3),
        ("*4", "indirect", 4),
        (" * 0", "indirect", 0),
    ],
)
def test_offsets(offset, mode, value):
    (command,) = Template.parse(f"U%x[{offset},3]").lines[0].commands
    assert (command.mode, command.offset, command.column) == (mode, value, 3)


@pytest.mark.parametrize(
    "text", ["U1:%x[0,0]\r\nB\r\n", "\ufeffU1:%x[0,0]\nB", "\t U1:%x[0,0] \nB"]
)
def test_line_ends_bom_and_blanks(text):
    assert Template.parse(text) == Template.parse("U1:%x[0,0]\nB")


def test_only_newlines_end_lines():
    assert names('U:%t[2,0,"\u2028|\x0b"]') == ["U:false"]


def test_hash_within_a_line_is_text():
    assert names("U#%x[0,1]") == ["U#NN"]


def test_repeated_lines_count_once():
    template = Template.parse("U1:%x[0,0]\nU2\n U1:%x[0,0]\r\nB\nB")
    assert [line.text for line in template.lines] == ["U1:%x[0,0]", "U2", "B"]
    assert [line.line for line in template.lines] == [1, 2, 4]


def test_program():
    text = 'U:%x[-1,2]\nU9\n*8\nB\nB1\nU%M[@2,0,"\\"x"]%s[*3,1,4]%h[0,0]'
    assert Template.parse(text).program() == [
        [("=", 0, 0, 0, "U:", False), ("x", 0, -1, 2, "", False)],
        [("=", 0, 0, 0, "U9", False)],
        [("=", 0, 0, 0, "*8", False)],
        [
            ("=", 0, 0, 0, "U", False),
            ("m", 1, 2, 0, '\\"x', True),
            ("s", 2, 3, 1, "4", False),
            ("h", 0, 0, 0, "", False),
        ],
    ]


def test_program_tells_a_literal_from_a_suffix():
    program = Template.parse("U%s[0,0,3]3").program()
    assert len({piece[0] for piece in program[0]}) == 2


@pytest.mark.parametrize(
    ("text", "needed"),
    [("U", 0), ("U%x[0,0]", 1), ("U%x[0,0]%p[0,4,1]\nU%x[0,2]", 5), ("U%x[*7,1]", 8)],
)
def test_columns_needed(text, needed):
    assert Template.parse(text).n_columns_needed == needed


def test_equality_and_fingerprint():
    one = Template.parse("# one\nU1:%x[0,0]\n\nB\n", "one")
    two = Template.parse("U1:%x[0,0]\r\nU1:%x[0,0]\r\nB", "two")
    other = Template.parse("U2:%x[0,0]\nB")
    assert one == two
    assert hash(one) == hash(two)
    assert one.fingerprint == two.fingerprint != other.fingerprint
    assert re.fullmatch("[0-9a-f]{16}", one.fingerprint)
    assert one != other
    assert one != "U1:%x[0,0]\nB"


def test_templates_do_not_change_and_can_be_copied():
    template = Template.parse("U1:%x[0,0]", "mine")
    with pytest.raises(AttributeError, match="does not change"):
        template.text = "U2"
    with pytest.raises(AttributeError, match="does not change"):
        del template.lines
    for twin in (
        copy.copy(template),
        copy.deepcopy(template),
        pickle.loads(pickle.dumps(template)),
    ):
        assert twin == template
        assert (twin.text, twin.source) == (template.text, template.source)
    assert repr(template) == "<Template 'mine': 1 lines of features>"


# --- mistakes ---


@pytest.mark.parametrize(
    ("line", "found", "character", "expected"),
    [
        ("X%x[0,0]", "'X%x[0,0]'", 1, "begins with U, B or *"),
        ("  %x[0,0]", "'%x[0,0]'", 3, "begins with U, B or *"),
        ("U1:%", "'%'", 4, "one of the commands"),
        ("U1:%%x[0,0]", "'%%x[0,0]'", 4, "one of the commands"),
        (" U1:%y[0,0]", "'%y[0,0]'", 5, "one of the commands"),
        ("U1:%H[0,0]", "'%H[0,0]'", 4, "%h"),
        ("U1:%C[0,0]", "'%C[0,0]'", 4, "%c"),
        ("U1:%x", "the end", 6, "["),
        ("U1:%x(0,0)", "'(0,0)'", 6, "["),
        ("U1:%x[", "the end", 7, "an offset"),
        ("U1:%x[a,0]", "'a,0]'", 7, "an offset"),
        ("U1:%x[-,0]", "'-,0]'", 7, "an offset"),
        ("U1:%x[1.5,0]", "'.5,0]'", 8, ","),
        ("U1:%x[²,0]", "'²,0]'", 7, "an offset"),
        ("U1:%x[@,0]", "',0]'", 8, "a position"),
        ("U1:%x[*-1,0]", "'-1,0]'", 8, "the column that holds the offset"),
        ("U1:%x[1000000000,0]", "'1000000000,0]'", 7, "at most 999999999"),
        ("U1:%x[0,-1]", "'-1]'", 9, "a column, counted from 0"),
        ("U1:%x[0,]", "']'", 9, "a column, counted from 0"),
        ("U1:%x[0,b]", "'b]'", 9, "a column, counted from 0"),
        ("U1:%x[0]", "']'", 8, ","),
        ("U1:%x[0,0", "the end", 10, "]"),
        ("U1:%x[0,0,1]", "',1]'", 10, "]"),
        ("U1:%h[0,0,1]", "',1]'", 10, "]"),
        ("U1:%t[0,0]", "']'", 10, ","),
        ("U1:%t[0,0,a]", "'a]'", 11, '"'),
        ('U1:%t[0,0,"a]', "'\"a]'", 11, 'a closing "'),
        ('U1:%t[0,0,"a\\"]', "'\"a\\\\\"]'", 11, 'a closing "'),
        ('U1:%t[0,0,"a"', "the end", 14, "]"),
        ('U1:%m[0,0,"*a"]', "'*a\"]'", 12, "an item before it, or \\*"),
        ('U1:%m[0,0,"^?a"]', "'?a\"]'", 13, "an item before it, or \\?"),
        ('U1:%m[0,0,"ab**"]', "'*\"]'", 15, "an item before it, or \\*"),
        ("U1:%p[0,0]", "']'", 10, ","),
        ("U1:%p[0,0,]", "']'", 11, "a number of characters, at least 1"),
        ("U1:%s[0,0,0]", "'0]'", 11, "a number of characters, at least 1"),
        ("U1:%s[0,0,-2]", "'-2]'", 11, "a number of characters, at least 1"),
        ("U1:%P[0,0,x]", "'x]'", 11, "a number of characters, at least 1"),
    ],
)
def test_mistakes_say_where_and_what(line, found, character, expected):
    with pytest.raises(ValueError) as caught:
        Template.parse(f"# comment\nU0\n{line}\nB", "my.template")
    before, after = str(caught.value).split("; expected ")
    assert before.startswith(f"my.template, line 3: found {found} at character {character} of ")
    assert before.endswith(repr(line.strip()))
    assert expected in after


def test_long_lines_are_shortened_in_messages():
    with pytest.raises(ValueError, match="…") as caught:
        Template.parse("U" + "%x[0,0]" * 1000 + "%q" + "x" * 5000)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["", "\n\n", "# only comments\n", "B", "B00\nb"])
def test_a_template_needs_a_unigram_line(text):
    with pytest.raises(ValueError, match=r"^mine: found no line .* expected at least one U line"):
        Template.parse(text, "mine")


def test_programs_of_unigrams_and_bigrams():
    template = Template.parse("U0\nB\nB1:%x[0,0]\n*2:%c[-1,1]\n*3\nb4/%s[0,0,2]", "mine")

    def heads(**options):
        return [pieces[0][4] for pieces in template.program(**options)]

    assert heads() == heads(bigrams=False) == ["U0", "*2:", "*3"]
    assert heads(bigrams=True) == ["B1:", "*2:", "b4/"]  # transitions as such are always there
    assert template.n_columns_needed == 2
    assert template.program(bigrams=True)[1] == template.program()[1]


def test_bigram_lines_alone_are_refused():
    with pytest.raises(ValueError, match=r"^mine: found no line that gives features"):
        Template.parse("B1:%x[0,0]", "mine")
    assert len(Template.parse("*1:%c[0,0]").program()) == 1


def test_text_must_be_text():
    with pytest.raises(TypeError, match="found bytes; expected a str"):
        Template.parse(b"U%x[0,0]")
    with pytest.raises(ValueError, match=r"line 2: found .* half of a surrogate pair"):
        Template.parse("U%x[0,0]\n# \ud800")


ALPHABET = 'UuB*#%xXtTmMpPsShHcC[],@+-019"\\^$.*?ad \t\r\né²\ud800\ufeff\u2028'
COMMAND = st.builds(
    "%{}[{}{},{}{}]".format,
    st.sampled_from("xXtTmMpPsShcyH"),
    st.sampled_from(["", "@", "*", "-", "+", "@-", "*-", " "]),
    st.integers(0, 12),
    st.integers(0, 3),
    st.sampled_from(["", ",1", ",2", ",0", ',"\\u*$"', ',"a?"', ',"**"', ',"\\"', ", "]),
)
LINE = st.builds(
    "{}{}".format,
    st.sampled_from(["U", "u1:", "B", "*", "#", " U", "x", ""]),
    st.lists(COMMAND | st.text(ALPHABET, max_size=4), max_size=3).map("".join),
)


@given(text=st.text(ALPHABET, max_size=60) | st.text() | st.lists(LINE, max_size=4).map("\n".join))
@example(text="U%x[" + "9" * 5000 + ",0]")
@example(text="U%")
def test_any_text_is_a_template_or_a_value_error(text):
    try:
        template = Template.parse(text, "fuzz")
    except ValueError:
        with pytest.raises(ValueError, match=r"^fuzz"):  # ours, not one of int() or of a codec
            Template.parse(text, "fuzz")
        return
    again = Template.parse("\n".join(line.text for line in template.lines))
    assert again == template
    assert again.program() == template.program()
    row = ["Ab-1", "2", "", "-1 x"] + [""] * max(template.n_columns_needed - 4, 0)
    for token in expand(template, [row, row]):
        assert len(token) <= len(template.program())


# --- patterns ---


@pytest.mark.parametrize(
    "pattern",
    ["", "^", "$", "^$", "a*", "a?b*", "\\**", "\\?", "$*", "a^?", "\\d*$", ".*.?", "\\\\"],
)
def test_patterns(pattern):
    assert pattern_fault(pattern) is None
    search(pattern, "abc")


@pytest.mark.parametrize(
    ("pattern", "place", "expected"),
    [
        ("*", 0, "an item before it, or \\* for the character itself"),
        ("^*", 1, "an item before it, or \\* for the character itself"),
        ("?a", 0, "an item before it, or \\? for the character itself"),
        ("a**", 2, "an item before it, or \\* for the character itself"),
        ("a?*", 2, "an item before it, or \\* for the character itself"),
        ("a*?", 2, "an item before it, or \\? for the character itself"),
        ("ab\\", 2, "a character after the backslash"),
    ],
)
def test_patterns_that_are_none(pattern, place, expected):
    assert pattern_fault(pattern) == (place, expected)


# --- meaning: the reference expander ---


@pytest.mark.parametrize(
    ("pattern", "text", "match"),
    [
        ("", "abc", ""),
        ("b", "abc", "b"),
        ("^b", "abc", None),
        ("c$", "abc", "c"),
        ("^$", "", ""),
        ("^$", "a", None),
        ("a$b", "a$b", "a$b"),
        ("a^", "a^", "a^"),
        ("\\d*", "12", ""),
        ("\\d*$", "ab12", "12"),
        ("\\d\\d*$", "1a23", "23"),
        ("a.*c", "abcbc", "abc"),
        ("a?a", "a", "a"),
        ("a?a", "aa", "aa"),
        (".?.?.?$", "abcd", "bcd"),
        (".?.?.?$", "ab", "ab"),
        ("\\u\\l", "xÉé", "Éé"),
        ("\\U", "AB1", "1"),
        ("\\w*-", "ab-c", "ab-"),
        ("\\s", "a\u00a0b", "\u00a0"),
        ("\\p\\P", "a€b", "€b"),
        ("\\.", "a.b", "."),
        ('\\"', 'a"', '"'),
        ("\\é", "é", "é"),
    ],
)
def test_matching(pattern, text, match):
    assert pattern_fault(pattern) is None
    assert search(pattern, text) == match


PYTHON = {"a": "[^\\W\\d_]", "d": "\\d", ".": ".", "x": "x", "\\.": "\\."}


@given(
    items=st.lists(
        st.tuples(st.sampled_from(list(PYTHON)), st.sampled_from(["", "*", "?"])), max_size=5
    ),
    begin=st.booleans(),
    end=st.booleans(),
    text=st.text("xyX1.", max_size=7),
)
def test_matching_against_python(items, begin, end, text):
    """Star as few as possible and optional rather one are Python's ``*?`` and ``?``."""
    ours = "".join(("\\" + i if i in "ad" else i) + quantity for i, quantity in items)
    theirs = "".join(PYTHON[i] + {"*": "*?"}.get(quantity, quantity) for i, quantity in items)
    found = re.search("^" * begin + theirs + "\\Z" * end, text)
    pattern = "^" * begin + ours + "$" * end
    assert pattern_fault(pattern) is None
    assert search(pattern, text) == (found.group() if found else None)


def test_characters():
    assert shape("IL-2 Élanß٣中ǅ") == "XX-d Xxxxxdx" + "X"
    assert collapse("XXxx--dd") == "Xx-d"
    assert collapse("") == ""
    assert lower("ÀİΣSS") == "àiσss"


@pytest.mark.parametrize(
    ("text", "integer"),
    [
        ("", 0),
        ("x1", 0),
        ("12x", 12),
        (" -3", -3),
        ("+4.5", 4),
        ("--1", 0),
        ("9" * 30, 1 << 40),
        ("-" + "9" * 5000, -(1 << 40)),
    ],
)
def test_leading_integers(text, integer):
    assert leading_integer(text) == integer


@pytest.mark.parametrize(
    ("line", "t", "expected"),
    [
        ("U00:%x[-1,0]/%x[0,0]", 1, ["U00:the/old"]),
        ("U%x[-2,0]%x[2,1]", 0, ["U_B-2NN"]),
        ("U%x[@0,0]%x[@4,0]%x[@5,0]%x[@-4,0]%x[@-5,0]", 1, ["U_B-1barks_B+1the_B-1"]),
        ("U%X[-1,0]%H", 0, None),
        ("U%X[-1,0]", 0, ["U_b-1"]),
        ('U%m[1,0,".1"]', 3, ["U+1"]),
        ('U%T[0,0,"x"]%M[0,0,"D."]', 2, ["Ufalsedo"]),
        ("U%h[1,0]%c[1,0]", 3, ["U_B+1_B+1"]),
        ("U%p[0,0,4]", 1, []),
        ("U%p[0,0,3]", 1, ["Uold"]),
        ("U%p[-1,0,1]", 0, []),
        ("U%x[0,0]%S[0,0,4]", 2, ["UDog-2og-2"]),
        ("U99", 3, ["U99"]),
        ("*9\nB\nu1", 3, ["*9", "u1"]),
    ],
)
def test_expansion(line, t, expected):
    if expected is None:
        with pytest.raises(ValueError, match="no lower-cased form"):
            Template.parse(line)
    else:
        assert names(line, t=t) == expected


def test_indirect_offsets():
    rows = [["a", "1"], ["b", "-1"], ["c", "x"], ["d", "-9 "]]
    tokens = expand(Template.parse("U%x[*1,0]"), rows)
    assert tokens == [["Ub"], ["Ua"], ["Uc"], ["U_B-6"]]


def test_sequences_without_tokens():
    assert expand(Template.load("ner"), []) == []


# --- built-in templates and files ---


@pytest.mark.parametrize(
    ("name", "lines", "columns"),
    [
        ("words", 15, 1),
        ("pos", 23, 1),
        ("chunking", 30, 2),
        ("ner", 41, 1),
        ("words@1", 15, 1),
        ("pos@1", 19, 1),
        ("pos@2", 23, 1),
        ("chunking@1", 19, 2),
        ("chunking@2", 30, 2),
        ("ner@1", 33, 1),
        ("ner@2", 41, 1),
    ],
)
def test_builtin_templates(name, lines, columns):
    template = Template.load(name)
    assert template.text.startswith(f"# {name.partition('@')[0]}: ")
    assert template.text.endswith("\nB\n")
    assert template.n_columns_needed == columns
    assert len(template.program()) == lines
    tokens = expand(template, [row[:columns] for row in SENTENCE])
    # "Dog-2" is long enough for every prefix, and so are the ends of its neighbours.
    assert len(tokens[2]) == lines
    assert all(len(set(token)) == len(token) for token in tokens)


def test_every_builtin_template_is_tested_above():
    newest = ["words", "pos", "chunking", "ner"]
    assert [name for name in BUILTIN_TEMPLATES if "@" not in name] == newest
    assert len(BUILTIN_TEMPLATES) == 11


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("words@1", "a3e11158033a86e4"),
        ("pos@1", "6fe52c08599a45e6"),
        ("chunking@1", "0c324f01a330261c"),
        ("ner@1", "825166cda5b6c0fa"),
    ],
)
def test_first_versions_stay_what_they_were(name, digest):
    """Models, checkpoints and benchmarks name them; the digests are of the texts as released."""
    text = BUILTIN_TEMPLATES[name]
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == digest
    assert Template.load(name).builtin == name


def test_a_name_is_its_newest_version():
    for name in ("pos", "chunking", "ner"):
        assert Template.load(name) == Template.load(f"{name}@2") != Template.load(f"{name}@1")
        lines, first = (
            {line.text for line in Template.load(version).lines} for version in (name, f"{name}@1")
        )
        assert first < lines
    assert Template.parse("U:%x[0,0]").builtin is None
    with pytest.raises(ValueError, match=r"no built-in called 'ner@3'.*did you mean 'ner@2'"):
        Template.load("ner@3")


def test_ner_looks_at_spelling():
    tokens = expand(Template.load("ner"), [["Human"], ["IL-2"], ["gene"]])
    assert {"U:first=true", "U:first,cap=true|true", "U:c+1=X-d"} <= set(tokens[0])
    assert {"U:h0=XX-d", "U:c-1,+1=Xx|X-d|x", "U:digit=true", "U:caps=false"} <= set(tokens[1])
    assert {"U:w-1,c0=human|X-d", "U:c0,w+1=X-d|gene", "U:low=il-2"} <= set(tokens[1])
    assert {"U:w-2,-1=human|il-2", "U:c-2,0=Xx|X-d|x", "U:w-2,c0=human|X-d|x"} <= set(tokens[2])
    assert {"U:pre5=human", "U:suf5=human", "U:w+1,+2=il-2|gene"} <= set(tokens[0])


def test_chunking_looks_at_spelling():
    tokens = expand(Template.load("chunking"), [["He", "PRP"], ["runs", "VBZ"], ["fast", "RB"]])
    assert {"U:suf3=uns", "U:pre2=ru", "U:low=runs", "U:suf+1=ast"} <= set(tokens[1])
    assert {"U:p-2,w0=PRP|VBZ|fast", "U:suf-1=uns"} <= set(tokens[2])
    assert "U:w0,p+2=He|VBZ|RB" in tokens[0]


def test_pos_looks_at_both_sides():
    tokens = expand(Template.load("pos"), [["He"], ["Runs"], ["fast"]])
    assert {"U:w-1,+1=he|fast", "U:c0=Xx", "U:c-1=Xx", "U:c+1=x"} <= set(tokens[1])


@given(
    sentence=st.lists(
        st.tuples(st.sampled_from(["a", "B", "1/2", "c-d"]), st.sampled_from(["N", "V"])).map(list),
        min_size=1,
        max_size=8,
    )
)
def test_chunking_says_what_is_written_by_hand(sentence):
    ours = expand(Template.load("chunking@1"), sentence)
    theirs = reference_features.chunking(sentence)
    pairs = {pair for o, t in zip(ours, theirs, strict=True) for pair in zip(o, t, strict=True)}
    assert len(pairs) == len({o for o, _ in pairs}) == len({t for _, t in pairs})
    assert all(len(token) == 19 for token in ours)


def test_pos_says_what_is_written_by_hand():
    text = "The well-known McIntosh sold 1,500 apples in 1999"
    sentence = [[word] for word in text.split()]
    ours = expand(Template.load("pos@1"), sentence)
    theirs = reference_features.pos(sentence)
    # A prefix or suffix that is longer than the word is there the word, and here no feature.
    pairs = set()
    for (word,), o, t in zip(sentence, ours, theirs, strict=True):
        affixes = [k for k, f in enumerate(t) if f[:3] in ("pre", "suf") and int(f[3]) > len(word)]
        pairs |= set(zip(o, [f for k, f in enumerate(t) if k not in affixes], strict=True))
    assert len(pairs) == len({o for o, _ in pairs}) == len({t for _, t in pairs})


@pytest.mark.parametrize("count", [1001, 100_000])
def test_too_many_commands_in_a_line(count):
    with pytest.raises(ValueError, match=r"^mine, line 2: .* expected at most 1000 commands in"):
        Template.parse("U:%x[0,0]\nU:" + "%x[0,0]" * count, "mine")


def test_as_many_commands_as_a_line_may_have():
    template = Template.parse("".join(f"U{k}:%s[{k},0,{k + 1}]" for k in range(1000)))
    assert len(template.lines[0].commands) == 1000


def test_too_many_lines():
    lines = [f"U{k}:%x[0,0]" for k in range(20_000)]
    assert len(Template.parse("\n".join([*lines, *lines])).lines) == 20_000
    with pytest.raises(ValueError, match=r"^mine, line 20002: found more than 20000 different"):
        Template.parse("\n".join([*lines, "", "U", "U:x"]), "mine")


def test_too_long_a_pattern():
    assert Template.parse(f'U:%t[0,0,"{"a" * 1000}"]').lines
    with pytest.raises(ValueError, match=r"line 1: .* expected a pattern of at most 1000 charact"):
        Template.parse(f'U:%t[0,0,"{"a" * 1001}"]')


def test_load_from_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("words").write_bytes("\ufeffUé:%x[0,0]\r\nB\r\n".encode())
    for spec in ("./words", tmp_path / "words", Path("words")):
        template = Template.load(spec)
        assert template == Template.parse("Ué:%x[0,0]\nB")
        assert template.source == str(spec)
    assert Template.load("words") == Template.parse(BUILTIN_TEMPLATES["words"])
    assert Template.load(template) is template
    Path("bad").write_text("U1\nQ")
    with pytest.raises(ValueError, match=r"^bad, line 2: found 'Q' at character 1"):
        Template.load("bad")
    Path("latin").write_bytes(b"U1\nU\xe9")
    with pytest.raises(ValueError, match=r"^latin, line 2: found the byte 0xe9; expected .* UTF-8"):
        Template.load("latin")


def test_load_what_is_not_there(tmp_path):
    with pytest.raises(ValueError) as caught:
        Template.load("chunkng")
    assert str(caught.value) == (
        "template: no built-in called 'chunkng' and no file of that name (did you mean 'chunking'?)"
        "; built-in are: words, pos, chunking, ner"
    )
    with pytest.raises(ValueError, match="no file of that name; built-in are"):
        Template.load(tmp_path / "zzz")
    with pytest.raises(ValueError, match="cannot be read: Is a directory"):
        Template.load(tmp_path)
    with pytest.raises(ValueError, match="cannot be read"):
        Template.load("a\0b")
    with pytest.raises(ValueError, match=r"several lines.*Template\.parse"):
        Template.load("U1:%x[0,0]\nB\n")
    with pytest.raises(TypeError, match="found int; expected a Template, the name"):
        Template.load(3)


def test_import_is_light():
    """The module itself, apart from the package that it is in."""
    program = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('t', {template_module.__file__!r})\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "sys.modules['t'] = module\n"
        "before = set(sys.modules)\n"
        "spec.loader.exec_module(module)\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'dataclasses', 'difflib', 'hashlib', 'pathlib'}\n"
        "print(sorted(heavy & (set(sys.modules) - before)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


# --- the document ---


def test_templates_of_the_document():
    blocks = re.findall(r"^```text\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.M | re.S)
    assert len(blocks) == 2
    for block in blocks:
        Template.parse(block, "docs/templates.md")
    assert names(blocks[0], t=1) == ["U00:old", "U01:the", "U02:the/old"]


def test_tables_of_the_document():
    rows = re.findall(r"\| `(U\S+)` \| `(U\S+)` \|$", DOCUMENT.read_text("utf-8"), re.M)
    assert len(rows) == 22
    for line, name in rows:
        assert names(line) == [name]


def test_the_document_tells_the_message():
    found = re.search(r"^my\.template, line.*?(?=\n```)", DOCUMENT.read_text("utf-8"), re.M | re.S)
    with pytest.raises(ValueError) as caught:
        Template.parse("U00\n\nU02:%y[0,0]", "my.template")
    assert str(caught.value) == found.group().replace("\n", " ")
