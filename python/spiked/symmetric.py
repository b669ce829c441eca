"""Symmetric and Hermitian matrices: the spiked Wigner model."""

from __future__ import annotations

import pathlib
import tempfile
from dataclasses import dataclass
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from . import _arrays
from ._answers import column, joined, number_of
from ._command import run_json
from .errors import InputError, UsageError

__all__ = ["SymmetricComponents", "SymmetricTheory", "symmetric_components", "symmetric_theory"]


@dataclass(frozen=True, eq=False)
class SymmetricComponents:
    """Components of a symmetric matrix with noise, the one of smallest p-value first.

    Attributes
    ----------
    eigenvalues : ndarray, (n,)
        All of the matrix, largest first.
    entry_deviation, edge : float
        Standard deviation of the noise in an entry off the diagonal; its eigenvalues lie from -edge to edge.
    observed, p_values : ndarray, (k,)
        The eigenvalue of a component, and the probability that noise has one so far out, at either end.
    strengths, overlaps, shrunk : ndarray, (k,)
        Estimates of the eigenvalue without noise and of the squared overlap of the eigenvectors; the best eigenvalue of the
        signal for the loss.
    strength_intervals, overlap_intervals : ndarray, (k, 2)
        Limits at 95 %; NaN where there are none.
    next_p_value : float
        Of one more component.
    signal : ndarray, (n, n)
        The estimate without noise.
    notes : tuple of str
        What to know about these numbers.

    Examples
    --------
    >>> import numpy as np, spiked
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.standard_normal((100, 100))
    >>> X = (noise + noise.T) / 200**0.5 - 4 * np.ones((100, 100)) / 100
    >>> found = spiked.symmetric_components(X)
    >>> found.observed.size, bool(abs(found.strengths[0] + 4) < 0.5)
    (1, True)
    """

    eigenvalues: np.ndarray
    entry_deviation: float
    edge: float
    observed: np.ndarray
    p_values: np.ndarray
    strengths: np.ndarray
    strength_intervals: np.ndarray
    overlaps: np.ndarray
    overlap_intervals: np.ndarray
    shrunk: np.ndarray
    next_p_value: float
    signal: np.ndarray
    notes: Tuple[str, ...]


@dataclass(frozen=True, eq=False)
class SymmetricTheory:
    """What spikes in symmetric noise show. All numbers but overlaps are eigenvalues.

    Attributes
    ----------
    edge, detection_threshold : float
        Noise has its eigenvalues from -edge to edge; strengths of a larger modulus than the threshold leave it.
    strengths : ndarray, (k,)
        As given; arrays below have the same order.
    eigenvalues, overlaps : ndarray, (k,)
        Limits of the eigenvalue and of the squared overlap of the eigenvectors of signal and observation.
    eigenvalue_deviations, strength_deviations, overlap_deviations : ndarray, (k,)
        Standard deviations of first order for a spike alone whose vector is spread over many coordinates; NaN without a size
        and where a spike is not detectable.
    critical_modulus : float
        Noise of the size has an eigenvalue beyond it with probability 0.01; NaN without a size.

    Examples
    --------
    >>> import spiked
    >>> found = spiked.symmetric_theory([3.0, -0.5])
    >>> [round(float(x), 4) for x in found.eigenvalues], [round(float(x), 4) for x in found.overlaps]
    ([3.3333, -2.0], [0.8889, 0.0])
    """

    edge: float
    detection_threshold: float
    strengths: np.ndarray
    eigenvalues: np.ndarray
    overlaps: np.ndarray
    eigenvalue_deviations: np.ndarray
    strength_deviations: np.ndarray
    overlap_deviations: np.ndarray
    critical_modulus: float


def symmetric_components(
    X: Any, *, level: float = 0.01, sigma: Optional[float] = None, noise: str = "mean", loss: str = "frobenius"
) -> SymmetricComponents:
    """Components of either sign in a symmetric or Hermitian matrix, as ``spiked spectrum --symmetric``.

    Parameters
    ----------
    X : array_like, (n, n)
        Real and symmetric, or complex and Hermitian.
    level : float
        Probability that noise is taken for a component, of each test.
    sigma : float, optional
        Known standard deviation of the noise in an entry off the diagonal.
    noise : {"mean", "median"}
        Where it is not known: from the mean square of the eigenvalues behind the components, or from their median modulus.
    loss : {"frobenius", "operator", "nuclear"}
        Which the shrunk eigenvalues minimise.

    Returns
    -------
    SymmetricComponents

    Raises
    ------
    InputError
        X is not symmetric, or has NaN or infinities.
    UsageError
        A number is none of its kind, or `noise` is given with `sigma`.

    Notes
    -----
    Source: Capitaine, Donati-Martin and Feral 2009; Benaych-Georges and Nadakuditi 2011; Tracy and Widom 1996. It runs the
    command ``spiked``.

    Examples
    --------
    A Hermitian matrix of noise, in which nothing is found.

    >>> import numpy as np, spiked
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.standard_normal((60, 60)) + 1j * rng.standard_normal((60, 60))
    >>> spiked.symmetric_components(Z + Z.conj().T).observed.size
    0
    """
    given = np.asarray(X)
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise InputError(f"X has the shape {given.shape} (a symmetric matrix has as many rows as columns): use denoise")
    hermitian = np.iscomplexobj(given)
    if hermitian:  # its real form has each eigenvalue twice
        form = np.block([[given.real, -given.imag], [given.imag, given.real]]).astype(np.float64)
    else:
        form = _arrays.matrix(given)
    words = ["--symmetric", "--level", repr(_arrays.number(level, "level")), "--loss", str(loss)]
    if sigma is not None:
        words += ["--sigma", repr(_arrays.number(sigma, "sigma"))]
    if noise != "mean":
        words += ["--noise", str(noise)]
    with tempfile.TemporaryDirectory(prefix="spiked-") as folder:
        path, clean = pathlib.Path(folder) / "X.npy", pathlib.Path(folder) / "signal.npy"
        np.save(path, form)
        document = run_json(["spectrum", "--quiet", str(path), *words, "--denoised", str(clean)])[1]
        signal = np.load(clean)
    n = given.shape[0]
    found = document["components"]
    return SymmetricComponents(
        eigenvalues=np.array(document["eigenvalues"], dtype=float),
        entry_deviation=document["entry_deviation"],
        edge=document["edge"],
        observed=column(found, "eigenvalue"),
        p_values=column(found, "p_value"),
        strengths=column(found, "strength"),
        strength_intervals=_pairs(found, "strength_interval"),
        overlaps=column(found, "overlap"),
        overlap_intervals=_pairs(found, "overlap_interval"),
        shrunk=column(found, "shrunk"),
        next_p_value=number_of(document["next_component_p_value"]),
        signal=signal[:n, :n] + 1j * signal[n:, :n] if hermitian else signal,
        notes=tuple(document["notes"]),
    )


def symmetric_theory(
    strengths: Sequence[float] = (),
    size: Optional[int] = None,
    *,
    noise_level: float = 1.0,
    hermitian: bool = False,
    entries: str = "gaussian",
    diagonal: Optional[float] = None,
) -> SymmetricTheory:
    """The limits of spikes in symmetric or Hermitian noise, as ``spiked theory --symmetric``.

    Parameters
    ----------
    strengths : sequence of float
        Eigenvalues of the signal, of either sign.
    size : int, optional
        Rows, for standard deviations and the critical modulus.
    noise_level : float
        Entries off the diagonal have variance noise_level^2 / n.
    hermitian : bool
        Complex entries.
    entries : str
        The law of the entries, which matters with a size.
    diagonal : float, optional
        Variance of the diagonal over that of other entries, which matters with a size: 2 for real entries and 1 for complex
        ones when not given.

    Returns
    -------
    SymmetricTheory

    Raises
    ------
    UsageError
        A number or a name is none of its kind, or `entries` or `diagonal` is given without a size.

    Notes
    -----
    Source: Capitaine, Donati-Martin and Feral 2009; Benaych-Georges and Nadakuditi 2011. It runs the command ``spiked``.

    Examples
    --------
    >>> import spiked
    >>> real, complex_ = (spiked.symmetric_theory([2.0], 200, hermitian=h) for h in (False, True))
    >>> round(float(real.eigenvalue_deviations[0] / complex_.eigenvalue_deviations[0]) ** 2, 9)
    2.0
    """
    given = _arrays.vector(strengths, "strengths").copy() if len(strengths) else np.empty(0)
    words = ["--symmetric", "--noise-level", repr(_arrays.number(noise_level, "noise_level"))]
    if given.size:
        words.append("--strength=" + joined(given))
    if size is not None:
        rows = _arrays.whole(size, "size")
        if rows < 1:
            raise UsageError(f"size is {rows}: pass a number of rows from 1 on")
        words += ["--size", f"{rows}x{rows}"]
    if _arrays.truth(hermitian, "hermitian") and size is not None:  # limits are the same
        words.append("--complex")
    if entries != "gaussian":
        words += ["--entries", str(entries)]
    if diagonal is not None:
        words += ["--diagonal", repr(_arrays.number(diagonal, "diagonal"))]
    found = run_json(["theory", "--quiet", *words])[1]["symmetric"]
    spikes, finite = found["spikes"], found["finite_size"]
    return SymmetricTheory(
        edge=found["edge"],
        detection_threshold=found["detection_threshold"],
        strengths=given,
        eigenvalues=column(spikes, "eigenvalue"),
        overlaps=column(spikes, "squared_overlap"),
        eigenvalue_deviations=column(spikes, "eigenvalue_deviation"),
        strength_deviations=column(spikes, "strength_deviation"),
        overlap_deviations=column(spikes, "squared_overlap_deviation"),
        critical_modulus=finite["critical_modulus"] if finite else float("nan"),
    )


def _pairs(rows: List[Any], key: str) -> np.ndarray:
    ends = [[number_of(end) for end in row[key]] if row[key] else [np.nan, np.nan] for row in rows]
    return np.array(ends, dtype=float).reshape(-1, 2)
