"""What a run of a benchmark costs."""

from __future__ import annotations

import os
import time
from typing import List, Mapping, Sequence, Tuple

from .runner import EXACT, Architecture, Method

__all__ = ["cost_lines"]


def codec_seconds(method: Method, head_dim: int, block: int) -> float:
    """Processor seconds for one block, from coding and decoding random ones."""
    import numpy as np

    from ..quantization import Codec, roundtrip

    blocks = np.random.default_rng(1).standard_normal((4, block, head_dim)).astype(np.float32)
    codec = Codec(method.codec, dim=head_dim, bits=method.bits or 16)
    roundtrip(codec, blocks[:1], threads=1)
    begin = time.process_time()
    roundtrip(codec, blocks, threads=1)
    return (time.process_time() - begin) / len(blocks)


def cost_lines(sizes: Mapping[Method, Sequence[Tuple[int, int]]], model: Architecture, block: int) -> List[str]:
    """What a run costs, one line for the model and one for each method.

    Parameters
    ----------
    sizes : mapping from Method to sequence of (int, int)
        Tokens of each prompt, and of its answer at most.
    model : Architecture
        What it is run with.
    block : int
        Tokens of a coded block.

    Returns
    -------
    list of str
        Operations, hours at 1 TFLOP/s, and hours of processors for the codecs, measured on random blocks here.

    Examples
    --------
    >>> from spiked.e2e.runner import Architecture, Method
    >>> small = Architecture(2, 4, 2, 16, 64, 256, 1000, 512)
    >>> for line in cost_lines({Method("exact", None): [(300, 20)]}, small, 128):
    ...     print(line)
    300 to 300 tokens a prompt, 300 together; answers of at most 20 tokens
    model: 1.08e+08 floating-point operations, 2.99e-08 hours at 1 TFLOP/s
    """
    every = [size for each in sizes.values() for size in each]
    if not every:
        return []
    tokens, answers = [n for n, _ in every], [k for _, k in every]
    operations = sum(model.operations(*size) for size in every)
    lines = [
        f"{min(tokens)} to {max(tokens)} tokens a prompt, {sum(tokens)} together; answers of at most {sum(answers)} tokens",
        f"model: {operations:.3g} floating-point operations, {operations / 3.6e15:.3g} hours at 1 TFLOP/s",
    ]
    for method, each in sizes.items():
        if method.name == EXACT or not each:
            continue
        blocks = sum(model.blocks(*size, block) for size in each)
        seconds = codec_seconds(method, model.head_dim, block)
        lines.append(
            f"{method.name} at {method.bits:g} bits: {blocks} blocks of {block} x {model.head_dim} at {1000 * seconds:.2g} ms, "
            f"{blocks * seconds / 3600:.2g} core-hours, {blocks * seconds / 3600 / (os.cpu_count() or 1):.2g} hours on the "
            f"{os.cpu_count()} processors here"
        )
    return lines
