"""Templates of features of dependency arcs.

A template is a line of atoms. ``h.word d.tag`` asks for the word of the head together with the tag
of the dependent; ``h.tag+1`` is the tag of the token behind the head, ``d.tag-1`` that before the
dependent; ``between.tag`` stands for every token between the two, so that the template gives a
feature for each different tag that is there. Every feature is told apart by the direction of the
arc as well. With ``dist`` at the end of the line it is also told apart by the distance (1, 2, 3, 4,
5, 6 to 10, more), and with ``dist?`` there are both features. A line that begins with ``label:`` is
a template of the relations: each of its features has a weight for each relation. What follows ``#``
is a comment.

The columns are ``word`` (or ``form``), ``lower``, ``lemma``, ``pos`` (or ``upos``), ``tag`` (or
``xpos``), ``feats``, ``prefix1`` to ``prefix9`` and ``suffix1`` to ``suffix9``. The root is a token
of its own before the first word; before it and behind the last word every column has a value that
stands for the edge.

The built-in templates are those of McDonald, Crammer and Pereira (2005), "Online large-margin
training of dependency parsers", Table 1, with the back-offs of their parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.printable import quoted

__all__ = ["ArcTemplates", "default_templates", "sentence_columns"]

SIDES = {"h": 0, "d": 1, "between": 2}
#: Columns as CoNLL-U names them, and as people do.
ALIASES = {"word": "form", "pos": "upos", "tag": "xpos"}
PLAIN = ("form", "lower", "lemma", "upos", "xpos", "feats")
#: What stands for the root, for the place before it and for that behind the last word.
SPECIALS = ("\0root", "\0start", "\0end")

_ATOM = re.compile(r"(h|d|between)\.([a-z]+[1-9]?)([+-][0-9]{1,3})?")
_AFFIX = re.compile(r"(prefix|suffix)([1-9])")

_UNIGRAMS = """
h.word h.{tag} dist?
h.word dist?
h.{tag} dist?
d.word d.{tag} dist?
d.word dist?
d.{tag} dist?
"""
_BIGRAMS = """
h.word h.{tag} d.word d.{tag} dist?
h.{tag} d.word d.{tag} dist?
h.word d.word d.{tag} dist?
h.word h.{tag} d.{tag} dist?
h.word h.{tag} d.word dist?
h.word d.word dist?
h.{tag} d.{tag} dist?
"""
_AROUND = """
h.{tag} between.{tag} d.{tag}
h.{tag} h.{tag}+1 d.{tag}-1 d.{tag} dist?
h.{tag}-1 h.{tag} d.{tag}-1 d.{tag} dist?
h.{tag} h.{tag}+1 d.{tag} d.{tag}+1 dist?
h.{tag}-1 h.{tag} d.{tag} d.{tag}+1 dist?
h.{tag} h.{tag}+1 d.{tag} dist?
h.{tag}-1 h.{tag} d.{tag} dist?
h.{tag} d.{tag}-1 d.{tag} dist?
h.{tag} d.{tag} d.{tag}+1 dist?
"""
_COARSE = """
h.{pos} d.{pos} dist?
h.word d.{pos} dist?
h.{pos} d.word dist?
"""
_LABELS = """
label: d.word
label: d.word d.{tag}
label: d.{tag}-1 d.{tag} d.{tag}+1
label: d.word-1 d.{tag}
label: d.{tag} d.word+1
label: d.suffix3 d.{tag}
label: h.word
label: h.{tag}-1 h.{tag} h.{tag}+1
label: h.{tag} d.{tag} dist
label: h.{tag} d.word
label: h.word d.{tag}
label: h.lower d.lower
"""


class Atom(NamedTuple):
    """A column of the head, of the dependent, or of a token between them."""

    side: int
    column: str
    offset: int

    def __str__(self) -> str:
        side = next(name for name, number in SIDES.items() if number == self.side)
        return f"{side}.{self.column}{self.offset:+d}" if self.offset else f"{side}.{self.column}"


class ArcTemplate(NamedTuple):
    """One template: whether it is of relations, whether it has the distance, and its atoms."""

    label: bool
    distance: bool
    atoms: tuple[Atom, ...]

    def __str__(self) -> str:
        line = " ".join(map(str, self.atoms)) + (" dist" if self.distance else "")
        return f"label: {line}" if self.label else line


def default_templates(*, coarse: bool = True, fine: bool = True) -> str:
    """Return the text of the built-in templates.

    Parameters
    ----------
    coarse : bool
        Whether the tokens have coarse tags (``pos``).
    fine : bool
        Whether they have fine ones (``tag``). With both, the templates of the paper are over the
        fine tags, and some more over the coarse ones; with neither they are over words alone.

    Returns
    -------
    str
        One template on each line.
    """
    tag = "tag" if fine else "pos" if coarse else "lower"
    text = _UNIGRAMS + _BIGRAMS + _AROUND
    if coarse and fine:
        text += _COARSE
    text = (text + _LABELS).format(tag=tag, pos="pos")
    return text.strip() + "\n"


class ArcTemplates:
    """The templates of a text, ready for native code.

    Parameters
    ----------
    text : str
        One template on each line, as the module says.

    Attributes
    ----------
    text : str
        The text as it was given.
    templates : tuple of ArcTemplate
        The templates; ``dist?`` has made two of one.
    columns : tuple of str
        The columns that they ask for.

    Raises
    ------
    ValueError
        If a line is no template.
    """

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise ValueError(f"templates must be a text, got {type(text).__name__}")
        self.text = text
        found: dict[ArcTemplate, None] = {}
        for number, line in enumerate(text.splitlines(), start=1):
            for template in _parsed(line.partition("#")[0].split(), number):
                found[template] = None
        self.templates = tuple(found)
        if not any(not template.label for template in self.templates):
            raise ValueError("the templates have none of an arc; expected a line as 'h.tag d.tag'")
        self.columns = tuple(dict.fromkeys(a.column for t in self.templates for a in t.atoms))

    @property
    def has_labels(self) -> bool:
        """Whether there is a template of relations."""
        return any(template.label for template in self.templates)

    def native(self) -> dict[str, NDArray[Any]]:
        """Return the templates as the arguments ``program``, ``seeds`` and ``specials``."""
        program: list[int] = []
        for template in self.templates:
            program += [template.label, template.distance, len(template.atoms)]
            for atom in template.atoms:
                program += [atom.side, self.columns.index(atom.column), atom.offset]
        specials = _native.text_hashes(list(SPECIALS))
        return {
            "program": np.array(program, dtype=np.int32),
            "seeds": _native.text_hashes([str(template) for template in self.templates]),
            "specials": np.repeat(specials[:, None], len(self.columns), axis=1),
        }

    def atoms(self, sentences: Iterable[Mapping[str, Sequence[str]]]) -> NDArray[np.uint64]:
        """Return the hashes of all columns of all tokens.

        Parameters
        ----------
        sentences : iterable of mappings
            The columns of each sentence, as `sentence_columns` returns them.

        Returns
        -------
        uint64 array of shape (n_tokens, n_columns)
            Row by row.
        """
        given = list(sentences)
        arrays = []
        for column in self.columns:
            values: list[str] = []
            for sentence in given:
                values += _column(sentence, column)
            try:
                arrays.append(_native.text_hashes(values))
            except TypeError:  # of which native code says no more than that
                wrong = next(value for value in values if not _is_text(value))
                raise ValueError(
                    f"found the {column} {quoted(wrong)}; expected text that UTF-8 can hold"
                ) from None
        return np.ascontiguousarray(np.array(arrays, dtype=np.uint64).reshape(len(arrays), -1).T)


def _parsed(words: list[str], number: int) -> list[ArcTemplate]:
    """Return the templates of one line."""

    def wrong(what: str) -> ValueError:
        return ValueError(f"template, line {number}: {what}")

    if not words:
        return []
    label = words[0] == "label:"
    words = words[1:] if label else words
    distance = words[-1] if words and words[-1] in ("dist", "dist?") else ""
    words = words[:-1] if distance else words
    if not words:
        raise wrong("no atom; expected some, as in 'h.word d.tag dist?'")
    atoms = []
    for word in words:
        match = _ATOM.fullmatch(word)
        column = "" if match is None else ALIASES.get(match[2], match[2])
        if match is None or not (column in PLAIN or _AFFIX.fullmatch(column)):
            raise wrong(
                f"{quoted(word)} is no atom; expected h., d. or between. with word, lower, lemma, "
                "pos, tag, feats, prefix1 to prefix9 or suffix1 to suffix9, and +1 or -1 for a "
                "neighbour"
            )
        atoms.append(Atom(SIDES[match[1]], column, int(match[3] or 0)))
    if label and any(atom.side == 2 for atom in atoms):
        raise wrong("a template of relations cannot have between")
    both = [False, True] if distance == "dist?" else [distance == "dist"]
    return [ArcTemplate(label, far, tuple(atoms)) for far in both]


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _column(sentence: Mapping[str, Sequence[str]], column: str) -> Sequence[str]:
    """Return a column of a sentence, made from another one if need be."""
    affix = _AFFIX.fullmatch(column)
    if affix is not None:
        size = int(affix[2])
        if affix[1] == "prefix":
            return [form[:size] for form in sentence["form"]]
        return [form[-size:] for form in sentence["form"]]
    if column == "lower":
        return [form.lower() for form in sentence["form"]]
    return sentence[column]


def sentence_columns(sentence: Any, where: str = "a sentence") -> dict[str, list[str]]:
    """Return the columns of a sentence as people write it.

    Parameters
    ----------
    sentence : object
        A sequence of tokens: strings, tuples (form, tag) or (form, pos, tag), or dicts with
        the keys form, lemma, upos, xpos and feats (or word, pos, tag); or an object with the
        attributes ``forms``, ``lemmas``, ``upos``, ``xpos`` and ``feats``, as ``read_dependencies``
        returns them.
    where : str
        What the sentence is called in messages.

    Returns
    -------
    dict of str to list of str
        form, lemma, upos, xpos and feats, "_" where there is nothing.

    Raises
    ------
    ValueError
        If a token is none of these.
    """
    if hasattr(sentence, "forms"):
        forms = [str(form) for form in sentence.forms]
        columns = {"form": forms}
        for name, attribute in (("lemma", "lemmas"), ("upos",) * 2, ("xpos",) * 2, ("feats",) * 2):
            values = getattr(sentence, attribute, None)
            columns[name] = ["_"] * len(forms) if values is None else [str(v) for v in values]
            if len(columns[name]) != len(forms):
                raise ValueError(
                    f"{where} has {len(forms)} forms and {len(columns[name])} of {attribute}"
                )
        return columns
    if isinstance(sentence, str | bytes | Mapping) or not isinstance(sentence, Iterable):
        raise ValueError(
            f"{where} is an object of type {type(sentence).__name__}; expected a sequence of tokens"
        )
    columns = {name: [] for name in ("form", "lemma", "upos", "xpos", "feats")}
    for position, token in enumerate(sentence, start=1):
        values = _token(token)
        if values is None:
            raise ValueError(
                f"token {position} of {where} is {quoted(token)}; expected a string, a tuple "
                "(form, tag) or (form, pos, tag) of strings, or a dict with the key form"
            )
        for name, column in columns.items():
            column.append(values.get(name, "_"))
    return columns


def _token(token: Any) -> dict[str, str] | None:
    """Return the columns of one token, None if it is none."""
    if isinstance(token, str):
        return {"form": token}
    if isinstance(token, Mapping):
        values = {ALIASES.get(name, name): value for name, value in token.items()}
    elif isinstance(token, Sequence) and len(token) in (1, 2, 3):
        names = {1: ("form",), 2: ("form", "xpos"), 3: ("form", "upos", "xpos")}[len(token)]
        values = dict(zip(names, token, strict=True))
    else:
        return None
    wanted = {n: v for n, v in values.items() if n in ("form", "lemma", "upos", "xpos", "feats")}
    if "form" not in wanted or not all(isinstance(value, str) for value in wanted.values()):
        return None
    return wanted
