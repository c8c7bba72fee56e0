"""Draw docs/pictures/cylinder.png: the ball and the cylinder that its kernel sees.

python docs/pictures/cylinder.py
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
from cylbo.model.polar import polar
from matplotlib import pyplot as plt

from cylbo.model.kernel import kumaraswamy

rng = np.random.default_rng(4)
R = np.sqrt(2.0)
ALPHA, BETA = np.array([0.7]), np.array([1.5])
rings = R * np.array([0.25, 0.5, 0.75, 1.0])
COLORS = plt.get_cmap("viridis")


def warp(r: np.ndarray) -> np.ndarray:
    """The radii as the kernel sees them."""
    return kumaraswamy(np.asarray(r, dtype=float), R, ALPHA, BETA)[0]


points = rng.uniform(-1, 1, (60, 2))
r, a = polar(points)
angle = np.degrees(np.arctan2(a[:, 1], a[:, 0]))
DOTS = {
    "c": r / R,
    "cmap": COLORS,
    "vmin": 0,
    "vmax": 1,
    "s": 20,
    "edgecolors": "white",
    "linewidths": 0.5,
    "zorder": 3,
}

figure, (ball, cylinder) = plt.subplots(1, 2, figsize=(9.6, 4.3), layout="constrained", width_ratios=[1, 1.25])
turn = np.linspace(0, 2 * np.pi, 400)
for ring in rings:
    ball.plot(ring * np.cos(turn), ring * np.sin(turn), color=COLORS(ring / R), linewidth=1.4)
ball.plot([-1, 1, 1, -1, -1], [-1, -1, 1, 1, -1], color="#555555", linewidth=1.2, linestyle=(0, (4, 2)))
ball.text(0.97, -0.97, "your box", ha="right", va="bottom", fontsize=9, color="#555555")
ball.scatter(*points.T, **DOTS)
ball.plot(0, 0, marker="o", color="#D55E00", markersize=8, zorder=4)
ball.annotate(
    "the centre, your best guess",
    (0, 0),
    (-1.35, 1.48),
    fontsize=9,
    color="#D55E00",
    arrowprops={"arrowstyle": "-", "color": "#D55E00", "linewidth": 0.9},
)
ball.set_aspect("equal")
ball.set_axis_off()
ball.set_title("The ball around your box", fontsize=11, loc="left", pad=16)

for ring in rings:
    cylinder.axhline(warp(ring), color=COLORS(ring / R), linewidth=1.4)
cylinder.scatter(angle, warp(r), **DOTS)
cylinder.axhline(0, color="#D55E00", linewidth=3)
cylinder.text(12, 0.03, "the centre, seen in every direction", fontsize=9, color="#D55E00", va="bottom")
cylinder.set_xlim(-180, 180)
cylinder.set_ylim(-0.03, R * 1.03)
cylinder.set_xticks([-180, -90, 0, 90, 180])
cylinder.set_yticks(warp(np.concatenate([[0], rings])), ["0", "¼ R", "½ R", "¾ R", "R"])
cylinder.set_xlabel("direction (degrees)")
cylinder.set_ylabel("radius, warped")
cylinder.spines[["top", "right"]].set_visible(False)
cylinder.set_title("What the kernel sees: middle expanded, rim shrunk", fontsize=11, loc="left", pad=16)
figure.savefig(Path(__file__).with_suffix(".png"), dpi=140)
