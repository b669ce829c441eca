"""The exceptions of Spiked: each is also the built-in exception that its kind has in Python.

The texts are those of the command, ``problem (why): what to do``. `SpikedError.exit_code` is the exit code with which the
command ends for the same reason.
"""

from __future__ import annotations

from typing import Any, Dict, Optional, Type

__all__ = [
    "SpikedError",
    "UsageError",
    "InputError",
    "FailedReplicates",
    "OutputError",
    "OutOfMemory",
    "InternalError",
    "Stopped",
    "LibraryNotFound",
]


class SpikedError(Exception):
    """Any error of Spiked."""

    exit_code = 70


class UsageError(SpikedError, ValueError):
    """A name, an option or a study file is wrong; nothing was computed."""

    exit_code = 2


class InputError(SpikedError, ValueError):
    """A matrix, a file or encoded bytes cannot be used."""

    exit_code = 4


class FailedReplicates(SpikedError, RuntimeError):
    """More replicates of a study failed than its ``failure_budget`` allows."""

    exit_code = 5


class OutputError(SpikedError, OSError):
    """A file cannot be written."""

    exit_code = 6


class OutOfMemory(SpikedError, MemoryError):
    """There is too little memory; the text says how much is needed."""

    exit_code = 7


class InternalError(SpikedError, RuntimeError):
    """A defect of Spiked."""

    exit_code = 70


class Stopped(SpikedError, RuntimeError):
    """A study stopped before its end; the same call resumes it.

    Attributes
    ----------
    result : dict or None
        What the command said at the end, as `Store.result`; None where it said nothing.
    """

    exit_code = 75
    result: Optional[Dict[str, Any]] = None


class LibraryNotFound(SpikedError, ImportError):
    """``libspiked.so.0`` or the command ``spiked`` is not installed where the package looks for it."""

    exit_code = 70


_BY_EXIT_CODE: Dict[int, Type[SpikedError]] = {
    kind.exit_code: kind
    for kind in (UsageError, InputError, FailedReplicates, OutputError, OutOfMemory, InternalError, Stopped)
}


def error_of(exit_code: int, message: str) -> SpikedError:
    """The exception for an exit code of the command, which is also a status of the library."""
    kind = _BY_EXIT_CODE.get(exit_code)
    if kind is None:
        return InternalError(f"{message} (exit code {exit_code})")
    return kind(message)
