"""The demo runs, and its chain beats its single digits."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

DEMO = Path(__file__).parents[1] / "examples" / "demo.py"


@pytest.fixture(scope="module")
def demo() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("maxmargin_demo", DEMO)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_small_run(demo: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    rates = demo.main(["--train", "80", "--test", "100"])
    printed = capsys.readouterr().out
    assert "certificate of the chain: primal" in printed
    assert "of the optimum" in printed
    assert "put it right" in printed
    single, chain = rates["clean"]
    assert single > 0.85
    assert chain > 0.85
    single, chain = rates["bad"]
    assert chain > single


def test_no_test_image_is_trained_on(demo: ModuleType) -> None:
    train, test = demo.split_images(np.random.default_rng(0))
    seen = {image.tobytes() for images in train for image in images}
    assert len(train) == len(test) == 10
    # scikit-learn's digits have no two equal images.
    assert not any(image.tobytes() in seen for images in test for image in images)


def test_dates_are_days_of_the_century(demo: ModuleType) -> None:
    rng = np.random.default_rng(0)
    images, _ = demo.split_images(rng)
    X, y = demo.write_dates(50, images, rng)
    for x, digits in zip(X, y, strict=True):
        assert x.shape == (8, 64)
        day, month, century = (10 * digits[k] + digits[k + 1] for k in (0, 2, 4))
        assert 1 <= day <= 31
        assert 1 <= month <= 12
        assert century == 19
