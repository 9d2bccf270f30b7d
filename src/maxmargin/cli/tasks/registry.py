"""The tasks by their names. Their modules are imported when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from maxmargin.errors import NotCompatibleError

if TYPE_CHECKING:
    from maxmargin.cli.tasks.base import Task

__all__ = ["CHAIN", "TASKS", "asked_task", "task_named"]

#: The task of files with a label for each token, which the command line has had from the start.
CHAIN = "chain"
#: The option, and how argparse lets it be shortened.
_SPELLINGS = ("--task", "--tas", "--ta")
#: Name -> module of `maxmargin.cli.tasks` and class.
TASKS = {
    "classes": "classes:ClassesTask",
    "taxonomy": "taxonomy:TaxonomyTask",
    "trees": "trees:TreesTask",
    "dependencies": "dependencies:DependenciesTask",
    "alignment": "alignment:AlignmentTask",
}


def task_named(name: str) -> Task:
    """Return a task.

    Parameters
    ----------
    name : str
        One of `TASKS`.

    Returns
    -------
    Task
        The task.

    Raises
    ------
    NotCompatibleError
        If there is none of this name: models of some kinds are for Python only.
    """
    if name not in TASKS:
        raise NotCompatibleError(
            f"the command line has no task {name!r}: such models are used from Python, with "
            f"maxmargin.load; expected a model of one of the tasks {', '.join(TASKS)}"
        )
    module, _, class_name = TASKS[name].partition(":")
    task: Task = getattr(import_module(f"maxmargin.cli.tasks.{module}"), class_name)()
    return task


def asked_task(arguments: Sequence[str]) -> str:
    """Return the task that a command line asks for, before its options are known.

    Parameters
    ----------
    arguments : sequence of str
        The arguments.

    Returns
    -------
    str
        One of `TASKS`, or `CHAIN`: also where there is no such task, of which argparse then tells.
    """
    asked = CHAIN
    for k, argument in enumerate(arguments):
        option, given, value = argument.partition("=")
        if option not in _SPELLINGS:
            continue
        if given:
            asked = value
        elif k + 1 < len(arguments):
            asked = arguments[k + 1]
    return asked if asked in TASKS else CHAIN
