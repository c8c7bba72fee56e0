"""Hyperparameters of scikit-learn models on its own data sets: spaces of numbers, integers and choices."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu

from cylbo.bench.figures import DASHES, style
from cylbo.bench.markdown import NOTHING, table
from cylbo.bench.methods import optuna
from cylbo.space.categories import Boolean, Categorical
from cylbo.space.parameters import Integer, Real
from cylbo.space.space import Space

from .players import Array, Cylbo, Optuna, Player, univariate_tpe
from .runs import Cells, Experiment, Key, Played, Run, play
from .tables import average_ranks, label, methods_of, reached, seeds, stages

FOLDS = 3

Params = Mapping[str, Any]


@dataclass(frozen=True)
class Tuning:
    """A model whose cross-validated loss is to be small; the same for the same parameters."""

    data: str  # sklearn.datasets.load_...
    rows: int  # at most so many of it, so that an evaluation takes a fraction of a second
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


# Choices in alphabetical order: cylbo begins at the first of each, which is to be no hint
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
METHODS: dict[str, Callable[[Space, int], Player]] = {
    "default": Cylbo,
    "optuna-gp": lambda space, seed: Optuna(space, optuna.gaussian_process(seed)),
    "optuna-tpe": lambda space, seed: Optuna(space, optuna.tpe(seed)),
    "Optuna TPE, univariate": lambda space, seed: Optuna(space, univariate_tpe(seed)),
}


def _play(key: Key, time_limit: float) -> Played:
    tuning = PROBLEMS[key.problem]
    return play(METHODS[key.method](tuning.space, key.seed), tuning, key.budget, time_limit)


def _reached(runs: Sequence[Run], n: int) -> Array:  # -> (runs,)
    return np.array([reached(run, n) for run in runs])


def _seconds(runs: Sequence[Run]) -> float:
    """Median of a suggestion in the second half of the runs, when start designs are over."""
    return float(np.median(np.concatenate([run.seconds[len(run.seconds) // 2 :] for run in runs])))


def _lines(cells: Cells) -> list[str]:
    shown = stages(cells, 25, 50)
    lines = ["Best loss after so many evaluations, mean ± standard deviation over seeds, the lowest mean bold."]
    for name, row in cells.items():
        by_method = {m: np.array([_reached(runs, n) for n in shown]) for m, runs in row.items()}
        lowest = np.min([of.mean(1) for of in by_method.values()], axis=0)
        rows = []
        for method, of in by_method.items():
            texts = [f"{mean:.4g} ± {sd:.2g}" for mean, sd in zip(of.mean(1), of.std(1), strict=True)]
            bold = [
                f"**{text}**" if mean == low else text
                for text, mean, low in zip(texts, of.mean(1), lowest, strict=True)
            ]
            rows.append([label(method), seeds(row[method]), *bold, f"{_seconds(row[method]):.3f}"])
        lines += ["", *table([name, "seeds", *map(str, shown), "seconds per suggestion"], rows)]
    return [*lines, "", *average_ranks(cells, shown, np.mean), "", *_duels(cells, shown[-1])]


def _duels(cells: Cells, n: int) -> list[str]:
    """How cylbo compares with each peer on each problem."""
    peers = [m for m in methods_of(cells) if m != "default"]
    rows = []
    for name, row in cells.items():
        texts = []
        for peer in peers:
            if peer not in row or "default" not in row:
                texts.append(NOTHING)
                continue
            ours, theirs = _reached(row["default"], n), _reached(row[peer], n)
            test = mannwhitneyu(ours, theirs)
            better = 1.0 - test.statistic / (len(ours) * len(theirs))
            texts.append(f"{better:.0%} (p = {test.pvalue:.2g})")
        rows.append([name, *texts])
    return [
        f"How often a run of cylbo ends below a run of the peer after {n} evaluations, over all pairs of runs, a tie "
        "counted half; in brackets the p-value of Wilcoxon's rank-sum test, two-sided.",
        "",
        *table(["problem", *map(label, peers)], rows),
    ]


EXPERIMENT = Experiment(
    name="mixed",
    title="Mixed spaces",
    about="Hyperparameters of scikit-learn models, numbers, integers and choices together; the loss is the mean over "
    "three fixed folds and always the same for the same parameters. The spaces are equal. Nobody was given a start: "
    "cylbo begins at the middle of all ranges and the first of all choices, which stand in alphabetical order, Optuna "
    "with its ten random points. Losses: share of errors (svm), root mean squared error (splines), log loss. Runs "
    "that an error of scikit-learn's ended are left out. The "
    "picture shows how far they are above the lowest that any run found.",
    problems=tuple(PROBLEMS),
    methods=tuple(METHODS),
    budget=100,
    seeds=10,
    play=_play,
    lines=_lines,
    curve=lambda run: run.best_so_far,
    regret=False,
    looks={"Optuna TPE, univariate": style("optuna-tpe")._replace(dashes=DASHES[1], marker="v")},
)
