"""The command `spiked` of a wheel, started in place of Python; NumPy is not imported for it."""

import os
import pathlib
import sys


def main() -> None:
    program = pathlib.Path(__file__).resolve().parent / "spiked" / "bin" / "spiked"
    if not program.is_file():
        sys.exit(
            f"spiked: {program} is missing (this package was installed without the command): install the package spiked again"
        )
    os.execv(program, ["spiked", *sys.argv[1:]])
