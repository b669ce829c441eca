"""The examples of every docstring and of docs/PYTHON.md, and that everything public is documented."""

import contextlib
import doctest
import importlib
import inspect
import io
import os
import pathlib
import pkgutil
import re
import tempfile
import typing
import unittest

import spiked
from support import ROOT, TINY_STUDY

EXTRAS = ("jinja2", "lm_eval", "sklearn", "tokenizers", "torch", "transformers")


def modules(package=spiked):
    """The package, and all of its modules that can be imported here."""
    yield package
    for _, name, _ in pkgutil.iter_modules(package.__path__):
        try:
            module = importlib.import_module(f"{package.__name__}.{name}")
        except ImportError as problem:
            # An extra, or a module that says in a sentence which one is missing.
            if problem.name not in EXTRAS and not any(f"'{extra}" in str(problem) for extra in EXTRAS):
                raise
            continue
        if hasattr(module, "__path__"):
            yield from modules(module)
        else:
            yield module


def lacks_an_extra(module):
    """Whether an example of a module needs a package that is not installed."""
    text = pathlib.Path(module.__file__).read_text()
    needed = re.findall(r">>> import (.*)", text)
    return any(importlib.util.find_spec(name) is None for line in needed for name in line.split(", ") if name in EXTRAS)


class Documents(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        pathlib.Path("study.toml").write_text(TINY_STUDY)

    def test_examples_of_docstrings(self):
        count = 0
        for module in modules():
            if lacks_an_extra(module):
                continue
            result = doctest.testmod(module, extraglobs={"study_file": "study.toml"}, report=True)
            self.assertEqual(result.failed, 0, module.__name__)
            count += result.attempted
        self.assertGreater(count, 40)

    def test_everything_public_is_documented(self):
        for name in spiked.__all__:
            entry = getattr(spiked, name)
            with self.subTest(name):
                text = inspect.getdoc(entry)
                self.assertTrue(text and text.strip())
                if inspect.isfunction(entry):
                    self.check_sections(text, "Raises")
                    self.check_function(entry, text)
                    self.assertRegex(text, "Source: |``source``")
                elif inspect.isclass(entry) and not issubclass(entry, Exception):
                    self.check_class(entry, text)

    def test_everything_public_in_other_modules_is_documented(self):
        """Those of spiked.hf, spiked.e2e and spiked.sklearn; what is not in `__all__` is not public."""
        for module in modules():
            if not re.match(r"spiked\.(hf$|e2e\.|sklearn$)", module.__name__):
                continue
            for name in getattr(module, "__all__", ()):
                entry = getattr(module, name)
                with self.subTest(f"{module.__name__}.{name}"):
                    text = inspect.getdoc(entry) or ""
                    self.check_sections(text, "Examples")
                    if inspect.isclass(entry):
                        self.assertRegex(text, "(?m)^(Parameters|Attributes)\n-+$")
                    else:
                        self.check_function(entry, text)

    def check_class(self, kind, text):
        self.assertRegex(text, "(?m)^(Parameters|Attributes)\n-+$")
        self.check_sections(text, "Examples")
        for name, method in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_"):
                with self.subTest(method=name):
                    self.check_function(method, inspect.getdoc(method) or "")

    def check_sections(self, text, *sections):
        for section in sections:
            self.assertRegex(text, rf"(?m)^{section}\n-+$")

    def check_function(self, function, text):
        self.check_sections(text, "Returns", "Examples")
        if list(inspect.signature(function).parameters) == ["self"]:
            return
        self.check_sections(text, "Parameters")
        parameters = text[text.index("Parameters\n") : text.index("Returns\n")]
        described = []
        for line in re.findall(r"(?m)^([\w, *]+)(?: : .*)?$", parameters):
            described += [word.strip("* ") for word in line.split(",")]
        hints = typing.get_type_hints(function)
        self.assertIn("return", hints)
        for name in inspect.signature(function).parameters:
            if name == "self":
                continue
            self.assertIn(name, described)
            self.assertIn(name, hints)

    def test_type_hints_agree_with_the_code(self):
        try:
            import mypy.api
        except ImportError:
            self.skipTest("mypy is not installed")
        # NumPy before 2 has no hints for masked arrays, and wants the parameters of ndarray to be written.
        # Where PyTorch is not installed, its decorators have none.
        older = ["--allow-any-generics", "--allow-untyped-calls", "--allow-untyped-decorators"]
        options = ["--strict", *older, "--ignore-missing-imports", f"--cache-dir={os.getcwd()}"]
        found, problems, code = mypy.api.run([*options, spiked.__path__[0]])
        self.assertEqual(code, 0, found + problems)

    def test_examples_of_the_page(self):
        page = ROOT / "docs/PYTHON.md"
        blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
        self.assertGreater(len(blocks), 3)
        names = {}
        for block in blocks:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block, str(page), "exec"), names)

    def test_the_tutorial_runs_and_the_page_shows_what_it_prints(self):
        try:
            import matplotlib
        except ImportError:
            self.skipTest("matplotlib is not installed")
        matplotlib.use("Agg")
        specification = importlib.util.spec_from_file_location("render", ROOT / "python/examples/render.py")
        render = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(render)
        page = render.rendered(ROOT / "python/examples/tutorial.py", pathlib.Path.cwd())
        shown = (ROOT / "docs/PYTHON.md").read_text()
        self.assertIn(page, shown, "docs/PYTHON.md is not what python/examples/render.py writes: run it")


if __name__ == "__main__":
    unittest.main()
