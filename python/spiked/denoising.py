"""Spectral denoising: rank, bulk edge and shrunk singular values of a matrix of signal and noise."""

from __future__ import annotations

import ctypes
from typing import Any, Optional, Tuple, Union

import numpy as np

from . import _arrays, _library
from ._estimate_buffers import EstimateBuffers, IntervalBuffers
from ._library import Covariance, check, cost_of, library, matrix_of, run_long, words
from .errors import UsageError
from .estimates import Denoised, Estimate
from .preparation import prepared

__all__ = ["denoise", "eoptshrink", "gavish_donoho", "screenot", "shrink"]

# Intervals by the bootstrap draw and decompose many matrices.
_BOOTSTRAP = 1000.0

# Smaller matrices are never shared between threads, so that the library need not be told how many there may be.
_SHARED = 256

_READINGS = {"reference": "", "paper": ":paper", "author": ":author", "edgefit": ":edgefit"}


def _covariance(value: Any, name: str) -> Tuple[Optional[Covariance], Any]:
    """The description of a noise covariance, and what must be kept while it is used."""
    if value is None:
        return None, None
    if isinstance(value, str):
        return Covariance(words(value, name), None), None
    array = _arrays.array(value, name)
    array = _arrays.matrix(array.reshape(-1, 1) if array.ndim == 1 else array, name)
    described = matrix_of(array)
    return Covariance(None, described), (array, described)


def _work(rows: int, cols: int, method: str, intervals: Optional[str]) -> float:
    """About how many multiplications a method takes for a matrix of this shape."""
    times = max(cost_of(method), _BOOTSTRAP if intervals == "bootstrap" else 1.0)
    return times * rows * cols * min(rows, cols)


def denoise(
    X: Any,
    method: str = "eoptshrink",
    *,
    loss: str = "frobenius",
    row_spectrum: Union[None, str, Any] = None,
    col_spectrum: Union[None, str, Any] = None,
    keep_empty: bool = False,
    center: Optional[str] = None,
    standardize: Optional[str] = None,
    missing: Optional[str] = None,
    intervals: Optional[str] = None,
    confidence: float = 0.95,
    threads: int = 0,
) -> Denoised:
    """Estimates the low-rank signal in a noisy matrix.

    Parameters
    ----------
    X : array_like or torch.Tensor, (rows, cols)
        Signal plus noise: real numbers of any dtype, in any order of memory.
    method : str
        A name of ``list_methods("estimators")``, with options after colons and transforms before plus signs:
        ``"eoptshrink"``, ``"gd-shrink:sigma=1"``, ``"screenot:20"``, ``"svd:3"``, ``"whiten+gd-shrink"``.
    loss : {"frobenius", "operator", "nuclear"}
        The loss for which the shrinkage is optimal. It has no effect on methods that keep singular values as they are
        (``svd``, ``gd-hard``, ``screenot``), for which the command rejects ``--loss``.
    row_spectrum, col_spectrum : str or array_like, optional
        The covariance of the noise along rows and along columns, for the methods that use it (``whiten+NAME``,
        ``tw-test``): a covariance matrix, its diagonal as a vector, or a name such as ``"ar1:0.5"``.
    keep_empty : bool
        Keep rows and columns of zeros in the spectrum.
    center : {"rows", "columns", "both"}, optional
        Subtract their means first, which takes a dimension of rows or columns; the signal is that of the centred matrix.
    standardize : {"rows", "columns"}, optional
        Centre them and divide each by its standard deviation first; see `prepare`.
    missing : {"uniform", "rows", "columns", "both"}, optional
        NaN and masked values are missing entries, seen at random; see `prepare`. The signal has all entries; singular
        values and the edge are those of the weighted matrix, the residual is NaN where entries are missing.
    intervals : {"theory", "bootstrap"}, optional
        Make intervals of strengths and overlaps, by the first-order theory of their fluctuations or by drawing the
        signal anew. None by default; the theory costs 1 ms at most, the bootstrap 15 ms a component at 128 x 128.
    confidence : float
        Of the intervals.
    threads : int
        Threads that share the decomposition of a matrix of 700 x 700 or more; 0 is one per processor. The results do not
        depend on it.

    Returns
    -------
    Denoised
        Numbers equal those of ``spiked spectrum``, bit for bit.

    Raises
    ------
    UsageError
        The name of a method or a loss is wrong, or a spectrum has no effect.
    InputError
        X is empty, has NaN (without `missing`), infinities or complex numbers, or is no matrix.

    Notes
    -----
    One decomposition of X in double precision, during which other threads of Python run. Ctrl-C stops it, but not while
    LAPACK computes more than a quarter of the vectors.

    Source: Su and Wu 2022 for eoptshrink; ``list_methods`` has the sources of all methods.

    Examples
    --------
    >>> import numpy as np, spiked
    >>> rng = np.random.default_rng(0)
    >>> u, v = np.linalg.qr(rng.standard_normal((100, 1)))[0], np.linalg.qr(rng.standard_normal((150, 1)))[0]
    >>> X = 3.0 * u @ v.T + rng.standard_normal((100, 150)) / 150**0.5
    >>> found = spiked.denoise(X)
    >>> found.rank, found.signal.shape
    (1, (100, 150))
    >>> bool(abs(found.strengths[0] - 3.0) < 0.3)
    True
    >>> low, high = spiked.denoise(X, intervals="theory").intervals.strength[0]
    >>> bool(low < 3.0 < high)
    True
    """
    of_preparation: Tuple[str, ...] = ()
    data = X
    prepares = center is not None or standardize is not None or missing is not None
    if prepares:
        result, of_preparation = prepared(X, center, standardize, missing, weighted=False)
        data = _arrays.like(result, X)
    array = _arrays.matrix(X, missing=missing is not None)
    rows, cols = array.shape
    name, loss_name = words(method, "method"), words(loss, "loss")
    described = matrix_of(array)
    row, row_kept = _covariance(row_spectrum, "row_spectrum")
    col, col_kept = _covariance(col_spectrum, "col_spectrum")
    signal = _arrays.room((rows, cols), "X")
    output = matrix_of(signal)
    buffers = EstimateBuffers(min(rows, cols))
    asked = None if intervals is None else IntervalBuffers(min(rows, cols), intervals, confidence)
    to = None if asked is None else asked.described
    empty = _arrays.truth(keep_empty, "keep_empty")
    centring = None if center is None else words(center, "center")
    scaling = None if standardize is None else words(standardize, "standardize")
    kind = None if missing is None else words(missing, "missing")
    share = None if missing is None else ctypes.c_double()
    notes = ctypes.create_string_buffer(4096)
    workers = _arrays.whole(threads, "threads")

    def call() -> None:
        if workers not in (0, 1) or min(rows, cols) >= _SHARED:
            check(library().spiked_use_threads(workers))
        check(
            library().spiked_denoise_missing(
                described, kind, name, loss_name, row, col, empty, centring, scaling, output, buffers.address, to, share
            )
        )
        check(
            library().spiked_denoise_notes(
                None if prepares else described,
                buffers.singular_values,
                buffers.found()[0],
                1.0 if share is None else share.value,
                notes,
                len(notes),
            )
        )

    work = _work(rows, cols, method, intervals)
    for covariance, side in ((row, rows), (col, cols)):
        if covariance is not None:
            work += float(side) ** 3
    run_long(work, call, keep=(array, row_kept, col_kept, signal, asked))
    return Denoised(
        **buffers.fields(method, loss),
        **({} if asked is None else asked.fields()),
        signal=_arrays.like(signal, X),
        stripped_rows=buffers.stripped_rows,
        stripped_cols=buffers.stripped_cols,
        notes=(*of_preparation, *_library.text_of(notes.value).splitlines()),
        share_seen=1.0 if share is None else share.value,
        _data=data,
    )


def _value(value: Any) -> str:
    """The value of an option in a name, in which a plus sign, as in 1e+20, would begin another method."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value).replace("e+", "e") if isinstance(value, (float, np.floating)) else str(value)


def eoptshrink(
    X: Any, *, loss: str = "frobenius", rank: Union[None, int, str] = None, reading: str = "reference", **options: Any
) -> Denoised:
    """Optimal shrinkage under noise of unknown separable covariance (eOptShrink).

    Parameters
    ----------
    X : array_like or torch.Tensor, (rows, cols)
        Signal plus noise.
    loss : {"frobenius", "operator", "nuclear"}
        The loss.
    rank : int or str, optional
        A known rank, or a rule of ``list_methods("estimators")``; by default components above the bulk edge count.
    reading : {"reference", "paper", "author", "edgefit"}
        Which reading of the algorithm: the reference, the paper's text, its authors' program, or the rank by a line
        through the top of the noise.
    **options
        Other options of the name: ``pilot``, ``margin``, ``impute``, ``factor``, ``power``, ``mass``, ``clip``.

    Returns
    -------
    Denoised
        As ``denoise(X, "eoptshrink..")``.

    Raises
    ------
    UsageError, InputError
        As `denoise`.

    Notes
    -----
    Source: Su and Wu 2022.

    Examples
    --------
    >>> import numpy as np, spiked
    >>> X = np.random.default_rng(0).standard_normal((60, 80))
    >>> spiked.eoptshrink(X).rank
    0
    >>> spiked.eoptshrink(X, reading="paper", margin=0.5).method
    'eoptshrink:paper:margin=0.5'
    """
    if not isinstance(reading, str) or reading not in _READINGS:
        raise UsageError(f"reading {reading!r} is unknown: use one of {', '.join(_READINGS)}")
    name = "eoptshrink" + _READINGS[reading]
    if rank is not None:
        name += f":rank={_value(rank)}"
    name += "".join(f":{key}={_value(value)}" for key, value in options.items())
    return denoise(X, name, loss=loss)


def gavish_donoho(X: Any, *, sigma: Optional[float] = None, rule: str = "shrink", loss: str = "frobenius") -> Denoised:
    """The shrinkers and the threshold of Gavish and Donoho, for white noise.

    Parameters
    ----------
    X : array_like or torch.Tensor, (rows, cols)
        Signal plus white noise.
    sigma : float, optional
        Standard deviation of an entry of the noise; when not given, it is estimated from the median singular value.
    rule : {"shrink", "hard"}
        Shrink singular values, or keep those above the threshold as they are.
    loss : {"frobenius", "operator", "nuclear"}
        For ``rule="shrink"``; it has no effect on ``rule="hard"``.

    Returns
    -------
    Denoised
        As ``denoise(X, "gd-shrink")`` or ``denoise(X, "gd-hard")``.

    Raises
    ------
    UsageError, InputError
        As `denoise`.

    Notes
    -----
    Source: Gavish and Donoho 2014 (hard), 2017 (shrink).

    Examples
    --------
    >>> import numpy as np, spiked
    >>> X = np.random.default_rng(0).standard_normal((60, 80))
    >>> X[:, 0] += 5.0
    >>> spiked.gavish_donoho(X, sigma=1.0).rank
    1
    >>> spiked.gavish_donoho(X, rule="hard").rank
    1
    """
    if not isinstance(rule, str) or rule not in ("shrink", "hard"):
        raise UsageError(f"rule {rule!r} is unknown: use shrink or hard")
    name = f"gd-{rule}"
    if sigma is not None:
        name += f":sigma={_value(_arrays.number(sigma, 'sigma'))}"
    return denoise(X, name, loss=loss)


def screenot(X: Any, max_rank: int, *, impute: str = "i") -> Denoised:
    """The hard threshold of ScreeNOT, for noise of unknown covariance.

    Parameters
    ----------
    X : array_like or torch.Tensor, (rows, cols)
        Signal plus noise.
    max_rank : int
        An upper bound of the rank.
    impute : {"i", "w", "0"}
        How the first `max_rank` singular values are replaced in the noise.

    Returns
    -------
    Denoised
        As ``denoise(X, "screenot:MAX_RANK")``: kept singular values are not shrunk.

    Raises
    ------
    UsageError, InputError
        As `denoise`.

    Notes
    -----
    Source: Donoho, Gavish and Romanov 2023.

    Examples
    --------
    >>> import numpy as np, spiked
    >>> X = np.random.default_rng(0).standard_normal((60, 80))
    >>> X[:, 0] += 5.0
    >>> spiked.screenot(X, max_rank=5).rank
    1
    """
    return denoise(X, f"screenot:{max_rank}:impute={impute}")


def shrink(
    singular_values: Any,
    shape: Tuple[int, int],
    method: str = "eoptshrink",
    *,
    loss: str = "frobenius",
    intervals: Optional[str] = None,
    confidence: float = 0.95,
) -> Estimate:
    """What `denoise` finds, from singular values alone.

    Parameters
    ----------
    singular_values : array_like, (min(shape),)
        Singular values of a matrix of this shape, largest first.
    shape : (int, int)
        Rows and columns of the matrix.
    method, loss : str
        As in `denoise`; methods that need the matrix itself are errors.
    intervals, confidence
        As in `denoise`.

    Returns
    -------
    Estimate
        Without a signal.

    Raises
    ------
    UsageError
        The method needs the matrix, or a name is wrong.
    InputError
        Values that are not descending, negative or not finite, or of another number than min(shape).

    Notes
    -----
    Source: Su and Wu 2022 for eoptshrink; ``list_methods`` has the sources of all methods.

    Examples
    --------
    >>> import numpy as np, spiked
    >>> X = np.random.default_rng(0).standard_normal((60, 80))
    >>> X[:, 0] += 5.0
    >>> found = spiked.shrink(np.linalg.svd(X, compute_uv=False), X.shape)
    >>> found.rank
    1
    >>> bool(np.allclose(found.shrunk, spiked.denoise(X).shrunk))
    True
    """
    values = _arrays.vector(singular_values, "singular_values")
    rows, cols = _arrays.shape(shape, "shape")
    buffers = EstimateBuffers(max(1, values.size))
    asked = None if intervals is None else IntervalBuffers(max(1, values.size), intervals, confidence)
    to = None if asked is None else asked.described
    name, loss_name = words(method, "method"), words(loss, "loss")

    def call() -> None:
        check(
            library().spiked_shrink_intervals(
                values.ctypes.data, values.size, rows, cols, name, loss_name, buffers.address, to
            )
        )

    # Without intervals by the bootstrap, thousands of values take some milliseconds.
    work = _work(rows, cols, method, intervals) if intervals == "bootstrap" else 0.0
    run_long(work, call, keep=(values, asked))
    return Estimate(**buffers.fields(method, loss), **({} if asked is None else asked.fields()))
