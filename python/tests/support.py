"""What several tests use: the command beside the package, and matrices."""

import json
import pathlib
import subprocess
import sys

import numpy as np

from spiked._command import command_path

TINY_STUDY = """
spiked = 1
[study]
name = "tiny"
seed = "0x5eed"
[model]
kind = "spiked"
n = 30
d = 40
noise = { entries = "gaussian" }
signal = { strength = [3.0], unit = "threshold", vectors = "haar" }
[[estimator]]
name = "eoptshrink"
[run]
reps = { min = 40, batch = 20 }
"""


def command(*arguments, check=True):
    """What the command prints with --json."""
    done = subprocess.run([command_path(), *map(str, arguments), "--json", "-q"], capture_output=True, text=True)
    if check and done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


def matrix(rows=40, cols=60, strengths=(4.0, 3.0), seed=1):
    """A signal of these singular values in white noise of variance 1/cols."""
    rng = np.random.default_rng(seed)
    left = np.linalg.qr(rng.standard_normal((rows, len(strengths))))[0]
    right = np.linalg.qr(rng.standard_normal((cols, len(strengths))))[0]
    return left @ np.diag(strengths) @ right.T + rng.standard_normal((rows, cols)) / cols**0.5


def run_python(text, *arguments, timeout=600):
    """Runs a program in a process of its own."""
    return subprocess.run([sys.executable, "-c", text, *arguments], capture_output=True, text=True, timeout=timeout)


def operator_optimum(s, left, right):
    """Minimises the largest singular value of s a b^T - t c e^T on a grid, then between grid points: a number that shares
    nothing with the formula of the library."""
    found = []
    for strength, a, b in zip(s, left, right):
        u, v = np.array([a**0.5, (1 - a) ** 0.5]), np.array([b**0.5, (1 - b) ** 0.5])
        low, high = 0.0, 2 * strength
        for _ in range(40):
            grid = np.linspace(low, high, 201)
            errors = [np.linalg.norm(np.diag([strength, 0]) - t * np.outer(u, v), 2) for t in grid]
            best = int(np.argmin(errors))
            low, high = grid[max(best - 1, 0)], grid[min(best + 1, 200)]
        found.append((low + high) / 2)
    return np.array(found)


ROOT = pathlib.Path(__file__).resolve().parents[2]
