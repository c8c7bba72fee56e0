"""What a method is made of, each number with its source."""

import math
from dataclasses import dataclass, field

from cylbo.model import scaling as scalings
from cylbo.model.beliefs import Beliefs, Form
from cylbo.model.hyperparameters import Priors
from cylbo.model.kernel import Cylindrical, Matern
from cylbo.search import climb as climbs
from cylbo.search.improvement import Acquisition, expected_improvement
from cylbo.search.learn import Learn, sampled

__all__ = ["Method"]


@dataclass(frozen=True)
class Method:
    """A method. The defaults are the paper's ("code": settled by the authors' code, where the paper is silent)."""

    name: str = "custom"

    # surrogate
    kernel: type[Cylindrical] | type[Matern] = Cylindrical
    angular_degree: int = 3  # P, Sec. 4.1
    warped: bool = True  # Kumaraswamy warp of the radius, Eq. (8); False is BOCK-W
    boundary: bool = False  # fake observation at the rim in the variance; True is BOCK+B
    priors: Priors = field(default_factory=Priors)
    stabilizer: float = 1e-6  # on the diagonal, of the amplitude; code (float32)
    jitters: tuple[float, ...] = tuple(10.0**k for k in range(-6, 0))  # of the diagonal, on failure; code
    scaling: scalings.Scaling = scalings.raw  # code

    # hyperparameters
    learn: Learn = sampled
    # ... by slice sampling
    slice_width: float = 1.0  # first interval of the slice sampler in every coordinate; code
    tune_widths: bool = False  # let later rounds take the widths of the slices seen; a third fewer factorisations
    first_sweeps: int = 100  # of the first fit, of which the last state is kept; code
    sweeps: int = 10  # per suggestion, all kept, from the last state of the one before; code

    # ... by fitting (not in the paper)
    beliefs: Beliefs = field(default_factory=Beliefs)
    forms: tuple[Form, ...] = (Form(),)  # of the model; the one that predicts best is used
    refit_until: int = 30  # evaluations; up to then all forms are fitted anew every time, from several starts ...
    refit_growth: float = 0.1  # ... later whenever their number has grown by this share
    warm_growth: float = 0.01  # between, the chosen form from its last fit, whenever they have grown by this share
    # How far below the best value an improvement begins, as a share of its gap to the d/2-th best of different values
    ambition: float = 0.0
    noise_ambition: float = 0.0  # ... or, if values are known to be noisy, in standard deviations of the noise
    fit_points: int = 600  # most evaluations that hyperparameters are learned from; predictions use all
    fit_steps: int = 30  # of L-BFGS-B, from the best of the starts
    warm_steps: int = 8

    # Random points that are evaluated after the centre of a space with choices or small integers, before a model is
    # asked. In a box one is enough (code): few points tell where a smooth function falls, not which choice is good
    n_first_discrete: int = 1

    # Once the model's first suggestions disappoint, so many random points per coordinate are evaluated; 0: none ever.
    # A model that began with small steps does not see what a coordinate does over its range
    cover: int = 0

    # acquisition and its maximisation
    acquisition: Acquisition = expected_improvement
    sobol: climbs.Spread = climbs.sobol_window  # "different sobol sequences for different evaluations", Sec. 4
    n_sobol: int = 20_000  # Sec. 4
    spray: climbs.Spray = climbs.reflected_spray
    spray_scales: tuple[float, ...] = (0.002,)  # standard deviations in the box [-1, 1]^d; code
    n_spray: int = 10  # per scale; code
    n_leaders: int = 1  # best points that are sprayed about; code
    n_starts: int = 20  # Sec. 4
    starts_per_group: int | None = None  # at most so many from the spread and from each spray; None: no matter
    climb: climbs.Climb = climbs.climb_until_no_decrease  # code
    learning_rate: float = 0.01  # of Adam; code
    max_steps: int = 500  # of Adam; code

    # Differs from the paper: every candidate is scored by `screening_samples` of the hyperparameter samples, and only
    # the best `screening_share` by all of them. It touches nothing but the choice of starts; a share of 1 is the
    # letter.
    screening_samples: int = 1
    screening_share: float = 0.025

    # Differs from the paper: evaluate the best point once more where noise is suspected, and any good one again once it
    # is certain, if that tells more than a new point
    repeats: bool = False

    threads: int = 1  # of BLAS while suggesting; see `numerics/threads.py`

    def __post_init__(self) -> None:
        """Refuse numbers that no method could work with."""
        for name in (
            "angular_degree",
            "n_first_discrete",
            "first_sweeps",
            "sweeps",
            "n_sobol",
            "n_starts",
            "max_steps",
            "n_leaders",
            "fit_points",
            "fit_steps",
            "warm_steps",
            "screening_samples",
            "threads",
        ):
            value = getattr(self, name)
            if type(value) is not int or value < 1:  # True would be one
                raise ValueError(f"Method expected {name} to be an integer of at least 1, got {value!r}.")
        for name in ("n_spray", "cover"):
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise ValueError(f"Method expected {name} to be an integer of at least 0, got {value!r}.")
        if self.starts_per_group is not None and self.starts_per_group < 1:
            raise ValueError(
                f"Method expected starts_per_group to be None or at least 1, got {self.starts_per_group!r}."
            )
        if not 0.0 < self.screening_share <= 1.0:
            raise ValueError(f"Method expected screening_share in (0, 1], got {self.screening_share!r}.")
        for name in ("ambition", "noise_ambition"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0.0):
                raise ValueError(f"Method expected {name} >= 0, got {value!r}.")
        if not self.forms:
            raise ValueError("Method expected at least one of `forms`, got none.")
        for name in ("refit_growth", "warm_growth"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise ValueError(f"Method expected {name} > 0, got {value!r}.")
        if not (math.isfinite(self.stabilizer) and self.stabilizer >= 0.0):
            raise ValueError(f"Method expected a stabilizer >= 0, got {self.stabilizer!r}.")
