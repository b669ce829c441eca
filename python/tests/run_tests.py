"""Runs the tests of one file of this folder, or of all: run_tests.py [denoising]. Ends with 77 where NumPy is not installed.

The package that is tested is the one beside this folder where SPIKED_LIBRARY is set or no package is installed, and otherwise
the installed one.
"""

import importlib.util
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent


def main():
    try:
        import numpy  # noqa: F401
    except ImportError:
        print("skipped: NumPy is not installed")
        return 77
    if "SPIKED_LIBRARY" in os.environ or importlib.util.find_spec("spiked") is None:
        sys.path.insert(0, str(HERE.parent))
        os.environ["PYTHONPATH"] = str(HERE.parent)  # for the programs that tests start
    sys.path.insert(0, str(HERE))
    name = sys.argv[1] if len(sys.argv) > 1 else "*"
    tests = unittest.defaultTestLoader.discover(str(HERE), pattern=f"test_{name}.py", top_level_dir=str(HERE))
    result = unittest.TextTestRunner(verbosity=1).run(tests)
    for reason in sorted({reason for _, reason in result.skipped}):
        print("skipped:", reason)
    return exit_code(result)


def exit_code(result):
    """0 where tests passed, 77 where all of them were skipped, 1 where one failed or there was none. A test whose parts
    were skipped counts once for each part."""
    if not result.wasSuccessful():
        return 1
    if result.skipped and result.testsRun <= len(result.skipped):
        return 77
    return 0 if result.testsRun + len(result.skipped) > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
