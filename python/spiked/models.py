"""The limits of models beside separable covariance: samples of a spiked covariance, and noise with a variance profile."""

from __future__ import annotations

import pathlib
import tempfile
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from . import _arrays
from ._answers import column, joined
from ._command import run_json
from .errors import UsageError

__all__ = ["CovarianceTheory", "ProfileTheory", "covariance_theory", "profile_theory"]


@dataclass(frozen=True, eq=False)
class CovarianceTheory:
    """What samples of a spiked covariance show, in the limit. All numbers but cosines are eigenvalues.

    Attributes
    ----------
    aspect : float
        Samples over features.
    noise_variance, lower_edge, upper_edge, detection_threshold : float
        The other eigenvalues of the population, the ends of the sample eigenvalues without spikes, and the population
        eigenvalue from which on a spike leaves them.
    population : ndarray, (k,)
        As given; arrays below have the same order.
    detectable : ndarray of bool, (k,)
        Whether the sample eigenvalue leaves the others; an edge and a cosine of 0 where not.
    sample_eigenvalues, squared_cosines : ndarray, (k,)
        Limits of the sample eigenvalue, and of the squared cosine of the eigenvectors of sample and population.
    sample_eigenvalue_deviations, debiased_eigenvalue_deviations, squared_cosine_deviations : ndarray, (k,)
        Standard deviations over samples, of first order for a component alone: close ones add to those of cosines. NaN
        without a size and where it is not detectable.

    Examples
    --------
    >>> import spiked
    >>> found = spiked.covariance_theory([5.0], size=(400, 200))
    >>> round(float(found.sample_eigenvalue_deviations[0]), 4)
    0.348
    """

    aspect: float
    noise_variance: float
    lower_edge: float
    upper_edge: float
    detection_threshold: float
    population: np.ndarray
    detectable: np.ndarray
    sample_eigenvalues: np.ndarray
    squared_cosines: np.ndarray
    sample_eigenvalue_deviations: np.ndarray
    debiased_eigenvalue_deviations: np.ndarray
    squared_cosine_deviations: np.ndarray


@dataclass(frozen=True, eq=False)
class ProfileTheory:
    """The limiting law of S + Z, where entries of the noise Z are independent, with variances V / d of their own.

    Attributes
    ----------
    aspect : float
        n / d of an n x d matrix.
    bulk_edge, mean, detection_threshold, tracy_widom_scale : float
        As in `Theory`.
    gaps : list of dict
        Intervals without noise eigenvalues below the edge, as ``spiked theory --json`` has them.
    strengths, detectable, outliers, overlap_left, overlap_right : ndarray, (k,)
        As in `Theory`.
    shrunk : dict of str to ndarray, (k,)
        The optimal singular value under each loss: frobenius, operator, nuclear.

    Examples
    --------
    Variances that fall into two groups leave a gap in the bulk.

    >>> import spiked
    >>> found = spiked.profile_theory("blocks:1/100", aspect=0.1)
    >>> round(found.gaps[0]["lower"], 3), round(found.gaps[0]["upper"], 3)
    (1.435, 60.329)
    """

    aspect: float
    bulk_edge: float
    mean: float
    detection_threshold: float
    tracy_widom_scale: float
    gaps: List[Dict[str, Any]]
    strengths: np.ndarray
    detectable: np.ndarray
    outliers: np.ndarray
    overlap_left: np.ndarray
    overlap_right: np.ndarray
    shrunk: Dict[str, np.ndarray]


def covariance_theory(
    population: Sequence[float],
    aspect: Optional[float] = None,
    size: Optional[Tuple[int, int]] = None,
    noise_variance: float = 1.0,
) -> CovarianceTheory:
    """The limits of principal components under Johnstone's spiked covariance, as ``spiked theory --population``.

    Parameters
    ----------
    population : sequence of float
        Eigenvalues of the population's covariance; all others are `noise_variance`.
    aspect : float, optional
        Samples over features; of `size` when not given.
    size : (int, int), optional
        Samples and features, for the standard deviations.
    noise_variance : float
        The variance of the noise in every direction.

    Returns
    -------
    CovarianceTheory

    Raises
    ------
    UsageError
        A number is none of its kind, or neither an aspect ratio nor a size is given.

    Notes
    -----
    Source: Baik and Silverstein, Paul, Benaych-Georges and Nadakuditi. It runs the command ``spiked``.

    Examples
    --------
    With twice as many samples as features the threshold is 1 + sqrt(1/2). A population eigenvalue of 5 is seen at
    5 (1 + (1/2) / 4).

    >>> import spiked
    >>> found = spiked.covariance_theory([5.0, 1.2], aspect=2.0)
    >>> [round(float(x), 6) for x in (found.detection_threshold, found.sample_eigenvalues[0])]
    [1.707107, 5.625]
    >>> found.detectable.tolist()
    [True, False]
    """
    given = _arrays.vector(population, "population").copy()
    if given.size == 0:
        raise UsageError("population is empty: pass at least one eigenvalue")
    words = [*_shape_words(aspect, size), "--population", joined(given)]
    words += ["--noise-variance", repr(_arrays.number(noise_variance, "noise_variance"))]
    document = run_json(["theory", "--quiet", *words])[1]
    found = document["covariance"]
    spikes = found["population"]
    return CovarianceTheory(
        aspect=document["aspect"],
        noise_variance=found["noise_variance"],
        lower_edge=found["lower_edge"],
        upper_edge=found["upper_edge"],
        detection_threshold=found["detection_threshold"],
        population=given,
        detectable=column(spikes, "detectable").astype(bool),
        sample_eigenvalues=column(spikes, "sample_eigenvalue"),
        squared_cosines=column(spikes, "squared_cosine"),
        sample_eigenvalue_deviations=column(spikes, "sample_eigenvalue_deviation"),
        debiased_eigenvalue_deviations=column(spikes, "debiased_eigenvalue_deviation"),
        squared_cosine_deviations=column(spikes, "squared_cosine_deviation"),
    )


def profile_theory(
    variances: Any,
    strengths: Sequence[float] = (),
    aspect: Optional[float] = None,
    size: Optional[Tuple[int, int]] = None,
    left_squares: Sequence[float] = (),
    right_squares: Sequence[float] = (),
) -> ProfileTheory:
    """The limits of a spiked model whose noise has a variance profile, as ``spiked theory --variances``.

    Parameters
    ----------
    variances : str or array_like, (n, d)
        V of every entry, which has the variance V / d; or of classes of rows and columns, a text such as
        ``"blocks:1,4/9,0.5:rows=0.25,0.75"``.
    strengths : sequence of float
        Singular values of the signal, each at least 0.
    aspect : float, optional
        n / d; of `size` when not given, or of `variances` where these are a matrix.
    size : (int, int), optional
        n and d, where `variances` is a text.
    left_squares, right_squares : sequence of float
        Where signals lie: the sum of the squares of a left vector over each class of rows, and of a right one over each
        class of columns; spread evenly when not given.

    Returns
    -------
    ProfileTheory

    Raises
    ------
    UsageError, InputError
        A text, a variance or a strength is none of its kind, or there is no aspect ratio.

    Notes
    -----
    Source: the quadratic vector equation, Ajanki, Erdos and Krueger. It runs the command ``spiked``.

    Examples
    --------
    One class is white noise: the edge is 4, and a strength of 2 is seen at (2 + 1/2)^2.

    >>> import spiked
    >>> found = spiked.profile_theory("blocks:1", strengths=[2.0], aspect=1.0)
    >>> [round(float(x), 6) for x in (found.bulk_edge, found.outliers[0], found.overlap_left[0])]
    [4.0, 6.25, 0.75]
    """
    given = _arrays.vector(strengths, "strengths").copy()
    words = []
    for option, values in (("--strength", given), ("--left-squares", left_squares), ("--right-squares", right_squares)):
        numbers = _arrays.vector(values, option[2:].replace("-", "_"))
        if numbers.size:
            words += [option, joined(numbers)]
    with tempfile.TemporaryDirectory(prefix="spiked-") as folder:
        spec = variances
        if not isinstance(variances, str):
            matrix = np.asarray(variances, dtype=float)
            if matrix.ndim != 2 or matrix.size == 0:
                raise UsageError(f"variances have the shape {matrix.shape}: pass a matrix, or a text such as blocks:1,4/9,1")
            path = pathlib.Path(folder) / "variances.npy"
            np.save(path, matrix)
            spec = f"file:{path}"
            if aspect is None and size is None:
                size = matrix.shape
        document = run_json(["theory", "--quiet", *_shape_words(aspect, size), "--variances", spec, *words])[1]
    spikes = document["spikes"]
    return ProfileTheory(
        aspect=document["aspect"],
        bulk_edge=document["bulk_edge"],
        mean=document["mean"],
        detection_threshold=document["detection_threshold"],
        tracy_widom_scale=document["tracy_widom_scale"],
        gaps=document["gaps"],
        strengths=given,
        detectable=column(spikes, "detectable").astype(bool),
        outliers=column(spikes, "outlier"),
        overlap_left=column(spikes, "overlap_left"),
        overlap_right=column(spikes, "overlap_right"),
        shrunk={
            loss: np.array([spike["shrunk"][loss] for spike in spikes], dtype=float)
            for loss in ("frobenius", "operator", "nuclear")
        },
    )


def _shape_words(aspect: Optional[float], size: Optional[Tuple[int, int]]) -> List[str]:
    words = []
    if aspect is not None:
        words += ["--aspect", repr(_arrays.number(aspect, "aspect"))]
    if size is not None:
        rows, columns = _arrays.shape(size, "size")
        words += ["--size", f"{rows}x{columns}"]
    return words
