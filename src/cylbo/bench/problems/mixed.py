"""Hyperparameters of scikit-learn models on its own data sets: spaces of numbers, integers and choices.

A loss is the mean over three fixed folds: the share of errors, the root mean squared error or the log loss.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from cylbo.bench.problems.task import Family, Task
from cylbo.space.categories import Boolean, Categorical
from cylbo.space.parameters import Integer, Real
from cylbo.space.space import Space
from cylbo.types import Array

__all__ = ["FAMILY", "PROBLEMS", "Tuning"]

FOLDS = 3

Params = Mapping[str, Any]


@dataclass(frozen=True)
class Tuning:
    """A model whose cross-validated loss is to be small; the same for the same parameters."""

    # As in sklearn.datasets.load_...
    data: str
    # At most so many rows are used, so that an evaluation takes a fraction of a second
    rows: int
    scoring: str
    space: Space
    model: Callable[[Params], Any]

    def __call__(self, params: Params) -> float:
        """The mean loss over the folds."""
        from sklearn.model_selection import cross_val_score

        x, y, folds = _data(self.data, self.rows)
        scores = cross_val_score(self.model(params), x, y, cv=folds, scoring=self.scoring, error_score="raise")
        return float((1.0 if self.scoring == "accuracy" else 0.0) - scores.mean())


@cache
def _data(name: str, rows: int) -> tuple[Array, Array, Any]:
    """Points (n, p), targets (n,) and folds."""
    import sklearn.datasets
    from sklearn.model_selection import KFold, StratifiedKFold

    x, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(y))[:rows]
    kind = KFold if name == "diabetes" else StratifiedKFold
    return x[chosen], y[chosen], kind(FOLDS, shuffle=True, random_state=0)


def _scaler(name: str) -> Any:  # noqa: ANN401 - scikit-learn has no types
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    return {"minmax": MinMaxScaler, "standard": StandardScaler}[name]() if name != "none" else "passthrough"


def _svm(p: Params) -> Any:  # noqa: ANN401
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    machine = SVC(
        kernel=p["kernel"], C=p["C"], gamma=p["gamma"], degree=p["degree"], coef0=p["coef0"], shrinking=p["shrinking"],
        max_iter=2000,
    )  # fmt: skip
    return make_pipeline(_scaler(p["scaler"]), PCA(p["components"], random_state=0), machine)


def _boosting(p: Params) -> Any:  # noqa: ANN401
    from sklearn.ensemble import GradientBoostingClassifier

    features = None if p["max_features"] == "all" else p["max_features"]
    start = None if p["init"] == "prior" else p["init"]
    return GradientBoostingClassifier(**{**p, "max_features": features, "init": start}, random_state=0)


def _network(p: Params) -> Any:  # noqa: ANN401
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline

    network = MLPClassifier(
        [p["width"]] * p["layers"], activation=p["activation"], solver=p["solver"], alpha=p["alpha"],
        learning_rate_init=p["learning_rate"], batch_size=p["batch_size"], max_iter=p["epochs"], random_state=0,
    )  # fmt: skip
    return make_pipeline(_scaler(p["scaler"]), network)


def _splines(p: Params) -> Any:  # noqa: ANN401
    from sklearn.linear_model import ElasticNet
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import SplineTransformer

    splines = SplineTransformer(p["knots"], degree=p["degree"], knots=p["placed"], extrapolation=p["outside"])
    net = ElasticNet(p["alpha"], l1_ratio=p["l1_ratio"], positive=p["positive"], max_iter=2000)
    return make_pipeline(_scaler(p["scaler"]), splines, _scaler(p["rescaler"]), net)


# Choices stand in alphabetical order: cylbo begins at the first of each, which is to be no hint
SCALER = Categorical(["minmax", "none", "standard"])
PROBLEMS = {
    "svm, digits": Tuning(
        "digits",
        400,
        "accuracy",
        Space(
            scaler=SCALER,
            components=Integer(4, 40),
            kernel=Categorical(["linear", "poly", "rbf", "sigmoid"]),
            C=Real(1e-3, 1e3, log=True),
            gamma=Real(1e-5, 10.0, log=True),
            degree=Integer(2, 5),
            coef0=Real(0.0, 1.0),
            shrinking=Boolean(),
        ),
        _svm,
    ),
    "boosting, wine": Tuning(
        "wine",
        178,
        "neg_log_loss",
        Space(
            n_estimators=Integer(5, 50, log=True),
            max_depth=Integer(1, 6),
            learning_rate=Real(1e-3, 1.0, log=True),
            subsample=Real(0.3, 1.0),
            max_features=Categorical(["all", "log2", "sqrt"]),
            min_samples_leaf=Integer(1, 30, log=True),
            init=Categorical(["prior", "zero"]),
        ),
        _boosting,
    ),
    "network, breast cancer": Tuning(
        "breast_cancer",
        300,
        "neg_log_loss",
        Space(
            scaler=SCALER,
            layers=Integer(1, 3),
            width=Integer(2, 64, log=True),
            activation=Categorical(["logistic", "relu", "tanh"]),
            solver=Categorical(["adam", "sgd"]),
            alpha=Real(1e-6, 10.0, log=True),
            learning_rate=Real(1e-4, 1.0, log=True),
            batch_size=Integer(16, 128, log=True),
            epochs=Integer(2, 20, log=True),
        ),
        _network,
    ),
    "splines, diabetes": Tuning(
        "diabetes",
        442,
        "neg_root_mean_squared_error",
        Space(
            scaler=SCALER,
            knots=Integer(2, 10),
            degree=Integer(1, 4),
            placed=Categorical(["quantile", "uniform"]),
            outside=Categorical(["constant", "continue", "linear"]),
            rescaler=SCALER,
            alpha=Real(1e-4, 10.0, log=True),
            l1_ratio=Real(0.0, 1.0),
            positive=Boolean(),
        ),
        _splines,
    ),
}


def _task(name: str, seed: int) -> Task:
    tuning = PROBLEMS[name]
    return Task(tuning, space=tuning.space)


FAMILY = Family(
    {name: len(tuning.space.parameters) for name, tuning in PROBLEMS.items()},
    _task,
    frozenset({"mixed"}),
    ("scikit-learn",),
)
