"""Types that many rooms share: names for shapes and words, no code."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Array", "Bounds", "Direction", "Region", "Status"]

Array = NDArray[np.float64]
Bounds = Sequence[tuple[float, float]] | ArrayLike
Region = Literal["box", "ball"]
Status = Literal["open", "done", "failed", "cancelled"]
Direction = Literal["minimize", "maximize"]
