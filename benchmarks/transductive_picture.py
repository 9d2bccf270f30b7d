"""Draw accuracy against the number of labelled sequences, with and without constraints, as SVG.

    python benchmarks/transductive_picture.py OUT.svg LOG [LOG ...]

The logs are what ``benchmarks/transductive.py`` printed: the last line of each is a JSON object,
and those of one task are put together.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from maxmargin.report.files import save_picture
from maxmargin.report.svg import svg_text

#: Name in the figures, what the picture calls it, colour, dashes.
LINES = (
    ("transductive_i", "unlabelled text and rules, rules as features", "#1f5fa8", ""),
    ("supervised_i", "labels only, rules as features", "#1f5fa8", "5 4"),
    ("transductive", "unlabelled text and rules", "#c2160c", ""),
    ("supervised", "labels only", "#c2160c", "5 4"),
)
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 420, 64, 24, 24, 56
SOFT, RULE = "#63666b", "#e3e5e8"


def read_figures(paths: Sequence[Path]) -> tuple[str, dict[int, dict[str, float]]]:
    """Return the task and its figures by number of labelled sequences."""
    tasks: set[str] = set()
    found: dict[int, dict[str, float]] = {}
    for path in paths:
        lines = path.read_text(encoding="utf-8").strip().splitlines()
        try:
            figures: dict[str, Any] = json.loads(lines[-1])
        except (IndexError, json.JSONDecodeError) as error:
            raise ValueError(f"{path}: the last line is no JSON object") from error
        for task, rows in figures.items():
            tasks.add(task)
            found |= {int(n): row for n, row in rows.items() if n.isdigit()}
    if len(tasks) != 1 or len(found) < 2:
        raise ValueError(
            f"found {len(found)} numbers of labelled sequences of the tasks {sorted(tasks)}; "
            "expected at least two, of one task"
        )
    return tasks.pop(), dict(sorted(found.items()))


def draw(task: str, figures: dict[int, dict[str, float]]) -> str:
    """Return the picture."""
    numbers = list(figures)
    values = [row[name] for row in figures.values() for name, *_ in LINES]
    low, high = 5 * math.floor(min(values) / 5), 5 * math.ceil(max(values) / 5)

    def across(n: int) -> float:
        share = math.log(n / numbers[0]) / math.log(numbers[-1] / numbers[0])
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def up(value: float) -> float:
        return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'font-family="Helvetica, Arial, sans-serif">',
        f"<title>Token accuracy on {task} against the number of labelled sequences</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for tick in range(low, high + 1, 5):
        y = up(tick)
        out.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{RULE}"/>')
        out.append(svg_text(LEFT - 8, y + 4, f"{tick} %", size=12, fill=SOFT, anchor="end"))
    for n in numbers:
        x = across(n)
        out.append(svg_text(x, HEIGHT - BOTTOM + 20, str(n), size=12, fill=SOFT, anchor="middle"))
    middle = (LEFT + WIDTH - RIGHT) / 2
    text = f"labelled sequences ({task}, test file)"
    out.append(svg_text(middle, HEIGHT - 12, text, size=12, fill=SOFT, anchor="middle"))
    for k, (name, title, colour, dashes) in enumerate(LINES):
        points = [(across(n), up(row[name])) for n, row in figures.items()]
        shape = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        style = f'fill="none" stroke="{colour}" stroke-width="2"'
        if dashes:
            style += f' stroke-dasharray="{dashes}"'
        out.append(f'<path d="{shape}" {style}/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        y = HEIGHT - BOTTOM - 84 + 20 * k
        out.append(f'<path d="M{WIDTH - 350} {y}h28" {style}/>')
        out.append(svg_text(WIDTH - 314, y + 4, title, size=12))
    return "\n".join([*out, "</svg>"]) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("picture", type=Path)
    parser.add_argument("logs", type=Path, nargs="+")
    options = parser.parse_args(argv)
    try:
        save_picture(options.picture, draw(*read_figures(options.logs)).encode())
    except (OSError, ValueError) as error:
        print(f"transductive_picture: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
