"""The task ``dependencies``: CoNLL-U files with dependency trees."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, ClassVar

from maxmargin.cli.tasks.base import Examples, Task

if TYPE_CHECKING:
    import argparse

    from maxmargin.estimators.dependency import DependencyParser

__all__ = ["DependenciesTask"]

_PUNCTUATION = ("count", "upos", "xpos", "form")


class DependenciesTask(Task):
    """Heads and relations of the words of CoNLL-U files."""

    name: ClassVar[str] = "dependencies"
    items: ClassVar[str] = "sentences"
    default_C: ClassVar[float] = 0.03
    epilog: ClassVar[str] = """\
files: CoNLL-U; FORM, LEMMA, UPOS, XPOS and FEATS are read, HEAD and DEPREL learned and written.
Comments, multiword tokens, empty nodes and all other columns stay as they are.

examples:
  maxmargin train --task dependencies train.conllu -m parser.mm --valid dev.conllu --gap 0.1
  maxmargin predict -m parser.mm new.conllu > parsed.conllu
  maxmargin eval -m parser.mm test.conllu --json
"""

    def add_options(self, group: Any) -> None:
        """Add the options of this task.

        Parameters
        ----------
        group : argparse group
            Where to add them.
        """
        group.add_argument(
            "--templates",
            metavar="FILE",
            help="features of arcs, one template on each line (default: McDonald et al. 2005)",
        )
        group.add_argument(
            "--projective",
            choices=("auto", "yes", "no"),
            default="auto",
            help="whether trees have no crossing arcs (auto: if at most one in twenty of TRAIN "
            "has any)",
        )
        group.add_argument(
            "--many-roots",
            action="store_true",
            help="several words of a sentence may have the head 0 (default: exactly one)",
        )
        group.add_argument(
            "--unlabelled", action="store_true", help="learn heads only, no relations"
        )
        group.add_argument(
            "--punctuation",
            choices=_PUNCTUATION,
            default="count",
            help="which words scores leave out: none (count), or those that are punctuation by "
            "their UPOS, their XPOS (Penn Treebank) or their form (default: count)",
        )
        group.add_argument(
            "--bits", type=int, default=22, metavar="N", help="2^N weights of arcs (default: 22)"
        )
        group.add_argument(
            "--loss",
            choices=("hamming", "zero_one"),
            default="hamming",
            help="number of wrong words, or 1 for a wrong tree (default: hamming)",
        )

    def reading(self, options: argparse.Namespace) -> dict[str, Any]:
        """Return what must be remembered to read further files.

        Parameters
        ----------
        options : argparse.Namespace
            The arguments of ``maxmargin train``.

        Returns
        -------
        dict
            ``one_root``, ``labelled`` and ``punctuation``.
        """
        return {
            "one_root": not options.many_roots,
            "labelled": not options.unlabelled,
            "punctuation": options.punctuation,
        }

    def read(self, path: Any, reading: dict[str, Any], *, truths: bool) -> Examples:
        """Read a CoNLL-U file.

        Parameters
        ----------
        path : str
            The file.
        reading : dict
            As `reading` gave it, or anything else.
        truths : bool
            Whether heads and relations must be there.

        Returns
        -------
        found : Examples
            Their ``raw`` has the sentences, and what is punctuation.
        """
        from maxmargin.errors import EmptyFileError
        from maxmargin.io.conllu_trees import read_dependencies

        sentences = read_dependencies(path, heads=truths, one_root=reading.get("one_root") is True)
        if not sentences:
            raise EmptyFileError(f"{path}: found no sentences; expected at least one")
        leave_out = reading.get("punctuation")
        raw = (sentences, leave_out if leave_out in _PUNCTUATION else "count")
        if not truths:
            return Examples(sentences, None, raw)
        y: list[Any] = [sentence.heads for sentence in sentences]
        relations = [sentence.deprels or [] for sentence in sentences]
        named = any(name != "_" for names in relations for name in names)
        if reading.get("labelled") is not False and named:
            y = list(zip(y, relations, strict=True))
        return Examples(sentences, y, raw)

    def make(self, options: argparse.Namespace, **common: Any) -> DependencyParser:
        """Return a parser that is to be fitted.

        Parameters
        ----------
        options : argparse.Namespace
            With the options of `add_options`.
        **common
            Parameters that all estimators have.

        Returns
        -------
        DependencyParser
            Not fitted.
        """
        from maxmargin.estimators.dependency import DependencyParser

        templates = None
        if options.templates is not None:
            from maxmargin.io.text import read_bytes

            templates = read_bytes(options.templates).decode("utf-8", errors="replace")
        projective: bool | str = {"yes": True, "no": False}.get(options.projective, "auto")
        return DependencyParser(
            templates=templates,
            projective=projective,
            one_root=not options.many_roots,
            loss=options.loss,
            bits=options.bits,
            **common,
        )

    def write(self, out: IO[bytes], examples: Examples, predicted: Any) -> None:
        """Write the sentences with their predicted heads and relations.

        Parameters
        ----------
        out : binary file
            Where to.
        examples : Examples
            As `read` gave them.
        predicted : sequence
            A tree for each sentence.
        """
        from maxmargin.io.conllu_trees import write_dependencies

        heads, relations = _apart(predicted)
        write_dependencies(out, examples.raw[0], heads, relations)

    def score(self, examples: Examples, predicted: Any) -> dict[str, Any]:
        """Return the attachment scores.

        Parameters
        ----------
        examples : Examples
            With the true trees.
        predicted : sequence
            A tree for each sentence.

        Returns
        -------
        dict
            ``las`` (None without relations) and ``uas``, the one that models are chosen by first,
            and the number of ``words`` that count.
        """
        from maxmargin.scores.dependencies import attachment_scores, punctuation

        sentences, leave_out = examples.raw
        keep = None
        if leave_out != "count":
            column = {"form": "forms"}.get(leave_out, leave_out)
            marks = punctuation([getattr(sentence, column) for sentence in sentences], leave_out)
            keep = [~mask for mask in marks]
        gold, gold_relations = _apart(examples.y)
        heads, relations = _apart(predicted)
        if gold_relations is None or relations is None:
            gold_relations = relations = None
        found = attachment_scores(gold, heads, gold_relations, relations, keep=keep)
        scores = {"las": found["las"], "uas": found["uas"]}
        if found["las"] is None:
            scores = {"uas": found["uas"], "las": None}
        return {**scores, "words": found["n"]}


def _apart(trees: Any) -> tuple[list[Any], list[Any] | None]:
    """Return heads and relations (None without) of trees."""
    if len(trees) > 0 and isinstance(trees[0], tuple):
        return [heads for heads, _ in trees], [names for _, names in trees]
    return list(trees), None
