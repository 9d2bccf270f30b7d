"""``maxmargin info``: what a model holds."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from maxmargin.cli.console import say
from maxmargin.cli.options import at_least
from maxmargin.printable import printable, quoted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.features.template import TemplateLine
    from maxmargin.io.tagger_file import TaggerModel
    from maxmargin.structures.chain import Chain

__all__ = ["configure", "run"]

FEW_TRANSITIONS = 5  # that are shown if nobody asks for them
TEMPLATE_LINES = 3  # that are shown of a template
SHOWN_LABELS = 12
NAME = 300  # characters of a label or of a feature's name
MOST_GROUPS = 50  # of features that are texts; where there are more, they say nothing
_TOGETHER = 1 << 22  # weights of a full matrix that are looked at at a time


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The parser of the command.
    """
    parser.add_argument("model", metavar="MODEL", help="a model file")
    parser.add_argument(
        "--top",
        type=at_least(0),
        default=20,
        metavar="N",
        help="how many of the largest and of the smallest weights to list (default: %(default)s)",
    )
    parser.add_argument(
        "--label", default=None, metavar="LABEL", help="list weights and transitions of this label"
    )
    alone = parser.add_mutually_exclusive_group()
    alone.add_argument(
        "--template",
        action="store_true",
        help="print the template of the model and nothing else, as a file that --template of "
        "train takes",
    )
    alone.add_argument(
        "--text",
        nargs="?",
        const="-",
        default=None,
        metavar="FILE",
        help="write all weights that are not zero as a text, one a line, and nothing else; "
        "without FILE, or with -, to standard output",
    )
    parser.add_argument(
        "--selected",
        action="store_true",
        help="count the features and weights that are not zero, by line of the template and by "
        "label",
    )
    parser.add_argument(
        "--transitions",
        action="store_true",
        help=f"list as many transitions as weights (default: {FEW_TRANSITIONS} of each sign)",
    )


def run(options: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Run the command.

    Parameters
    ----------
    options : argparse.Namespace
        As `configure` describes them.

    Returns
    -------
    int
        Exit code, 0.
    dict
        ``file``, ``format_version``, ``n_bytes``, ``features`` (their kind),
        ``n_features``, ``n_features_trained`` (None if the file does not tell), ``n_labels``,
        ``n_weights`` (of a full model), ``n_nonzero``, ``memory_bytes``, ``labels``,
        ``certificate``, ``objective`` (None if the file does not tell), ``training``,
        ``params``, ``template`` (its source), ``top``,
        ``transitions``; with ``template`` also ``template_text``, with ``selected`` also
        ``selected`` and with ``text`` also ``text`` (``file`` and how many ``weights`` it got).
        The start of a sequence is the ``from`` None, its end the ``to`` None.

    Raises
    ------
    ModelFormatError
        If the file is no model.
    ValueError
        If there is no such label, no template to print, or the text would replace the model.
    OSError
        If the model cannot be read, or the text not be written.
    """
    from maxmargin.io.container import read_container
    from maxmargin.io.tagger_file import KIND, load_tagger

    container = read_container(options.model, KIND)
    # Features are looked at, not made: any function will do.
    stand_in = _no_function if "function" in dict(container.meta.get("encoder", {})) else None
    model = load_tagger(options.model, stand_in)
    chain, meta = model.chain, model.meta
    described = meta["encoder"]
    template = getattr(chain.encoder, "template", None)
    if options.template and template is None:
        origin = described.get("function")
        made = f"made by the function {origin}" if origin else f"of the kind {described['kind']}"
        raise ValueError(f"{options.model}: has no template; its features are {made}")
    label = None if options.label is None else _label_number(chain, options.label, options.model)
    given = [meta.get(name) for name in ("training", "params")]
    training, params = (entry if isinstance(entry, dict) else {} for entry in given)
    few = options.top if options.transitions else min(options.top, FEW_TRANSITIONS)
    wanted = options.json or not (options.template or options.text is not None)
    n_features = chain.encoder.n_sparse + chain.encoder.n_dense
    L = chain.n_labels
    summary: dict[str, Any] = {
        "file": options.model,
        "format_version": container.version,
        "n_bytes": container.n_bytes,
        "features": _kind(described),
        "n_features": n_features,
        "n_features_trained": training.get("n_features"),
        "n_labels": L,
        "n_pair_features": chain.encoder.n_pair,
        "n_weights": chain.n_features,
        "n_nonzero": _count_nonzero(model),
        "memory_bytes": _memory(model),
        "labels": chain.classes_,
        "certificate": _certificate(meta.get("certificate")),
        "objective": _objective(model),
        "training": training,
        "params": params,
        "template": None if template is None else template.source,
        "top": _top(model, options.top, label) if wanted else [],
        "transitions": _transitions(model, few, label) if wanted else [],
    }
    if options.selected and wanted:
        summary["selected"] = selected(model)
    if options.text is not None:
        from maxmargin.cli.model_text import write_text

        _refuse_itself(options.model, options.text)
        summary["text"] = {"file": options.text, "weights": write_text(options.text, model)}
    elif options.template:
        assert template is not None
        summary["template_text"] = template.text
        if not options.json:
            _print_template(template.text)
    elif not options.json:
        lines = [] if template is None else [line.text for line in template.lines if line.unigram]
        for text in describe(summary, lines):
            say(text, needed=True)
    return 0, summary


def _print_template(text: str) -> None:
    """Print a template: as it is to a file or a pipe, so that a terminal can show it to one."""
    import sys

    whole = text if text.endswith("\n") else f"{text}\n"
    buffer = getattr(sys.stdout, "buffer", None)
    if sys.stdout is None or sys.stdout.isatty() or buffer is None:
        say(whole.removesuffix("\n"), needed=True)
    else:
        sys.stdout.flush()
        buffer.write(whole.encode())


def _no_function(_: Any) -> Any:
    raise AssertionError("features are not made here")


def _refuse_itself(model: str, text: str) -> None:
    """Make sure that a text does not take the place of the model that it is of."""
    from pathlib import Path

    if text != "-" and Path(text).exists() and Path(text).samefile(model):
        raise ValueError(f"--text {text}: is the model itself; expected another file")


def _label_number(chain: Chain, wanted: str, path: str) -> int:
    """Return where a label is in ``labels_``; labels that are no texts are found by theirs."""
    found = [k for k, label in enumerate(chain.labels_) if str(label) == wanted]
    if not found:
        raise ValueError(
            f"{path}: has no label {quoted(wanted)}; expected one of {_some(chain.classes_)}"
        )
    return found[0]


def _kind(described: dict[str, Any]) -> str:
    """Return the kind of the features in words."""
    if "template" in described:
        kind = "template"
    elif "function" in described:
        kind = f"function {described['function']}"
    else:
        kind = str(described["kind"])
    if described.get("hash_bits") is not None:
        kind += f", hashed to {described['hash_bits']} bits"
    return kind


def _certificate(given: Any) -> dict[str, Any] | None:
    """Return primal, dual, gap and C of a certificate as a file has it; None if it has none."""
    if not isinstance(given, dict):
        return None
    result = {key: given.get(key) for key in ("primal", "dual", "gap", "C")}
    primal, dual = result["primal"], result["dual"]
    if primal is not None and dual is not None:
        from maxmargin.solvers.certificate import relative_gap

        result["gap"] = relative_gap(primal, dual)
    if given.get("approximate"):
        result["approximate"] = True
    return result


def _objective(model: TaggerModel) -> dict[str, Any] | None:
    """Return what was minimised, as the file has it; None if it does not tell."""
    if model.objective is None:
        return None
    model.objective()  # checks it
    told: dict[str, Any] = model.meta["objective"]
    return told


# --- weights --------------------------------------------------------------------------------------


def _matrix(model: TaggerModel) -> NDArray[Any]:
    """Return the weights of a model that is stored in full, [rows][labels], as a view."""
    L = model.chain.n_labels
    encoder = model.chain.encoder
    rows = encoder.n_sparse + encoder.n_dense + L + 2 + encoder.n_pair * L
    matrix: NDArray[Any] = model.weights.reshape(rows, -1)[:, :L]
    return matrix


def _tail(model: TaggerModel) -> NDArray[Any]:
    """Return the rows behind the sparse features: dense ones, transitions, start, end, pairs."""
    from maxmargin._native import SparseWeights

    if isinstance(model.weights, SparseWeights):
        return model.weights.arrays()[3].reshape(-1, model.chain.n_labels)
    return _matrix(model)[model.chain.encoder.n_sparse :]


def _count_nonzero(model: TaggerModel) -> int:
    import numpy as np

    from maxmargin._native import SparseWeights

    if isinstance(model.weights, SparseWeights):
        _, _, weights, tail = model.weights.arrays()
        return int(np.count_nonzero(weights)) + int(np.count_nonzero(tail))
    return int(np.count_nonzero(_matrix(model)))


def _memory(model: TaggerModel) -> int:
    from maxmargin._native import SparseWeights

    if isinstance(model.weights, SparseWeights):
        return model.weights.memory_bytes
    return int(model.weights.nbytes)


def _blocks(
    model: TaggerModel, label: int | None
) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """Yield the weights of the features, some at a time, with their features and labels.

    Sparse weights are never made a full matrix, and a full matrix is not copied as a whole.
    """
    import numpy as np

    from maxmargin._native import SparseWeights

    encoder, L = model.chain.encoder, model.chain.n_labels
    first = 0
    if isinstance(model.weights, SparseWeights):
        counts, labels, weights, tail = model.weights.arrays()
        ends = np.cumsum(counts, dtype=np.int64)
        for begin in range(0, len(weights), _TOGETHER):
            entries = np.arange(begin, min(begin + _TOGETHER, len(weights)))
            if label is not None:
                entries = entries[labels[entries] == label]
            features = np.searchsorted(ends, entries, side="right")
            yield weights[entries], features, labels[entries]
        rows, first = tail.reshape(-1, L)[: encoder.n_dense], encoder.n_sparse
    else:
        rows = _matrix(model)[: encoder.n_sparse + encoder.n_dense]
    columns = np.arange(L) if label is None else np.array([label])
    step = max(1, _TOGETHER // len(columns))
    for begin in range(0, len(rows), step):
        part = rows[begin : begin + step] if label is None else rows[begin : begin + step, columns]
        features = np.repeat(np.arange(begin, begin + len(part)) + first, len(columns))
        yield part.ravel(), features, np.tile(columns, len(part))


def _largest(weights: NDArray[Any], k: int) -> NDArray[Any]:
    """Return the places of the k largest weights above zero; of equal ones, the first."""
    import numpy as np

    places = np.flatnonzero(weights > 0)
    if len(places) <= k:
        return places
    found = weights[places]
    bound = np.partition(found, len(found) - k)[len(found) - k]
    above = places[found > bound]
    return np.concatenate([above, places[found == bound][: k - len(above)]])


def _strongest(
    blocks: Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]], k: int
) -> list[tuple[float, int, int]]:
    """Return the k largest positive weights and then the k smallest negative ones.

    Parameters
    ----------
    blocks : iterator of (weights, rows, columns)
        Where to look.
    k : int
        How many of each sign at most.

    Returns
    -------
    list of (float, int, int)
        Weight, row and column; positive ones from the largest down, then negative ones from the
        smallest up.
    """
    best: dict[int, list[tuple[float, int, int]]] = {1: [], -1: []}
    if k == 0:
        return []
    for weights, rows, columns in blocks:
        for sign, kept in best.items():
            places = _largest(sign * weights, k)
            found = (weights[places].tolist(), rows[places].tolist(), columns[places].tolist())
            kept.extend(zip(*found, strict=True))
            kept.sort(key=lambda entry, sign=sign: (-sign * entry[0], entry[1:]))  # type: ignore[misc]
            del kept[k:]
    return best[1] + best[-1]


def _top(model: TaggerModel, k: int, label: int | None) -> list[dict[str, Any]]:
    """Return the strongest weights of features, by name."""
    found = _strongest(_blocks(model, label), k)
    names = _names(model.chain, [feature for _, feature, _ in found])
    labels = model.chain.labels_
    return [
        {"feature": name, "label": labels[column], "weight": weight}
        for name, (weight, _, column) in zip(names, found, strict=True)
    ]


def _names(chain: Chain, features: list[int]) -> list[str]:
    """Return the names of some features, without those of all others where that can be had."""
    from maxmargin.features.template_encoder import TemplateEncoder

    encoder = chain.encoder
    every: list[str] | None = None
    names = []
    for j in features:
        if j >= encoder.n_sparse:
            names.append(f"dense:{j - encoder.n_sparse}")
        elif encoder.hash_bits is not None:
            names.append(f"hash:{j}")
        elif isinstance(encoder, TemplateEncoder):
            every = encoder.feature_names() if every is None else every
            names.append(every[j])
        elif encoder.vocabulary is not None:
            names.append(encoder.vocabulary.name(j))
        else:
            names.append(f"sparse:{j}")
    return names


def _transitions(model: TaggerModel, k: int, label: int | None) -> list[dict[str, Any]]:
    """Return the strongest transitions, start and end among them."""
    import numpy as np

    L = model.chain.n_labels
    tail = _tail(model)
    # With start as one more label before, and end as one more behind.
    square = np.zeros((L + 1, L + 1), dtype=tail.dtype)
    edges = tail[model.chain.encoder.n_dense :]
    square[:L, :L] = edges[:L]
    square[L, :L], square[:L, L] = edges[L], edges[L + 1]
    if label is not None:
        takes_part = np.zeros(square.shape, dtype=bool)
        takes_part[label], takes_part[:, label] = True, True
        square[~takes_part] = 0
    rows, columns = np.divmod(np.arange(square.size), L + 1)
    names = [*model.chain.labels_, None]
    return [
        {"from": names[row], "to": names[column], "weight": weight}
        for weight, row, column in _strongest(iter([(square.ravel(), rows, columns)]), k)
    ]


# --- what was selected ---------------------------------------------------------------------------


def selected(model: TaggerModel) -> dict[str, Any]:
    """Count what is not zero: the features that a sparse model selected.

    Parameters
    ----------
    model : TaggerModel
        The model.

    Returns
    -------
    dict
        ``lines``, a list of ``line``, ``features`` and ``weights``: of a template all lines that
        give features, those of pairs of labels included (a line None has the features that fit
        none); of features that are texts what stands before the first ``:`` or ``=``, if there are
        at most `MOST_GROUPS` such groups; else nothing. ``labels``, a list of ``label`` and
        ``weights``, where the weights of a pair of labels count for the second. ``transitions``,
        with those of start and end. The weights of all labels and the transitions together are all
        weights that are not zero.
    """
    import numpy as np

    chain = model.chain
    encoder, L = chain.encoder, chain.n_labels
    template = getattr(encoder, "template", None)
    named = encoder.hash_bits is None and (template is not None or encoder.vocabulary is not None)
    of_label = np.zeros(L, dtype=np.int64)
    of_feature = np.zeros(encoder.n_sparse + encoder.n_dense if named else 0, dtype=np.int64)
    for weights, features, labels in _blocks(model, None):
        there = weights != 0
        of_label += np.bincount(labels[there], minlength=L)
        found = features[there]  # ascending
        if named and len(found):
            counts = np.bincount(found - found[0])
            of_feature[found[0] : found[0] + len(counts)] += counts
    edges = _tail(model)[encoder.n_dense :]
    pairs = edges[L + 2 :] != 0  # a row is a pair feature and the label before
    of_label += pairs.sum(axis=0)
    of_pair = pairs.sum(axis=1).reshape(encoder.n_pair, L).sum(axis=1)
    lines: list[dict[str, Any]] = []
    if named and template is not None:
        lines = _by_line(model, of_feature, of_pair)
    elif named:
        lines = _by_group(model, of_feature)
    return {
        "lines": lines,
        "labels": [
            {"label": label, "weights": int(of_label[column])}
            for label, column in zip(chain.classes_, chain.class_columns_, strict=True)
        ],
        "transitions": int(np.count_nonzero(edges[: L + 2])),
    }


def _by_line(
    model: TaggerModel, of_feature: NDArray[Any], of_pair: NDArray[Any]
) -> list[dict[str, Any]]:
    """Count features and weights for each line of the template."""
    import numpy as np

    from maxmargin.features.template_encoder import TemplateEncoder

    encoder = model.chain.encoder
    assert isinstance(encoder, TemplateEncoder)
    every = encoder.template.lines
    unigrams = [k for k, line in enumerate(every) if line.unigram]
    bigrams = [k for k, line in enumerate(every) if line.bigram and line.commands]
    nowhere = len(every)
    features, weights = [0] * (nowhere + 1), [0] * (nowhere + 1)
    known = ((encoder.unigrams, unigrams, of_feature), (encoder.bigrams, bigrams, of_pair))
    for given, numbers, counts in known:
        there = np.flatnonzero(counts)
        find = _line_finder([every[k] for k in numbers])
        names = given.names_of(there)
        for name, count in zip(names, counts[there].tolist(), strict=True):
            place = find(name)
            line = nowhere if place is None else numbers[place]
            features[line] += 1
            weights[line] += count
    listed = sorted({*unigrams, *bigrams}) + [nowhere] * (features[nowhere] > 0)
    return [
        {
            "line": None if k == nowhere else every[k].text,
            "features": features[k],
            "weights": weights[k],
        }
        for k in listed
    ]


def _line_finder(lines: list[TemplateLine]) -> Callable[[str], int | None]:
    """Return a function that finds the first line that can have given a name; None if none can.

    A command may have become any text. Atomic groups take the first place where a literal fits,
    which is as good as any later one: no name takes more than a few looks at it.
    """
    import re

    choices = []
    for line in lines:
        literals = [""]  # with commands between them
        behind_command = False
        for piece in line.pieces:
            if isinstance(piece, str):
                literals[-1] = piece
            elif not behind_command:  # commands side by side are as one
                literals.append("")
            behind_command = not isinstance(piece, str)
        first, *others = literals
        middle = "".join(f"(?>.*?{re.escape(text)})" for text in others[:-1])
        last = f".*{re.escape(others[-1])}" if others else ""
        choices.append(f"({re.escape(first)}{middle}{last})")
    match = re.compile("|".join(choices), re.DOTALL).fullmatch

    def find(name: str) -> int | None:
        found = match(name)
        return None if found is None or found.lastindex is None else found.lastindex - 1

    return find


def _by_group(model: TaggerModel, of_feature: NDArray[Any]) -> list[dict[str, Any]]:
    """Count features and weights by what stands before the first : or = of a name."""
    import numpy as np

    from maxmargin.cli.model_text import names_of

    there = np.flatnonzero(of_feature)
    groups: dict[str, list[int]] = {}
    for name, count in zip(names_of(model, there), of_feature[there].tolist(), strict=True):
        group = groups.setdefault(name.partition(":")[0].partition("=")[0], [0, 0])
        if len(groups) > MOST_GROUPS:
            return []
        group[0] += 1
        group[1] += count
    return [
        {"line": key, "features": features, "weights": weights}
        for key, (features, weights) in sorted(groups.items())
    ]


# --- words ----------------------------------------------------------------------------------------


def describe(summary: dict[str, Any], template_lines: list[str]) -> Iterator[str]:
    """Tell what a model holds.

    Parameters
    ----------
    summary : dict
        As `run` returns it.
    template_lines : list of str
        The lines of the template that give features.

    Yields
    ------
    str
        The lines.
    """
    from maxmargin.memory import format_bytes

    kept, trained = summary["n_features"], summary["n_features_trained"]
    of = f" of {trained} in training" if isinstance(trained, int) and trained != kept else ""
    full, nonzero = summary["n_weights"], summary["n_nonzero"]
    size, version = format_bytes(summary["n_bytes"]), summary["format_version"]
    yield f"{summary['file']}: {size}, format {version}"
    yield f"  features     {kept}{of} ({summary['features']})"
    yield f"  labels       {summary['n_labels']}: {_some(summary['labels'])}"
    yield f"  weights      {full}, {nonzero} of them not zero ({100 * nonzero / full:.1f} %)"
    yield f"  memory       {format_bytes(summary['memory_bytes'])} of weights when loaded"
    certificate = summary["certificate"]
    if certificate is None:
        yield "  certificate  none"
    else:
        gap = certificate["gap"]
        within = "" if gap is None else f": within {100 * gap:.3g} % of the optimum"
        yield (
            f"  certificate  primal {_shown(certificate['primal'])}, "
            f"dual {_shown(certificate['dual'])}{within} (C = {_shown(certificate['C'])})"
            + (", with an approximate oracle" if "approximate" in certificate else "")
        )
    sections = (
        ("objective", _objective_words(summary["objective"])),
        ("training", summary["training"]),
        ("parameters", summary["params"]),
    )
    for title, given in sections:
        if not given:
            continue
        yield f"  {title}"
        settings = list(_flat(given))
        width = max(len(key) for key, _ in settings) + 1
        for key, value in settings:
            yield f"    {key + ':':{width}s} {value}"
    if summary["template"] is not None:
        yield f"  template     {summary['template']}, {len(template_lines)} lines of features"
        for line in template_lines[:TEMPLATE_LINES]:
            yield f"    {_printable(line)}"
        if len(template_lines) > TEMPLATE_LINES:
            yield "    ... (all of it: --template)"
    if summary["top"]:
        yield ""
        yield "strongest weights"
        width = max(len(_printable(entry["label"])) for entry in summary["top"])
        for entry in summary["top"]:
            label = _printable(entry["label"])
            yield f"  {entry['weight']:+10.4f}  {label:{width}s}  {_printable(entry['feature'])}"
    if summary["transitions"]:
        yield ""
        yield "strongest transitions"
        for entry in summary["transitions"]:
            before = "(start)" if entry["from"] is None else _printable(entry["from"])
            behind = "(end)" if entry["to"] is None else _printable(entry["to"])
            yield f"  {entry['weight']:+10.4f}  {before} -> {behind}"
    if "selected" in summary:
        yield from _selected_words(summary["selected"], template=summary["template"] is not None)


def _objective_words(objective: dict[str, Any] | None) -> dict[str, Any]:
    """Return what was minimised, in a few words each."""
    if objective is None:
        return {}
    words = {
        "C": f"{objective['C']:g} (of the {objective['C_scale']} over the sequences)",
        "regularizer": _call(objective["regularizer"] or "l2"),
        "slack": objective["slack"],
        "rescale": objective["rescale"],
        "loss": objective["loss"],
        "solver": _call(objective["solver"]),
        "gap": objective["gap"],
    }
    if isinstance(words["loss"], dict):
        pairs = words["loss"].get("pairs")
        words["loss"] = _call(words["loss"]) if pairs is None else f"costs of {len(pairs)} pairs"
    return words


def _call(thing: Any) -> str:
    """Return a solver or regulariser as one would write it."""
    if isinstance(thing, str):
        return thing
    if "class" in thing:
        return f"{thing['class']} (not in the file)"
    options = ", ".join(f"{key}={value!r}" for key, value in thing["options"].items())
    return f"{thing['name']}({options})"


def _selected_words(found: dict[str, Any], *, template: bool) -> Iterator[str]:
    """Put what was selected into tables."""
    if found["lines"]:
        yield ""
        yield f"not zero, by {'line of the template' if template else 'kind of feature'}"
        yield "    features     weights"
        for entry in found["lines"]:
            line = "(no line fits)" if entry["line"] is None else _printable(entry["line"])
            yield f"  {entry['features']:10d}  {entry['weights']:10d}  {line}"
    yield ""
    yield "not zero, by label"
    yield "     weights"
    for entry in found["labels"]:
        yield f"  {entry['weights']:10d}  {_printable(entry['label'])}"
    yield f"  {found['transitions']:10d}  (transitions, with start and end)"


def _flat(settings: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield settings as keys and values in words; those within others are called outer.inner."""
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield _printable(f"{prefix}{key}"), _shown(value)


def _shown(value: Any) -> str:
    """Put a value into words, shortly."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return _some([_shown(entry) for entry in value]) if value else "none"
    return _printable(value)


def _some(values: list[Any]) -> str:
    """Return the first values of a list, and how many more there are."""
    shown = ", ".join(_printable(value) for value in values[:SHOWN_LABELS])
    more = len(values) - SHOWN_LABELS
    return shown if more <= 0 else f"{shown} and {more} more"


def _printable(value: Any) -> str:
    """Return a text in which nothing moves the cursor, and which leaves room for others."""
    return printable(value, NAME)
