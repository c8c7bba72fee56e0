"""The ball, its polar coordinates, and the part of it that may be proposed.

    x (m, d) points, measured from the ball's centre   r (m,) radii   a (m, d) unit directions   R the ball's radius

The user's box is [-1, 1]^d in scaled units; the ball B(0, R) circumscribes it (Oh et al. 2018, Sec. 4). With the
centre in the middle of the box R = sqrt(d).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Domain", "from_polar", "polar", "project_to_ball", "project_to_box"]


def polar(x: Tensor) -> tuple[Tensor, Tensor]:  # (m, d) -> (m,), (m, d)
    """Radius and direction, T(x) = (|x|, x / |x|). Oh et al. 2018, Eq. (5).

    The centre has no direction: x = 0 gives r = 0 and a = 0. What to do about that is decided in `center.py`.
    """
    # The largest coordinate is divided out first, so that squares neither overflow nor vanish; it cancels, so gradients
    # need not follow it
    largest = x.detach().abs().amax(-1, keepdim=True)
    scaled = x / torch.where(largest > 0, largest, 1.0)
    length = scaled.norm(dim=-1, keepdim=True)
    return (largest * length).squeeze(-1), scaled / torch.where(length > 0, length, 1.0)


def from_polar(r: Tensor, a: Tensor) -> Tensor:  # (m,), (m, d) -> (m, d)
    """The point at radius r in direction a, T^-1(r, a) = r a. Oh et al. 2018, Eq. (5)."""
    return r[..., None] * a


def project_to_ball(x: Tensor, radius: float) -> Tensor:  # (m, d) -> (m, d)
    """The nearest points of the ball of that radius about 0."""
    r, a = polar(x)
    inside = (r <= radius)[..., None]
    return torch.where(inside, x, radius * a)


def project_to_box(x: Tensor, low: Tensor, high: Tensor) -> Tensor:  # (m, d), (d,), (d,) -> (m, d)
    """The nearest points of the box [low, high]."""
    return torch.minimum(torch.maximum(x, low), high)


@dataclass(frozen=True)
class Domain:
    """Where suggestions may lie, in ball coordinates.

    The authors search the whole ball, so a suggestion may leave the user's box and the objective is extrapolated
    there (`within_box=False`). A real simulation rarely has a meaning outside its bounds, so ours is the box.
    """

    low: Tensor  # (d,) the box's lower corner
    high: Tensor  # (d,) the box's upper corner
    radius: float  # R, of the smallest ball about 0 that holds the box
    within_box: bool = True

    @property
    def dim(self) -> int:
        """The number of parameters, d."""
        return len(self.low)

    def project(self, x: Tensor) -> Tensor:  # (m, d) -> (m, d)
        """The nearest points that may be proposed."""
        return project_to_box(x, self.low, self.high) if self.within_box else project_to_ball(x, self.radius)

    def contains(self, x: Tensor) -> Tensor:  # (m, d) -> (m,) bool
        """Whether each point may be proposed."""
        if self.within_box:
            return ((x >= self.low) & (x <= self.high)).all(-1)
        return x.norm(dim=-1) <= self.radius

    def from_unit_cube(self, u: Tensor) -> Tensor:  # (m, d) -> (m, d)
        """Points of [0, 1]^d spread over the user's box."""
        return self.low + u * (self.high - self.low)
