"""What is done to a matrix before a method sees it."""

from __future__ import annotations

import ctypes
import warnings
from typing import Any, Optional, Tuple

import numpy as np

from . import _arrays
from ._library import check, library, matrix_of, text_of, words

__all__ = ["prepare"]


def prepared(X: Any, center: Optional[str], standardize: Optional[str]) -> Tuple[np.ndarray, Tuple[str, ...]]:
    """The prepared matrix in double precision, and notes on it."""
    array = _arrays.matrix(X)
    result = np.empty(array.shape)
    notes = ctypes.create_string_buffer(1024)
    check(
        library().spiked_prepare(
            matrix_of(array),
            None if center is None else words(center, "center"),
            None if standardize is None else words(standardize, "standardize"),
            matrix_of(result),
            notes,
            len(notes),
        )
    )
    return result, tuple(text_of(notes.value).splitlines())


def prepare(X: Any, *, center: Optional[str] = None, standardize: Optional[str] = None) -> Any:
    """Centres or standardizes a matrix, as ``--center`` and ``--standardize`` of the command.

    Parameters
    ----------
    X : array_like or torch.Tensor, (rows, cols)
        Real numbers.
    center : {"rows", "columns", "both"}, optional
        Subtract the mean of every row, of every column, or both (and add the mean of all).
    standardize : {"rows", "columns"}, optional
        Centre them and divide each by its standard deviation, with n - 1 in its denominator as in R's ``scale``;
        scikit-learn's ``StandardScaler`` has n.

    Returns
    -------
    ndarray of float64 or torch.Tensor, (rows, cols)
        A new matrix, bit for bit that which the command analyses. Lines that centring made zero, and lines of zeros
        that it took for data, are mentioned in a UserWarning.

    Raises
    ------
    UsageError
        A word is wrong, or centring undoes standardizing.
    InputError
        X cannot be used, a single line is to be centred, or a constant one to be standardized.

    Examples
    --------
    >>> import spiked
    >>> spiked.prepare([[1.0, 2.0], [3.0, 6.0]], center="columns")
    array([[-1., -2.],
           [ 1.,  2.]])
    """
    result, notes = prepared(X, center, standardize)
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=2)
    return _arrays.like(result, X)
