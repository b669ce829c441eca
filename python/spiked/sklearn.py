"""An estimator for scikit-learn, which must be installed to import this module."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

try:  # the mixin of names for outputs that have the columns of the input
    from sklearn.base import OneToOneFeatureMixin as _Names
except ImportError:  # scikit-learn before 1.1
    _Names = object
try:
    from sklearn.utils.validation import validate_data as _validate
except ImportError:  # scikit-learn before 1.6

    def _validate(estimator: Any, X: Any, **options: Any) -> Any:
        return estimator._validate_data(X, **options)


from sklearn.utils.validation import check_is_fitted

from ._arrays import reject_masked
from .denoising import denoise
from .errors import UsageError

__all__ = ["SpectralDenoiser"]


class SpectralDenoiser(_Names, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Replaces a matrix by its estimated low-rank signal.

    `fit_transform` gives the signal that `spiked.denoise` estimates. `transform` projects rows, new ones too, on
    `components_` and multiplies each coordinate by the factor by which `fit` shrank its singular value; for the rows of `fit`
    that is the same signal. Rows are not centred.

    Parameters
    ----------
    method : str
        As in `spiked.denoise`, without transforms such as ``whiten+``, whose signals are no such products.
    loss : {"frobenius", "operator", "nuclear"}
        The loss for which the shrinkage is optimal.

    Attributes
    ----------
    rank_ : int
        Number of components, r.
    bulk_edge_ : float or None
        Upper edge of the noise, an eigenvalue; None where the method has none.
    components_ : ndarray, (r, n_features)
        Right singular vectors of the matrix that was fitted.
    factors_ : ndarray, (r,)
        Shrunk singular values over the observed ones.
    denoised_ : spiked.Denoised
        All that was found.
    n_features_in_ : int
        Columns of the matrix that was fitted.

    Raises
    ------
    UsageError, InputError
        As `spiked.denoise`; all of them are ValueErrors.

    Examples
    --------
    >>> import numpy as np
    >>> from spiked.sklearn import SpectralDenoiser
    >>> X = np.random.default_rng(0).standard_normal((60, 80))
    >>> X[:, 0] += 5.0
    >>> denoiser = SpectralDenoiser().fit(X)
    >>> denoiser.rank_, denoiser.transform(X[:5]).shape
    (1, (5, 80))
    >>> bool(np.allclose(denoiser.transform(X), denoiser.fit_transform(X)))
    True
    """

    def __init__(self, method: str = "eoptshrink", *, loss: str = "frobenius") -> None:
        self.method = method
        self.loss = loss

    def fit(self, X: Any, y: Any = None) -> "SpectralDenoiser":
        """Estimates the signal of X.

        Parameters
        ----------
        X : array_like, (n_samples, n_features)
            Signal plus noise.
        y : None
            Not used.

        Returns
        -------
        SpectralDenoiser
            Itself.
        """
        reject_masked(X, "X")
        X = _validate(self, X, dtype=[np.float64, np.float32])
        if "+" in str(self.method):
            raise UsageError(
                f"{self.method} has a transform (its signal is no product of the data with a matrix): choose a method without, or "
                "call spiked.denoise"
            )
        found = denoise(X, self.method, loss=self.loss)
        self.denoised_ = found
        self.rank_ = found.rank
        self.bulk_edge_ = found.bulk_edge
        if found.rank > 0:
            vectors = np.linalg.svd(X.astype(np.float64), full_matrices=False)[2]
            self.components_ = vectors[: found.rank]
        else:
            self.components_ = np.zeros((0, X.shape[1]))
        self.factors_ = found.shrunk / found.singular_values[: found.rank]
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Estimates the signal of X and returns it.

        Parameters
        ----------
        X : array_like, (n_samples, n_features)
            Signal plus noise.
        y : None
            Not used.
        **fit_params
            Not used.

        Returns
        -------
        ndarray of float64, (n_samples, n_features)
            That of `spiked.denoise`.
        """
        return self.fit(X, y).denoised_.signal

    def transform(self, X: Any) -> np.ndarray:
        """Projects rows on `components_`, and shrinks.

        Parameters
        ----------
        X : array_like, (n_samples, n_features)
            Rows, of `fit` or new ones, with its number of features.

        Returns
        -------
        ndarray of float64, (n_samples, n_features)
        """
        check_is_fitted(self)
        reject_masked(X, "X")
        X = _validate(self, X, dtype=[np.float64, np.float32], reset=False)
        found: np.ndarray = (X @ self.components_.T * self.factors_) @ self.components_
        return found
