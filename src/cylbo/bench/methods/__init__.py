"""Every method of the lab, one module per family. The order is that of tables and legends."""

from cylbo.bench.methods import (
    additive,
    botorch,
    cma,
    elastic,
    hyperopt,
    local,
    nevergrad,
    noisy_botorch,
    optuna,
    ours,
    smac,
    sobol,
    spearmint,
    spherical,
    turbo,
)
from cylbo.bench.methods.method import Method

__all__ = ["METHODS", "Method", "method"]

FAMILIES = (
    ours,
    smac,
    hyperopt,
    spearmint,
    additive,
    elastic,
    botorch,
    turbo,
    spherical,
    cma,
    local,
    nevergrad,
    noisy_botorch,
    optuna,
    sobol,
)

# For practical problems alone
VARIANTS = (*ours.TOLD, *noisy_botorch.METHODS, optuna.UNIVARIATE)

METHODS: dict[str, Method] = {m.name: m for m in (*(m for family in FAMILIES for m in family.METHODS), *VARIANTS)}


def method(name: str) -> Method:
    """The method of that name."""
    if name not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {name!r}.")
    return METHODS[name]
