"""Expected improvement and its logarithm, for minimisation, averaged over hyperparameter samples.

    mean, variance (s, m) posterior of the latent function   best: the incumbent's value   z = (best - mean) / sd
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from cylbo.gp import Posterior

__all__ = ["Acquisition", "expected_improvement", "log_expected_improvement"]

# posterior (s, m), value of the incumbent -> (m,)
Acquisition = Callable[[Posterior, float], Tensor]

LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
SQRT_PI_OVER_2 = math.sqrt(0.5 * math.pi)


def expected_improvement(posterior: Posterior, best: float) -> Tensor:  # (s, m) -> (m,)
    """Sum over the samples of sd phi(z) + (best - mean) Phi(z), each clamped at 0 from below.

    The sum, not the average, as in the authors' code: their stopping rule of Adam has an absolute part. The closed
    form cancels for z < -6 or so; `log_expected_improvement` does not.
    """
    sd = posterior.variance.sqrt()
    gain = best - posterior.mean
    z = gain / sd
    density = torch.exp(-0.5 * z * z - LOG_SQRT_2PI)
    return (sd * density + gain * torch.special.ndtr(z)).clamp_min(0.0).sum(0)


def log_expected_improvement(posterior: Posterior, best: float) -> Tensor:  # (s, m) -> (m,)
    """Logarithm of the expected improvement averaged over the samples, exact far into the tail."""
    sd = posterior.variance.sqrt()
    each = log_h((best - posterior.mean) / sd) + sd.log()
    return torch.logsumexp(each, 0) - math.log(len(each))


def log_h(z: Tensor) -> Tensor:
    """log(phi(z) + z Phi(z)), the log expected improvement of a standard normal (Ament et al. 2023, Sec. 4.1).

    Above -1 the plain form; below, log phi(z) + log(1 - |z| m) with the Mills ratio m = Phi(z) / phi(z) from erfcx; below
    -50, where that bracket begins to cancel, its asymptotic series 1/z^2 - 3/z^4 + 15/z^6 - 105/z^8 + 945/z^10.
    """
    near = z.clamp_min(-1.0)
    near_value = torch.log(torch.exp(-0.5 * near * near - LOG_SQRT_2PI) + near * torch.special.ndtr(near))

    tail = z.clamp(-50.0, -1.0)
    mills = SQRT_PI_OVER_2 * torch.special.erfcx(tail / -math.sqrt(2.0))
    tail_value = torch.log1p(tail * mills)

    far = z.clamp_max(-50.0)
    u = 1.0 / (far * far)
    far_value = torch.log1p(u * (-3.0 + u * (15.0 + u * (-105.0 + u * 945.0)))) - 2.0 * torch.log(-far)

    below = torch.where(z < -50.0, far_value, tail_value) - 0.5 * z * z - LOG_SQRT_2PI
    return torch.where(z > -1.0, near_value, below)
