"""Problems of engineering kind, on which nothing was tuned: models of a thing, to be made good.

    x (d,) in [-1, 1]^d, from which every method begins at the centre

They are small versions of what simulations look like: kinks where a penalty sets in, jumps where a path enters an
obstacle, many local minima where waves interfere, plateaus where a controller does nothing yet. Every seed is another
instance. No minimum is known but that of the rod.
"""

import itertools
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy.interpolate import BSpline

from cylbo.bench.problems.task import Family, Task
from cylbo.types import Array

__all__ = ["FAMILY", "PROBLEMS", "instance"]

Function = Callable[[Array], float]


@dataclass(frozen=True)
class Design:
    """A family of functions of d numbers."""

    dim: int
    make: Callable[[Generator], Function]


def rover(rng: Generator) -> Function:
    """The cost of a path through 15 square obstacles, from one corner of a field to the other.

    After the trajectory problem of Wang et al. 2018: 30 control points of a cubic spline; a unit of length costs 0.05,
    and 20 more within an obstacle; ends cost ten times their distance to where they should be. No obstacle covers the
    centre of the field, where all control points lie at first.
    """
    n_points, half_side = 30, 0.08
    drawn = rng.uniform(0.05, 0.95, (100, 2))
    obstacles = drawn[(np.abs(drawn - 0.5) > 1.5 * half_side).any(-1)][:15]
    knots = np.concatenate([np.zeros(3), np.linspace(0.0, 1.0, n_points - 2), np.ones(3)])
    spline = BSpline.design_matrix(np.linspace(0.0, 1.0, 400), knots, 3).toarray()

    def cost(x: Array) -> float:
        path = spline @ (x.reshape(n_points, 2) + 1.0) / 2.0
        blocked = (np.abs(path[:, None] - obstacles) < half_side).all(-1).any(-1)
        of_length, lengths = 0.05 + 20.0 * blocked, np.linalg.norm(np.diff(path, axis=0), axis=1)
        ends = np.abs(path[0] - 0.05).sum() + np.abs(path[-1] - 0.95).sum()
        return float((of_length[1:] + of_length[:-1]) @ lengths / 2.0 + 10.0 * ends)

    return cost


def lasso(rng: Generator) -> Function:
    """The error, in four folds, of a lasso with a weight for each of 60 features, of which six matter."""
    from sklearn.linear_model import Lasso

    n, features = 120, rng.standard_normal((120, 60))
    coefficients = np.zeros(60)
    coefficients[rng.permutation(60)[:6]] = 2.0 * rng.standard_normal(6)
    target = features @ coefficients + rng.standard_normal(n)
    folds = np.arange(n) * 4 // n

    def error(x: Array) -> float:
        scaled, total = features / 10.0 ** (2.0 * x - 1.0), 0.0
        for fold in range(4):
            seen = folds != fold
            fitted = Lasso(1.0, fit_intercept=False, max_iter=2000, tol=1e-5).fit(scaled[seen], target[seen])
            total += float(((scaled[~seen] @ fitted.coef_ - target[~seen]) ** 2).sum())
        return total / n

    return error


def network(rng: Generator) -> Function:
    """The error of a network with ten hidden units, whose 71 weights are the parameters."""
    inputs = rng.uniform(-1.0, 1.0, (150, 5))
    target = np.sin(3.0 * inputs[:, 0]) + inputs[:, 1] * inputs[:, 2] + 0.5 * np.abs(inputs[:, 3])

    def error(x: Array) -> float:
        weights, biases, outward, last = np.split(3.0 * x, [50, 60, 70])
        return float(np.mean((np.tanh(inputs @ weights.reshape(5, 10) + biases) @ outward + last - target) ** 2))

    return error


def rod(rng: Generator) -> Function:
    """Which conductivities along a rod explain the temperatures that three ways to heat it lead to; exact, minimum 0.

    30 pieces; both ends are kept at 0. What is not explained counts as a share of the mean square, times 10^4.
    """
    n = 30
    walk = np.cumsum(0.25 * rng.standard_normal(n))
    true = np.clip(walk - walk.mean(), -1.0, 1.0)
    place = np.arange(1, n) / n
    heat = np.stack([np.ones(n - 1), *(4.0 * np.exp(-(((place - at) / 0.1) ** 2)) for at in (0.3, 0.75))], -1) / n

    def temperatures(x: Array) -> Array:
        k = n * np.exp(2.0 * x)
        flow = np.diag(k[:-1] + k[1:]) - np.diag(k[1:-1], 1) - np.diag(k[1:-1], -1)
        return np.asarray(np.linalg.solve(flow, heat)[::3])

    seen = temperatures(true)
    return lambda x: float(1e4 * np.mean((temperatures(x) - seen) ** 2) / np.mean(seen**2))


def pole(rng: Generator) -> Function:
    """How far from upright a pole is, on average over six seconds, that a network of 22 weights swings up on a cart."""
    start = np.pi + 0.1 * float(rng.standard_normal())

    def deviation(x: Array) -> float:
        weights, biases, outward, last = np.split(4.0 * x, [15, 18, 21])
        weights, total = weights.reshape(5, 3), 0.0
        place, speed, angle, turning = 0.0, 0.0, start, 0.0
        for _ in range(300):
            sine, cosine = np.sin(angle), np.cos(angle)
            senses = np.array([place / 2.0, speed / 3.0, sine, cosine, turning / 6.0])
            force = 10.0 * np.tanh(np.tanh(senses @ weights + biases) @ outward + 0.3 * last[0])
            # Barto, Sutton and Anderson 1983, without friction: cart of 1 kg, pole of 0.1 kg and 1 m
            push = (force + 0.05 * turning**2 * sine) / 1.1
            bend = (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3.0 - 0.1 * cosine**2 / 1.1))
            speed, turning = speed + 0.02 * (push - 0.05 * bend * cosine / 1.1), turning + 0.02 * bend
            place, angle = place + 0.02 * speed, angle + 0.02 * turning
            if abs(place) > 3.0:  # the end of the rails
                place, speed = 3.0 * np.sign(place), 0.0
            total += 1.0 - np.cos(angle) + 0.1 * place**2
        return float(total / 300.0)

    return deviation


def antenna(rng: Generator) -> Function:
    """The largest side lobe of 16 antennas, in decibels, less one and a half times what goes where it should.

    Their amplitudes and phases are the 32 parameters.
    """
    toward, place = rng.uniform(-0.5, 0.5), 0.5 * np.arange(16) + 0.1 * rng.standard_normal(16)
    directions = np.linspace(-1.0, 1.0, 401)
    aside = np.exp(2j * np.pi * np.outer(directions[np.abs(directions - toward) >= 0.15], place))
    ahead = np.exp(2j * np.pi * toward * place)

    def lobe(x: Array) -> float:
        amplitudes = 0.6 + 0.4 * x[:16]
        waves = amplitudes / amplitudes.sum() * np.exp(1j * np.pi * x[16:])
        side, main = (np.abs(aside @ waves) ** 2).max(), abs(ahead @ waves) ** 2
        return float(10.0 * np.log10(side + 1e-6) - 15.0 * np.log10(main + 1e-6))

    return lobe


def transmitted(thickness: Array, wavelength: Array) -> Array:  # (layers,), (m,) micrometres -> (m,)
    """The share of light that passes layers of refractive index 2.3 and 1.45 in turn, on glass."""
    ones = np.ones(len(wavelength))
    passed = np.stack([np.stack([ones, 0 * ones], -1), np.stack([0 * ones, ones], -1)], -2).astype(complex)  # (m, 2, 2)
    for index, thick in zip(itertools.cycle([2.3, 1.45]), thickness, strict=False):
        phase = 2.0 * np.pi * index * thick / wavelength
        cosine, sine = np.cos(phase), 1j * np.sin(phase)
        passed = passed @ np.stack([np.stack([cosine, sine / index], -1), np.stack([sine * index, cosine], -1)], -2)
    electric, magnetic = (passed @ np.array([1.0, 1.52])).T
    return np.asarray(1.0 - np.abs((electric - magnetic) / (electric + magnetic)) ** 2)


def optical_filter(rng: Generator) -> Function:
    """How far 30 layers are from letting all red light through and no blue; 10 to 200 nanometres each."""
    wavelength = np.linspace(0.45, 0.85, 60)
    wanted = wavelength > rng.uniform(0.58, 0.7)
    return lambda x: float(np.mean((transmitted(0.105 + 0.095 * x, wavelength) - wanted) ** 2))


def atoms(rng: Generator) -> Function:
    """The energy of ten atoms of different sizes that attract each other as Lennard-Jones has it, with a soft core."""
    one, other = np.triu_indices(10, 1)
    sizes = rng.uniform(0.8, 1.2, 10)
    distance = (sizes[one] + sizes[other]) / 2.0  # at which neither attracts the other

    def energy(x: Array) -> float:
        place = 2.0 * x.reshape(10, 3)
        apart = np.linalg.norm(place[one] - place[other], axis=1) / distance
        sixth = np.maximum(apart, 0.7) ** -6.0
        return float(4.0 * (sixth**2 - sixth).sum())

    return energy


def truss(rng: Generator) -> Function:
    """The volume of the 24 bars of a cantilever, plus what it costs that some are overloaded or the end hangs low.

    Six square bays with both diagonals, whose uprights are given; a load at the end and one in the middle. Areas are
    0.1 to 10.
    """
    bays = 6
    nodes = np.array([(i, j) for i in range(bays + 1) for j in (0, 1)], dtype=float)  # node 2 i + j
    sized = [(2 * i + a, 2 * i + 2 + b) for i in range(bays) for a, b in ((0, 0), (1, 1), (0, 1), (1, 0))]
    bars = np.array(sized + [(2 * i, 2 * i + 1) for i in range(1, bays + 1)])
    along = nodes[bars[:, 1]] - nodes[bars[:, 0]]
    length = np.linalg.norm(along, axis=1)
    stretch = np.zeros((len(bars), 2 * len(nodes)))  # of a bar, by displacements
    for i, (from_node, to_node) in enumerate(bars):
        stretch[i, 2 * to_node : 2 * to_node + 2] = along[i] / length[i]
        stretch[i, 2 * from_node : 2 * from_node + 2] = -along[i] / length[i]
    stretch = stretch[:, 4:]  # the first two nodes are fixed to the wall
    load = np.zeros(stretch.shape[1])
    load[-3] = -1.0  # down, at the lower node of the end
    load[2 * bays - 3] = -rng.uniform(0.2, 0.8)  # ... of the middle

    def cost(x: Array) -> float:
        area = np.concatenate([10.0**x, np.ones(bays)])
        stiffness = 100.0 * area / length
        moved = np.linalg.solve((stretch.T * stiffness) @ stretch, load)
        stress = np.abs(stiffness * (stretch @ moved) / area)[: len(sized)]
        overload, sag = np.maximum(stress - 1.5, 0.0).sum(), max(-moved.min() - 1.0, 0.0)
        return float((area * length)[: len(sized)].sum() + 50.0 * overload + 100.0 * sag)

    return cost


PROBLEMS = {
    "rover, 60": Design(60, rover),
    "lasso, 60": Design(60, lasso),
    "network, 71": Design(71, network),
    "rod, 30": Design(30, rod),
    "pole, 22": Design(22, pole),
    "antenna, 32": Design(32, antenna),
    "filter, 30": Design(30, optical_filter),
    "atoms, 30": Design(30, atoms),
    "truss, 24": Design(24, truss),
}


def instance(name: str, seed: int) -> Function:
    """The function of that name and number, the same for every method."""
    return PROBLEMS[name].make(np.random.default_rng([zlib.crc32(name.encode()), seed]))


FAMILY = Family(
    {name: design.dim for name, design in PROBLEMS.items()},
    lambda name, seed: Task(instance(name, seed)),
    # of the lasso
    packages=("scikit-learn",),
)
