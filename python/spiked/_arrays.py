"""What is accepted as a matrix, and how results are given back."""

from __future__ import annotations

import operator
import sys
from typing import Any, NoReturn, Tuple

import numpy as np

from .errors import InputError, OutOfMemory

_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
_KINDS = {
    "c": "complex numbers: pass numpy.block([[{name}.real, -{name}.imag], [{name}.imag, {name}.real]]), which has its singular "
    "values, each twice",
    "O": "Python objects: convert it, for example with numpy.asarray({name}, dtype=float)",
    "U": "texts: convert it with numpy.asarray({name}, dtype=float)",
    "S": "texts: convert it with numpy.asarray({name}, dtype=float)",
    "M": "dates: convert them to numbers",
    "m": "durations: convert them to numbers",
    "V": "records: pass one field, or numpy.lib.recfunctions.structured_to_unstructured({name})",
}


def _reject_kind(name: str, kind: str) -> NoReturn:
    raise InputError(f"{name} holds {_KINDS[kind].format(name=name)}")


def reject_masked(value: Any, name: str) -> None:
    """Rejects masked values, which NumPy and scikit-learn take for numbers."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InputError(
            f"{name} has masked values (every entry counts): fill them, or remove their rows or columns; denoise, pca "
            f'and prepare take them as missing at random with missing="uniform"'
        )


def is_torch(value: Any) -> bool:
    """Whether `value` is a tensor of PyTorch, which is not imported for it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


def _from_torch(tensor: Any, name: str) -> np.ndarray:
    tensor = tensor.detach()
    if getattr(tensor, "is_quantized", False):
        raise InputError(f"{name} is a quantized tensor (its numbers have scales): pass {name}.dequantize()")
    if tensor.layout != sys.modules["torch"].strided:
        raise InputError(f"{name} is a sparse tensor (its zeros count here): pass {name}.to_dense()")
    if tensor.is_complex():
        _reject_kind(name, "c")
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    if tensor.is_floating_point() and tensor.element_size() < 4:
        tensor = tensor.float()
    return np.asarray(tensor.resolve_conj().resolve_neg().numpy())


def _numbers_of(value: Any, name: str) -> Any:
    """`value` in a form that NumPy reads: tensors, and tables of pandas with their own dtypes, also those of a list, which
    becomes a masked array where an entry of it has masked values."""
    if is_torch(value):
        try:
            return _from_torch(value, name)
        except (RuntimeError, TypeError, NotImplementedError) as problem:
            raise InputError(f"{name} is a tensor that NumPy cannot read ({problem}): pass its numbers") from problem
    if isinstance(value, (list, tuple)):
        parts = [_part(entry, name, i) for i, entry in enumerate(value)]
        if not any(np.ma.is_masked(part) for part in parts if isinstance(part, np.ma.MaskedArray)):
            return parts
        try:
            return np.ma.stack(parts)  # NumPy itself would take the values under the masks
        except ValueError as problem:
            raise InputError(f"{name} is no array ({problem}): pass rows of equal length") from problem
    if hasattr(value, "toarray") and hasattr(value, "nnz"):
        raise InputError(f"{name} is a sparse matrix (its zeros count here): pass {name}.toarray()")
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(value, (getattr(pandas, "DataFrame", ()), getattr(pandas, "Series", ()))):
        return value
    table: Any = value
    columns = list(table.items()) if table.ndim == 2 else [(table.name, table)]
    is_number = pandas.api.types.is_numeric_dtype
    other = [repr(label) for label, column in columns if not is_number(column.dtype)]
    if other:
        raise InputError(f"{name} has columns without numbers ({', '.join(other[:5])}): drop or convert them")
    dtypes = {column.dtype for _, column in columns}
    if any(dtype.kind == "c" for dtype in dtypes) or (len(dtypes) < 2 and all(isinstance(d, np.dtype) for d in dtypes)):
        return value
    return table.to_numpy(dtype=float, na_value=np.nan)


def _part(entry: Any, name: str, index: int) -> Any:
    """An entry of a list, most of which are numbers, rows or arrays that need nothing."""
    if isinstance(entry, (int, float, list, tuple)) or type(entry) is np.ndarray:
        return entry
    return _numbers_of(entry, f"{name}[{index}]")


def array(value: Any, name: str = "X", missing: bool = False) -> np.ndarray:
    """`value` as an array of float32 or float64 in native byte order, without a copy where it is one already.

    Parameters
    ----------
    value : array_like or torch.Tensor
        Numbers of any shape. float32 stays what it is; bool, integers, float16 and longer floats become float64. The
        array may be read-only and have any strides.
    name : str
        Its name in messages.
    missing : bool
        Masked values are missing entries, NaN.

    Raises
    ------
    InputError
        Complex numbers, texts, objects, records, masked values, sparse matrices and ragged lists.
    """
    if type(value) is np.ndarray and value.dtype in _DTYPES:
        return value
    value = _numbers_of(value, name)
    if isinstance(value, np.ma.MaskedArray):
        if not missing:
            reject_masked(value, name)
        if np.ma.is_masked(value) and value.dtype.kind not in _KINDS:
            value = np.ma.filled(value.astype(np.result_type(value.dtype, np.float32)), np.nan)
        else:
            value = value.data
    try:
        found = np.asarray(value)
    except (ValueError, TypeError) as problem:
        raise InputError(f"{name} is no array ({problem}): pass rows of equal length") from problem
    except MemoryError:
        raise OutOfMemory(f"{name} does not fit into memory: pass less data at once") from None
    kind = found.dtype.kind
    if kind in _KINDS:
        _reject_kind(name, kind)
    if found.dtype == np.float32 or found.dtype == np.float64:
        return found.astype(found.dtype.newbyteorder("="), copy=False)
    try:
        return found.astype(np.float64)
    except MemoryError:
        _reject_room(name, found.shape)


def _reject_size(found: np.ndarray, name: str, wanted: int, words: str) -> None:
    if found.ndim != wanted:
        hint = f"pass {name}.reshape(rows, columns)" if wanted == 2 and found.ndim == 1 else f"pass {words}"
        raise InputError(
            f"{name} has {found.ndim} dimensions (shape {found.shape}; expected {wanted}, {words}): {hint}"
        )
    if found.size == 0:
        raise InputError(f"{name} is empty (shape {found.shape}): pass at least one row and one column")


def matrix(value: Any, name: str = "X", missing: bool = False) -> np.ndarray:
    """`value` as a matrix (rows, columns) of float32 or float64; see `array`."""
    if type(value) is np.ndarray and value.ndim == 2 and value.size and value.dtype in _DTYPES and value.flags.carray:
        return value  # what most callers pass
    found = array(value, name, missing)
    _reject_size(found, name, 2, "rows and columns")
    return with_whole_strides(found)


def blocks(value: Any, name: str = "blocks") -> np.ndarray:
    """`value` as blocks (number, rows, columns) of float32 or float64; see `array`."""
    found = array(value, name)
    _reject_size(found, name, 3, "blocks, rows and columns")
    return with_whole_strides(found)


def vector(value: Any, name: str) -> np.ndarray:
    """`value` as a contiguous vector of float64; a number is a vector of one."""
    found = array(value, name)
    if found.ndim == 0:
        found = found.reshape(1)
    if found.ndim != 1:
        raise InputError(f"{name} has {found.ndim} dimensions (shape {found.shape}): pass a list of numbers")
    return np.ascontiguousarray(found, dtype=np.float64)


def whole(value: Any, name: str) -> int:
    """`value` as an integer of 64 bits, as the library counts; 2.5 and "3" are none."""
    try:
        found = operator.index(value)
    except TypeError:
        raise InputError(f"{name} is {value!r} (of type {type(value).__name__}): pass a whole number") from None
    if not -(2**63) <= found < 2**63:
        raise InputError(f"{name} is {found} (it has more than 64 bits): pass a smaller number")
    return found


def number(value: Any, name: str) -> float:
    """`value` as a float; texts are none."""
    try:
        if not isinstance(value, (str, bytes, bytearray)):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(f"{name} is {value!r} (of type {type(value).__name__}): pass a number")


def truth(value: Any, name: str) -> bool:
    """`value` as True or False; arrays and texts are neither."""
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, (int, np.integer)) and value in (0, 1)):
        return bool(value)
    raise InputError(f"{name} is {value!r} (of type {type(value).__name__}): pass True or False")


def shape(value: Any, name: str) -> Tuple[int, int]:
    """`value` as numbers of rows and columns."""
    try:
        rows, cols = value
    except (TypeError, ValueError):
        raise InputError(f"{name} is {value!r}: pass the numbers of rows and columns") from None
    found = whole(rows, f"{name}[0]"), whole(cols, f"{name}[1]")
    if min(found) < 1:
        raise InputError(f"{name} is {found[0]} x {found[1]}: pass at least one row and one column")
    return found


def room(wanted: Tuple[int, ...], name: str, dtype: Any = np.float64) -> np.ndarray:
    """An array that a call fills, of a size that the caller chose."""
    try:
        return np.empty(wanted, dtype)
    except (MemoryError, ValueError, OverflowError):
        _reject_room(name, wanted)


def _reject_room(name: str, wanted: Tuple[int, ...]) -> NoReturn:
    raise OutOfMemory(f"{name}: an array of shape {wanted} does not fit into memory: pass a smaller one") from None


def points(value: Any, name: str) -> Tuple[np.ndarray, np.ndarray]:
    """`value`, of any shape, as a new array of float64 in C order, and an array of that shape for results."""
    given = array(value, name)
    try:
        return np.array(given, dtype=np.float64, order="C"), np.empty(given.shape)
    except (MemoryError, ValueError):
        _reject_room(name, given.shape)


def with_whole_strides(found: np.ndarray) -> np.ndarray:
    """The same array; a copy where its strides are no multiples of an entry's size, as in a field of a record."""
    if found.flags.forc and found.flags.aligned:
        return found
    if all(stride % found.itemsize == 0 for stride in found.strides) and found.flags.aligned:
        return found
    return np.ascontiguousarray(found)


def like(result: np.ndarray, original: Any) -> Any:
    """`result` as what `original` is: a tensor of its dtype on its device, otherwise the array itself."""
    if not is_torch(original):
        return result
    torch = sys.modules["torch"]
    tensor = torch.from_numpy(result)
    dtype = original.dtype if original.is_floating_point() else tensor.dtype
    return tensor.to(device=original.device, dtype=dtype)
