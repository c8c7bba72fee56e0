"""The functions of COCO (Hansen et al. 2021, "COCO: a platform for comparing continuous optimizers"), in [-1, 1]^d.

    bbob-f1 ... bbob-f24                            the noiseless suite of 2009, its rotations are dense matrices
    bbob-largescale-f1 ... bbob-largescale-f24      the same with block rotations, rescaled by dimension (Elhara et al.
                                                    2019, arXiv 1903.06396)

Their own box is [-5, 5]^d. The package coco-experiment is imported when the first of them is made. It is used without
an observer, so it writes no files. It ends the whole process on some wrong arguments: all are checked here first.
"""

from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike

from cylbo.types import Array

__all__ = ["COCO_NAMES", "CocoFunction", "check_coco", "coco_function"]

DIMENSIONS = {"bbob": (2, 3, 5, 10, 20, 40), "bbob-largescale": (20, 40, 80, 160, 320, 640)}
COCO_NAMES = tuple(f"{suite}-f{number}" for suite in DIMENSIONS for number in range(1, 25))
HALF_WIDTH = 5.0  # of COCO's box


class CocoFunction:
    """One problem of COCO as a function of x (..., d) in [-1, 1]^d -> (...,).

    It holds COCO's object, whose memory is freed with it, and is pickled as its arguments, so it can go to a worker.
    """

    def __init__(self, suite: str, number: int, dim: int, coco_instance: int) -> None:
        cocoex = _cocoex()
        self._arguments = suite, number, dim, coco_instance
        # The filters let COCO make this one problem; `suite.get_problem...` on the whole suite would walk through it
        chosen = cocoex.Suite(suite, f"instances: {coco_instance}", f"dimensions: {dim} function_indices: {number}")
        self._problem = chosen.get_problem(0)

    def __call__(self, x: ArrayLike) -> Array:
        """The values, (...,)."""
        x = HALF_WIDTH * np.asarray(x, dtype=float)
        values = [self._problem(row) for row in x.reshape(-1, x.shape[-1])]
        return np.array(values, dtype=float).reshape(x.shape[:-1])

    def __reduce__(self) -> tuple[type["CocoFunction"], tuple[str, int, int, int]]:
        return CocoFunction, self._arguments

    @property
    def minimum(self) -> float:
        """f_opt of the instance.

        COCO tells it for `bbob` only. The draw of f_opt takes neither the dimension nor the suite, only the number of
        the function and of the instance, so that of two dimensions is the one of all (a test holds COCO to it).
        """
        _, number, _, coco_instance = self._arguments
        return float(_cocoex().BareProblem("bbob", number, 2, coco_instance).best_value())

    @property
    def minimizer(self) -> Array | None:
        """x_opt (d,) of the instance; None for `bbob-largescale`, where COCO keeps it to itself."""
        suite, number, dim, coco_instance = self._arguments
        if suite != "bbob":
            return None
        return np.array(_cocoex().BareProblem(suite, number, dim, coco_instance).best_parameter()) / HALF_WIDTH


def check_coco(name: str, dim: int) -> tuple[str, int]:
    """The suite and the number of the function; raises ValueError, with what is possible, if there is no such one."""
    if name not in COCO_NAMES:
        raise ValueError(f"function must be one of {COCO_NAMES[0]!r} to {COCO_NAMES[-1]!r}, got {name!r}.")
    suite, number = name.rsplit("-f", 1)
    if dim not in DIMENSIONS[suite]:
        raise ValueError(f"{name} exists in {', '.join(map(str, DIMENSIONS[suite]))} dimensions, got {dim}.")
    return suite, int(number)


def coco_function(name: str, dim: int, instance: int = 0) -> CocoFunction:
    """The function of that name; instance i = 0, 1, ... is COCO's i + 1.

    So 0 to 14 are the 1 to 15 of COCO's papers. It draws any other number in the same way (its own default is now
    1 to 5 and 71 to 80), so there is no last one.
    """
    suite, number = check_coco(name, dim)
    if instance < 0:
        raise ValueError(f"instance must be 0 or more, got {instance}.")
    return CocoFunction(suite, number, dim, instance + 1)


def _cocoex() -> ModuleType:
    try:
        import cocoex
    except ImportError as error:
        raise ImportError(
            "the bbob functions need the package coco-experiment; get it with `pip install 'cylbo[bench]'`."
        ) from error
    module: ModuleType = cocoex
    return module
