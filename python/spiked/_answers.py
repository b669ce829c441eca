"""Numbers in the options and in the documents of the command."""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence

import numpy as np


def joined(numbers: np.ndarray) -> str:
    """Numbers as the value of an option, with all their digits."""
    return ",".join(repr(x) for x in numbers.tolist())


def number_of(value: Optional[float]) -> float:
    """NaN where the command has null."""
    return float("nan") if value is None else float(value)


def column(rows: Sequence[Dict[str, Any]], key: str) -> np.ndarray:
    """The numbers of this key in a list of objects."""
    return np.array([number_of(row[key]) for row in rows], dtype=float)
