"""Good files of every kind, which mutations start from: small, invented, the same every time."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import random
from pathlib import Path
from typing import Any

from fuzzing.checkpoint_file import Checkpoint
from fuzzing.tasks import TASKS, write_task_files

__all__ = ["CHECKPOINTS", "ENCODED", "MODELS", "TEMPLATES", "write_seeds"]

_GOLDEN = Path(__file__).parents[2] / "tests" / "golden"

_WORDS = {
    "D": ("the", "a", "every", "Ein"),
    "J": ("old", "Red", "x-ray", "3rd"),
    "N": ("dog", "cat", "Ämo", "猫", "run", "1984"),
    "V": ("sees", "run", "found"),
}
_PATTERNS = ("DNV", "DJNV", "NVDN", "V", "DNVDJN", "NV")

#: Templates by name; between them all commands and both kinds of line.
TEMPLATES = {
    "plain": "U00:%x[0,0]\nU01:%x[-1,0]/%x[0,0]\nU02:%x[1,1]\nB\n",
    "rich": "# all commands\nU:low=%X[0,0]\nu:pre=%p[0,0,2]\nU:suf=%s[0,0,3]\nU:%h[0,0]|%c[1,0]\n"
    'U:d=%t[0,0,"^\\d*$"]\nU:m=%m[0,0,"^\\a-"]\nU:first=%x[@1,0]\nU:last=%x[@-1,1]\nB\n',
    "pairs": "U:w=%x[0,0]\nB:p=%x[0,1]\nB\n",
    "regex": 'U1:%t[0,0,"\\u.?\\l+"]\nU2:%m[0,0,"[^a-c].*"]\nU:%T[0,0,"-"]\nU:%M[-1,0,"\\p"]\nB\n',
    "star": "*:w=%x[0,0]\nU:%x[-2,1]%x[-1,1]%x[0,1]\n",
}

#: Name of a model -> how it is trained, and the file that it can tag.
MODELS = {
    "words": ("columns.tsv", ()),
    "pairs": ("columns.tsv", ("--template", "pairs.template")),
    "rich": ("columns.tsv", ("--template", "rich.template", "--dtype", "float64")),
    "hashed": ("columns.tsv", ("--hash-bits", "6")),
    "sparse": ("columns.tsv", ("--l1-ratio", "0.7", "--allowed", "iob2")),
    "items": ("items.crfsuite", ("--format", "crfsuite")),
    "numbers": ("items.svmhmm", ("--format", "svmhmm")),
    "tokens": ("tokens.conllu", ("--columns", "form,xpos,upos")),
    "kernel-poly": ("columns.tsv", ("--kernel", "poly", "--allowed", "iob2")),
    "kernel-rbf": ("columns.tsv", ("--kernel", "rbf", "--hash-bits", "6")),
    "kernel-items": ("items.crfsuite", ("--kernel", "poly", "--dtype", "float64")),
}

#: Name of an encoded file -> what it is made of.
ENCODED = {
    "encoded": ("columns.tsv", ("--template", "pairs.template")),
    "encoded-hashed": ("columns.tsv", ("--hash-bits", "6")),
    "encoded-items": ("items.crfsuite", ("--format", "crfsuite", "--min-count", "2")),
}

#: Name of a checkpoint -> the options of its run.
CHECKPOINTS = {
    "sdm": ("--solver", "sdm"),
    "quadratic": ("--solver", "sdm", "--slack", "quadratic"),
    "sap": ("--solver", "sap", "--l1-ratio", "0.5"),
    "nslack": ("--solver", "nslack"),
    "oneslack": ("--solver", "oneslack"),
    "bcfw": ("--solver", "bcfw", "--dtype", "float64"),
    "subgradient": ("--solver", "subgradient"),
    "lp": ("--solver", "lp", "--l1-ratio", "1"),
    "hashed": ("--solver", "sdm", "--rescale", "slack", "--hash-bits", "5"),
}


def write_seeds(folder: Path) -> None:
    """Write all seeds.

    Parameters
    ----------
    folder : Path
        An empty directory. Afterwards it has ``columns.tsv``, ``spaces.txt``, ``eval.tsv``,
        ``tokens.conllu``, ``items.crfsuite``, ``items.svmhmm``, a ``.template`` for each of
        `TEMPLATES`, a ``.mm`` for each of `MODELS`, a ``.mme`` for each of `ENCODED`, the golden
        models, and a ``.npz`` for each of `CHECKPOINTS`; for each of `TASKS` a file and a model
        ``task-NAME.mm``; and ``columns.tsv`` compressed in each of the ways that the standard
        library has.
    """
    sequences = _sequences()
    (folder / "columns.tsv").write_text(_columns(sequences, "\t"), "utf-8")
    data = (folder / "columns.tsv").read_bytes()
    (folder / "columns.tsv.gz").write_bytes(gzip.compress(data, mtime=0))
    (folder / "columns.tsv.bz2").write_bytes(bz2.compress(data))
    (folder / "columns.tsv.xz").write_bytes(lzma.compress(data))
    (folder / "spaces.txt").write_text(_columns(sequences, " "), "utf-8")
    (folder / "eval.tsv").write_text(
        "\n".join("".join(f"{w}\t{c}\t{c}\n" for w, _, c in rows) for rows in sequences), "utf-8"
    )
    (folder / "tokens.conllu").write_text(_conllu(sequences), "utf-8")
    (folder / "items.crfsuite").write_text(_crfsuite(sequences), "utf-8")
    (folder / "items.svmhmm").write_text(_svmhmm(sequences), "utf-8")
    for name, text in TEMPLATES.items():
        (folder / f"{name}.template").write_text(text, "utf-8")
    for path in sorted(_GOLDEN.glob("*.mm")):
        (folder / path.name).write_bytes(path.read_bytes())
    with contextlib.chdir(folder):
        for name, (data, options) in MODELS.items():
            _run("train", data, "-m", f"{name}.mm", "--max-passes", "4", "-q", *options)
        for name, (data, options) in ENCODED.items():
            _run("encode", data, "-o", f"{name}.mme", "-q", *options)
        write_task_files(Path())
        for task, seed in TASKS.items():
            given = ("-m", f"task-{task}.mm", "--max-passes", "4", "-q", *seed.options)
            _run("train", "--task", task, seed.name, *given)
        for name, options in CHECKPOINTS.items():
            path = f"{name}.npz"
            passes = ("--max-passes", "3", "--gap", "0", "--checkpoint", path)
            _run("train", "columns.tsv", "-m", "unused.mm", "-q", *passes, *options)
            _without_times(Path(path))
        Path("unused.mm").unlink()


def _run(*arguments: str) -> None:
    from maxmargin.cli.main import main

    err = io.StringIO()
    with contextlib.redirect_stderr(err):
        code = main(arguments)
    if code != 0:
        raise RuntimeError(f"maxmargin {' '.join(arguments)} ended with {code}: {err.getvalue()}")


def _without_times(path: Path) -> None:
    """Put fixed numbers in the place of seconds, which differ from run to run."""
    checkpoint = Checkpoint(path.read_bytes())
    _fix(checkpoint.about)
    path.write_bytes(checkpoint.signed())


def _fix(tree: Any) -> None:
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        if isinstance(tree[key], dict | list):
            _fix(tree[key])
        elif isinstance(key, str) and "seconds" in key:
            tree[key] = 0.25


def _sequences() -> list[list[tuple[str, str, str]]]:
    """Return sequences of (word, part of speech, chunk)."""
    rng = random.Random(7)
    sequences = []
    for pattern in _PATTERNS:
        rows, inside = [], False
        for tag in pattern:
            noun = tag != "V"
            chunk = ("I-NP" if inside else "B-NP") if noun else "O"
            rows.append((rng.choice(_WORDS[tag]), tag, chunk))
            inside = noun
        sequences.append(rows)
    return sequences


def _columns(sequences: list[list[tuple[str, str, str]]], separator: str) -> str:
    return "\n".join("".join(separator.join(row) + "\n" for row in rows) for rows in sequences)


def _conllu(sequences: list[list[tuple[str, str, str]]]) -> str:
    lines = []
    for i, rows in enumerate(sequences):
        lines.append(f"# sent_id = {i}\n# text = invented\n")
        for k, (word, tag, chunk) in enumerate(rows, 1):
            if k == 2:
                lines.append(f"{k}-{k + 1}\tboth\t_\t_\t_\t_\t_\t_\t_\t_\n")
            lines.append(f"{k}\t{word}\t{word.lower()}\t{tag}\t{chunk}\tCase=Nom|N=1\t0\tx\t_\t_\n")
        lines.append("2.1\tempty\t_\t_\t_\t_\t_\t_\t_\t_\n\n")
    return "".join(lines)


def _crfsuite(sequences: list[list[tuple[str, str, str]]]) -> str:
    blocks = []
    for i, rows in enumerate(sequences):
        lines = ["@weight:1.5\n"] if i == 2 else []
        for k, (word, tag, chunk) in enumerate(rows):
            end = ["", "\t__BOS__"][k == 0]
            lines.append(f"{chunk}\tw={word}\tp[0]={tag}:0.5\tlen:{len(word)}\ta\\:b{end}\n")
        blocks.append("".join(lines))
    return "\n".join(blocks) + "\n"


def _svmhmm(sequences: list[list[tuple[str, str, str]]]) -> str:
    names = sorted({word for words in _WORDS.values() for word in words} | set(_WORDS))
    lines = []
    for i, rows in enumerate(sequences):
        for word, tag, chunk in rows:
            first, second = sorted((names.index(word) + 1, names.index(tag) + 1))
            lines.append(f"{chunk} qid:{i + 1} {first}:1 {second}:0.25 {90 + i}:-2e-1 # {word}\n")
    return "".join(lines)
