"""Regularisers: what a user may write, and what comes of it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from maxmargin.errors import NotCompatibleError
from maxmargin.regularizers import L2, Regularizer, make_regularizer
from maxmargin.solvers import SDM, solve
from native_problems import random_case


class Unlinked(Regularizer):
    pass


@pytest.mark.parametrize("written", [None, "l2", "L2", L2()])
def test_l2_in_all_its_spellings(written):
    assert make_regularizer(written) == L2()


def test_l2_links_by_identity():
    assert L2().link == (0.0, 1.0)


def test_a_description_is_kept_as_it_is():
    regularizer = Unlinked()
    assert make_regularizer(regularizer) is regularizer


@pytest.mark.parametrize("written", ["l1", "", 2, 1.0, True, L2, [], {}, object()])
def test_anything_else_is_refused_by_name(written):
    with pytest.raises(ValueError, match="regularizer must be") as caught:
        make_regularizer(written)
    assert repr(written) in str(caught.value)


@pytest.mark.parametrize("kind", [Regularizer, Unlinked])
def test_a_regularizer_without_link_is_not_compatible(kind):
    with pytest.raises(NotCompatibleError, match=kind.__name__):
        _ = kind().link


@pytest.mark.parametrize("kind", [Unlinked])
def test_training_refuses_what_it_cannot_link(kind):
    problem = random_case(np.random.default_rng(0)).problem()
    with pytest.raises(NotCompatibleError, match=kind.__name__):
        solve(problem, SDM(), C=1.0, regularizer=kind())


def test_l2_is_immutable():
    with pytest.raises((dataclasses.FrozenInstanceError, AttributeError, TypeError)):
        L2().link = "other"
