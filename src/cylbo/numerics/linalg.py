"""Cholesky factors that survive badly conditioned matrices.

LAPACK's routines are called by name: most matrices here are small and factorised hundreds of times per suggestion,
where the checks of SciPy's general functions would be most of the cost.
"""

from collections.abc import Sequence

import numpy as np
from scipy.linalg import blas, lapack

from cylbo.errors import NotPositiveDefiniteError
from cylbo.types import Array

__all__ = ["cholesky", "inverse_lower", "solve_lower"]


def cholesky(R: Array, nugget: Array | float, jitters: Sequence[float]) -> tuple[Array, float]:  # (n, n) -> (n, n), ()
    """Lower factor L with L L^T = R + (nugget + jitter) I, and the jitter that was needed. `nugget` may be (n,).

    R must be symmetric. L's upper triangle is not cleared. Nothing more is added to a matrix that can be factorised
    with its nugget; otherwise `jitters` is climbed, each rung relative to the first diagonal entry (as in the authors'
    code).

    Raises:
        NotPositiveDefiniteError: the matrix resisted the last rung, or holds NaN or infinity.

    """
    for jitter in (0.0, *jitters):
        added = jitter * (float(R[0, 0]) + float(np.min(nugget))) if jitter else 0.0
        K = R.copy()
        K.flat[:: len(K) + 1] += nugget + added
        # Symmetric, so its transpose is itself in the column order that LAPACK wants, and may be overwritten
        L, info = lapack.dpotrf(K.T, lower=1, clean=0, overwrite_a=1)
        if info == 0 and np.isfinite(L.diagonal()).all():  # NaN may pass with info 0
            return L, added
    raise NotPositiveDefiniteError(
        f"a covariance matrix of size {len(R)} could not be factorised with a jitter of up to "
        f"{max(jitters, default=0.0):g} of the diagonal; raise `stabilizer` in the configuration, "
        "or look for NaN in the data."
    )


def solve_lower(L: Array, b: Array, *, transposed: bool = False) -> Array:  # (n, n), (n, m) -> (n, m)
    """L^-1 b, or L^-T b, by substitution; only L's lower triangle is read."""
    if not len(L):
        return b
    return np.asarray(blas.dtrsm(1.0, L, b, lower=1, trans_a=int(transposed)))


def inverse_lower(L: Array) -> Array:  # (n, n) -> (n, n)
    """L^-1, its upper triangle cleared.

    Made once per round so that thousands of queries are whitened by one matrix product each; for a triangular factor
    this is as accurate as solving anew (the condition number that enters is that of L, the root of K's).
    """
    if not len(L):
        return L
    W, info = lapack.dtrtri(L, lower=1)
    assert info == 0, "a Cholesky factor has a positive diagonal"
    return np.tril(W)
