"""How the second versions of the built-in templates were chosen, on development data only.

A forward selection: to the first version of a template, that block of lines is added whose gain,
averaged over the corpora, is largest, as long as it is at least ``--least``; each round goes on
with the better two thirds of the blocks. Development data are those of ``templates.py``; of Brown
8,000 sentences are trained on and 1,600 of the held-out tenth scored. No test file is read. C is
the default of 0.1, the gap 2 %.

    python benchmarks/template_choice.py ner --data ../shared/data

It takes some ten minutes a template on one core. The template is the last thing that is printed.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import read_columns
from maxmargin.features.builtin_templates import BUILTIN_TEMPLATES
from maxmargin.features.template import Template
from templates import CORPORA, HELD_OUT, development, labelled, score, train

#: Least gain, in percent points: noise is larger where there are fewer errors.
LEAST = {"ner": 0.05, "pos": 0.02, "chunking": 0.03}
BROWN = 8000  # sentences of its training part, evenly spread, and a fifth of that held out

Block = list[tuple[str, ...]]


def word(k: int) -> str:
    return f"%x[{k},0]"


def low(k: int) -> str:
    return f"%X[{k},0]"


def tag(k: int) -> str:
    return f"%x[{k},1]"


def shape(k: int) -> str:
    return f"%c[{k},0]"


def long_shape(k: int) -> str:
    return f"%h[{k},0]"


def end(k: int, n: int) -> str:
    return f"%S[{k},0,{n}]"


def begin(k: int, n: int) -> str:
    return f"%P[{k},0,{n}]"


def single(command: Any, *offsets: int) -> Block:
    """Return a line for each offset."""
    return [(command(k),) for k in offsets]


NER: dict[str, Block] = {
    "words 3 away": single(word, -3, 3),
    "lower-cased neighbours": single(low, -2, -1, 1, 2),
    "lower-cased pairs": [(low(-1), low(0)), (low(0), low(1))],
    "pairs before and behind": [(low(-2), low(-1)), (low(1), low(2))],
    "three words": [(low(-1), low(0), low(1))],
    "words on both sides": [(low(-1), low(1))],
    "ends and beginnings of neighbours": [
        *((end(k, n),) for k in (-1, 1) for n in (2, 3, 4)),
        *((begin(k, 3),) for k in (-1, 1)),
    ],
    "ends of neighbours": [(end(-1, 3),), (end(1, 3),)],
    "shapes 2 away": single(shape, -2, 2),
    "long shapes 2 away": single(long_shape, -2, 2),
    "three shapes": [(shape(-2), shape(-1), shape(0)), (shape(0), shape(1), shape(2))],
    "five shapes": [tuple(shape(k) for k in range(-2, 3))],
    "5 characters": [(end(0, 5),), (begin(0, 5),)],
    "lower-cased ends": [(end(0, 3),), (end(0, 4),), (begin(0, 3),), (begin(0, 4),)],
    "a word 2 away and a shape": [(low(-2), shape(0)), (shape(0), low(2))],
    "a word 2 away and two shapes": [
        (low(-2), shape(-1), shape(0)),
        (shape(0), shape(1), low(2)),
    ],
    "a word and two shapes": [(low(-1), shape(0), shape(1)), (shape(-1), shape(0), low(1))],
    "two words and a shape": [(low(-2), low(-1), shape(0)), (shape(0), low(1), low(2))],
    "ends beside shapes and ends": [
        (end(-1, 3), shape(0)),
        (shape(0), end(1, 3)),
        (end(-1, 3), end(0, 3)),
        (end(0, 3), end(1, 3)),
    ],
    "first and last word": [("%X[@1,0]",), ("%X[@-1,0]",)],
    "words 3 and 4 away": single(low, -4, 4, -3, 3),
}

POS: dict[str, Block] = {
    "pairs before and behind": [(word(-2), word(-1)), (word(1), word(2))],
    "the same lower-cased": [(low(-2), low(-1)), (low(1), low(2))],
    "words on both sides": [(low(-1), low(1))],
    "three words": [(low(-1), low(0), low(1))],
    "lower-cased neighbours": single(low, -2, -1, 1, 2),
    "lower-cased pairs": [(low(-1), low(0)), (low(0), low(1))],
    "5 characters": [(end(0, 5),), (begin(0, 5),)],
    "lower-cased ends": [(f(0, n),) for f in (end, begin) for n in (2, 3, 4)],
    "ends of neighbours": [(end(-1, 3),), (end(1, 3),)],
    "two ends of neighbours": [(end(k, n),) for k in (-1, 1) for n in (2, 3)],
    "pairs of ends": [(end(-1, 3), end(0, 3)), (end(0, 3), end(1, 3))],
    "both shapes": [(shape(0),), (long_shape(0),)],
    "shapes": single(shape, -1, 1, 0),
    "pairs of shapes": [(shape(-1), shape(0)), (shape(0), shape(1))],
    "an end and a shape": [(end(0, 2), shape(0)), (end(0, 3), shape(0))],
    "words 3 away": single(low, -3, 3),
    "a capital at the beginning": [('%t[-1,0,"^_B-1$"]', '%t[0,0,"^\\u"]')],
    "a word and an end": [(low(-1), end(0, 3)), (end(0, 3), low(1))],
    "a word and a short end": [(low(-1), end(0, 2)), (end(0, 2), low(1))],
    "an end and a word": [(end(-1, 2), low(0)), (low(0), end(1, 2))],
}

CHUNKING: dict[str, Block] = {
    "ends and beginnings": [(f(0, n),) for f in (end, begin) for n in (1, 2, 3)],
    "ends": [(end(0, 2),), (end(0, 3),)],
    "shapes": [(shape(0),), (long_shape(0),)],
    "lower-cased": [(low(0),)],
    "lower-cased words": single(low, -2, -1, 0, 1, 2),
    "words 3 away": single(word, -3, 3),
    "tags 3 away": single(tag, -3, 3),
    "word and tag": [(word(0), tag(0))],
    "a tag and a word": [(tag(-1), word(0)), (word(0), tag(1))],
    "a word and a tag": [(word(-1), tag(0)), (tag(0), word(1))],
    "words and tags of neighbours": [(word(-1), tag(-1)), (word(1), tag(1))],
    "two tags and a word": [(tag(-2), tag(-1), word(0)), (word(0), tag(1), tag(2))],
    "a word between tags": [(tag(-1), word(0), tag(1))],
    "three tags before and behind": [(tag(-3), tag(-2), tag(-1)), (tag(1), tag(2), tag(3))],
    "four tags": [(tag(-2), tag(-1), tag(0), tag(1)), (tag(-1), tag(0), tag(1), tag(2))],
    "five tags": [tuple(tag(k) for k in range(-2, 3))],
    "four tags to a side": [
        (tag(-3), tag(-2), tag(-1), tag(0)),
        (tag(0), tag(1), tag(2), tag(3)),
    ],
    "both sides": [(word(-1), word(1)), (tag(-1), tag(1))],
    "three words": [(word(-1), word(0), word(1))],
    "pairs before and behind": [(word(-2), word(-1)), (word(1), word(2))],
    "a word and two tags": [(word(-1), tag(0), tag(1)), (tag(-1), tag(0), word(1))],
    "ends of neighbours": [(end(-1, 3),), (end(1, 3),)],
}

BLOCKS = {"ner": NER, "pos": POS, "chunking": CHUNKING}


def lines(block: Block, name: str) -> str:
    """Return a block as lines of a template, whose features no other line has."""
    return "".join(f"U:{name} {k}={'|'.join(parts)}\n" for k, parts in enumerate(block))


def choice_data(folder: Path, name: str) -> tuple[Any, Any]:
    """Return what is trained on and what is scored for the choice."""
    corpus = CORPORA[name]
    if name != "brown":
        return development(folder, corpus)[:2]
    whole = read_columns(folder / corpus.folder / "train.tsv.gz").rows()
    part = [sentence for i, sentence in enumerate(whole) if i % HELD_OUT]
    spread = part[:: max(1, len(part) // BROWN)][:BROWN]
    return labelled(spread, corpus), labelled(whole[::HELD_OUT][: BROWN // 5], corpus)


def scores(text: str, data: dict[str, Any]) -> list[float]:
    """Train with a template on all corpora; return their scores on development data."""
    found = []
    for name, (part, held) in data.items():
        tagger, _ = train(Template.parse(text), part, gap=0.02)
        found.append(score(tagger, held, chunks=CORPORA[name].chunks))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("template", choices=sorted(BLOCKS))
    parser.add_argument("--data", type=Path, required=True, help="folder with conll2000/ ...")
    parser.add_argument("--least", type=float, default=None, help="least gain of a block")
    args = parser.parse_args()
    least = LEAST[args.template] if args.least is None else args.least
    data = {
        name: choice_data(args.data, name)
        for name, corpus in CORPORA.items()
        if corpus.template == args.template
    }
    text, left = BUILTIN_TEMPLATES[f"{args.template}@1"], dict(BLOCKS[args.template])
    best = float(np.mean(scores(text, data)))
    print(f"{', '.join(data)}: {best:.3f}", flush=True)
    tried = list(left)
    while tried:
        gains = {}
        for name in tried:
            found = scores(text + lines(left[name], name), data)
            gains[name] = float(np.mean(found)) - best
            each = " ".join(f"{value:.2f}" for value in found)
            print(f"  {gains[name]:+.3f} {name} ({each})", flush=True)
        order = sorted(gains, key=lambda name: -gains[name])
        name = order[0]
        if gains[name] < least:
            break
        text, best = text + lines(left.pop(name), name), best + gains[name]
        print(f"{best:.3f} with {name}", flush=True)
        tried = order[1 : 1 + max(6, len(order[1:]) * 2 // 3)]
    print(text)


if __name__ == "__main__":
    main()
