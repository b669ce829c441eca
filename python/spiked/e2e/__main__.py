"""``python -m spiked.e2e longbench|needles|table``."""

from __future__ import annotations

import argparse
import hashlib
import os
import pathlib
import platform
import sys
from importlib import metadata
from typing import Any, Callable, Dict, List, NoReturn, Optional

from .. import __version__
from .._library import library_file
from ..errors import LibraryNotFound, SpikedError, UsageError
from . import longbench, needles, table
from .benchmark import answer_all
from .chat import TEMPLATE_DATE, TEMPLATES
from .results import Results
from .runner import EXACT, ROTATIONS, Runner, architecture_of, methods_of
from .tokens import Tokens

__all__ = ["main"]

EPILOG = """Results are lines of JSON in OUTPUT/longbench.jsonl and OUTPUT/needles.jsonl, whose first line records all choices.
The same command again answers what is missing; other methods and bits are added to the same files. See docs/E2E.md."""
METHODS = f"{EXACT},tq-mse,tq-prod,svd:1+tq-mse,eoptshrink+tq-mse,eoptshrink+tq-prod"


class Parser(argparse.ArgumentParser):
    """Reports errors in one line."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}: see python -m spiked.e2e {self.prog.split()[-1]} --help")


def parser() -> argparse.ArgumentParser:
    whole = Parser(prog="python -m spiked.e2e", description=__doc__, epilog=EPILOG)
    commands = whole.add_subparsers(dest="command", required=True, parser_class=Parser)
    for name, module, text in (
        ("longbench", longbench, "scores of the 16 English tasks of LongBench"),
        ("needles", needles, "fraction of facts found in a long text"),
    ):
        one = commands.add_parser(name, help=text, description=text, epilog=EPILOG)
        one.add_argument("--model", required=True, metavar="FOLDER", help="a model of Hugging Face with tokenizer.json")
        one.add_argument("--method", default=METHODS, help=f"methods, with commas ({METHODS})")
        one.add_argument("--bits", type=float, default=2.0, help="bits of an index (2)")
        one.add_argument(
            "--block", type=int, default=128, help="tokens of a coded block and of a chunk of the prompt (128)"
        )
        one.add_argument("--output", default="results", metavar="FOLDER", help="where results are (results)")
        one.add_argument(
            "--dry-run", action="store_true", help="read and check everything, and print what the run costs"
        )
        one.add_argument("--template", choices=sorted(TEMPLATES), help="form of the messages (that of the folder)")
        one.add_argument("--system", help="system message (none)")
        one.add_argument(
            "--dtype", choices=["auto", "float32", "bfloat16", "float16"], default="auto", help="of the model (auto)"
        )
        one.add_argument("--device", default="cpu", help="of the model (cpu); codecs run on the CPU")
        one.add_argument(
            "--no-sliding-window",
            action="store_true",
            help="load the model without its sliding window, whose layers stay exact",
        )
        module.add_options(one)
    table.add_options(commands.add_parser("table", help="tables of results", description=table.__doc__))
    return whole


def common_choices(options: argparse.Namespace, tokens: Tokens) -> Dict[str, Any]:
    """What any result depends on."""
    return {
        "model": tokens.folder.resolve().name,
        "config_sha256": hashlib.sha256((tokens.folder / "config.json").read_bytes()).hexdigest(),
        "weights_ends_sha256": weights_sum(tokens.folder),
        "tokenizer_sha256": tokens.sha256,
        "template_sha256": tokens.template_sha256,
        "template_date": TEMPLATE_DATE.isoformat(),
        "dtype": options.dtype,
        "device": options.device,
        "no_sliding_window": options.no_sliding_window,
        "system": options.system,
        "generation": "greedy, no penalties",
        "block": options.block,
        "chunk": options.block,
        "keys_and_values": "the same method and bits; unrope+ for keys alone",
        "exact": "the same cache, whose codes are the rows themselves",
        "rotations": ROTATIONS,
        "versions": versions(),
        "spiked_sha256": build_sum(),
    }


def weights_sum(folder: pathlib.Path) -> str:
    """SHA-256 of the names, the sizes and the last mebibytes of the files of weights, which tells models apart quickly."""
    found = hashlib.sha256()
    for path in sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin")]):
        size = path.stat().st_size
        found.update(f"{path.name} {size}\n".encode())
        with open(path, "rb") as file:
            file.seek(max(0, size - 2**20))
            found.update(file.read())
    return found.hexdigest()


def build_sum() -> str:
    """SHA-256 of the library and of this package's files, which tells builds of one version apart."""
    package = pathlib.Path(__file__).resolve().parents[1]
    found = hashlib.sha256(library_file().read_bytes())
    for path in sorted(package.rglob("*.py")):
        found.update(f"{path.relative_to(package)}\n".encode() + path.read_bytes())
    return found.hexdigest()


def versions() -> Dict[str, str]:
    """Versions of the packages that results depend on, where they are installed."""
    found = {"python": platform.python_version(), "spiked": __version__}
    for package in ("torch", "transformers", "tokenizers"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            pass
    return found


def measure(options: argparse.Namespace, load: Callable[..., Runner]) -> None:
    if options.block < 1:
        raise UsageError(f"--block {options.block} is not possible (at least 1): give another number")
    model = architecture_of(options.model)
    methods = methods_of(options.method, options.bits, model.head_dim)
    try:
        tokens = Tokens(options.model, options.template, options.system)
    except ImportError as error:
        raise LibraryNotFound(
            f"{error} (it makes token ids, or fills a template): pip install tokenizers jinja2"
        ) from None

    def loaded() -> Runner:
        return load(options.model, options.dtype, options.device, options.block, options.no_sliding_window)

    def results(choices: Dict[str, Any]) -> Results:
        path = os.path.join(options.output, options.command + ".jsonl")
        whole = {**common_choices(options, tokens), **choices}
        return Results(path, options.command, whole, write=not options.dry_run)

    module = {"longbench": longbench, "needles": needles}[options.command]
    benchmark = module.benchmark_of(options, tokens, model)
    answer_all(benchmark, options, methods, tokens, model, loaded, results, lambda line: print(line, flush=True))


def main(arguments: Optional[List[str]] = None, load: Callable[..., Runner] = Runner) -> int:
    """Runs a command and gives its exit code, which is that of the command spiked for the same reason.

    Parameters
    ----------
    arguments : list of str, optional
        Words after ``python -m spiked.e2e``; those of the process when not given.
    load : callable
        Makes the `Runner`, from the folder, the dtype, the device, the block and whether the window is left out.

    Returns
    -------
    int
        0; 2 for wrong options, 4 for data, 6 for output, 7 for memory, 75 after Ctrl-C. The reason is on `sys.stderr`.

    Examples
    --------
    >>> from spiked.e2e.__main__ import main
    >>> main(["table", "no-such-folder"])
    4
    """
    try:
        options = parser().parse_args(arguments)
        if options.command == "table":
            sys.stdout.write(table.run(options))
        else:
            measure(options, load)
    except SpikedError as error:
        print(f"spiked.e2e: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("spiked.e2e: stopped: the same command goes on", file=sys.stderr)
        return 75
    return 0


if __name__ == "__main__":
    sys.exit(main())
