"""What is accepted as a matrix, and how results are given back."""

from __future__ import annotations

import sys
from typing import Any, Tuple

import numpy as np

from .errors import InputError

_KINDS = {
    "c": "complex numbers: pass its real part, or columns of real and imaginary parts",
    "O": "Python objects: convert it, for example with numpy.asarray(X, dtype=float)",
    "U": "texts: convert it with numpy.asarray(X, dtype=float)",
    "S": "texts: convert it with numpy.asarray(X, dtype=float)",
    "M": "dates: convert them to numbers",
    "m": "durations: convert them to numbers",
    "V": "records: pass one field, or numpy.lib.recfunctions.structured_to_unstructured(X)",
}


def is_torch(value: Any) -> bool:
    """Whether `value` is a tensor of PyTorch, which is not imported for it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


def _from_torch(tensor: Any, name: str) -> np.ndarray:
    tensor = tensor.detach()
    if tensor.layout != sys.modules["torch"].strided:
        raise InputError(f"{name} is a sparse tensor (its zeros count here): pass {name}.to_dense()")
    if tensor.is_complex():
        raise InputError(f"{name} holds {_KINDS['c']}")
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    if tensor.is_floating_point() and tensor.element_size() < 4:
        tensor = tensor.float()
    return np.asarray(tensor.numpy())


def array(value: Any, name: str = "X") -> np.ndarray:
    """`value` as an array of float32 or float64 in native byte order, without a copy where it is one already.

    Parameters
    ----------
    value : array_like or torch.Tensor
        Numbers of any shape. float32 stays what it is; bool, integers, float16 and longer floats become float64. The
        array may be read-only and have any strides.
    name : str
        Its name in messages.

    Raises
    ------
    InputError
        Complex numbers, texts, objects, records, masked values, sparse matrices and ragged lists.
    """
    if is_torch(value):
        value = _from_torch(value, name)
    elif hasattr(value, "toarray") and hasattr(value, "nnz"):
        raise InputError(f"{name} is a sparse matrix (its zeros count here): pass {name}.toarray()")
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.is_masked(value):
            raise InputError(
                f"{name} has masked values (every entry counts): fill them, or remove their rows or columns"
            )
        value = value.data
    try:
        found = np.asarray(value)
    except ValueError as problem:
        raise InputError(f"{name} is no array ({problem}): pass rows of equal length") from problem
    kind = found.dtype.kind
    if kind in _KINDS:
        raise InputError(f"{name} holds {_KINDS[kind]}")
    if found.dtype == np.float32 or found.dtype == np.float64:
        return found.astype(found.dtype.newbyteorder("="), copy=False)
    return found.astype(np.float64)


def _reject_size(found: np.ndarray, name: str, wanted: int, words: str) -> None:
    if found.ndim != wanted:
        hint = f"pass {name}.reshape(rows, columns)" if wanted == 2 and found.ndim == 1 else f"pass {words}"
        raise InputError(
            f"{name} has {found.ndim} dimensions (shape {found.shape}; expected {wanted}, {words}): {hint}"
        )
    if found.size == 0:
        raise InputError(f"{name} is empty (shape {found.shape}): pass at least one row and one column")


def matrix(value: Any, name: str = "X") -> np.ndarray:
    """`value` as a matrix (rows, columns) of float32 or float64; see `array`."""
    found = array(value, name)
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


def with_whole_strides(found: np.ndarray) -> np.ndarray:
    """The same array; a copy where its strides are no multiples of an entry's size, as in a field of a record."""
    if all(stride % found.itemsize == 0 for stride in found.strides) and found.flags.aligned:
        return found
    return np.ascontiguousarray(found)


def entry_strides(found: np.ndarray) -> Tuple[int, ...]:
    """Strides in entries, as the C interface takes them."""
    return tuple(stride // found.itemsize for stride in found.strides)


def like(result: np.ndarray, original: Any) -> Any:
    """`result` as what `original` is: a tensor of its dtype on its device, otherwise the array itself."""
    if not is_torch(original):
        return result
    torch = sys.modules["torch"]
    tensor = torch.from_numpy(result)
    dtype = original.dtype if original.is_floating_point() else tensor.dtype
    return tensor.to(device=original.device, dtype=dtype)
