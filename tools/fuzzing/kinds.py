"""The kinds of input: how each is mutated, and which commands then read it.

A kind is a function of a random generator and the seeds; the generator alone decides, so that an
input is known by its kind and number.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from fuzzing.checkpoint_file import mutate_checkpoint
from fuzzing.model_file import mutate_model
from fuzzing.seeds import CHECKPOINTS, MODELS, TEMPLATES
from fuzzing.tasks import TASKS, task_of, train_task
from fuzzing.text import mutate_text

__all__ = ["KINDS", "Input", "Seeds", "make_input"]


class Input(NamedTuple):
    """A mutated file, and what is done with it."""

    #: What the file is called, in an empty directory.
    name: str
    data: bytes
    #: Arguments of ``maxmargin``; the seeds are in ``../seeds``. The word ``@predict`` in place of
    #: a command stands for `SequenceTagger.load` and `predict`.
    commands: list[list[str]]


class Seeds:
    """The files that `write_seeds` wrote.

    Parameters
    ----------
    folder : Path
        Where they are.
    """

    def __init__(self, folder: Path) -> None:
        self._files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}

    def __getitem__(self, name: str) -> bytes:
        return self._files[name]

    def ending(self, suffix: str) -> list[str]:
        """Return the names that end so."""
        return [name for name in self._files if name.endswith(suffix)]


def make_input(kind: str, number: int, seed: int, seeds: Seeds) -> Input:
    """Return an input: the same for the same arguments.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    number : int
        Which input.
    seed : int
        Of the whole run.
    seeds : Seeds
        What is mutated.
    """
    return KINDS[kind](random.Random(f"{seed}/{kind}/{number}"), seeds)


def _text(
    rng: random.Random, seeds: Seeds, names: tuple[str, ...], words: tuple[bytes, ...]
) -> tuple[str, bytes]:
    """Return the name of a seed and a mutation of it."""
    name = rng.choice(names)
    return name, mutate_text(rng, seeds[name], [seeds[other] for other in names], words)


def _maybe(rng: random.Random, chance: float, *options: str) -> list[str]:
    return list(options) if rng.random() < chance else []


def _train(rng: random.Random, data: str, *options: str) -> list[str]:
    solver = rng.choice(("sdm", "sdm", "sdm", "nslack", "bcfw", "subgradient", "oneslack"))
    return [
        *("train", data, "-m", "out.mm", "-q", "--max-passes", "3", "--solver", solver),
        *_maybe(rng, 0.2, "--dtype", "float64"),
        *_maybe(rng, 0.1, "--hash-bits", "6"),
        *_maybe(rng, 0.1, "--min-count", "2"),
        *_maybe(rng, 0.1, "--threads", "2"),
        *_maybe(rng, 0.1, "--allowed", rng.choice(("iob2", "iobes"))),
        *_maybe(rng, 0.1, "--valid", data),
        *_maybe(rng, 0.1, "--json"),
        *options,
    ]


def _tag(rng: random.Random, data: str, model: str, *options: str) -> list[str]:
    return [
        *("tag", data, "-m", model),
        *rng.choice(([], [], ["--nbest", "3"], ["--scores"], ["-o", "out.txt"])),
        *_maybe(rng, 0.15, "--known", rng.choice(("0", "2", "-1", "upos"))),
        *options,
    ]


def _column(rng: random.Random, seeds: Seeds) -> Input:
    words = (b"B-NP", b"I-NP", b"O", b"-DOCSTART- -X- O O", b"# comment", b"\t", b" ")
    name, data = _text(rng, seeds, ("columns.tsv", "spaces.txt", "eval.tsv"), words)
    reading = [
        *_maybe(rng, 0.1, "--separator", rng.choice(("tab", "space"))),
        *_maybe(rng, 0.1, "--comments", "#"),
        *_maybe(rng, 0.1, "--encoding", rng.choice(("latin-1", "utf-16", "cp1252", "utf-7"))),
    ]
    labelled = _maybe(rng, 0.1, "--label-column", rng.choice(("0", "1", "-2", "7")))
    names = ("words", "pos", "chunking", "ner", "ner@1")
    template = _maybe(rng, 0.4, "--template", rng.choice(names))
    model = "../seeds/" + rng.choice(("words.mm", "pairs.mm", "hashed.mm", "rich.mm"))
    command = rng.choice(
        (
            _train(rng, name, *template, *labelled, *reading),
            _train(rng, name, *template, *labelled, *reading),
            _tag(rng, name, model, *reading),
            ["eval", name, "-m", model, *_maybe(rng, 0.3, "--confusion"), *reading],
            ["eval", name, *_maybe(rng, 0.3, "--json"), *reading],
            _convert(rng, name, *reading),
        )
    )
    return Input(name, data, [command])


def _convert(rng: random.Random, name: str, *options: str) -> list[str]:
    outs = ["out.crfsuite", "out.svmhmm", "out.crfsuite.gz"]
    if not name.startswith("items"):  # from which no columns can be had back
        outs.append("out.tsv")
    out = rng.choice(outs)
    numbered = _maybe(rng, 0.3, "--numeric-labels", "--labels", "out.labels")
    return ["convert", name, out, *(numbered if out == "out.svmhmm" else []), *options]


def _conllu(rng: random.Random, seeds: Seeds) -> Input:
    words = (b"1-2\tx\t_", b"1.1", b"Case=Nom|Number=Sing", b"_", b"# text = ", b"|", b"=", b"\t_")
    name, data = _text(rng, seeds, ("tokens.conllu",), words)
    columns = rng.choice(("form,upos", "form,lemma,feats.Case,xpos", "feats,upos", "form,misc,id"))
    reading = _maybe(rng, 0.6, "--columns", columns)
    command = rng.choice(
        (
            _train(rng, name, "--format", "conllu", *reading),
            _tag(rng, name, "../seeds/words.mm", "--format", "conllu", *reading),
            _tag(rng, name, "../seeds/tokens.mm"),
            ["eval", name, "-m", "../seeds/words.mm", "--format", "conllu", *reading],
            _convert(rng, name, "--from", "conllu", *reading),
        )
    )
    return Input(name, data, [command])


def _items(
    rng: random.Random, seeds: Seeds, name: str, model: str, words: tuple[bytes, ...]
) -> Input:
    name, data = _text(rng, seeds, (name,), words)
    form = name.rpartition(".")[2]
    model = f"../seeds/{model}"
    command = rng.choice(
        (
            _train(rng, name, "--format", form),
            _train(rng, name, "--format", form),
            _tag(rng, name, model),
            ["eval", name, "-m", model, *_maybe(rng, 0.3, "--json")],
            _convert(rng, name, "--from", form),
        )
    )
    return Input(name, data, [command])


def _crfsuite(rng: random.Random, seeds: Seeds) -> Input:
    words = (b"a:1", b"a:", b":1", b"\\:", b"\\\\", b"@weight:2", b"@weight:", b"w:1e30", b"O\t")
    return _items(rng, seeds, "items.crfsuite", "items.mm", words)


def _svmhmm(rng: random.Random, seeds: Seeds) -> Input:
    words = (b"qid:1", b"qid:", b"1:1", b"0:1", b"5:1 3:1", b"2147483647:1", b"# x", b"O qid:3 1:2")
    return _items(rng, seeds, "items.svmhmm", "numbers.mm", words)


def _template(rng: random.Random, seeds: Seeds) -> Input:
    words = (
        *(b"%x[0,0]", b"%X[-1,1]", b"%p[0,0,2]", b"%s[1,0,3]", b"%h[0,0]", b"%c[0,1]", b"%x[@1,0]"),
        *(b'%t[0,0,"a"]', b'%m[-1,0,"\\d+"]', b"%x[0,99]", b"%x[99999999999,0]", b"%%", b"%", b"["),
        *(b"U", b"B", b"u:", b"b:", b"*:", b"#", b"\\a", b"\\d*", b".+", b"^", b"$"),
        *(b"[^", b"a-z]", b"\\u\\l\\p\\s", b"!", b".*.*.*.*.*x", b"?", b"\\", b'"', b"@-1"),
    )
    names = tuple(f"{name}.template" for name in TEMPLATES)
    name, data = _text(rng, seeds, names, words)
    columns = "../seeds/columns.tsv"
    if rng.random() < 0.3:
        commands = [_convert(rng, columns, "--template", name)]
    else:
        commands = [_train(rng, columns, "--template", name)]
        if rng.random() < 0.4:
            commands += [["tag", columns, "-m", "out.mm"], ["info", "out.mm"]]
    return Input(name, data, commands)


def _model(rng: random.Random, seeds: Seeds) -> Input:
    names = [name for name in seeds.ending(".mm") if task_of(name) is None]
    name = rng.choice(names)
    file, data = "model.mm", mutate_model(rng, seeds[name], [seeds[other] for other in names])
    tagged = f"../seeds/{MODELS.get(name.removesuffix('.mm'), ('columns.tsv', ()))[0]}"
    info = ["info", file, *rng.choice(([], [], ["--text"], ["--template"], ["--json"]))]
    reads = [
        _tag(rng, tagged, file),
        _tag(rng, tagged, file),
        ["eval", tagged, "-m", file],
        ["@predict", file],
    ]
    return Input(file, data, [rng.choice(reads), *_maybe_command(rng, info)])


def _encoded(rng: random.Random, seeds: Seeds) -> Input:
    """Return an encoded file, to be trained from, within a budget or not, or described."""
    names = seeds.ending(".mme")
    file, data = "data.mme", mutate_model(rng, seeds[rng.choice(names)], [seeds[n] for n in names])
    reads = [
        ["info", file, *_maybe(rng, 0.5, "--json")],
        ["train", file, "-m", "out.mm", "-q", "--max-passes", "2"],
        ["train", file, "-m", "out.mm", "-q", "--max-passes", "2", "--memory", "900M"],
        ["tag", "../seeds/columns.tsv", "-m", file],
    ]
    return Input(file, data, [rng.choice(reads)])


def _kernel(rng: random.Random, seeds: Seeds) -> Input:
    """Return a model with a kernel; other kinds of model are spliced in."""
    names = [name for name in seeds.ending(".mm") if name.startswith("kernel-")]
    name = rng.choice(names)
    others = [seeds[other] for other in [*names, "words.mm", "items.mm"]]
    file, data = "model.mm", mutate_model(rng, seeds[name], others)
    tagged = f"../seeds/{MODELS[name.removesuffix('.mm')][0]}"
    commands = (
        _tag(rng, tagged, file),
        ["eval", tagged, "-m", file],
        ["info", file, *rng.choice(([], ["--json"], ["--selected"], ["--text"]))],
        ["@predict", file],
    )
    return Input(file, data, [rng.choice(commands)])


def _compressed(rng: random.Random, seeds: Seeds) -> Input:
    """Return a compressed file of columns with bytes changed, left out or put in."""
    name = rng.choice([f"columns.tsv.{ending}" for ending in ("gz", "bz2", "xz")])
    data = bytearray(seeds[name])
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data))
        change = rng.randrange(4)
        if change == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif change == 1:
            del data[at : at + rng.randint(1, 20)]
        elif change == 2:
            data[at:at] = rng.randbytes(rng.randint(1, 8))
        else:
            data += seeds[rng.choice(("columns.tsv.gz", "columns.tsv.bz2", "columns.tsv.xz"))]
        data = data or bytearray(b"x")
    model = "../seeds/words.mm"
    commands = (_train(rng, name), _tag(rng, name, model), ["eval", name, "-m", model])
    return Input(name, bytes(data), [rng.choice(commands)])


def _maybe_command(rng: random.Random, command: list[str]) -> list[list[str]]:
    return [command] if rng.random() < 0.4 else []


def _checkpoint(rng: random.Random, seeds: Seeds) -> Input:
    name = rng.choice(list(CHECKPOINTS))
    others = [seeds[other] for other in seeds.ending(".npz")]
    data = mutate_checkpoint(rng, seeds[f"{name}.npz"], others)
    command = [
        *("train", "../seeds/columns.tsv", "-m", "out.mm", "-q", "--max-passes", "5", "--gap", "0"),
        *("--checkpoint", "run.npz", "--resume", *CHECKPOINTS[name]),
    ]
    return Input("run.npz", data, [command])


def _task(rng: random.Random, seeds: Seeds) -> Input:
    """Return a file of a task, for training, prediction or evaluation."""
    task = rng.choice(list(TASKS))
    seed, model = TASKS[task], f"../seeds/task-{task}.mm"
    others = [seeds[other.name] for other in TASKS.values()]
    data = mutate_text(rng, seeds[seed.name], others, seed.words)
    command = rng.choice(
        (
            train_task(rng, task, seed.name),
            train_task(rng, task, seed.name),
            ["predict", seed.name, "-m", model, *_maybe(rng, 0.5, "-o", "out.txt")],
            ["eval", seed.name, "-m", model, *_maybe(rng, 0.3, "--json")],
        )
    )
    return Input(seed.name, data, [command])


def _structure(rng: random.Random, seeds: Seeds) -> Input:
    """Return a model of a task."""
    names = [name for name in seeds.ending(".mm") if task_of(name) is not None]
    name = rng.choice(names)
    file, data = "model.mm", mutate_model(rng, seeds[name], [seeds[other] for other in names])
    task = task_of(name)
    assert task is not None
    read = f"../seeds/{TASKS[task].name}"
    reads = (
        ["predict", read, "-m", file, *_maybe(rng, 0.3, "-o", "out.txt")],
        ["eval", read, "-m", file],
        ["info", file, *rng.choice(([], ["--text"], ["--json"]))],
        ["convert", file, "out.txt"],
    )
    return Input(file, data, [rng.choice(reads)])


#: Kind of file -> what makes its inputs.
KINDS: dict[str, Callable[[random.Random, Seeds], Input]] = {
    "column": _column,
    "conllu": _conllu,
    "crfsuite": _crfsuite,
    "svmhmm": _svmhmm,
    "template": _template,
    "model": _model,
    "kernel": _kernel,
    "compressed": _compressed,
    "checkpoint": _checkpoint,
    "encoded": _encoded,
    "task": _task,
    "structure": _structure,
}
