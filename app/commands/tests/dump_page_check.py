"""Writes a small cache in every form that a row of docs/how-to/dumps.md has options for, and reads it with them.

  dump_page_check.py SPIKED FOLDER"""
import pathlib
import re
import shlex
import subprocess
import sys

import numpy

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "how-to" / "dumps.md"


def a_side(name, keys, values=None):
    return {name.format("k"): keys, name.format("v"): keys if values is None else values}


# The tensors of the caches that are read with the options of a row: shapes whose sizes differ from axis to axis.
PAGED = [{"kv_cache": (2, 8, 64, 3, 16)}, {"kv_cache": (8, 2, 64, 3, 16)}, {"layers.0": (8, 2, 64, 3, 16)}]
CACHES = {
    "--format hf": [{f"past_key_values.0.{side}": (1, 3, 128, 16) for side in (0, 1)},
                    {f"layers.0.{side}": (1, 3, 128, 16) for side in ("keys", "values")}],
    "--pattern 'past_key_values.{layer}.decoder.{side}' --layout batch,head,token,dim":
        [{f"past_key_values.0.{part}.{side}": (1, 3, 128, 16) for part in ("decoder", "encoder") for side in ("key", "value")}],
    "--pattern 'past_{layer}' --layout side,batch,head,token,dim": [{f"past_{layer}": (2, 1, 3, 128, 16) for layer in range(3)}],
    "--pattern 'layers/{layer}/attention/cached_{side}' --layout batch,token,head,dim":
        [{f"layers/0/attention/cached_{side}": (1, 128, 3, 16) for side in ("key", "value")}],
    "--pattern 'layers.{layer}.attention.kv_cache.{side}_cache' --layout batch,head,token,dim":
        [a_side("layers.0.attention.kv_cache.{}_cache", (1, 3, 128, 16))],
    "--format bloom": [{"past_key_values.0.0": (3, 16, 128), "past_key_values.0.1": (3, 128, 16)}],
    "--format vllm --block-table 3,1,7": PAGED,
    "--format vllm-hnd --block-table 3,1,7": [{"kv_cache": (2, 8, 3, 64, 16)}, {"kv_cache": (8, 2, 3, 64, 16)}],
    "--pattern 'layers.{layer}.{side}' --layout block,token,head,dim --block-table 3,1,7":
        [{f"layers.0.{side}": (8, 64, 3, 16) for side in ("key", "value")}],
    "--pattern '{side}_cache' --layout block,head,token,dim --block-table 3,1,7": [a_side("{}_cache", (8, 3, 64, 16))],
    "--format vllm --layout side,token,hidden --head-dim 128": [{"kv_cache": (2, 192, 256)}],
    "--format lmcache --head-dim 128": [{"tensor_bytes": (2, 3, 192, 256)}, {"tensor_bytes": (2, 192, 256)},
                                        {"chunk.0": (2, 3, 192, 256), "chunk.1": (2, 3, 64, 256)}],
    "--format mlx": [{f"0.{side}": (1, 3, 128, 16) for side in (0, 1)}],
    "--format stacked": [a_side("{}", (2, 1, 3, 128, 16))],
    "--format hf --skip-empty": [{f"past_key_values.0.{side}": (1, 3, 1088, 16) for side in (0, 1)}],
    "--format hf --tokens :1020": [{f"past_key_values.0.{side}": (1, 3, 1088, 16) for side in (0, 1)}],
    "--format vllm --codes e4m3 --scale NUMBER": PAGED[:1],
    "--layout token,head,dim": [{f"layers.0.{side}": (128, 3, 16) for side in ("key", "value")}],
    "--pattern 'l{layer}.h{head}.{side}' --layout token,dim": [a_side("l0.h0.{}", (128, 16))],
}


def options_of_page():
    """The options of all rows, without those of rows that read no file."""
    found = set()
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            found |= {code for code in re.findall(r"`([^`]*)`", line.split("|")[-2]) if code.startswith("--")}
    return found


def main():
    spiked, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    page = options_of_page()
    if page != set(CACHES):
        sys.exit(f"only the page or only this test has the options {sorted(page ^ set(CACHES))}")
    random = numpy.random.default_rng(1)
    for options, caches in CACHES.items():
        words = [word.replace("NUMBER", "0.5") for word in shlex.split(options)]
        for shapes in caches:
            coded = "--codes" in words
            tensors = {name: random.integers(0, 100, shape, dtype=numpy.uint8) if coded else
                       random.standard_normal(shape).astype(numpy.float32) for name, shape in shapes.items()}
            if "--skip-empty" in words:
                for tensor in tensors.values():
                    tensor[..., 1020:, :] = 0
            numpy.savez(folder / "cache.npz", **tensors)
            for command in ("inspect", "run"):
                rest = [] if command == "inspect" else ["--method", "tq-mse", "--bits", "2", "--attention", "none", "--block", "64"]
                made = subprocess.run([spiked, "kv", command, folder / "cache.npz", *words, *rest], capture_output=True, text=True,
                                      check=False)
                if made.returncode != 0:
                    sys.exit(f"spiked kv {command} {options} of {shapes}: exit code {made.returncode}, {made.stderr}")
    print(f"{len(CACHES)} options of the page read their caches")


main()
