"""The problems of the lab: functions on [-1, 1]^d whose optimum is known.

    x (..., d) -> (...,)

- The paper's four functions in the authors' scaling, and rosenbrock-raw, which is without it. Differences between the
  paper's formulas and what was run are told in docs/errata.md.
- ackley, rastrigin, styblinski-tang and michalewicz, in the usual form and box of Surjanovic and Bingham's "Virtual
  Library of Simulation Experiments". Sums stay sums, so that values compare with published ones.
- For each of these two twins: NAME-shifted, whose minimiser is at a random place of the box, and NAME-rotated, which is
  turned about it as well. ackley and rastrigin without a twin have their optimum at the centre of the box, where
  every method of the lab begins: they flatter all that start or stay there, and the suites use their twins only.
- branin-sparse and hartmann6-sparse: shifted, on a few random coordinates among many that do nothing.
- The functions of COCO, see `coco.py`.

Outside the box the formulas are simply continued, as in the paper's experiments, which search the ball around it. A
twin brings that outside into the box, so it needs more: nothing in all of R^d may lie lower than the minimum. Why it
is so stands with each function.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.optimize
from numpy.typing import ArrayLike, NDArray

from cylbo.bench.coco import COCO_NAMES, check_coco, coco_function

__all__ = [
    "BASES",
    "FUNCTIONS",
    "PROBLEMS",
    "Moved",
    "Problem",
    "Sparse",
    "ackley",
    "branin",
    "check_dimension",
    "hartmann6",
    "levy",
    "michalewicz",
    "problem",
    "rastrigin",
    "rosenbrock",
    "rosenbrock_raw",
    "styblinski_tang",
]

Array = NDArray[np.float64]

HARTMANN6_ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN6_A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
HARTMANN6_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
HARTMANN6_OPTIMUM = np.array([0.20168952, 0.15001069, 0.47687398, 0.27533243, 0.31165162, 0.65730054])

# The authors' normalisation of Rosenbrock, not in the paper: f(centre) becomes 8608.36 in every dimension
ROSENBROCK_SCALE = 50_000.0 / (90.0**2 + 9.0**2)

ACKLEY_HALF_WIDTH, RASTRIGIN_HALF_WIDTH, STYBLINSKI_TANG_HALF_WIDTH = 32.768, 5.12, 5.0  # of their usual boxes
MICHALEWICZ_STEEPNESS = 10  # m, the usual choice


def branin(x: ArrayLike) -> Array:
    """Mean of Branin over pairs of coordinates, each scaled to [-5, 10] x [0, 15]; an odd last one is a dummy.

    Everywhere at least 10 / (8 pi), its minimum: the square is at least 0 and the cosine at least -1.
    """
    x = np.asarray(x, dtype=float)
    pairs = x.shape[-1] // 2
    u, v = 7.5 * x[..., 0 : 2 * pairs : 2] + 2.5, 7.5 * x[..., 1 : 2 * pairs : 2] + 7.5
    well = (v - 5.1 / (4 * np.pi**2) * u**2 + 5 / np.pi * u - 6) ** 2
    return np.asarray(np.mean(well + 10 * (1 - 1 / (8 * np.pi)) * np.cos(u) + 10, axis=-1))


def hartmann6(x: ArrayLike) -> Array:
    """Mean of Hartmann6 over blocks of six coordinates, each scaled to [0, 1]; what is left over are dummies.

    Nothing outside of the box is lower: moving a coordinate to the nearest place between the smallest and the largest
    of the four centres P, which lie in the box, brings it nearer to all four, so that every bump grows.
    """
    x = np.asarray(x, dtype=float)
    blocks = x.shape[-1] // 6
    u = (x[..., : 6 * blocks].reshape(*x.shape[:-1], blocks, 1, 6) + 1) / 2
    exponents = (HARTMANN6_A * (u - HARTMANN6_P) ** 2).sum(-1)
    return np.asarray(-np.mean(np.exp(-exponents) @ HARTMANN6_ALPHA, axis=-1))


def rosenbrock_raw(x: ArrayLike) -> Array:
    """Rosenbrock on [-5, 10]^d: sum_i 100 (u_{i+1} - u_i^2)^2 + (u_i - 1)^2, everywhere at least 0, its minimum."""
    u = 7.5 * np.asarray(x, dtype=float) + 2.5
    terms = 100 * (u[..., 1:] - u[..., :-1] ** 2) ** 2 + (u[..., :-1] - 1) ** 2
    return np.asarray(terms.sum(-1))


def rosenbrock(x: ArrayLike) -> Array:
    """Rosenbrock on [-5, 10]^d times 50000 / (8181 (d - 1))."""
    x = np.asarray(x, dtype=float)
    return np.asarray(rosenbrock_raw(x) * ROSENBROCK_SCALE / (x.shape[-1] - 1))


def levy(x: ArrayLike) -> Array:
    """The standard Levy function on [-10, 10]^d (the paper's supplement prints another formula).

    A sum of squares: everywhere at least 0, its minimum.
    """
    w = 1 + (10 * np.asarray(x, dtype=float) - 1) / 4
    first = np.sin(np.pi * w[..., 0]) ** 2
    inner, last = w[..., :-1], w[..., -1]
    middle = ((inner - 1) ** 2 * (1 + 10 * np.sin(np.pi * inner + 1) ** 2)).sum(-1)
    return np.asarray(first + middle + (last - 1) ** 2 * (1 + np.sin(2 * np.pi * last) ** 2))


def ackley(x: ArrayLike) -> Array:
    """Ackley on [-32.768, 32.768]^d: 20 + e - 20 exp(-0.2 sqrt(mean u_i^2)) - exp(mean cos(2 pi u_i)).

    Everywhere at least 0, its minimum: neither exponential exceeds its value at u = 0, 20 and e.
    """
    u = ACKLEY_HALF_WIDTH * np.asarray(x, dtype=float)
    root_mean_square, cosine = np.sqrt(np.mean(u**2, axis=-1)), np.mean(np.cos(2 * np.pi * u), axis=-1)
    # 20 - 20 exp(t) = -20 expm1(t): exact near the optimum, where the plain formula cancels to 4e-16
    return np.asarray(-20 * np.expm1(-0.2 * root_mean_square) - np.e * np.expm1(cosine - 1))


def rastrigin(x: ArrayLike) -> Array:
    """Rastrigin on [-5.12, 5.12]^d: sum_i u_i^2 + 10 (1 - cos(2 pi u_i)), everywhere at least 0, its minimum."""
    u = RASTRIGIN_HALF_WIDTH * np.asarray(x, dtype=float)
    return np.asarray((u**2 + 10 * (1 - np.cos(2 * np.pi * u))).sum(-1))


def styblinski_tang(x: ArrayLike) -> Array:
    """Styblinski-Tang on [-5, 5]^d: sum_i (u_i^4 - 16 u_i^2 + 5 u_i) / 2, the sum, so its minimum is -39.166... d.

    Every coordinate has the lowest of its quartic over all of R.
    """
    u = STYBLINSKI_TANG_HALF_WIDTH * np.asarray(x, dtype=float)
    return np.asarray((u**4 - 16 * u**2 + 5 * u).sum(-1) / 2)


def michalewicz(x: ArrayLike) -> Array:
    """Michalewicz on [0, pi]^d: -sum_i sin(u_i) sin(i u_i^2 / pi)^20 for i = 1, ..., d.

    Differs from the usual formula outside of the box, where that one goes lower (crests of both sines come nearer to
    each other there): u is clipped to the box, at both ends of which a term is 0, the highest it can be.
    """
    x = np.asarray(x, dtype=float)
    u = np.clip((x + 1) * np.pi / 2, 0.0, np.pi)
    i = np.arange(1, x.shape[-1] + 1)
    return np.asarray(-(np.sin(u) * np.sin(i * u**2 / np.pi) ** (2 * MICHALEWICZ_STEEPNESS)).sum(-1))


@dataclass(frozen=True, eq=False)
class Moved:
    """f(Q (x - at) + minimizer): the function, turned about its minimiser, which has moved to `at`."""

    function: Callable[[ArrayLike], Array]
    minimizer: Array  # (d,) of the function
    at: Array  # (d,) where it is to be
    rotation: Array | None = None  # Q (d, d), orthogonal; None is the identity

    def __call__(self, x: ArrayLike) -> Array:
        """The values at x (..., d), (...,)."""
        offset = np.asarray(x, dtype=float) - self.at
        if self.rotation is not None:
            offset = offset @ self.rotation.T
        return self.function(offset + self.minimizer)


@dataclass(frozen=True, eq=False)
class Sparse:
    """f(x_c): the function of a few coordinates c among many; the others are dummies."""

    function: Callable[[ArrayLike], Array]
    coordinates: NDArray[np.intp]  # (k,) distinct

    def __call__(self, x: ArrayLike) -> Array:
        """The values at x (..., d), (...,)."""
        return self.function(np.asarray(x, dtype=float)[..., self.coordinates])


@dataclass(frozen=True)
class Problem:
    """A function on [-1, 1]^d that knows its optimum."""

    name: str
    dim: int
    function: Callable[[ArrayLike], Array]
    minimizer: Array | None  # (d,) one of the global minimisers; None where only the minimum is known
    minimum: float

    def __call__(self, x: ArrayLike) -> float:
        """The value at one point (d,)."""
        return float(self.function(x))

    @property
    def bounds(self) -> Array:
        """The box, (d, 2)."""
        return np.tile([-1.0, 1.0], (self.dim, 1))

    @property
    def at_center(self) -> float:
        """The value that every method of the paper's tables starts from."""
        return self(np.zeros(self.dim))


def _cycled(block: Array, dim: int) -> Array:
    """The block repeated as often as it fits, then zeros."""
    repeats = dim // len(block)
    return np.concatenate([np.tile(block, repeats), np.zeros(dim - repeats * len(block))])


def _branin(dim: int) -> Array:
    return _cycled((np.array([np.pi, 2.275]) - [2.5, 7.5]) / 7.5, dim)


def _hartmann6(dim: int) -> Array:
    return _cycled(2 * HARTMANN6_OPTIMUM - 1, dim)


def _styblinski_tang(dim: int) -> Array:
    u = np.roots([4, 0, -32, 5]).min()  # of the three places with slope 0; the one in the middle is a maximum
    return np.full(dim, u / STYBLINSKI_TANG_HALF_WIDTH)


def _michalewicz(dim: int) -> Array:
    """Each coordinate by itself: the best of a grid, then the zero of the slope next to it.

    The term has i humps, one for each half turn of its phase i u^2 / pi; the grid has the same number on each of them.
    """

    def slope(u: float, i: int) -> float:
        """Of the i-th term, without the factors that are positive on its humps."""
        phase, turning = i * u**2 / np.pi, 2 * i * u / np.pi
        return float(np.cos(u) * np.sin(phase) + 2 * MICHALEWICZ_STEEPNESS * turning * np.sin(u) * np.cos(phase))

    per_hump, best = 64, np.empty(dim)
    for i in range(1, dim + 1):
        phase = np.linspace(0.0, i * np.pi, per_hump * i + 1)
        u = np.sqrt(phase * np.pi / i)
        k = int(np.argmax(np.sin(u) * np.sin(phase) ** (2 * MICHALEWICZ_STEEPNESS)))
        best[i - 1] = scipy.optimize.brentq(slope, u[k - 1], u[k + 1], args=(i,), xtol=1e-15)
    return 2 * best / np.pi - 1


# The paper's functions: function, minimiser in d dimensions, smallest d
FUNCTIONS: dict[str, tuple[Callable[[ArrayLike], Array], Callable[[int], Array], int]] = {
    "branin": (branin, _branin, 2),
    "hartmann6": (hartmann6, _hartmann6, 6),
    "rosenbrock": (rosenbrock, lambda dim: np.full(dim, -0.2), 2),
    "levy": (levy, lambda dim: np.full(dim, 0.1), 1),
}
# All that have twins
BASES = FUNCTIONS | {
    "rosenbrock-raw": (rosenbrock_raw, lambda dim: np.full(dim, -0.2), 2),
    "ackley": (ackley, np.zeros, 1),
    "rastrigin": (rastrigin, np.zeros, 1),
    "styblinski-tang": (styblinski_tang, _styblinski_tang, 1),
    "michalewicz": (michalewicz, _michalewicz, 1),
}
PROBLEMS: tuple[str, ...] = (
    *BASES,
    *(f"{base}-{kind}" for base in BASES for kind in ("shifted", "rotated")),
    "branin-sparse",
    "hartmann6-sparse",
    *COCO_NAMES,
)


def check_dimension(name: str, dim: int) -> None:
    """Raises ValueError, with what is possible, unless `problem(name, dim)` exists. Makes nothing, imports nothing."""
    if name not in PROBLEMS:
        known = ", ".join(repr(known) for known in PROBLEMS if known not in COCO_NAMES)
        raise ValueError(
            f"function must be one of {known}, 'bbob-f1' to 'bbob-f24', 'bbob-largescale-f1' to "
            f"'bbob-largescale-f24', got {name!r}."
        )
    if name in COCO_NAMES:
        check_coco(name, dim)
        return
    base, _ = _parts(name)
    smallest = BASES[base][2]
    if dim < smallest:
        raise ValueError(f"{name} needs at least {smallest} dimensions, got {dim}.")


def problem(name: str, dim: int, instance: int = 0) -> Problem:
    """The problem of that name in `dim` dimensions; `PROBLEMS` has the names.

    `instance` = 0, 1, ... draws what is random in a problem: the same one everywhere for the same name, dimension and
    instance. The plain functions have nothing random and are the same for every instance. The shifted and the rotated
    twin of one instance have the same minimiser, so that they differ by the rotation alone.
    """
    check_dimension(name, dim)
    if instance < 0:  # said for all problems, also for those that do not use it
        raise ValueError(f"instance must be 0 or more, got {instance}.")
    if name in COCO_NAMES:
        coco = coco_function(name, dim, instance)
        return Problem(name, dim, coco, coco.minimizer, coco.minimum)

    base, kind = _parts(name)
    function, minimizer, smallest = BASES[base]
    effective = smallest if kind == "sparse" else dim
    x = minimizer(effective)
    minimum = float(function(x))
    if not kind:
        return Problem(name, dim, function, x, minimum)

    # crc32 and not hash(), which differs from process to process
    rng = np.random.default_rng(zlib.crc32(f"{base} {dim} {instance}".encode()))
    at = rng.uniform(-1.0, 1.0, effective)
    if kind == "shifted":
        return Problem(name, dim, Moved(function, x, at), at, minimum)
    if kind == "rotated":
        return Problem(name, dim, Moved(function, x, at, _haar(rng, dim)), at, minimum)
    coordinates = rng.permutation(dim)[:effective]
    embedded = np.zeros(dim)
    embedded[coordinates] = at
    return Problem(name, dim, Sparse(Moved(function, x, at), coordinates), embedded, minimum)


def _parts(name: str) -> tuple[str, str]:
    """The base function, and "shifted", "rotated", "sparse" or "" for itself."""
    if name in BASES:
        return name, ""
    base, _, kind = name.rpartition("-")
    return base, kind


def _haar(rng: np.random.Generator, dim: int) -> Array:
    """A uniformly random orthogonal matrix (d, d). Mezzadri 2007, "How to generate random matrices", Sec. 5."""
    Q, R = np.linalg.qr(rng.standard_normal((dim, dim)))
    return np.asarray(Q * np.sign(np.diag(R)))  # the signs that the factorisation chose are not random
