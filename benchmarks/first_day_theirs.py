"""sklearn-crfsuite's tutorial with sklearn-crfsuite; see ``first_day_tutorial.py``."""

from __future__ import annotations

from scipy.stats import expon
from sklearn.model_selection import RandomizedSearchCV
from sklearn_crfsuite import CRF

from first_day_tutorial import FOLDS, TRIED, tutorial

PARAMETERS = {"c1": expon(scale=0.5), "c2": expon(scale=0.05)}


def model():
    return CRF("lbfgs", c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True)


def search(crf, scoring):
    return RandomizedSearchCV(crf, PARAMETERS, n_iter=TRIED, cv=FOLDS, scoring=scoring)


if __name__ == "__main__":
    tutorial({"default": CRF(), "tutorial": model(), "search": model()}, search)
