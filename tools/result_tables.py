"""Helpers of tools/cache-tables, tools/real-tables and tools/task-tables: running the program, and writing Markdown tables."""
import csv
import functools
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent.parent


class Program:
    """The folder of data and the program given on a tool's command line; prints its usage when they are missing."""

    def __init__(self, usage):
        if len(sys.argv) not in (2, 3):
            sys.exit(usage)
        self.folder = pathlib.Path(sys.argv[1])
        self.path = sys.argv[2] if len(sys.argv) == 3 else "build/release/bin/spiked"

    def answer(self, command, places=None):
        """The JSON output of `spiked COMMAND`; each key of `places` at the start of an argument is replaced by its
        path."""
        arguments = command.split()
        for key, path in (places or {}).items():
            arguments = [str(path) + word[len(key):] if word == key or word.startswith(key + "/") else word
                         for word in arguments]
        done = subprocess.run([self.path, *arguments, "--json", "--quiet"], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{sys.argv[0]}: spiked {command}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    @functools.cached_property
    def build(self):
        """Version and commit of the program."""
        found = self.answer("--version")
        return found["version"], found["commit"].split("-")[0]

    def stamp(self, commits=()):
        """What made the tables; `commits`, if not the program's own."""
        version, own = self.build
        return f"Made by `tools/{pathlib.Path(sys.argv[0]).name}` with spiked {version} ({', '.join(commits or [own])})."


def with_error(value, error):
    """A value with its standard error in units of the last digit in brackets, at least 3 of them."""
    if not error:
        return f"{value:.3f}"
    digits = next((k for k in range(5) if round(error * 10**k) >= 3), 5)
    return f"{value:.{digits}f}({error * 10**digits:.0f})"


def printed(side, method, bits, metric, scale=1.0, digits=1):
    """The paper's values for Llama-3.1-8B / Ministral-8B, or an empty string where it has none."""
    columns = {"key": ("1 Llama keys", "3 Ministral keys"), "value": ("2 Llama values", "4 Ministral values")}[side]
    with open(HERE / "validation/studies/paper-tables-dumps.csv", newline="") as file:
        lines = [line for line in csv.reader(file)
                 if len(line) > 4 and line[1:4] == [f"side={side}", f"{method} B={bits}", metric]]
    found = {line[0]: f"{scale * float(line[4]):.{digits}f}" for line in lines}
    return " / ".join(found.get(column, "-") for column in columns) if found else ""


def table(heads, rows, numbers_from=None):
    """Prints a table. Columns from `numbers_from` on are aligned to the right."""
    left = len(heads) if numbers_from is None else numbers_from
    print("|" + "|".join(heads) + "|\n|" + "---|" * left + "--:|" * (len(heads) - left))
    for row in rows:
        print("|" + "|".join(row) + "|")
    print()
