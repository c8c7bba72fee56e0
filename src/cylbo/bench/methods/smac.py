"""SMAC: Bayesian optimisation with a random forest, a peer in the paper's tables."""

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cylbo.bench.methods.method import Method
from cylbo.bench.objective import Objective

if TYPE_CHECKING:
    from smac.acquisition.maximizer import LocalAndSortedRandomSearch
    from smac.runhistory.encoder import RunHistoryLogScaledEncoder

__all__ = ["METHODS"]

# Of the range of the values: SMAC learns their logarithms above the best, which would be -inf where several huge
# values are the best, and exp(variance / 2) of them, which overflows when they span more than e^75
LOG_FLOOR = np.log(1e-30)


def search(objective: Objective, seed: int) -> None:
    """SMAC3 (Lindauer et al. 2022) as its facade for hyperparameters makes it: random forest, log EI, log values.

    All its defaults are kept: after the centre a scrambled Sobol design of min(10 d, budget / 4) points, then the
    forest is trained anew for every eighth point and a fifth of the points are random.
    """
    import joblib
    from ConfigSpace import Configuration, ConfigurationSpace, Float
    from smac import HyperparameterOptimizationFacade as Facade
    from smac import Scenario
    from smac.runhistory import TrialInfo, TrialValue

    names = [f"x{i}" for i in range(objective.dim)]
    space = ConfigurationSpace()
    space.add([Float(name, (-1.0, 1.0)) for name in names])
    with _silence(), tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            space, n_trials=objective.budget, deterministic=True, seed=seed, output_directory=Path(folder)
        )
        smac = Facade(
            scenario,
            acquisition_maximizer=_in_order(Facade.get_acquisition_maximizer(scenario)),
            runhistory_encoder=_bounded(Facade.get_runhistory_encoder(scenario)),
            logging_level=False,  # its own set-up of logging would be the whole program's
        )
        trial = TrialInfo(Configuration(space, dict.fromkeys(names, 0.0)), seed=0)  # 0: that of deterministic trials
        while True:
            value = objective([trial.config[name] for name in names])
            smac.tell(trial, TrialValue(value), save=False)
            if not objective.left:  # else a whole forest would be trained in vain
                return
            # The forest asks for all cores, and its threads spend most of the time waiting for each other
            with joblib.parallel_config(backend="sequential"):
                trial = smac.ask()


def _in_order(maximizer: "LocalAndSortedRandomSearch") -> "LocalAndSortedRandomSearch":
    """The maximiser, its local searches begun in the order of their coordinates.

    SMAC 2.4 takes them from a set, in the order of string hashes: another one in every process, whatever the seed.
    """
    local: Any = maximizer._local_search
    starts = local._get_init_points_from_previous_configs
    local._get_init_points_from_previous_configs = lambda *arguments: sorted(
        starts(*arguments), key=lambda configuration: tuple(configuration.get_array())
    )
    return maximizer


def _bounded(encoder: "RunHistoryLogScaledEncoder") -> "RunHistoryLogScaledEncoder":
    """The encoder, its logarithms not below `LOG_FLOOR`."""
    bounded: Any = encoder
    logarithms = encoder.transform_response_values
    bounded.transform_response_values = lambda values: np.maximum(logarithms(values), LOG_FLOOR)
    return encoder


@contextmanager
def _silence() -> Iterator[None]:
    """No messages of SMAC: it warns whenever its local searches end in too few different points."""
    logger = logging.getLogger("smac")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


METHODS = (Method("smac", "SMAC", "Lindauer et al. 2022 (smac)", search, (("smac", "smac"),)),)
