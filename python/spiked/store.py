"""Studies and their stores."""

from __future__ import annotations

import csv
import io
import json
import os
import pathlib
import webbrowser
from typing import Any, Dict, List, Mapping, Optional, Union

import numpy as np

from ._arrays import whole
from ._command import document_of, run_command, run_json
from ._library import words
from .errors import InputError

__all__ = ["Store", "run"]

PathLike = Union[str, "os.PathLike[str]"]

TABLES = ("summary", "methods", "values", "cells", "failures", "bits", "checks", "theory")


def _word(path: PathLike) -> str:
    """A path as a word of the command, which would take one that begins with a dash for an option."""
    text = str(_path(path))
    return f"./{text}" if text.startswith("-") else text


def _path(path: PathLike) -> pathlib.Path:
    try:
        text = os.fsdecode(path)
    except TypeError:
        raise InputError(f"{path!r} is no path (of type {type(path).__name__}): pass a str or a pathlib.Path") from None
    if "\0" in text:
        raise InputError(f"the path {text!r} has a character 0: leave it out")
    return pathlib.Path(text)


def _structured(columns: List[str], rows: List[Dict[str, Any]]) -> np.ndarray:
    """A structured array: whole columns of integers, of truth values, of numbers with NaN where one is missing, or of
    texts with an empty one where one is missing."""
    fields = []
    data = []
    for column in columns:
        values = [row.get(column) for row in rows]
        present = [value for value in values if value is not None]
        if present and all(isinstance(value, bool) for value in present) and len(present) == len(values):
            data.append(np.array(values, dtype=bool))
        elif present and all(isinstance(value, int) for value in present) and len(present) == len(values):
            data.append(np.array(values, dtype=np.int64))
        elif all(isinstance(value, (int, float)) for value in present):
            data.append(np.array([np.nan if value is None else value for value in values], dtype=np.float64))
        else:
            data.append(np.array(["" if value is None else str(value) for value in values]))
        fields.append((column, data[-1].dtype if data[-1].dtype.itemsize else np.dtype("U1")))
    found = np.empty(len(rows), dtype=fields)
    for (column, _), entries in zip(fields, data):
        found[column] = entries
    return found


class Store:
    """The results of a study in a file, which pandas, R and any SQLite program can also read.

    Parameters
    ----------
    path : path_like
        A file ``.spiked``.

    Attributes
    ----------
    path : pathlib.Path
        The file.
    result : dict or None
        What `run` was told at the end: status, replicates, failed, checks and more; None for a store that was opened.

    Raises
    ------
    InputError
        The file is missing. Whether it is a store is found out by the first table.

    Examples
    --------
    >>> import spiked
    >>> spiked.run(study_file, output="tiny.spiked", set={"run.reps.min": 20})
    <spiked.Store 'tiny.spiked': complete, 20 replicates, checks: 0 passed, 0 failed, 0 inconclusive>
    >>> spiked.Store("tiny.spiked").passed          # it has no checks
    False
    """

    def __init__(self, path: PathLike, result: Optional[Dict[str, Any]] = None) -> None:
        self.path = _path(path)
        self.result = result
        if not self.path.is_file():
            raise InputError(f"{self.path}: there is no such file: name a store, which spiked.run writes")

    def __repr__(self) -> str:
        text = f"<spiked.Store {str(self.path)!r}"
        if self.result is not None:
            checks = ", ".join(f"{count} {verdict}" for verdict, count in self.result["checks"].items())
            text += f": {self.result['status']}, {self.result['replicates']} replicates, checks: {checks}"
        return text + ">"

    @property
    def passed(self) -> bool:
        """Whether the store has checks, and each of them passed."""
        verdicts = [row["verdict"] for row in self._rows("checks")]
        return bool(verdicts) and all(verdict == "pass" for verdict in verdicts)

    def _rows(self, table: str) -> List[Dict[str, Any]]:
        _, text = run_command(["export", _word(self.path), "--table", table, "--format", "json"])
        rows: List[Dict[str, Any]] = document_of(text)["rows"]
        return rows

    def table(self, name: str = "summary") -> Any:
        """A table of the store.

        Parameters
        ----------
        name : str
            ``summary`` (means and their standard errors by cell, method and metric), ``methods``, ``values`` (of each
            replicate), ``cells``, ``failures``, ``bits``, ``checks`` or ``theory``.

        Returns
        -------
        pandas.DataFrame or numpy.ndarray
            A data frame where pandas is installed, else a structured array, in which NaN is a missing number and an
            empty text a missing text. Units of metrics are those of ``spiked list metrics``.

        Raises
        ------
        UsageError
            There is no such table.
        InputError
            The file is no store.

        Examples
        --------
        >>> import spiked
        >>> store = spiked.run(study_file, output="tiny.spiked", set={"run.reps.min": 20})
        >>> sorted(set(store.table("values")["method"].tolist()))
        ['eoptshrink', 'sample']
        """
        words(name, "name")
        rows = self._rows(name)
        if rows:
            columns = list(rows[0])
        else:
            _, text = run_command(["export", _word(self.path), "--table", name, "--format", "csv"])
            columns = next(csv.reader(io.StringIO(text)), [])
        try:
            import pandas
        except ImportError:
            return _structured(columns, rows)
        return pandas.DataFrame(rows, columns=columns)

    def report(self, output: Optional[PathLike] = None, show: bool = True) -> pathlib.Path:
        """Writes the report, one HTML page with its pictures, and opens it in a browser where there is one.

        Parameters
        ----------
        output : path_like, optional
            The file to write; the store's name with ``.html`` when not given.
        show : bool
            Open it.

        Returns
        -------
        pathlib.Path
            The page.

        Raises
        ------
        OutputError
            It cannot be written.

        Examples
        --------
        >>> import spiked
        >>> store = spiked.run(study_file, output="tiny.spiked", set={"run.reps.min": 20})
        >>> store.report(show=False).name
        'tiny.html'
        """
        page = _path(output) if output is not None else self.path.with_suffix(".html")
        run_command(["report", _word(self.path), "-o", _word(page)])
        if show:
            try:
                webbrowser.open(page.resolve().as_uri())
            except webbrowser.Error:
                pass
        return page


def _toml(value: Any, key: str) -> str:
    """The value of a key of a study file."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    if isinstance(value, (str, os.PathLike)):
        return json.dumps(os.fsdecode(value), ensure_ascii=False)
    if isinstance(value, Mapping):
        inner = (f"{json.dumps(str(name))} = {_toml(entry, f'{key}.{name}')}" for name, entry in value.items())
        return "{ " + ", ".join(inner) + " }"
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return _toml(value[()], key)
    if isinstance(value, (list, tuple, range, np.ndarray)):
        return "[" + ", ".join(_toml(entry, key) for entry in value) + "]"
    raise InputError(
        f"set has {value!r} for {key} (of type {type(value).__name__}): pass a number, a text, a list or a mapping"
    )


def run(
    study: PathLike,
    output: Optional[PathLike] = None,
    set: Optional[Mapping[str, Any]] = None,  # noqa: A002 - the name of the command's option
    *,
    threads: int = 0,
    seed: Optional[Union[int, str]] = None,
    max_time: Optional[str] = None,
    device: str = "auto",
    report: bool = False,
    progress: bool = False,
) -> Store:
    """Runs a study file into its store, or resumes it, by the command ``spiked run``.

    Parameters
    ----------
    study : path_like
        A study file (TOML).
    output : path_like, optional
        The store; when not given, ``store.path`` of the study file.
    set : mapping, optional
        Keys of the study file, written with dots, and values: numbers, texts, lists, mappings.
    threads : int
        0: one for each processor. Results do not depend on it.
    seed : int or str, optional
        A seed in place of the file's: a number, hexadecimal digits, or ``"fresh"``.
    max_time : str, optional
        Stop after ``"90s"``, ``"10m"``, ``"4h"``; the same call resumes.
    device : str
        ``auto``, ``cpu``, ``cuda:0``.
    report : bool
        Also write the HTML page.
    progress : bool
        Show progress on `sys.stderr`.

    Returns
    -------
    Store
        A check that failed raises nothing: see `Store.passed` and ``table("checks")``.

    Raises
    ------
    UsageError
        The study file is wrong; the text has a line for each error.
    InputError, OutputError, OutOfMemory, FailedReplicates
        As the command's exit codes 4, 6, 7 and 5.
    Stopped
        `max_time` is over, or the process was stopped; the same call resumes.
    KeyboardInterrupt
        Ctrl-C; the command has saved what it had, and the same call resumes.

    Notes
    -----
    Source: ``spiked list claims`` names those of the claims that are checked, `list_methods` those of the methods.

    Examples
    --------
    >>> import spiked
    >>> store = spiked.run(study_file, output="tiny.spiked", set={"run.reps.min": 20})
    >>> store.result["status"]
    'complete'
    >>> sorted(set(store.table("summary")["method"].tolist()))
    ['eoptshrink', 'sample']
    """
    words(device, "device")
    arguments = ["run", _word(study), "--threads", str(whole(threads, "threads")), "--device", device]
    if output is not None:
        arguments += ["-o", _word(output)]
    if seed is not None:
        arguments += ["--seed", hex(int(seed)) if isinstance(seed, (int, np.integer)) else str(seed)]
    if max_time is not None:
        arguments += ["--max-time", str(max_time)]
    if not report:
        arguments.append("--no-report")
    arguments += ["--progress", "lines"] if progress else ["--quiet"]
    if set is not None and not isinstance(set, Mapping):
        raise InputError(f"set is {set!r} (of type {type(set).__name__}): pass a mapping of keys and values")
    for key, value in (set or {}).items():
        arguments += ["--set", f"{key}={_toml(value, key)}"]
    _, result = run_json(arguments, show=progress)
    return Store(result["store"], result)
