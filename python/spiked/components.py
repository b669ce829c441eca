"""Principal components under the spiked covariance model."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Optional, Tuple

import numpy as np

from . import _arrays, _library
from ._library import check, library, matrix_of, run_long, text_of, words
from .errors import UsageError

__all__ = ["PrincipalComponents", "pca"]


@dataclass(frozen=True, eq=False)
class PrincipalComponents:
    """What is known about the covariance of a population from samples. Eigenvalues and levels are variances.

    Attributes
    ----------
    components : int
        Number of components, k.
    eigenvalues : ndarray, (min(degrees of freedom, features that are not constant),)
        Of the sample covariance, largest first.
    debiased, debiased_errors : ndarray, (k,)
        Estimated eigenvalues of the population, and their standard errors.
    cosines, cosine_errors : ndarray, (k,)
        Cosines between eigenvectors of sample and population, in [0, 1], not squared.
    score_cumulants : ndarray or None
        Kurtosis - 3 of the scores of each component, where it could be estimated; the errors of eigenvalues hold for it,
        and else for Gaussian scores. None for covariances.
    shrunk : ndarray, (k,)
        Eigenvalues of the estimated covariance, which is `noise_level` in all other directions.
    noise_level, bulk_edge : float or None
        Variance of the noise in every direction, and the largest eigenvalue of noise alone; None for data of exactly
        low rank.
    samples, features : int
        As given.
    degrees_of_freedom : int
        Samples, less one where they were centred.
    stripped_features : int
        Constant features, which are left out.
    shrinker : str
        As given.
    loss : str or None
        As given; None is the default, and that no loss is minimised.
    notes : tuple of str
        On the data and the fit.
    share_seen : float
        The fraction of entries that are seen. Below 1, `eigenvalues` and `bulk_edge` are those of the weighted data, all
        else that of the whole.

    Examples
    --------
    >>> import numpy as np, spiked
    >>> X = np.random.default_rng(0).standard_normal((200, 50))
    >>> X[:, 0] *= 3.0                              # an eigenvalue of 9
    >>> found = spiked.pca(X)
    >>> found.components, found.eigenvalues.shape, found.shrunk.shape
    (1, (50,), (1,))
    """

    components: int
    eigenvalues: np.ndarray
    debiased: np.ndarray
    debiased_errors: np.ndarray
    cosines: np.ndarray
    cosine_errors: np.ndarray
    score_cumulants: Optional[np.ndarray]
    shrunk: np.ndarray
    noise_level: Optional[float]
    bulk_edge: Optional[float]
    samples: int
    features: int
    degrees_of_freedom: int
    stripped_features: int
    shrinker: str
    loss: Optional[str]
    notes: Tuple[str, ...]
    share_seen: float = 1.0

    def __repr__(self) -> str:
        lines = [
            f"<spiked.PrincipalComponents of {self.samples} samples of {self.features} features: {self.components} "
            f"above the noise" + ("" if self.noise_level is None else f" of variance {self.noise_level:.6g}") + ">"
        ]
        lines += [f"  {note}" for note in self.notes]
        if self.components > 0:
            lines.append("  eigenvalue              debiased             cosine       shrunk")
        for i in range(min(self.components, 8)):
            lines.append(
                f"{self.eigenvalues[i]:12.6g} {self.debiased[i]:12.6g} +- {self.debiased_errors[i]:<8.2g}"
                f"{self.cosines[i]:8.4f} +- {self.cosine_errors[i]:.4f} {self.shrunk[i]:12.6g}"
            )
        if self.components > 8:
            lines.append(f"    and {self.components - 8} more")
        return "\n".join(lines)


def _optional(word: Optional[str], name: str) -> Optional[bytes]:
    return None if word is None else words(word, name)


def pca(
    X: Any,
    *,
    center: bool = True,
    standardize: bool = False,
    missing: Optional[str] = None,
    covariance_of: Optional[int] = None,
    shrinker: str = "optimal",
    loss: Optional[str] = None,
    noise: Optional[str] = None,
    noise_level: Optional[float] = None,
    level: float = 0.01,
) -> PrincipalComponents:
    """Noise level, components, debiased eigenvalues and cosines of a sample covariance (spiked covariance model).

    Parameters
    ----------
    X : array_like or torch.Tensor, (samples, features)
        Data; or their covariance or correlation matrix, (features, features), with `covariance_of`.
    center : bool
        Subtract the mean of every feature, which costs one sample.
    standardize : bool
        And divide each by its standard deviation.
    missing : {"uniform"}, optional
        NaN and masked values are missing entries, each seen at random with the same probability; see `prepare`.
    covariance_of : int, optional
        X is a covariance matrix of so many samples, less one where they were centred. `center` and `standardize` have
        no effect then.
    shrinker : {"optimal", "debiased", "sample"}
        Eigenvalues of the estimated covariance: optimal for the loss, those of the population, or of the sample.
    loss : str, optional
        A name of ``list_methods("pca-losses")``, by default the first; for ``shrinker="optimal"``.
    noise : {"mean", "median"}, optional
        How the noise level is estimated from the variance that components do not explain; the mean by default.
    noise_level : float, optional
        A known variance of the noise.
    level : float
        Probability that noise is taken for a component, of each test.

    Returns
    -------
    PrincipalComponents
        Numbers equal those of ``spiked pca``, bit for bit.

    Raises
    ------
    UsageError
        A word is wrong, a level is out of range, or an option has no effect.
    InputError
        X cannot be used, or has fewer than 2 samples or features.

    Notes
    -----
    Source: Johnstone 2001; Kritchman and Nadler 2008; Donoho, Gavish and Johnstone 2018.

    Examples
    --------
    >>> import numpy as np, spiked
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 50))
    >>> X[:, 0] *= 3.0                              # an eigenvalue of 9
    >>> found = spiked.pca(X)
    >>> found.components, bool(0.9 < found.noise_level < 1.1)
    (1, True)
    >>> bool(abs(found.debiased[0] - 9.0) < 3 * found.debiased_errors[0])
    True
    """
    array = _arrays.matrix(X, missing=missing is not None)
    samples = array.shape[0] if covariance_of is None else _arrays.whole(covariance_of, "covariance_of")
    features = array.shape[1]
    scaled = _arrays.truth(standardize, "standardize")
    if covariance_of is None:
        centring = b"columns" if _arrays.truth(center, "center") or scaled else b"none"
    else:
        centring, scaled = None, False
        if samples < 1:
            raise UsageError(f"covariance_of is {samples} (a number of samples): pass how many the covariance is of")
    options = _library.PcaOptions(
        centring,
        scaled,
        0 if covariance_of is None else samples,
        words(shrinker, "shrinker"),
        _optional(loss, "loss"),
        _optional(noise, "noise"),
        _known(noise_level, "noise_level", 0.0),
        _known(level, "level", 0.01),
    )
    capacity = min(samples, features)
    numbers = _arrays.room((7, capacity), "X")
    notes = ctypes.create_string_buffer(2048)
    rows = [numbers.ctypes.data + 8 * capacity * i for i in range(7)]
    found = _library.Components(capacity, *rows, ctypes.addressof(notes), len(notes))
    described = matrix_of(array)
    kind = _optional(missing, "missing")
    share = ctypes.c_double(1.0)
    run_long(
        float(array.size) * min(array.shape),
        lambda: check(library().spiked_pca_missing(described, kind, options, found, share)),
        keep=(array, numbers, notes),
    )
    values, count = found.values, found.components
    noisy = found.noise_level == found.noise_level
    edged = found.bulk_edge == found.bulk_edge
    return PrincipalComponents(
        components=count,
        eigenvalues=numbers[0, :values],
        debiased=numbers[1, :count],
        debiased_errors=numbers[2, :count],
        cosines=numbers[3, :count],
        cosine_errors=numbers[4, :count],
        score_cumulants=None if covariance_of is not None else numbers[5, : found.cumulants],
        shrunk=numbers[6, :count],
        noise_level=found.noise_level if noisy else None,
        bulk_edge=found.bulk_edge if edged else None,
        samples=samples,
        features=features,
        degrees_of_freedom=found.degrees_of_freedom,
        stripped_features=found.stripped_features,
        shrinker=shrinker,
        loss=loss,
        notes=tuple(text_of(notes.value).splitlines()),
        share_seen=share.value,
    )


def _known(number: Optional[float], name: str, unset: float) -> float:
    """A number for the library, in whose structs 0 means that it was not set."""
    if number is None:
        return unset
    found = _arrays.number(number, name)
    if not found > 0.0:
        raise UsageError(f"{name} is {number}: pass a number above 0, or leave it out")
    return found
