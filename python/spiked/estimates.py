"""What spectral methods find."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, List, Optional, Tuple

import numpy as np

from . import _arrays

__all__ = ["Denoised", "Estimate", "Intervals"]


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals of the components that a method finds. An interval that does not exist is a row of NaN.

    Attributes
    ----------
    strength : ndarray, (r, 2)
        Low and high end for the singular value of the clean signal; the low end is 0 where the data do not bound it.
    overlap_left, overlap_right : ndarray, (r, 2)
        The same for the squared inner products of true and observed singular vectors.
    reasons : tuple of (str or None), (r,)
        Why something is missing or one-sided.
    method : {"theory", "bootstrap"}
        How they were made.
    confidence : float
        The probability that an interval holds the true value.

    Examples
    --------
    >>> import numpy as np, spiked
    >>> X = np.random.default_rng(0).standard_normal((60, 80))
    >>> X[:, 0] += 5.0
    >>> found = spiked.denoise(X, intervals="theory").intervals
    >>> low, high = found.strength[0]
    >>> bool(low < 60**0.5 * 5.0 < high), found.confidence, found.reasons
    (True, 0.95, (None,))
    """

    strength: np.ndarray
    overlap_left: np.ndarray
    overlap_right: np.ndarray
    reasons: Tuple[Optional[str], ...]
    method: str
    confidence: float

    def __repr__(self) -> str:
        lines = [f"<spiked.Intervals at {100 * self.confidence:g} % by {self.method}>"]
        for i, reason in enumerate(self.reasons):
            parts = [
                f"{name} {ends[i, 0]:.4g} to {ends[i, 1]:.4g}"
                for name, ends in (
                    ("strength", self.strength),
                    ("overlap left", self.overlap_left),
                    ("right", self.overlap_right),
                )
                if ends[i, 0] == ends[i, 0]
            ]
            lines.append(f"  {i + 1}: " + "; ".join(part for part in (", ".join(parts), reason) if part))
        return "\n".join(lines)


def _shown(number: float, form: str) -> str:
    """A number; a dash for one that the method does not have."""
    return format(number, form) if number == number else "-"


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a spectral method finds in singular values.

    Attributes
    ----------
    rank : int
        Number of components of the signal, r.
    singular_values : ndarray, (min(rows, cols),)
        Of the data, largest first, in its unit. Rows and columns of zeros are left out, and make it shorter.
    shrunk : ndarray, (r,)
        What replaces the first `rank` of them in the signal.
    strengths : ndarray, (r,)
        Estimated singular values of the clean signal.
    overlap_left, overlap_right : ndarray, (r,)
        Estimated squared inner products of true and observed singular vectors, in [0, 1].
    bulk_edge : float or None
        Upper edge of the noise, an eigenvalue (its root is a singular value); None where the method has none.
    expected_error : float or None
        The method's own estimate of the squared Frobenius norm of the error; None where it has none.
    expected_relative_error : float or None
        The same over the squared norm of the signal.
    note : str or None
        Why the result is empty or limited.
    method, loss : str
        As given.
    intervals : Intervals or None
        Where they were asked for. Transforms and methods that keep values have none, and say so in the reasons.
    next_component_p_value : float or None
        The probability that white noise has a largest singular value like the one behind the components, with
        intervals; None where the method does not assume white noise.

    Examples
    --------
    >>> import spiked
    >>> found = spiked.shrink([9.0, 1.0, 0.5], (3, 4), "svd:1")
    >>> found.rank, found.shrunk.tolist(), found.bulk_edge
    (1, [9.0], None)
    """

    rank: int
    singular_values: np.ndarray
    shrunk: np.ndarray
    strengths: np.ndarray
    overlap_left: np.ndarray
    overlap_right: np.ndarray
    bulk_edge: Optional[float]
    expected_error: Optional[float]
    expected_relative_error: Optional[float]
    note: Optional[str]
    method: str
    loss: str
    intervals: Optional[Intervals] = None
    next_component_p_value: Optional[float] = None

    def __repr__(self) -> str:
        return "\n".join(
            [f"<spiked.{type(self).__name__} by {self.method}, {self.loss} loss: {self._head()}>", *self._lines()]
        )

    def _head(self) -> str:
        text = f"rank {self.rank}"
        if self.bulk_edge is not None:
            text += f", bulk edge at singular value {self.bulk_edge**0.5:.6g}"
        if self.expected_relative_error is not None:
            text += f", expected error {100 * self.expected_relative_error:.3g} % of the signal"
        return text

    def _lines(self) -> List[str]:
        lines = [f"  {self.note}"] if self.note else []
        if self.rank > 0:
            lines.append("    observed     strength       shrunk   overlaps left, right")
        for i in range(min(self.rank, 8)):
            strength, left, right = self.strengths[i], self.overlap_left[i], self.overlap_right[i]
            lines.append(
                f"{self.singular_values[i]:12.6g} {_shown(strength, '.6g'):>12} {self.shrunk[i]:>12.6g}"
                f"{_shown(left, '.4f'):>12}{_shown(right, '.4f'):>8}"
            )
        if self.rank > 8:
            lines.append(f"    and {self.rank - 8} more")
        return lines

    def plot(self, ax: Any = None) -> Any:
        """Draws singular values, the bulk edge and the shrunk values, largest first.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure when not given.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ImportError
            matplotlib is not installed.

        Examples
        --------
        >>> import spiked
        >>> axes = spiked.shrink([9.0, 1.0, 0.5], (3, 4), "svd:1").plot()    # doctest: +SKIP
        """
        if ax is None:
            try:
                from matplotlib import pyplot
            except ImportError as problem:
                raise ImportError("plot needs matplotlib (it is not installed): install matplotlib") from problem
            ax = pyplot.subplots()[1]
        index = np.arange(1, len(self.singular_values) + 1)
        ax.plot(index, self.singular_values, "o", markersize=3, color="0.45", label="observed")
        if self.rank > 0:
            ax.plot(index[: self.rank], self.shrunk, "_", markersize=11, color="tab:red", label="shrunk")
        if self.bulk_edge is not None:
            ax.axhline(self.bulk_edge**0.5, color="tab:blue", linewidth=1, linestyle="--", label="bulk edge")
        ax.set_xlabel("component")
        ax.set_ylabel("singular value")
        ax.set_title(f"{self.method}: rank {self.rank}")
        ax.legend(frameon=False)
        return ax


@dataclass(frozen=True, eq=False, repr=False)
class Denoised(Estimate):
    """An estimated signal, and what was found about it; see `Estimate` for the other attributes.

    Attributes
    ----------
    signal : ndarray of float64 or torch.Tensor, (rows, cols)
        The estimated signal; a tensor has the dtype and the device of the data.
    residual : ndarray or torch.Tensor, (rows, cols)
        Data minus signal, where data that were centred or standardized are meant as they were then. It is computed
        from the array that was given, which must not have been changed since.
    stripped_rows, stripped_cols : int
        Number of rows and columns of zeros that were left out of the spectrum.
    notes : tuple of str
        What the command notes beside an estimate. On the data: a first row or column that counts, a covariance matrix,
        means that make up the largest singular value, a symmetric matrix. On the preparation: rows and columns that
        centring made zero, zero ones that it took for data, missing entries. On the spectrum: a gap in its bulk, few
        entries seen.
    share_seen : float
        The fraction of entries that are seen.

    Examples
    --------
    >>> import numpy as np, spiked
    >>> X = np.random.default_rng(0).standard_normal((60, 80))
    >>> X[:, 0] += 5.0
    >>> found = spiked.denoise(X)
    >>> found.rank, found.signal.shape
    (1, (60, 80))
    >>> bool(np.array_equal(found.residual, X - found.signal))
    True
    """

    signal: Any = None
    stripped_rows: int = 0
    stripped_cols: int = 0
    notes: Tuple[str, ...] = ()
    share_seen: float = 1.0
    _data: Any = field(default=None, repr=False)

    def _lines(self) -> List[str]:
        return [*super()._lines(), *(f"  {note}" for note in self.notes)]

    @property
    def residual(self) -> Any:
        if not _arrays.is_torch(self._data):
            return _arrays.array(self._data) - self.signal
        data = self._data.detach()
        if not data.is_floating_point():
            data = data.to(device=data.device, dtype=self.signal.dtype)
        return data - self.signal

    def _head(self) -> str:
        shape = tuple(self.signal.shape)
        return f"{shape[0]} x {shape[1]}, " + super()._head()
