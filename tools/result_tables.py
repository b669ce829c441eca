"""Helpers of tools/cache-tables and tools/task-tables: running the program, and writing Markdown tables."""
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

    def stamp(self):
        version = self.answer("--version")
        tool = pathlib.Path(sys.argv[0]).name
        return f"Made by `tools/{tool}` with spiked {version['version']} ({version['commit'].split('-')[0]})."


def table(heads, rows, numbers_from=None):
    """Prints a table. Columns from `numbers_from` on are aligned to the right."""
    left = len(heads) if numbers_from is None else numbers_from
    print("|" + "|".join(heads) + "|\n|" + "---|" * left + "--:|" * (len(heads) - left))
    for row in rows:
        print("|" + "|".join(row) + "|")
    print()
