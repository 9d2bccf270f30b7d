"""The bar: full at the gap asked for, drawn by what is installed, silent otherwise."""

from __future__ import annotations

import copy
import math
import pickle
import sys
import types
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from maxmargin import LatentSVM, ProgressBar, SequenceTagger
from maxmargin.solvers.history import PassRecord

X = [[["a"], ["b"]], [["b"], ["a"]], [["b"]]] * 5
Y = [["A", "B"], ["B", "A"], ["B"]] * 5


def record(n_pass, gap):
    return PassRecord(n_pass, "exact", 1.0, 0, math.nan, 0.0, gap, math.nan, 0)


def fake_tqdm(monkeypatch, shown):
    """Put something in the place of tqdm, and nothing in that of rich."""

    class Bar:
        def __init__(self, **options):
            self.n = 0.0
            shown.append("open")

        def set_description_str(self, text, refresh):
            shown.append(text)

        def update(self, by):
            self.n += by
            shown.append(round(self.n, 6))

        def close(self):
            shown.append("close")

    module = types.ModuleType("tqdm.auto")
    module.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    for name in ("rich", "rich.progress", "rich.console"):
        monkeypatch.setitem(sys.modules, name, None)


def test_the_share_is_that_of_the_logarithm(monkeypatch):
    shown = []
    fake_tqdm(monkeypatch, shown)
    bar = ProgressBar(0.01, backend="tqdm")
    for n, gap in enumerate([1.0, math.nan, 0.1, 0.2, 0.01], 1):
        assert bar(record(n, gap)) is False
    assert [x for x in shown if isinstance(x, float)] == [0.0, 0.0, 0.5, 0.5, 1.0]
    assert shown[0] == "open"
    assert shown[-1] == "close"
    assert "pass 3 gap 10 %" in shown
    assert "pass 2" in shown


@pytest.mark.parametrize("options", [{"gap": 1e-3}, {"gap": 0.0, "max_passes": 2}])
def test_each_training_has_a_bar_that_ends_with_it(monkeypatch, options):
    shown = []
    fake_tqdm(monkeypatch, shown)
    bar = ProgressBar(1e-3, backend="tqdm")
    for n in (1, 2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            SequenceTagger(C=10.0, callbacks=[bar], random_state=n, **options).fit(X, Y)
        assert shown.count("open") == shown.count("close") == n


def test_a_training_that_fails_takes_its_bar_away(monkeypatch):
    shown = []
    fake_tqdm(monkeypatch, shown)

    def failing(record):
        raise RuntimeError("of a callback")

    bar = ProgressBar(1e-3, backend="tqdm")
    with pytest.raises(RuntimeError, match="of a callback"):
        SequenceTagger(callbacks=[bar, failing]).fit(X, Y)
    assert shown.count("open") == shown.count("close") == 1


def test_all_starts_of_a_latent_training_end_their_bars(monkeypatch):
    shown = []
    fake_tqdm(monkeypatch, shown)
    bar = ProgressBar(1e-3, backend="tqdm")
    draw = np.random.default_rng(0)
    bags, classes = [draw.normal(size=(3, 2)) for _ in range(20)], draw.integers(0, 2, 20)
    LatentSVM(n_starts=2, gap=0.1, callbacks=[bar], random_state=0).fit(bags, classes)
    assert shown.count("open") == shown.count("close") > 0


def test_silent_where_nobody_looks(capfd):
    SequenceTagger(callbacks=[ProgressBar()]).fit(X, Y)
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_silent_where_nothing_is_installed(monkeypatch, capfd):
    for name in ("rich", "rich.progress", "tqdm", "tqdm.auto"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    SequenceTagger(callbacks=[ProgressBar()]).fit(X, Y)
    assert capfd.readouterr().err == ""
    with pytest.raises(ImportError):
        ProgressBar(backend="tqdm")(record(1, 0.5))


def test_rich_draws_it(capfd):
    pytest.importorskip("rich")
    bar = ProgressBar(0.01, backend="rich")
    bar(record(1, 0.5))
    bar(record(2, 0.01))
    assert "pass 2" in capfd.readouterr().err


def test_copies_and_bad_arguments():
    bar = ProgressBar(0.02, backend="none")
    bar(record(1, 0.5))
    for other in (copy.deepcopy(bar), pickle.loads(pickle.dumps(bar))):
        assert other.gap == 0.02
    assert clone(SequenceTagger(callbacks=[bar])).callbacks[0].gap == 0.02
    for bad in ({"gap": 0.0}, {"backend": "paper"}):
        with pytest.raises(ValueError):
            ProgressBar(**bad)
