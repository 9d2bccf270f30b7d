"""Files and models of the tasks other than chains: seeds, and the commands that read them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

__all__ = ["TASKS", "TaskSeed", "task_of", "train_task", "write_task_files"]


class TaskSeed(NamedTuple):
    """A good file of a task."""

    #: What the file is called.
    name: str
    text: str
    #: Options of training.
    options: tuple[str, ...]
    #: What mutations of the text put in.
    words: tuple[bytes, ...]


_TREES = "".join(
    f"(S (NP (DT {d}) (NN {n})) (VP (VBZ {v}) (NP (NN {o}))) (. .))\n"
    for d, n, v, o in (("the", "dog", "sees", "cats"), ("a", "猫", "likes", "fish"))
) + "((S (NP (NN it)) (VP (VBZ runs))))\n"

_HEADS = "".join(
    f"# sent_id = {i}\n1-2\tboth\t_\t_\t_\t_\t_\t_\t_\t_\n"
    f"1\t{d}\t_\tDET\tDT\t_\t2\tdet\t_\t_\n2\t{n}\t_\tNOUN\tNN\t_\t3\tnsubj\t_\t_\n"
    f"3\t{v}\t_\tVERB\tVBZ\t_\t0\troot\t_\t_\n3.1\tempty\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
    for i, (d, n, v) in enumerate((("the", "dog", "barks"), ("a", "猫", "sees")))
)

#: Name of a task -> its seed.
TASKS = {
    "classes": TaskSeed(
        "documents.txt",
        "sport\tthe ball and the goal\nfood\tbread and wine\nsport\ta goal\nmusik\tÄmo sings\n",
        (),
        (b"\t", b"sport\t", b"\t\t", b"\xc3", b"a" * 300),
    ),
    "taxonomy": TaskSeed(
        "paths.txt",
        "a/b\tthe ball\na/c\tbread and wine\nd/e/f\ta goal\nd/g\tÄmo sings\na/b\tball\n",
        (),
        (b"/", b"a/b/c\t", b"//\t", b"/\t", b"\t"),
    ),
    "trees": TaskSeed(
        "trees.mrg", _TREES, (), (b"(", b")", b"(S", b"(NN x)", b"((", b"))", b"()", b"(X (X (X")
    ),
    "dependencies": TaskSeed(
        "heads.conllu",
        _HEADS,
        ("--bits", "8"),
        (b"\t0\troot", b"\t9", b"\t-1", b"1-2", b"2.1", b"\t_", b"\t3\t", b"1\t"),
    ),
    "alignment": TaskSeed(
        "pairs.tsv",
        "ACDEF\tACEF\tMM1MM\nHIKLM\tHIKM\tMMM1M\nACD\tACD\tMMM\n",
        (),
        (b"M", b"1", b"2", b"-", b"\t", b"X", b"*", b"acd"),
    ),
}


def task_of(name: str) -> str | None:
    """Return the task of a seed's model, ``task-NAME.mm``; None for other files."""
    task = name.removeprefix("task-").removesuffix(".mm")
    return task if task in TASKS and name.startswith("task-") else None


def write_task_files(folder: Path) -> None:
    """Write the good files.

    Parameters
    ----------
    folder : Path
        Where to.
    """
    for seed in TASKS.values():
        (folder / seed.name).write_text(seed.text, "utf-8")


def train_task(rng: random.Random, task: str, data: str) -> list[str]:
    """Return a training of a task on a file.

    Parameters
    ----------
    rng : random.Random
        Chooses the options.
    task : str
        One of `TASKS`.
    data : str
        The file.

    Returns
    -------
    list of str
        Arguments of ``maxmargin``.
    """
    solver = rng.choice(("sdm", "sdm", "nslack", "bcfw", "subgradient", "oneslack"))
    command = ["train", "--task", task, data, "-m", "out.mm", "-q", "--max-passes", "3"]
    command += ["--solver", solver, *TASKS[task].options]
    if rng.random() < 0.2:
        command += ["--dtype", "float64"]
    if rng.random() < 0.1:
        command += ["--valid", data]
    return command
