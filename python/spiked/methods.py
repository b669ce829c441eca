"""The names that functions accept."""

from __future__ import annotations

import ctypes
import json
from typing import Any, Dict, List

from ._library import TOO_SMALL, check, library, words

__all__ = ["list_methods"]


def list_methods(topic: str = "estimators") -> List[Dict[str, Any]]:
    """The methods with their options and sources, as ``spiked list`` shows them.

    Parameters
    ----------
    topic : {"estimators", "transforms", "quantizers", "caches", "spectra", "pca-losses"}
        What to list.

    Returns
    -------
    list of dict
        ``name``, ``form`` (the name with a value that must follow it), ``summary``, ``source``, ``aliases``, ``options``.

    Raises
    ------
    UsageError
        There is no such topic.

    Examples
    --------
    >>> import spiked
    >>> "tq-mse" in [method["name"] for method in spiked.list_methods("quantizers")]
    True
    """
    length = ctypes.c_size_t()
    name = words(topic, "topic")
    status = library().spiked_list(name, None, 0, length)
    if status != TOO_SMALL:
        check(status)
    buffer = ctypes.create_string_buffer(length.value + 1)
    check(library().spiked_list(name, buffer, len(buffer), length))
    methods: List[Dict[str, Any]] = json.loads(buffer.value.decode("utf-8"))
    return methods
