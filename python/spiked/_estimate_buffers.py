"""The structs of the C library that an estimate and its intervals fill, with the arrays that they point to."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, Tuple

import numpy as np

from . import _arrays, _library
from .errors import UsageError
from .estimates import Intervals

_HEAD = 15  # numbers of 8 bytes in a struct spiked_estimate


class EstimateBuffers:
    """A struct spiked_estimate and what it points to, in one piece of memory: five arrays of `capacity` numbers, and 512 bytes
    of a note."""

    def __init__(self, capacity: int) -> None:
        self.numbers: Any = np.empty(_HEAD + 5 * capacity + 64)
        self.capacity = capacity
        self.address = _library.address_of(self.numbers)
        self.singular_values = first = self.address + 8 * _HEAD
        length = 8 * capacity
        pointers = range(first, first + 5 * length + 1, length)
        _library.ESTIMATE_GIVEN.pack_into(self.numbers, 0, capacity, *pointers, 512)

    def found(self) -> Tuple[Any, ...]:
        """What a call filled: the number of singular values, then the other numbers of the struct."""
        return _library.ESTIMATE_FOUND.unpack_from(self.numbers, _library.ESTIMATE_GIVEN.size)

    def fields(self, method: str, loss: str) -> Dict[str, Any]:
        found = self.found()
        values, rank, self.stripped_rows, self.stripped_cols, edge, error, relative = found
        numbers, length = self.numbers, self.capacity
        return {
            "rank": rank,
            "singular_values": numbers[_HEAD : _HEAD + values],
            "strengths": numbers[_HEAD + length : _HEAD + length + rank],
            "overlap_left": numbers[_HEAD + 2 * length : _HEAD + 2 * length + rank],
            "overlap_right": numbers[_HEAD + 3 * length : _HEAD + 3 * length + rank],
            "shrunk": numbers[_HEAD + 4 * length : _HEAD + 4 * length + rank],
            "bulk_edge": None if edge != edge else edge,
            "expected_error": None if error != error else error,
            "expected_relative_error": None if relative != relative else relative,
            "note": _library.text_of(ctypes.string_at(self.address + 8 * (_HEAD + 5 * length))) or None,
            "method": method,
            "loss": loss,
        }


class IntervalBuffers:
    """What a call fills about intervals: three arrays of `capacity` pairs, and a reason of 256 bytes for each."""

    def __init__(self, capacity: int, method: str, confidence: float) -> None:
        if method not in ("theory", "bootstrap"):
            raise UsageError(f"intervals is {method!r}: use theory or bootstrap, or None for none")
        self.ends = np.full((3, capacity, 2), np.nan)
        self.reasons = ctypes.create_string_buffer(256 * capacity)
        self.method, self.confidence = method, _arrays.number(confidence, "confidence")
        if not 0.0 < self.confidence < 1.0:
            raise UsageError(f"confidence is {confidence} (a probability): pass a number above 0 and below 1")
        first = self.ends.ctypes.data
        arrays = (first, first + 16 * capacity, first + 32 * capacity, ctypes.addressof(self.reasons))
        self.described = _library.Intervals(method.encode(), self.confidence, capacity, *arrays, 256)

    def fields(self) -> Dict[str, Any]:
        count = self.described.count
        p_value = self.described.next_value
        first = ctypes.addressof(self.reasons)
        texts = [_library.text_of(ctypes.string_at(first + 256 * i)) or None for i in range(count)]
        ends = self.ends[:, :count].copy()
        return {
            "intervals": Intervals(ends[0], ends[1], ends[2], tuple(texts), self.method, self.confidence),
            "next_component_p_value": p_value if p_value == p_value else None,
        }
