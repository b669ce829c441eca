"""The largest singular values of a matrix, without a decomposition of the whole."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Optional, Tuple

import numpy as np

from . import _arrays, _library
from ._library import MATRIX, Matrix, check, library, matrix_of, run_long

__all__ = ["Spectrum", "spectrum"]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The largest singular values of a matrix, each with a bound on its error.

    Attributes
    ----------
    singular_values : ndarray, (K,)
        Largest first, in the unit of the data. Rows and columns of zeros are left out, and can make it shorter.
    bounds : ndarray, (K,)
        A singular value of the matrix lies within its bound of each, rounding included. That none was missed is
        improbable otherwise, not excluded, where the values come from an iteration with a random start.
    left : ndarray or torch.Tensor, (rows, K)
        Left singular vectors in columns.
    right : ndarray or torch.Tensor, (cols, K)
        Right singular vectors in columns.
    krylov_dimension : int or None
        Dimension of the space of the iteration; None where the whole matrix was decomposed.
    shape : (int, int)
        Of the matrix.

    Examples
    --------
    >>> import numpy as np, spiked
    >>> found = spiked.spectrum(np.diag([3.0, 9.0, 2.0, 1.0]), values=2)
    >>> found.singular_values.round(12).tolist(), found.left.shape, found.krylov_dimension
    ([9.0, 3.0], (4, 2), None)
    """

    singular_values: np.ndarray
    bounds: np.ndarray
    left: Any
    right: Any
    krylov_dimension: Optional[int]
    shape: Tuple[int, int]

    def __repr__(self) -> str:
        how = "by decomposition" if self.krylov_dimension is None else f"in a space of {self.krylov_dimension}"
        rows, cols = self.shape
        lines = [f"<spiked.Spectrum: {self.singular_values.size} values of {rows} x {cols}, {how}>"]
        for value, bound in zip(self.singular_values[:8], self.bounds[:8]):
            lines.append(f"{value:16.10g} +- {bound:.2g}")
        if self.singular_values.size > 8:
            lines.append(f"    and {self.singular_values.size - 8} more")
        return "\n".join(lines)


def spectrum(X: Any, values: int, *, keep_empty: bool = False, threads: int = 0) -> Spectrum:
    """The `values` largest singular values of a matrix and their vectors, each value with a bound on its error.

    Parameters
    ----------
    X : array_like or torch.Tensor, (rows, cols)
        Real numbers of any dtype, in any order of memory. Results of `prepare` are centred, standardized or weighted for
        missing entries.
    values : int
        How many, from 1 to min(rows, cols).
    keep_empty : bool
        Keep rows and columns of zeros in the spectrum.
    threads : int
        Threads that share the work on a matrix of 700 x 700 or more; 0 is one per processor. The results do not depend
        on it.

    Returns
    -------
    Spectrum
        Numbers equal those of ``spiked spectrum --values``, bit for bit.

    Raises
    ------
    UsageError
        `values` is below 1 or more than the matrix has.
    InputError
        X is empty, has NaN, infinities or complex numbers, or is no matrix; `values` is no whole number.

    Notes
    -----
    A matrix whose short side is at least 1024 is not decomposed where `values` is at most a 256th of it and the iteration
    converges: 4 values of 4096 x 4096 take a 18th of a decomposition. Otherwise the whole matrix is decomposed.

    Source: Golub, Luk and Overton 1981; Musco and Musco 2015.

    Examples
    --------
    >>> import numpy as np, spiked
    >>> X = np.random.default_rng(0).standard_normal((60, 80))
    >>> X[:, 0] += 5.0
    >>> found = spiked.spectrum(X, values=3)
    >>> bool(np.allclose(found.singular_values, np.linalg.svd(X, compute_uv=False)[:3]))
    True
    >>> signal = (found.left[:, :1] * found.singular_values[:1]) @ found.right[:, :1].T
    >>> bool(np.allclose(signal, spiked.denoise(X, "svd:1").signal))
    True
    """
    array = _arrays.matrix(X)
    rows, cols = array.shape
    wanted = _arrays.whole(values, "values")
    room = max(1, min(wanted, rows, cols))
    numbers = np.empty((2, room))
    left, right = _arrays.room((rows, room), "X"), _arrays.room((cols, room), "X")
    described = [Matrix(*MATRIX.unpack(matrix_of(vectors))) for vectors in (left, right)]
    found = _library.Leading(wanted, numbers[0].ctypes.data, numbers[1].ctypes.data, *map(ctypes.pointer, described))
    given = matrix_of(array)
    empty = _arrays.truth(keep_empty, "keep_empty")
    workers = _arrays.whole(threads, "threads")

    def call() -> None:
        check(library().spiked_use_threads(workers))
        check(library().spiked_leading_values(given, empty, found))

    run_long(float(array.size) * min(rows, cols), call, keep=(array, numbers, left, right, described))
    count = found.values
    return Spectrum(
        singular_values=numbers[0, :count],
        bounds=numbers[1, :count],
        left=_arrays.like(left[:, :count], X),
        right=_arrays.like(right[:, :count], X),
        krylov_dimension=found.krylov_dimension or None,
        shape=(rows, cols),
    )
