"""The C library ``libspiked.so.0``: where it is, its functions (``app/c/spiked.h``), and how a call is made."""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
import re
import struct
import threading
from ctypes import POINTER, addressof, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p
from typing import Any, Callable, Optional, Tuple, TypeVar

import numpy as np

from . import _arrays
from ._waiting import interruptible
from .errors import InternalError, LibraryNotFound, UsageError, error_of

LIBRARY_VARIABLE = "SPIKED_LIBRARY"
LIBRARY_NAME = "libspiked.so.0"

OK = 0
TOO_SMALL = 8
STOPPED = 75
LEDGER_ITEMS = 14

# Calls that multiply more than this many numbers run in a thread of their own, so that Ctrl-C is heard. Starting one takes
# 0.1 ms and these calls at least 30.
LONG_CALL = 5e7
# Methods that decompose copies or parts of a matrix, and encoders that search, take far longer than one decomposition. A
# name does not tell the number of copies, of which there are at most 65535.
_MANY_DECOMPOSITIONS = re.compile(r"signflip|[:=](pa|ddpa|bcv)(?![a-z])")
_SEARCHING = re.compile(r"tcq|qtip|trellis|pq|causal")
# Seconds that Ctrl-C waits for such a call to stop. What does not stop by then goes on in its thread.
LONGEST_STOP = 0.5

Result = TypeVar("Result")


class Matrix(ctypes.Structure):
    """The fields of `MATRIX`."""

    _fields_ = [
        ("data", c_void_p),
        ("dtype", c_int64),
        ("rows", c_int64),
        ("cols", c_int64),
        ("row_stride", c_int64),
        ("col_stride", c_int64),
    ]


class Estimate(ctypes.Structure):
    """The fields of `ESTIMATE_GIVEN`, then those of `ESTIMATE_FOUND`."""

    _fields_ = [
        ("capacity", c_int64),
        ("singular_values", c_void_p),
        ("strengths", c_void_p),
        ("overlap_left", c_void_p),
        ("overlap_right", c_void_p),
        ("shrunk", c_void_p),
        ("note", c_void_p),
        ("note_capacity", c_int64),
        ("values", c_int64),
        ("rank", c_int64),
        ("stripped_rows", c_int64),
        ("stripped_cols", c_int64),
        ("bulk_edge", c_double),
        ("expected_error", c_double),
        ("expected_relative_error", c_double),
    ]


class Intervals(ctypes.Structure):
    _fields_ = [
        ("method", c_char_p),
        ("confidence", c_double),
        ("capacity", c_int64),
        ("strength", c_void_p),
        ("overlap_left", c_void_p),
        ("overlap_right", c_void_p),
        ("reasons", c_void_p),
        ("reason_capacity", c_int64),
        ("count", c_int64),
        ("next_value", c_double),
    ]


class Leading(ctypes.Structure):
    _fields_ = [
        ("wanted", c_int64),
        ("singular_values", c_void_p),
        ("bounds", c_void_p),
        ("left", POINTER(Matrix)),
        ("right", POINTER(Matrix)),
        ("values", c_int64),
        ("krylov_dimension", c_int64),
    ]


class PcaOptions(ctypes.Structure):
    _fields_ = [
        ("center", c_char_p),
        ("standardize", c_int64),
        ("covariance_of", c_int64),
        ("shrinker", c_char_p),
        ("loss", c_char_p),
        ("noise", c_char_p),
        ("noise_level", c_double),
        ("level", c_double),
    ]


class Components(ctypes.Structure):
    _fields_ = [
        ("capacity", c_int64),
        ("eigenvalues", c_void_p),
        ("debiased", c_void_p),
        ("debiased_errors", c_void_p),
        ("cosines", c_void_p),
        ("cosine_errors", c_void_p),
        ("score_cumulants", c_void_p),
        ("shrunk", c_void_p),
        ("notes", c_void_p),
        ("notes_capacity", c_int64),
        ("values", c_int64),
        ("components", c_int64),
        ("cumulants", c_int64),
        ("degrees_of_freedom", c_int64),
        ("stripped_features", c_int64),
        ("noise_level", c_double),
        ("bulk_edge", c_double),
    ]


class Covariance(ctypes.Structure):
    _fields_ = [("spec", c_char_p), ("matrix", c_char_p)]


class Spectrum(ctypes.Structure):
    _fields_ = [("spec", c_char_p), ("values", c_void_p), ("weights", c_void_p), ("count", c_int64)]


class Bulk(ctypes.Structure):
    _fields_ = [
        ("bulk_edge", c_double),
        ("lower_edge", c_double),
        ("detection_threshold", c_double),
        ("tracy_widom_scale", c_double),
        ("mass_at_zero", c_double),
        ("mean", c_double),
        ("regular_edge", c_int64),
    ]


# Structs of short calls as bytes, which take less time than a Structure: spiked_matrix, spiked_blocks (one of them, the number
# and the distance), and what a caller sets of spiked_estimate and what a call fills.
MATRIX = struct.Struct("P5q")
BLOCKS = struct.Struct("P7q")
ESTIMATE_GIVEN = struct.Struct("q6Pq")
ESTIMATE_FOUND = struct.Struct("4q3d")

# The fields of struct spiked_spike in their order, as NumPy reads an array of them.
SPIKE = np.dtype(
    [
        ("strength", "f8"),
        ("outlier", "f8"),
        ("stieltjes_left", "f8"),
        ("stieltjes_right", "f8"),
        ("overlap_left", "f8"),
        ("overlap_right", "f8"),
        ("shrunk_frobenius", "f8"),
        ("shrunk_operator", "f8"),
        ("shrunk_nuclear", "f8"),
        ("detectable", "i8"),
    ]
)

CODE = np.dtype(
    [
        ("ledger", "f8", LEDGER_ITEMS),
        ("bits_per_entry", "f8"),
        ("paper_bits", "f8"),
        ("relative_l2", "f8"),
        ("bytes", "i8"),
        ("rank", "i8"),
    ]
)

# The arguments that the functions for matrices, with and without missing entries, share: from the covariances of the
# noise to the results.
_DENOISE = [
    POINTER(Covariance),
    POINTER(Covariance),
    c_int,
    c_char_p,
    c_char_p,
    c_char_p,
    c_void_p,
    POINTER(Intervals),
]

_FUNCTIONS = {
    "spiked_version": (c_char_p, []),
    "spiked_abi_version": (c_int, []),
    "spiked_last_error": (c_char_p, []),
    "spiked_stop_when": (None, [POINTER(c_int)]),
    "spiked_use_threads": (c_int, [c_int64]),
    "spiked_list": (c_int, [c_char_p, c_char_p, c_size_t, POINTER(c_size_t)]),
    "spiked_denoise_intervals": (
        c_int,
        [c_char_p, c_char_p, c_char_p, *_DENOISE],
    ),
    "spiked_denoise_missing": (
        c_int,
        [c_char_p, c_char_p, c_char_p, c_char_p, *_DENOISE, POINTER(c_double)],
    ),
    "spiked_denoise_notes": (c_int, [c_char_p, c_void_p, c_int64, c_double, c_char_p, c_int64]),
    "spiked_leading_values": (c_int, [c_char_p, c_int, POINTER(Leading)]),
    "spiked_shrink_intervals": (
        c_int,
        [c_void_p, c_int64, c_int64, c_int64, c_char_p, c_char_p, c_void_p, POINTER(Intervals)],
    ),
    "spiked_prepare_missing": (
        c_int,
        [
            c_char_p,
            c_char_p,
            c_char_p,
            c_char_p,
            c_char_p,
            c_char_p,
            POINTER(c_double),
            c_char_p,
            c_int64,
        ],
    ),
    "spiked_pca_missing": (
        c_int,
        [c_char_p, c_char_p, POINTER(PcaOptions), POINTER(Components), POINTER(c_double)],
    ),
    "spiked_law_create_missing": (
        c_int,
        [POINTER(Spectrum), POINTER(Spectrum), c_double, c_double, c_double, POINTER(c_void_p)],
    ),
    "spiked_law_free": (None, [c_void_p]),
    "spiked_law_bulk": (c_int, [c_void_p, POINTER(Bulk)]),
    "spiked_law_spikes": (c_int, [c_void_p, c_void_p, c_int64, c_void_p]),
    "spiked_law_density": (c_int, [c_void_p, c_void_p, c_int64, c_void_p, c_void_p]),
    "spiked_law_curve": (c_int, [c_void_p, c_int64, c_void_p, c_void_p, c_void_p]),
    "spiked_law_quantiles": (c_int, [c_void_p, c_void_p, c_int64, c_void_p]),
    "spiked_codec_create": (c_int, [c_char_p, c_int64, c_double, c_char_p, POINTER(c_void_p)]),
    "spiked_codec_free": (None, [c_void_p]),
    "spiked_ledger_item": (c_char_p, [c_int64]),
    "spiked_codec_encode": (c_int, [c_void_p, c_char_p, c_void_p, c_size_t, POINTER(c_size_t), c_char_p]),
    "spiked_codec_decode": (c_int, [c_void_p, c_char_p, c_size_t, c_char_p]),
    "spiked_stream_create": (c_int, [c_void_p, c_int64, POINTER(c_void_p)]),
    "spiked_stream_copy": (c_int, [c_void_p, POINTER(c_void_p)]),
    "spiked_stream_free": (None, [c_void_p]),
    "spiked_stream_append": (c_int, [c_void_p, c_char_p, c_char_p, POINTER(c_double)]),
    "spiked_roundtrip": (
        c_int,
        [POINTER(c_void_p), c_int64, c_char_p, c_int64, c_void_p, c_void_p, c_char_p, c_void_p],
    ),
}

# Names in messages of the library, and what they are called here; options of the command are named as arguments.
_NAMES_IN_C = {
    "wanted is": "values is",
    "row_noise": "row_spectrum",
    "col_noise": "col_spectrum",
    "pass NULL": "pass None",
    "spiked_codec_encode": "Codec.encode",
}
_MATRIX = re.compile(r"^(data|block): ")
_OPTION = re.compile(r"--([a-z][a-z-]*)")

_loading = threading.Lock()
_loaded: Optional[ctypes.CDLL] = None


def library() -> ctypes.CDLL:
    """The library, loaded by the first call: the variable SPIKED_LIBRARY, beside the package, then the system's.

    Raises
    ------
    LibraryNotFound
        It is in none of them, cannot be loaded, or is older than this package.
    """
    global _loaded
    if _loaded is None:
        with _loading:
            if _loaded is None:
                _loaded = _load()
    return _loaded


def _load() -> ctypes.CDLL:
    named = os.environ.get(LIBRARY_VARIABLE)
    beside = pathlib.Path(__file__).resolve().parent / LIBRARY_NAME
    path = named or (str(beside) if beside.is_file() else LIBRARY_NAME)
    try:
        found = ctypes.CDLL(path)
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(found, name)
            function.restype, function.argtypes = result, arguments
    except OSError as problem:
        raise LibraryNotFound(
            f"{LIBRARY_NAME} cannot be loaded ({problem}): install it, or set {LIBRARY_VARIABLE} to its path"
        ) from problem
    except AttributeError as problem:
        raise LibraryNotFound(
            f"{path} is older than this package ({problem}): install both of one version"
        ) from problem
    return found


class _Symbol(ctypes.Structure):
    """What dladdr of the C library says of an address."""

    _fields_ = [("file", c_char_p), ("base", c_void_p), ("name", c_char_p), ("address", c_void_p)]


def library_file() -> pathlib.Path:
    """The file of the library that is loaded."""
    found = _Symbol()
    address = ctypes.cast(library().spiked_version, c_void_p)
    if not ctypes.CDLL(None).dladdr(address, ctypes.byref(found)):
        raise InternalError(f"the file of {LIBRARY_NAME} is not known: set {LIBRARY_VARIABLE} to its path")
    return pathlib.Path(os.fsdecode(found.file))


def text_of(value: Optional[bytes]) -> str:
    """A text of the library."""
    return (value or b"").decode("utf-8", "replace")


def check(status: int) -> None:
    """Raises the error of the last call in this thread unless `status` is OK."""
    if status != OK:
        message = text_of(library().spiked_last_error())
        for name_in_c, name in _NAMES_IN_C.items():
            message = message.replace(name_in_c, name)
        message = _MATRIX.sub("X: ", message)
        message = _OPTION.sub(lambda found: found.group(1).replace("-", "_"), message)
        raise InternalError(message) if status == TOO_SMALL else error_of(status, message)


def words(value: Any, name: str) -> bytes:
    """A text for the library."""
    if not isinstance(value, str):
        raise UsageError(f"{name} is {value!r} (of type {type(value).__name__}): pass a str")
    if "\0" in value:
        raise UsageError(f"{name} {value!r} has a character 0: leave it out")
    return value.encode("utf-8", "surrogateescape")


def address_of(array: np.ndarray) -> int:
    """The address of the first entry: `array.ctypes.data`, in a third of its time for arrays in C order that may be written
    to. The caller keeps the array while the address is used."""
    if array.flags.carray and array.size:
        memory: Any = array  # older hints do not know that arrays have buffers
        return addressof(c_char.from_buffer(memory))
    return array.ctypes.data


def matrix_of(array: np.ndarray) -> bytes:
    """Describes a matrix of float32 or float64; the caller keeps the array while the description is used."""
    rows, cols = array.shape
    down, right = array.strides
    width = array.itemsize
    return MATRIX.pack(address_of(array), width // 4, rows, cols, down // width, right // width)


def blocks_of(array: np.ndarray) -> bytes:
    """Describes blocks (number, rows, columns)."""
    count, rows, cols = array.shape
    width = array.itemsize
    apart, down, right = array.strides
    return BLOCKS.pack(address_of(array), width // 4, rows, cols, down // width, right // width, count, apart // width)


@functools.lru_cache(maxsize=256)
def cost_of(method: str) -> float:
    """About how many times longer than one decomposition a method takes."""
    if _MANY_DECOMPOSITIONS.search(method):
        return 65535.0
    return 200.0 if _SEARCHING.search(method) else 1.0


def run_long(work: float, call: Callable[[], Result], keep: Tuple[Any, ...]) -> Result:
    """Makes a call of the library; Ctrl-C ends a long one by `spiked_stop_when`.

    Parameters
    ----------
    work : float
        About how many multiplications it takes; short calls are made at once.
    call : callable
        Makes the call, and checks its status in the same thread.
    keep : tuple
        The arrays and codecs that the library reads and writes, which must outlive it.
    """
    if work < LONG_CALL or threading.current_thread() is not threading.main_thread():
        return call()
    stop = c_int(0)

    def task(_kept: Tuple[Any, ...] = keep) -> Result:
        library().spiked_stop_when(stop)
        return call()

    def ask() -> None:
        stop.value = 1

    return interruptible(task, ask, LONGEST_STOP)
