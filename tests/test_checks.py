"""Checks of numbers and choices: what passes, and what is refused with which error."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from maxmargin.checks import (
    check_choice,
    check_not_negative,
    check_number,
    check_whole,
    check_whole_attributes,
    is_number,
    is_real,
    is_whole,
)

NO_NUMBERS = ["1", None, [1.0], True, np.bool_(True), 1j, np.zeros(1)]


@pytest.mark.parametrize("value", [1, 1.5, np.float32(1.5), np.int64(2), Fraction(1, 3)])
def test_numbers(value):
    assert is_real(value)
    assert is_number(value)
    assert check_number("C", value, above=0.0) == float(value)
    assert type(check_number("C", value)) is float


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_what_is_no_number(value):
    assert not is_real(value)
    assert not is_number(value)
    assert not is_whole(value)
    with pytest.raises(TypeError, match="C must be a number, got "):
        check_number("C", value)
    with pytest.raises(TypeError, match="n must be a whole number, got "):
        check_whole("n", value, 0)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite(value):
    assert is_real(value)
    assert not is_number(value)
    for bound in ({"above": 0.0}, {"least": 0.0}):
        with pytest.raises(ValueError, match="gap must be finite and"):
            check_number("gap", value, **bound)
    with pytest.raises(ValueError, match="tau must be non-negative and finite, got"):
        check_not_negative(SimpleNamespace(tau=value), "tau")


def test_bounds():
    assert check_number("gap", 0, least=0.0) == 0.0
    with pytest.raises(ValueError, match="gap must be finite and at least 0, got -1"):
        check_number("gap", -1, least=0.0)
    with pytest.raises(ValueError, match="C must be finite and above 0, got 0"):
        check_number("C", 0, above=0.0)
    assert is_number(0.5, above=0.0)
    assert not is_number(0.0, above=0.0)


def test_whole_numbers():
    assert check_whole("n", np.int32(3), 3) == 3
    assert type(check_whole("n", np.int32(3), 3)) is int
    assert is_whole(-5)
    assert is_whole(3, 3)
    assert not is_whole(2, 3)
    assert not is_whole(3.0)
    with pytest.raises(ValueError, match="n must be at least 3, got 2"):
        check_whole("n", 2, 3)
    with pytest.raises(TypeError, match=r"n must be a whole number, got 3\.0"):
        check_whole("n", 3.0, 3)


def test_attributes():
    owner = SimpleNamespace(rounds=2, tau=0.0)
    check_not_negative(owner, "tau", "rounds")
    check_whole_attributes(owner, rounds=2)
    for wrong in (1, 2.0, True, "2"):
        owner.rounds = wrong
        with pytest.raises(ValueError, match="rounds must be a whole number of at least 2, got"):
            check_whole_attributes(owner, rounds=2)


def test_choices():
    check_choice("slack", "hard", ("linear", "hard"))
    with pytest.raises(ValueError, match="slack must be one of 'linear', 'hard'; got 'soft'"):
        check_choice("slack", "soft", ("linear", "hard"))
