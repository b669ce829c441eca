"""The limits of spiked models: where the noise ends, which signals are seen, and how well."""

from __future__ import annotations

import ctypes
import pathlib
import tempfile
import weakref
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _arrays, _library
from ._command import run_json
from ._library import check, library, run_long, words
from .errors import InputError, UsageError

__all__ = ["Theory", "theory"]

Spectrum = Union[str, Any]

# About how many multiplications a point of a density takes, whose equation is solved by iterations.
_POINT = 1e5


class _Law:
    """Owns a law of the library."""

    def __init__(self, row: Spectrum, col: Spectrum, aspect: float, seen: float, signal_square: float) -> None:
        self.handle = ctypes.c_void_p()
        self.row, self.col, self.aspect = _own(row, "row"), _own(col, "col"), aspect
        self.seen, self.signal_square = seen, signal_square
        row_described, row_kept = _spectrum(self.row, "row")
        col_described, col_kept = _spectrum(self.col, "col")

        def call() -> None:
            check(
                library().spiked_law_create_missing(
                    row_described, col_described, aspect, seen, signal_square, self.handle
                )
            )
            self._free = weakref.finalize(self, library().spiked_law_free, self.handle)

        run_long(_library.LONG_CALL, call, keep=(row_kept, col_kept))

    def __reduce__(self) -> Tuple[Any, ...]:
        return _Law, (self.row, self.col, self.aspect, self.seen, self.signal_square)


def _own(value: Spectrum, name: str) -> Spectrum:
    """A copy of a spectrum, which its owner cannot change."""
    if isinstance(value, str):
        return value
    values, weights = _atoms(value, name)
    return values.copy() if weights is None else (values.copy(), weights.copy())


def _spectrum(value: Spectrum, name: str) -> Tuple[_library.Spectrum, Any]:
    """The description of a spectrum, and what must be kept while it is used."""
    if isinstance(value, str):
        return _library.Spectrum(words(value, name), None, None, 0), None
    values, weights = _atoms(value, name)
    if values.size == 0:
        raise InputError(f"{name} is empty: pass at least one eigenvalue")
    pointer = None if weights is None else weights.ctypes.data
    return _library.Spectrum(None, values.ctypes.data, pointer, values.size), (values, weights)


def _atoms(value: Any, name: str) -> Tuple[np.ndarray, Optional[np.ndarray]]:
    """Eigenvalues and their weights, of a list of eigenvalues or of a pair of lists."""
    if isinstance(value, tuple) and len(value) == 2 and np.ndim(value[0]) == 1:
        values, weights = _arrays.vector(value[0], name), _arrays.vector(value[1], f"weights of {name}")
        if values.size != weights.size:
            raise InputError(f"{name} has {values.size} eigenvalues and {weights.size} weights: pass as many of both")
        return values, weights
    return _arrays.vector(value, name), None


@dataclass(frozen=True, eq=False)
class Theory:
    """The limiting law of Z = S + A^(1/2) X B^(1/2), where entries of X have variance 1/d, and of signals in it.

    Edges and outliers are eigenvalues of Z Z^T; strengths and shrunk values are singular values.

    Attributes
    ----------
    aspect : float
        n / d of an n x d matrix.
    bulk_edge : float
        Upper edge of the noise.
    lower_edge : float
        Lower edge of its continuous part.
    detection_threshold : float
        The smallest strength with an outlier above the edge.
    tracy_widom_scale : float
        g: g d^(2/3) (largest eigenvalue - edge) has the Tracy-Widom law of order 1 in the limit.
    mass_at_zero, mean : float
        The fraction of the n eigenvalues that are 0, and their mean.
    regular_edge : bool
        False where the edge is that of a few detached eigenvalues.
    strengths : ndarray, (k,)
        As given; arrays below have the same order.
    detectable : ndarray of bool, (k,)
        Whether there is an outlier. Where not, the outlier is the edge, and overlaps and shrunk values are 0.
    outliers, stieltjes_left, stieltjes_right, overlap_left, overlap_right : ndarray, (k,)
        The limit of the observed eigenvalue, Stieltjes transforms there (negative), and squared inner products of true
        and observed singular vectors.
    shrunk : dict of str to ndarray, (k,)
        The optimal singular value under each loss: frobenius, operator, nuclear.
    finite_size : dict or None
        What ``spiked theory --size`` adds: fluctuation of the edge, the smallest strength that each rank rule finds, and
        expected false alarms; None without a size.
    losses : list of dict or None
        With missing entries, the error ||S^ - S||_F^2 / ||S||_F^2 of the optimal shrinkage (``"relative_error"``) and the
        detection threshold at the share that is seen and at every tenth (``"share"``); None where all are seen or there is
        no signal. First order: below 0.7 real errors are larger.

    Examples
    --------
    >>> import spiked
    >>> found = spiked.theory(strengths=[2.0])      # white noise, square
    >>> round(found.bulk_edge, 9), round(float(found.shrunk["frobenius"][0]), 9)
    (4.0, 1.5)
    """

    aspect: float
    bulk_edge: float
    lower_edge: float
    detection_threshold: float
    tracy_widom_scale: float
    mass_at_zero: float
    mean: float
    regular_edge: bool
    strengths: np.ndarray
    detectable: np.ndarray
    outliers: np.ndarray
    stieltjes_left: np.ndarray
    stieltjes_right: np.ndarray
    overlap_left: np.ndarray
    overlap_right: np.ndarray
    shrunk: Dict[str, np.ndarray]
    finite_size: Optional[Dict[str, Any]]
    losses: Optional[List[Dict[str, float]]]
    _law: _Law = field(repr=False)

    def __repr__(self) -> str:
        lines = [
            f"<spiked.Theory of aspect ratio {self.aspect:.6g}: bulk edge {self.bulk_edge:.6g}, "
            f"detection threshold {self.detection_threshold:.6g}>"
        ]
        if self.strengths.size:
            lines.append("    strength      outlier       shrunk   overlaps left, right")
        for i, strength in enumerate(self.strengths):
            lines.append(
                f"{strength:12.6g} {self.outliers[i]:>12.6g} {self.shrunk['frobenius'][i]:>12.6g}"
                f"{self.overlap_left[i]:12.4f}{self.overlap_right[i]:8.4f}"
                + ("" if self.detectable[i] else "   not detectable")
            )
        return "\n".join(lines)

    def density(self, x: Any) -> np.ndarray:
        """The density of the noise eigenvalues.

        Parameters
        ----------
        x : array_like
            Eigenvalues, of any shape.

        Returns
        -------
        ndarray of float64
            In the shape of x; 0 outside the noise, and without the mass at zero.

        Examples
        --------
        The law of white noise, square, is sqrt(x (4 - x)) / (2 pi x):

        >>> import spiked
        >>> spiked.theory().density([2.0, 5.0]).round(6)
        array([0.159155, 0.      ])
        """
        return self._at(x, 0)

    def cdf(self, x: Any) -> np.ndarray:
        """The fraction of noise eigenvalues that are at most x.

        Parameters
        ----------
        x : array_like
            Eigenvalues, of any shape.

        Returns
        -------
        ndarray of float64
            In the shape of x, from 0 to 1.

        Examples
        --------
        >>> import spiked
        >>> spiked.theory(aspect=2.0).cdf([-1.0, 0.0, 10.0]).round(6)    # half of the eigenvalues are 0
        array([0. , 0.5, 1. ])
        """
        return self._at(x, 1)

    def _at(self, x: Any, which: int) -> np.ndarray:
        points, found = _arrays.points(x, "x")
        outputs = [found.ctypes.data if i == which else None for i in range(2)]

        def call() -> None:
            check(library().spiked_law_density(self._law.handle, points.ctypes.data, points.size, *outputs))

        if points.size:
            run_long(_POINT * points.size, call, keep=(self._law, points, found))
        return found[()]

    def quantiles(self, probabilities: Any) -> np.ndarray:
        """The smallest eigenvalue with at least each probability at or below it.

        Parameters
        ----------
        probabilities : array_like
            Numbers from 0 to 1, of any shape.

        Returns
        -------
        ndarray of float64
            In the shape of `probabilities`.

        Examples
        --------
        >>> import spiked
        >>> law = spiked.theory(aspect=0.5)
        >>> median = law.quantiles(0.5)
        >>> round(float(law.cdf(median)), 6)
        0.5
        """
        given, found = _arrays.points(probabilities, "probabilities")

        def call() -> None:
            check(library().spiked_law_quantiles(self._law.handle, given.ctypes.data, given.size, found.ctypes.data))

        if given.size:
            run_long(10 * _POINT * given.size, call, keep=(self._law, given, found))
        return found[()]

    def curve(self, points: int = 200) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points from edge to edge, and density and distribution function there: what a plot needs.

        Parameters
        ----------
        points : int
            How many, at least 2.

        Returns
        -------
        (ndarray, ndarray, ndarray), each (points,)
            Eigenvalues, densities, and fractions of eigenvalues that are at most these.

        Examples
        --------
        >>> import spiked
        >>> x, density, cdf = spiked.theory(aspect=0.25).curve(5)
        >>> x[[0, -1]].round(6), cdf[[0, -1]].round(6)      # (1 - 1/2)^2 and (1 + 1/2)^2
        (array([0.25, 2.25]), array([0., 1.]))
        """
        count = _arrays.whole(points, "points")
        if count < 2:
            raise UsageError(f"points is {count} (from edge to edge): pass at least 2")
        found = _arrays.room((3, count), "points")
        starts = [row.ctypes.data for row in found]

        def call() -> None:
            check(library().spiked_law_curve(self._law.handle, count, *starts))

        run_long(_POINT * count, call, keep=(self._law, found))
        return found[0], found[1], found[2]


def theory(
    row: Spectrum = "identity",
    col: Spectrum = "identity",
    aspect: Optional[float] = None,
    strengths: Sequence[float] = (),
    size: Optional[Tuple[int, int]] = None,
    seen: float = 1.0,
) -> Theory:
    """The limits of a spiked model: bulk edge, detection threshold, outliers, overlaps, optimal shrinkage.

    Parameters
    ----------
    row, col : str or array_like or (array_like, array_like)
        Eigenvalues of the covariances A (n x n) and B (d x d) of the noise: a name of ``list_methods("spectra")`` such as
        ``"ar1:0.5"``, a list of eigenvalues, or a tuple of eigenvalues and weights, which sum to 1.
    aspect : float, optional
        n / d; of `size` when not given, otherwise 1.
    strengths : sequence of float
        Singular values of the signal, each at least 0.
    size : (int, int), optional
        n and d, for `Theory.finite_size`, which the command ``spiked theory`` computes.
    seen : float
        The fraction of the entries that are seen, at random, in (0, 1]; these are divided by it, as
        ``denoise(X, missing="uniform")`` does, and the law is that of this matrix. With `size` it includes the part of
        the signal, of first order.

    Returns
    -------
    Theory

    Raises
    ------
    UsageError, InputError
        A name, an eigenvalue, a weight or a strength that is none, or an aspect ratio that is not positive.

    Notes
    -----
    Source: the separable law of Zhang, and of Couillet and Hachem; overlaps of Benaych-Georges and Nadakuditi.

    Examples
    --------
    White noise, square: the edge is 4, and a strength of 2 is seen at (2 + 1/2)^2 with overlaps 1 - 1/4.

    >>> import spiked
    >>> found = spiked.theory(strengths=[2.0, 0.5])
    >>> [round(float(number), 9) for number in (found.bulk_edge, found.outliers[0], found.overlap_left[0])]
    [4.0, 6.25, 0.75]
    >>> found.detectable.tolist()
    [True, False]
    >>> round(float(found.cdf(4.0)), 6)
    1.0

    Where only a quarter of the entries is seen, the threshold is twice as high.

    >>> spiked.theory(seen=0.25).detection_threshold
    2.0
    """
    if size is not None:
        size = _arrays.shape(size, "size")
    if aspect is None:
        aspect = 1.0 if size is None else size[0] / size[1]
    aspect = _arrays.number(aspect, "aspect")
    seen = _arrays.number(seen, "seen")
    given = _arrays.vector(strengths, "strengths").copy()
    square = 0.0 if size is None else sum(x * x / size[0] for x in given.tolist())
    law = _Law(row, col, aspect, seen, square)
    bulk = _library.Bulk()
    check(library().spiked_law_bulk(law.handle, bulk))
    spikes = np.zeros(given.size, dtype=_library.SPIKE)
    if given.size:
        check(library().spiked_law_spikes(law.handle, given.ctypes.data, given.size, spikes.ctypes.data))

    def column(name: str) -> np.ndarray:
        return np.ascontiguousarray(spikes[name])

    missing = seen < 1.0 and given.size > 0
    asked = _asked(row, col, aspect, given, size, seen) if missing or size is not None else {}
    return Theory(
        aspect=aspect,
        bulk_edge=bulk.bulk_edge,
        lower_edge=bulk.lower_edge,
        detection_threshold=bulk.detection_threshold,
        tracy_widom_scale=bulk.tracy_widom_scale,
        mass_at_zero=bulk.mass_at_zero,
        mean=bulk.mean,
        regular_edge=bool(bulk.regular_edge),
        strengths=given,
        detectable=column("detectable").astype(bool),
        outliers=column("outlier"),
        stieltjes_left=column("stieltjes_left"),
        stieltjes_right=column("stieltjes_right"),
        overlap_left=column("overlap_left"),
        overlap_right=column("overlap_right"),
        shrunk={loss: column(f"shrunk_{loss}") for loss in ("frobenius", "operator", "nuclear")},
        finite_size=asked.get("finite_size"),
        losses=asked.get("losses"),
        _law=law,
    )


def _asked(
    row: Spectrum, col: Spectrum, aspect: float, strengths: np.ndarray, size: Optional[Tuple[int, int]], seen: float
) -> Dict[str, Any]:
    """The document of ``spiked theory``."""
    with tempfile.TemporaryDirectory(prefix="spiked-") as folder:
        arguments = ["theory", "--quiet", "--aspect", repr(aspect), "--seen", repr(seen)]
        if size is not None:
            arguments += ["--size", f"{size[0]}x{size[1]}"]
        for option, value in (("row", row), ("col", col)):
            spec = value
            if not isinstance(value, str):
                values, weights = _atoms(value, option)
                weights = np.full(values.size, 1.0 / values.size) if weights is None else weights
                path = pathlib.Path(folder) / f"{option}.csv"
                path.write_text("".join(f"{x!r},{w!r}\n" for x, w in zip(values.tolist(), weights.tolist())))
                spec = f"file:{path}"
            arguments += [f"--{option}-spectrum", spec]
        if strengths.size:
            arguments += ["--strength", ",".join(repr(x) for x in strengths.tolist())]
        found: Dict[str, Any] = run_json(arguments)[1]
        return found
