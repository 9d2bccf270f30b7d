"""Toy files for the tests of the command line, and how its commands are run in them."""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path

from maxmargin.cli.main import main

#: A line of progress off a terminal.
ROUND = re.compile(r"(?:[\w.=, -]+: )?pass \d+ gap ")
#: The line about the data that comes before a training.
DATA = re.compile(r".*: \d+ sequences, \d+ tokens, \d+ labels, \d+ features\n")
COMMAND = [sys.executable, "-m", "maxmargin"]

_WORDS = {
    "DT": ["the", "a", "this", "every"],
    "JJ": ["old", "red", "quiet", "Danish"],
    "NN": ["dog", "cat", "mill", "light", "run", "book"],
    "VB": ["sees", "light", "run", "book", "finds"],
    "IN": ["in", "under", "near"],
    "RB": ["soon", "often"],
}
_PHRASES = {
    "NP": [["DT", "NN"], ["DT", "JJ", "NN"], ["NN"], ["JJ", "NN"]],
    "VP": [["VB"], ["RB", "VB"]],
    "PP": [["IN"]],
}
_SENTENCES = [["NP", "VP"], ["NP", "VP", "NP"], ["NP", "VP", "NP", "PP", "NP"], ["PP", "NP", "VP"]]


def sentences(n=24, seed=1):
    """Return invented sentences: lists of rows (word, part of speech, chunk)."""
    draw = random.Random(seed)
    result = []
    for _ in range(n):
        rows = []
        for phrase in draw.choice(_SENTENCES):
            for k, tag in enumerate(draw.choice(_PHRASES[phrase])):
                rows.append((draw.choice(_WORDS[tag]), tag, f"{'I' if k else 'B'}-{phrase}"))
        rows.append((".", ".", "O"))
        result.append(rows)
    return result


def text(sequences, columns=(0, 1, 2), separator="\t"):
    """Return sequences as a column file has them."""
    blocks = ("".join(separator.join(row[k] for k in columns) + "\n" for row in rows)
              for rows in sequences)
    return "\n".join(blocks)


def crfsuite(sequences):
    """Return sequences as a file of CRFsuite has them."""
    blocks = ("".join(f"{row[2]}\tw={row[0]}\tp={row[1]}\n" for row in rows) for rows in sequences)
    return "\n".join(blocks) + "\n"


def svmhmm(sequences):
    """Return sequences as a file of SVM-hmm has them; features are numbers of words and tags."""
    names = sorted({cell for rows in _WORDS.values() for cell in rows} | set(_WORDS) | {"."})
    number = {name: k + 1 for k, name in enumerate(names)}
    lines = []
    for i, rows in enumerate(sequences):
        for word, tag, chunk in rows:
            features = " ".join(f"{k}:1" for k in sorted({number[word], number[tag]}))
            lines.append(f"{chunk} qid:{i + 1} {features}\n")
    return "".join(lines)


def conllu(sequences):
    """Return sequences as a CoNLL-U file has them, with chunks as language-specific tags."""
    lines = []
    for i, rows in enumerate(sequences):
        lines.append(f"# sent_id = {i}\n")
        for k, (word, tag, chunk) in enumerate(rows):
            lines.append(f"{k + 1}\t{word}\t_\t{tag}\t{chunk}\t_\t0\t_\t_\t_\n")
        lines.append("\n")
    return "".join(lines)


def write(path, content):
    """Write a file; return its path."""
    path = Path(path)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def quiet(err):
    """Return what was written to standard error, without the lines of progress."""
    return "".join(line for line in err.splitlines(keepends=True) if not ROUND.match(line))


def run(capsys, *arguments, code=0):
    """Run a command that must end with an exit code and without errors; return its output.

    Nothing but the lines about the rounds of a training may be on standard error.
    """
    assert main([*map(str, arguments)]) == code
    out, err = capsys.readouterr()
    assert quiet(err) == ""
    return out


def summary(capsys, *arguments, code=0):
    """Run a command with --json, which prints nothing else; return its summary."""
    out = run(capsys, *arguments, "--json", code=code)
    assert out.count("\n") == 1
    return json.loads(out)


def refused(capsys, *arguments):
    """Run a command, which must fail with one line that says so; return that line."""
    assert main([*map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == "" or (arguments[0] == "train" and DATA.fullmatch(out))
    err = quiet(err)
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert err.startswith(f"maxmargin {arguments[0]}: error: ")
    assert "Traceback" not in err
    return err
