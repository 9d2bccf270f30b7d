"""sklearn-crfsuite's tutorial with maxmargin; see ``first_day_tutorial.py``."""

from __future__ import annotations

from sklearn.model_selection import GridSearchCV

from first_day_tutorial import FOLDS, tutorial
from maxmargin import SequenceTagger

PARAMETERS = {"C": [0.03, 0.1, 0.3, 1.0]}


def model():
    return SequenceTagger(random_state=0)


def search(crf, scoring):
    return GridSearchCV(crf, PARAMETERS, cv=FOLDS, scoring=scoring)


if __name__ == "__main__":
    auto = SequenceTagger(C="auto", random_state=0)
    choices = {"default": model(), "auto": auto, "search": model()}
    tutorial(choices, search, SequenceTagger.calibrate)
