"""What a method is made of, each number with its source. A method is a choice of parts, not a subclass.

`PAPER` is the authors' method to the letter, `DEFAULT` is ours; `METHODS` names them and the paper's variants. Make
your own with `dataclasses.replace(cylbo.PAPER, angular_degree=9)` and pass it as `method=`.
"""

import dataclasses

from cylbo.model import scaling as outputs
from cylbo.model.beliefs import Form
from cylbo.model.hyperparameters import Priors
from cylbo.model.kernel import Matern
from cylbo.search import climb as ascent
from cylbo.search.improvement import log_expected_improvement
from cylbo.search.learn import fitted
from cylbo.search.settings import Config

__all__ = ["DEFAULT", "METHODS", "PAPER", "described", "resolve_method"]


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

# What measured best so far, and why: docs/default-method.md
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
    name = getattr(part, "__qualname__", str(part))
    # Our own parts keep their names when they move to another module
    return name if part.__module__.startswith("cylbo.") else f"{part.__module__}.{name}"
