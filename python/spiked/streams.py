"""Sequences that a causal method codes while their tokens arrive."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any, Dict, Tuple

import numpy as np

from . import _arrays
from ._library import check, library, matrix_of, run_long
from .errors import InputError

__all__ = ["Stream"]


class Stream:
    """A sequence that a causal method codes in blocks of 128 rows, each from those before it: what `Codec.stream` gives.

    A stream changes with every block; one thread at a time may use it. Its bits and decoded rows are those that a decoder of
    the blocks would have.

    Attributes
    ----------
    dim : int
        Entries of a row.

    Examples
    --------
    >>> import numpy as np, spiked
    >>> X = np.random.default_rng(0).standard_normal((256, 32)) * np.geomspace(4, 0.1, 32)
    >>> stream = spiked.Codec("causal-klt", dim=32, bits=3).stream(tokens=256)
    >>> found = [stream.append(X[:128]), stream.append(X[128:])]
    >>> bits = sum(bits for _, bits in found) / X.size
    >>> bool(abs(bits - 3) < 0.03)                              # within 1 %, everything included
    True
    >>> errors = np.concatenate([decoded for decoded, _ in found]) - X
    >>> bool(np.linalg.norm(errors) / np.linalg.norm(X) < 0.1)
    True
    """

    def __init__(self, handle: ctypes.c_void_p, dim: int, cost: float) -> None:
        self.dim = dim
        self._handle, self._cost = handle, cost
        self._free = weakref.finalize(self, library().spiked_stream_free, handle)

    def append(self, X: Any) -> Tuple[np.ndarray, float]:
        """Codes the next rows.

        Parameters
        ----------
        X : array_like or torch.Tensor, (rows, dim)
            128 rows, or fewer at the end of the sequence.

        Returns
        -------
        decoded : ndarray of float64, (rows, dim)
            As a decoder has them.
        bits : float
            That are stored for these rows, with those of the header in the first block.

        Raises
        ------
        InputError
            NaN or infinities, or rows of another length.
        UsageError
            More than 128 rows, or the sequence has ended.

        Examples
        --------
        >>> import numpy as np, spiked
        >>> stream = spiked.Codec("causal-klt", dim=16, bits=4).stream()
        >>> decoded, bits = stream.append(np.random.default_rng(0).standard_normal((128, 16)))
        >>> decoded.shape, bits > 0
        ((128, 16), True)
        """
        array = _arrays.matrix(X)
        if array.shape[1] != self.dim:
            raise InputError(
                f"X has rows of {array.shape[1]} entries (the stream is of a codec for {self.dim}): "
                f"pass rows of {self.dim}"
            )
        decoded = _arrays.room(array.shape, "X")
        given, output, bits = matrix_of(array), matrix_of(decoded), ctypes.c_double()

        def call() -> None:
            check(library().spiked_stream_append(self._handle, given, output, bits))

        run_long(self._cost * float(array.size) * self.dim, call, keep=(self, array, decoded))
        return decoded, bits.value

    def copy(self) -> Stream:
        """Another stream in the same state, which goes on apart from this one, as beams of one text do.

        Returns
        -------
        Stream

        Examples
        --------
        >>> import numpy as np, spiked
        >>> X = np.random.default_rng(0).standard_normal((256, 16))
        >>> stream = spiked.Codec("causal-klt", dim=16, bits=4).stream()
        >>> first = stream.append(X[:128])
        >>> other = stream.copy()
        >>> bool(np.array_equal(stream.append(X[128:])[0], other.append(X[128:])[0]))
        True
        """
        handle = ctypes.c_void_p()
        check(library().spiked_stream_copy(self._handle, handle))
        return Stream(handle, self.dim, self._cost)

    def __deepcopy__(self, memo: Dict[int, Any]) -> Stream:
        return self.copy()
