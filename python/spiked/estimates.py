"""What spectral methods find."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, List, Optional

import numpy as np

from . import _arrays

__all__ = ["Denoised", "Estimate"]


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
            lines.append(
                f"{self.singular_values[i]:12.6g} {self.strengths[i]:>12.6g} {self.shrunk[i]:>12.6g}"
                f"{self.overlap_left[i]:12.4f}{self.overlap_right[i]:8.4f}"
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
        Data minus signal. It is computed from the array that was given, which must not have been changed since.
    stripped_rows, stripped_cols : int
        Number of rows and columns of zeros that were left out of the spectrum.
    """

    signal: Any = None
    stripped_rows: int = 0
    stripped_cols: int = 0
    _data: Any = field(default=None, repr=False)

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
