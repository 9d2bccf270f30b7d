"""Learning from examples that come one after the other."""

from __future__ import annotations

from maxmargin.online.latent import LatentLearner
from maxmargin.online.learner import Bounds, OnlineLearner

__all__ = ["Bounds", "LatentLearner", "OnlineLearner"]
