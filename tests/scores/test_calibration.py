"""The expected calibration error."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.scores.calibration import calibration_error, reliability


def test_by_hand():
    # bins of a fifth: 0.55 (right) and 0.5 (wrong) in one, 0.95 and 1.0 (both right) in another
    found = reliability([0.55, 0.5, 0.95, 1.0], [True, False, True, True], n_bins=5)
    assert found.weight.tolist() == [0, 0, 2, 0, 2]
    assert found.accuracy[2] == 0.5
    assert found.confidence[4] == pytest.approx(0.975)
    assert found.error == pytest.approx((2 * 0.025 + 2 * 0.025) / 4)


def test_an_honest_model_has_a_small_error():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    right = rng.random(20_000) < p
    assert calibration_error(p, right) < 0.02
    assert calibration_error(np.sqrt(p), right) > 0.1


def test_weights_are_repetitions():
    p, right, weight = [0.3, 0.7, 0.7], [True, True, False], [1, 2, 3]
    repeated = reliability(np.repeat(p, weight), np.repeat(right, weight))
    assert reliability(p, right, weight=weight).error == pytest.approx(repeated.error)


def test_bad_input():
    with pytest.raises(ValueError, match="shape"):
        calibration_error([0.5], [True, False])
    with pytest.raises(ValueError, match="0 to 1"):
        calibration_error([1.5], [True])
    with pytest.raises(ValueError, match="n_bins"):
        calibration_error([0.5], [True], n_bins=0)
    assert np.isnan(calibration_error([], []))
