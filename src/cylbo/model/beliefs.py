"""The forms of the default model, and the priors of its hyperparameters."""

from dataclasses import dataclass

__all__ = ["Beliefs", "Form"]


@dataclass(frozen=True)
class Form:
    """What a model may say about single coordinates."""

    stretched: bool = False  # a lengthscale each, close to the common one unless the data insist
    effects: bool = False  # a function of its own each, added to what they do together

    def size(self, d: int) -> int:
        """The number of hyperparameters in d dimensions."""
        return 3 + 2 * self.effects + d * self.stretched


@dataclass(frozen=True)
class Beliefs:
    """Priors of theta, normal ones as (mean, standard deviation), and the box in which it is sought."""

    # Of log(l / sqrt(d)): distances grow with sqrt(d), and so must lengthscales (Hvarfner et al. 2024)
    log_lengthscale: tuple[float, float] = (0.0, 1.0)
    log_nugget: tuple[float, float] = (-9.0, 5.0)  # of noise / amplitude; most objectives are computed, not measured
    log_compression: tuple[float, float] = (-1.0, 1.5)
    logit_share: tuple[float, float] = (-1.0, 2.0)
    log_amplitude: tuple[float, float] = (0.0, 2.0)  # in units of t^2; only where noise was told
    log_effect_lengthscale: tuple[float, float] = (-0.36, 1.0)  # 0.7 half-widths

    # log l_k = log l + stretch_scale z_k with Student's t on z: most coordinates alike, any of them free to differ
    stretch_scale: float = 0.3
    stretch_freedom: float = 2.0

    log_lengthscale_range: tuple[float, float] = (-5.0, 7.0)  # of log(l / sqrt(d))
    log_nugget_range: tuple[float, float] = (-20.7, 0.0)  # 1e-9 is about what float64 factors of rank n can carry
    log_compression_range: tuple[float, float] = (-5.0, 3.0)
    logit_share_range: tuple[float, float] = (-8.0, 6.0)
    log_amplitude_range: tuple[float, float] = (-12.0, 12.0)
    log_effect_lengthscale_range: tuple[float, float] = (-2.9, 1.6)
    stretch_range: tuple[float, float] = (-6.0, 6.0)  # of z
