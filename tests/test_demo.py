"""The demo runs, and its chain beats its single digits."""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from maxmargin import demo
from maxmargin.cli.demo import configure, describe, run

SCRIPT = Path(__file__).parents[1] / "examples" / "demo.py"
SMALL = ["--train", "80", "--test", "100"]


def parse(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    configure(parser)
    return parser.parse_args(list(arguments))


@pytest.fixture(scope="module")
def results() -> dict[str, demo.Comparison]:
    return demo.run_demo(80, 100)


# --- the experiment ---


def test_the_chain_gains(results: dict[str, demo.Comparison]) -> None:
    assert list(results) == ["clean", "bad"]
    for comparison in results.values():
        assert comparison.n_train == 80
        assert len(comparison.images) == 100
        for reading in (comparison.single, comparison.chain):
            assert reading.digits.shape == comparison.truth.shape == (100, 8)
            assert 0 <= reading.certificate.gap <= 0.001
            assert reading.seconds > 0
    clean, bad = results["clean"], results["bad"]
    assert clean.rates(clean.single)[0] > 0.85
    assert clean.rates(clean.chain)[0] > 0.85
    assert bad.rates(bad.chain)[0] > bad.rates(bad.single)[0]
    np.testing.assert_array_equal(clean.truth, bad.truth)


def test_rates_and_who_was_right(results: dict[str, demo.Comparison]) -> None:
    for comparison in results.values():
        right = [comparison.dates_right(r).sum() for r in (comparison.single, comparison.chain)]
        rates = [comparison.rates(r)[1] for r in (comparison.single, comparison.chain)]
        np.testing.assert_allclose(rates, np.array(right) / 100)
        assert comparison.only_chain.sum() - comparison.only_single.sum() == right[1] - right[0]
        assert not (comparison.only_chain & comparison.only_single).any()


def test_runs_can_be_repeated(results: dict[str, demo.Comparison]) -> None:
    again = demo.run_demo(80, 100)
    for name, comparison in results.items():
        np.testing.assert_array_equal(comparison.images, again[name].images)
        np.testing.assert_array_equal(comparison.chain.digits, again[name].chain.digits)
        assert comparison.chain.certificate == again[name].chain.certificate


def test_no_test_image_is_trained_on() -> None:
    train, test = demo.split_images(np.random.default_rng(0))
    seen = {image.tobytes() for images in train for image in images}
    assert len(train) == len(test) == 10
    # scikit-learn's digits have no two equal images.
    assert not any(image.tobytes() in seen for images in test for image in images)


def test_dates_are_days_of_the_century() -> None:
    rng = np.random.default_rng(0)
    images, _ = demo.split_images(rng)
    X, y = demo.write_dates(50, images, rng)
    for x, digits in zip(X, y, strict=True):
        assert x.shape == (8, 64)
        day = demo.day_of(digits)
        assert day is not None
        assert 1900 <= day.year <= 1999


def test_days() -> None:
    assert demo.day_of([2, 9, 0, 2, 1, 9, 9, 6]) == datetime.date(1996, 2, 29)
    for no_day in ("29021997", "00011950", "31131950", "01010000"):
        assert demo.day_of([int(c) for c in no_day]) is None


def test_one_date_is_enough() -> None:
    for comparison in demo.run_demo(1, 1).values():
        assert comparison.chain.digits.shape == (1, 8)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((0, 5, 1), "n_train is 0; it must be at least 1"),
        ((5, -2, 1), "n_test is -2; it must be at least 1"),
        ((5, 5, -1), "seed is -1; it must be at least 0"),
    ],
)
def test_sizes_that_make_no_sense(sizes: tuple[int, int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        demo.run_demo(*sizes)


# --- the command ---


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "dates.svg"
    code, summary = run(parse(*SMALL, "--picture", str(picture)))
    printed, complaints = capsys.readouterr()
    assert code == 0
    assert complaints == ""
    assert printed.count("certificate of the chain: primal") == 2
    assert "of the optimum" in printed
    assert "put it right" in printed
    assert f"The picture is in {picture}" in printed
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")
    assert list(tmp_path.iterdir()) == [picture]

    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert (summary["train"], summary["test"], summary["seed"]) == (80, 100, 1)
    assert summary["picture"] == str(picture)
    assert summary["bad"]["chain"]["digits_right"] > summary["bad"]["single"]["digits_right"]
    for scans in ("clean", "bad"):
        for model in ("single", "chain"):
            numbers = summary[scans][model]
            assert 0 < numbers["dates_right"] < numbers["digits_right"] < 1
            assert numbers["dual"] <= numbers["primal"]
            gap = (numbers["primal"] - numbers["dual"]) / numbers["primal"]
            assert numbers["gap"] == pytest.approx(gap)
            assert 0 < numbers["seconds"] < summary["seconds"]
            assert f"{100 * numbers['digits_right']:.1f} %" in printed


def test_with_json_the_text_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    _, summary = run(parse("--train", "10", "--test", "5", "--json", "--no-picture"))
    printed, said = capsys.readouterr()
    assert printed == ""
    assert "certificate of the chain" in said
    assert "picture" not in said
    assert summary["picture"] is None


def test_drawing_in_the_terminal(results: dict[str, demo.Comparison]) -> None:
    lines = list(describe(results["bad"]))
    at = next(i for i, line in enumerate(lines) if "put it right" in line)
    drawing = lines[at + 2 : at + 10]
    assert {len(line) for line in drawing} == {12 + 8 * 8 + 7 * 2}
    assert any("@" in line for line in drawing)
    single, chain = (line.split()[-8:] for line in lines[at + 10 : at + 12])
    assert sum(a != b for a, b in zip(single, chain, strict=True)) == 1


def test_options(capsys: pytest.CaptureFixture[str]) -> None:
    options = parse()
    assert (options.train, options.test, options.seed) == (400, 500, 1)
    assert options.picture == "maxmargin-demo.svg"
    assert parse("--no-picture").picture is None
    for wrong in (["--train", "0"], ["--test", "many"], ["--seed", "-1"]):
        with pytest.raises(SystemExit):
            parse(*wrong)
        assert f"{wrong[1]!r} is not an integer of at least" in capsys.readouterr().err


def test_picture_that_cannot_be_written(tmp_path: Path) -> None:
    target = tmp_path / "missing" / "dates.svg"
    with pytest.raises(FileNotFoundError, match="cannot write the picture") as caught:
        run(parse("--train", "5", "--test", "5", "--picture", str(target)))
    assert caught.value.filename == str(target)
    assert list(tmp_path.iterdir()) == []


def test_options_are_known_without_heavy_imports() -> None:
    program = (
        "import argparse, sys, maxmargin.cli.demo as d; d.configure(argparse.ArgumentParser()); "
        "print(*[m for m in ('sklearn', 'scipy', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""


def test_script(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--train", "20", "--test", "20"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Clean scans: 20 dates to learn from, 20 to read" in done.stdout
    assert [file.name for file in tmp_path.iterdir()] == ["maxmargin-demo.svg"]
