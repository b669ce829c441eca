"""What is done to a matrix before a method sees it."""

from __future__ import annotations

import ctypes
import warnings
from typing import Any, Optional, Tuple

import numpy as np

from . import _arrays
from ._library import check, library, matrix_of, run_long, text_of, words

__all__ = ["prepare"]

# About how many multiplications an entry takes: centring both ways goes over all of them several times.
_ENTRY = 1000.0


def prepared(
    X: Any, center: Optional[str], standardize: Optional[str], missing: Optional[str], weighted: bool
) -> Tuple[np.ndarray, Tuple[str, ...]]:
    """The prepared matrix in double precision, with the weights of entries seen or with NaN for missing ones, and notes."""
    array = _arrays.matrix(X, missing=missing is not None)
    result = _arrays.room(array.shape, "X")
    given, described = matrix_of(array), matrix_of(result)
    kind = None if missing is None else words(missing, "missing")
    centring = None if center is None else words(center, "center")
    scaling = None if standardize is None else words(standardize, "standardize")
    outputs = (described, None) if weighted else (None, described)
    notes = ctypes.create_string_buffer(1024)

    def call() -> None:
        check(library().spiked_prepare_missing(given, kind, centring, scaling, *outputs, None, notes, len(notes)))

    run_long(_ENTRY * array.size, call, keep=(array, result, notes))
    return result, tuple(text_of(notes.value).splitlines())


def prepare(
    X: Any, *, center: Optional[str] = None, standardize: Optional[str] = None, missing: Optional[str] = None
) -> Any:
    """Centres, standardizes or weights a matrix, as ``--center``, ``--standardize`` and ``--missing`` of the command.

    Parameters
    ----------
    X : array_like or torch.Tensor, (rows, cols)
        Real numbers.
    center : {"rows", "columns", "both"}, optional
        Subtract the mean of every row, of every column, or both (and add the mean of all).
    standardize : {"rows", "columns"}, optional
        Centre them and divide each by its standard deviation, with n - 1 in its denominator as in R's ``scale``;
        scikit-learn's ``StandardScaler`` has n.
    missing : {"uniform", "rows", "columns", "both"}, optional
        NaN and masked values are missing entries, seen at random: entries seen are divided by the probability that they
        are seen, estimated for all, for every row, every column, or as a product of both; the others are 0. Means and
        deviations are those of the entries seen.

    Returns
    -------
    ndarray of float64 or torch.Tensor, (rows, cols)
        A new matrix, bit for bit that which the command analyses. A UserWarning mentions rows and columns that
        centring made zero, and zero ones that it took for data.

    Raises
    ------
    UsageError
        A word is wrong, or centring undoes standardizing.
    InputError
        X cannot be used, a single row or column is to be centred, or a constant one to be standardized.

    Notes
    -----
    Source: the weights of missing entries are derived in ``docs/METHODS.md``; the rest is arithmetic.

    Examples
    --------
    >>> import spiked
    >>> spiked.prepare([[1.0, 2.0], [3.0, 6.0]], center="columns")
    array([[-1., -2.],
           [ 1.,  2.]])
    >>> import warnings
    >>> with warnings.catch_warnings(record=True):      # 3 of 4 are seen
    ...     spiked.prepare([[1.5, float("nan")], [3.0, 6.0]], missing="uniform")
    array([[2., 0.],
           [4., 8.]])
    """
    result, notes = prepared(X, center, standardize, missing, weighted=True)
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=2)
    return _arrays.like(result, X)
