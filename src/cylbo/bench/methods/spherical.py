"""Bayesian linear regression on the sphere: Doumont et al., "We still don't understand high-dimensional Bayesian
optimization", arXiv 2512.00170 (AISTATS 2026).

    x (n, d) points of the unit cube      l (d,) length scales       a > 0 global scale
    z = (x - centre) / (a l)              P (n, d+1) points of the unit sphere

    P(z) = (2 z, |z|^2 - 1) / (|z|^2 + 1),   k(x, x') = b0 + b1 P(z)^T P(z'),   b0 + b1 = 1

With r = |z|, t = 2 arctan r and the direction u = z / r this is b0 + b1 (cos t cos t' + sin t sin t' u^T u'): a
cylindrical kernel of degree one.
"""

import math
from functools import cache, partial
from typing import TYPE_CHECKING

from cylbo.bench.methods.botorch import PACKAGES, map_fitted, search
from cylbo.bench.methods.method import Method

if TYPE_CHECKING:
    from botorch.models.gpytorch import GPyTorchModel
    from gpytorch.kernels import Kernel
    from torch import Tensor

__all__ = ["METHODS", "kernel", "linear_regression", "stereographic"]

HALF_WIDTH = 0.5  # of the unit cube, whose centre is the origin of z

# l ~ LogNormal(sqrt 2, sqrt 3): the prior of Hvarfner et al. (2024) without its sqrt(d), which is left to the global
# scale; the lower end is BoTorch's
LOG_LENGTHSCALE_MEAN = math.sqrt(2.0)
LOG_LENGTHSCALE_SD = math.sqrt(3.0)
SHORTEST_LENGTHSCALE = 2.5e-2


def stereographic(z: "Tensor") -> "Tensor":  # (..., n, d) -> (..., n, d+1)
    """The inverse stereographic projection P(z): the origin becomes the south pole, infinity the north pole."""
    import torch

    squared = z.square().sum(-1, keepdim=True)
    return torch.cat([2.0 * z, squared - 1.0], dim=-1) / (squared + 1.0)


@cache
def _kernel_class() -> "type[Kernel]":
    import torch
    from gpytorch.constraints import GreaterThan
    from gpytorch.kernels import Kernel
    from gpytorch.priors import LogNormalPrior

    class SphericalLinear(Kernel):  # type: ignore[misc]  # GPyTorch has no types
        has_lengthscale = True

        def __init__(self, dim: int) -> None:
            prior = LogNormalPrior(LOG_LENGTHSCALE_MEAN, LOG_LENGTHSCALE_SD)
            super().__init__(
                ard_num_dims=dim,
                lengthscale_prior=prior,
                lengthscale_constraint=GreaterThan(SHORTEST_LENGTHSCALE, transform=None, initial_value=prior.mode),
            )
            # b1 = sigmoid(raw_slope), and a = sqrt(sigmoid(raw_scale)) times the norm of the cube's corners in units
            # of l, which is of order sqrt(d): at zero, half the weight is linear and corners have |z|^2 = 2
            self.register_parameter("raw_slope", torch.nn.Parameter(torch.zeros(1)))
            self.register_parameter("raw_scale", torch.nn.Parameter(torch.zeros(1)))

        @property
        def slope(self) -> "Tensor":
            return torch.sigmoid(self.raw_slope)

        @property
        def scale(self) -> "Tensor":
            corner: Tensor = HALF_WIDTH / self.lengthscale  # (1, d)
            return (torch.sigmoid(self.raw_scale) * corner.square().sum(-1, keepdim=True)).sqrt()

        def forward(self, x1: "Tensor", x2: "Tensor", diag: bool = False, **_: object) -> "Tensor":
            p1, p2 = (stereographic((x - HALF_WIDTH) / (self.scale * self.lengthscale)) for x in (x1, x2))
            cosine = (p1 * p2).sum(-1) if diag else p1 @ p2.mT
            return (1.0 - self.slope) + self.slope * cosine

    return SphericalLinear


def kernel(dim: int) -> "Kernel":
    """k(x, x') on the unit cube as a GPyTorch kernel, with d + 2 parameters to be fitted."""
    return _kernel_class()(dim)


def linear_regression(
    x: "Tensor", y: "Tensor", last: "GPyTorchModel | None", *, iterations: int | None = None
) -> "GPyTorchModel":
    """SingleTaskGP with this kernel and otherwise its defaults, at the most probable parameters.

    The fit is slow, often thousands of iterations of L-BFGS: a common factor of all length scales cancels out with the
    global scale and is held by the prior alone. Fewer `iterations` are no bargain: ending after 200 of them cost up to
    14 units of log posterior density at 30 points in 10 dimensions.
    """
    from botorch.models import SingleTaskGP

    model = SingleTaskGP(x, y, covar_module=kernel(x.shape[-1]), outcome_transform=None)
    return map_fitted(model, last, iterations=iterations)


METHODS = (
    Method(
        "spherical",
        "Spherical linear",
        "Doumont et al. 2025 (arXiv 2512.00170)",
        partial(search, fit=linear_regression),
        PACKAGES,
    ),
)
