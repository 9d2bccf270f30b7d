"""Write native/unicode_tables.hpp from the Unicode database of the running Python.

The tables are fixed in the source so that a model gives the same features on every Python and
platform; a newer Unicode means running this again, on purpose:

    python tools/make_unicode_tables.py [output]
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

CODE_POINTS = range(0x110000)

# In the order of CharClass in native/unicode.hpp.
OTHER, UPPER, LOWER, OTHER_LETTER, DIGIT, PUNCTUATION, SPACE = range(7)
# Two more kinds of run, for the many places where capital and small letters take turns.
EVEN_UPPER, ODD_UPPER = 7, 8

CLASS_OF_CATEGORY = {
    "Lu": UPPER,
    "Lt": UPPER,
    "Ll": LOWER,
    "Lm": OTHER_LETTER,
    "Lo": OTHER_LETTER,
    "Nd": DIGIT,
}
CLASS_OF_MAJOR_CATEGORY = {"P": PUNCTUATION, "S": PUNCTUATION, "Z": SPACE}


def char_class(cp: int) -> int:
    """Return the class of a code point."""
    if chr(cp) in "\t\n\v\f\r":
        return SPACE
    category = unicodedata.category(chr(cp))
    major = CLASS_OF_MAJOR_CATEGORY.get(category[0], OTHER)
    return CLASS_OF_CATEGORY.get(category, major)


def lower(cp: int) -> int:
    """Return the simple lower case of a code point."""
    lowered = chr(cp).lower()
    if len(lowered) == 1:
        return ord(lowered)
    # The one whose lower case is two: i and a dot above. The dot says nothing that the i does not.
    assert cp == 0x130, hex(cp)
    return ord("i")


def class_runs() -> Iterator[tuple[int, int]]:
    """Yield where each run begins and its kind; it ends where the next one begins."""
    runs = [(next(group), kind) for kind, group in groupby(CODE_POINTS, key=char_class)]
    ends = [begin for begin, _ in runs[1:]] + [len(CODE_POINTS)]
    # Whether a run is one letter that may take turns with its neighbours.
    lone = [
        end - begin == 1 and kind in (UPPER, LOWER)
        for (begin, kind), end in zip(runs, ends, strict=True)
    ]
    at = 0
    while at < len(runs):
        begin, kind = runs[at]
        stop = at
        while stop < len(runs) and lone[stop]:
            stop += 1
        if stop - at >= 2:
            yield begin, EVEN_UPPER if (kind == UPPER) == (begin % 2 == 0) else ODD_UPPER
            at = stop
        else:
            yield begin, kind
            at += 1


def lower_runs() -> Iterator[tuple[int, int, int, int]]:
    """Yield (first, last, stride, delta): from first to last, every stride-th moves by delta."""
    run: tuple[int, int, int, int] | None = None
    for cp in CODE_POINTS:
        delta = lower(cp) - cp
        if delta == 0:
            continue
        if run is not None:
            first, last, stride, run_delta = run
            step = cp - last
            if delta == run_delta and (step == stride or (first == last and step <= 2)):
                run = (first, cp, step, delta)
                continue
            yield run
        run = (cp, cp, 1, delta)
    if run is not None:
        yield run


def wrapped(items: Iterable[str]) -> str:
    """Return items with commas between them, in lines of at most 100 columns."""
    lines = [""]
    for item in items:
        if len(lines[-1]) + len(item) + 3 > 100:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else '    '}{item},"
    return "\n".join(lines)


def header() -> str:
    """Return the text of the header."""
    classes = list(class_runs())
    lowers = list(lower_runs())
    version = unicodedata.unidata_version
    return f"""\
// Classes of characters and lower case, by Unicode {version}.
//
// Written by tools/make_unicode_tables.py: do not edit. native/unicode.hpp reads the tables.
#pragma once

#include <cstdint>

namespace mm::detail {{

inline constexpr char kUnicodeVersion[] = "{version}";

// Where a run of code points begins (times 16) and its kind: a CharClass; or {EVEN_UPPER}: capitals
// at even code points take turns with small letters at odd ones; or {ODD_UPPER}: the other way
// round. A run ends where the next one begins.
inline constexpr std::uint32_t kClassRuns[{len(classes)}] = {{
{wrapped(hex(begin << 4 | kind) for begin, kind in classes)}
}};

// The code points first, first + stride, ..., last have the lower case that lies delta further.
struct LowerRun {{
  std::uint32_t first, last, stride;
  std::int32_t delta;
}};
inline constexpr LowerRun kLowerRuns[{len(lowers)}] = {{
{wrapped(f"{{{first:#x}, {last:#x}, {stride}, {delta}}}" for first, last, stride, delta in lowers)}
}};

}}  // namespace mm::detail
"""


def main() -> None:
    """Write the header."""
    default = Path(__file__).resolve().parent.parent / "native" / "unicode_tables.hpp"
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    output.write_text(header(), encoding="ascii")


if __name__ == "__main__":
    main()
