"""What a method is made of, each number with its source. A method is a choice of parts, not a subclass.

`PAPER` is the authors' method to the letter, `DEFAULT` is ours; `METHODS` names them and the paper's variants. Make
your own with `dataclasses.replace(cylbo.PAPER, angular_degree=9)` and pass it as `method=`.
"""

import dataclasses
import math
from dataclasses import dataclass, field

from cylbo import ascent, outputs
from cylbo.acquisition import Acquisition, expected_improvement, log_expected_improvement
from cylbo.fit import Beliefs, Form
from cylbo.hyper import Priors
from cylbo.kernel import Cylindrical, Matern
from cylbo.learn import Learn, fitted, sampled

__all__ = ["DEFAULT", "METHODS", "PAPER", "Config", "described", "resolve_method"]

# Of modules that were renamed: stored runs go on naming the parts of their method as they did
FORMER_NAMES = {"cylbo.ascent": "cylbo.maximize"}


@dataclass(frozen=True)
class Config:
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
    scaling: outputs.Scaling = outputs.raw  # code

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
    sobol: ascent.Spread = ascent.sobol_window  # "different sobol sequences for different evaluations", Sec. 4
    n_sobol: int = 20_000  # Sec. 4
    spray: ascent.Spray = ascent.reflected_spray
    spray_scales: tuple[float, ...] = (0.002,)  # standard deviations in the box [-1, 1]^d; code
    n_spray: int = 10  # per scale; code
    n_leaders: int = 1  # best points that are sprayed about; code
    n_starts: int = 20  # Sec. 4
    starts_per_group: int | None = None  # at most so many from the spread and from each spray; None: no matter
    climb: ascent.Climb = ascent.climb_until_no_decrease  # code
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

    threads: int = 1  # of BLAS while suggesting; see `threads.py`

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
                raise ValueError(f"Config expected {name} to be an integer of at least 1, got {value!r}.")
        for name in ("n_spray", "cover"):
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise ValueError(f"Config expected {name} to be an integer of at least 0, got {value!r}.")
        if self.starts_per_group is not None and self.starts_per_group < 1:
            raise ValueError(
                f"Config expected starts_per_group to be None or at least 1, got {self.starts_per_group!r}."
            )
        if not 0.0 < self.screening_share <= 1.0:
            raise ValueError(f"Config expected screening_share in (0, 1], got {self.screening_share!r}.")
        for name in ("ambition", "noise_ambition"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0.0):
                raise ValueError(f"Config expected {name} >= 0, got {value!r}.")
        if not self.forms:
            raise ValueError("Config expected at least one of `forms`, got none.")
        for name in ("refit_growth", "warm_growth"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise ValueError(f"Config expected {name} > 0, got {value!r}.")
        if not (math.isfinite(self.stabilizer) and self.stabilizer >= 0.0):
            raise ValueError(f"Config expected a stabilizer >= 0, got {self.stabilizer!r}.")


PAPER = Config(name="paper")

# The paper's kernel, priors and sampler with numerics of today
CYLINDER = dataclasses.replace(
    PAPER,
    name="cylinder",
    # float64 factors allow a far smaller nugget than the authors' float32: differences of a millionth of the spread
    # count
    stabilizer=1e-10,
    jitters=tuple(10.0**k for k in range(-10, 0)),
    scaling=outputs.standardized,
    tune_widths=True,
    priors=Priors(log_noise=(-22.0, 16.0)),
    acquisition=log_expected_improvement,
    sobol=ascent.sobol_shifted,
    spray=ascent.projected_spray,
    spray_scales=(0.002, 0.02, 0.2),
    n_spray=100,
    climb=ascent.climb_keeping_best,
    max_steps=100,
)

# What measured best so far, and why: docs/notebook
DEFAULT = dataclasses.replace(
    CYLINDER,
    name="default",
    kernel=Matern,
    warped=False,
    learn=fitted,
    forms=(Form(), Form(stretched=True), Form(stretched=True, effects=True)),
    ambition=0.05,
    noise_ambition=3.0,
    n_first_discrete=16,
    cover=2,
    repeats=True,
    stabilizer=0.0,  # the nugget that was fitted is enough
    sobol=ascent.uniform,
    n_sobol=500,
    spray=ascent.sparse_spray,
    spray_scales=(0.001, 0.01, 0.05, 0.2, 0.5),
    n_spray=200,
    n_leaders=5,
    n_starts=6,
    starts_per_group=2,
    screening_share=1.0,
    climb=ascent.climb_quasi_newton,
    max_steps=100,
)

METHODS: dict[str, Config] = {
    "default": DEFAULT,
    "cylinder": CYLINDER,
    "paper": PAPER,
    "paper-w": dataclasses.replace(PAPER, name="paper-w", warped=False),
    "paper+b": dataclasses.replace(PAPER, name="paper+b", boundary=True),
    "matern": dataclasses.replace(PAPER, name="matern", kernel=Matern, warped=False),
}


def resolve_method(method: str | Config) -> Config:
    """The configuration of that name, or the configuration itself."""
    if isinstance(method, Config):
        return method
    if isinstance(method, str) and method in METHODS:
        return METHODS[method]
    raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))} or a cylbo.Config, got {method!r}.")


def described(config: Config) -> object:
    """A method as JSON: its name if it is one of ours, every one of its parts otherwise."""
    return config.name if METHODS.get(config.name) == config else _described(config)


def _described(part: object) -> object:
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        return {field.name: _described(getattr(part, field.name)) for field in dataclasses.fields(part)}
    if isinstance(part, tuple | list):
        return [_described(each) for each in part]
    if not callable(part):
        return part
    return f"{FORMER_NAMES.get(part.__module__, part.__module__)}.{getattr(part, '__qualname__', part)}"
