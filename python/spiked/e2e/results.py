"""Files of results: one line of JSON for each prompt, appended when its answer is complete, so that a run can stop anywhere."""

from __future__ import annotations

import fcntl
import json
import pathlib
import sys
from typing import Any, BinaryIO, Dict, Iterator, List, Optional, Set, Tuple, Union

from ..errors import InputError, OutputError, UsageError

__all__ = ["Results"]

SCHEMA = "spiked.e2e/1"


def read_lines(path: pathlib.Path, most: Optional[int] = None) -> Iterator[Tuple[int, Dict[str, Any]]]:
    """Number and object of each line that is not empty, of the first `most` lines.

    Raises
    ------
    InputError
        The file cannot be read, or a line is no object of JSON; the text has its number.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}): name another file") from None
    for number, line in enumerate(content.split(b"\n")[:most], 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line.decode("utf-8"))
        except ValueError as error:
            reason = str(error).split(":")[0]
            raise InputError(f"{path}:{number}: no JSON ({reason}): copy the file again, or delete the line") from None
        if not isinstance(found, dict):
            raise InputError(f"{path}:{number}: {type(found).__name__} (expected an object of JSON): delete the line")
        yield number, found


class Results:
    """A file of results that is open for adding lines, and for this process alone.

    The first line has the choices of the run; a file with others is not added to. A last line that was cut off, when a run
    was killed while writing it, is dropped with a note.

    Parameters
    ----------
    path : path_like
        The file, made with its folder when missing.
    benchmark : str
        ``longbench`` or ``needles``.
    choices : dict
        All that results depend on, except what their own lines say.
    write : bool
        False only reads the file, which need not exist; `add` then keeps its lines in memory alone.

    Raises
    ------
    UsageError
        The file has results of other choices.
    InputError
        It is no file of results.
    OutputError
        It cannot be written, or another process writes it.

    Examples
    --------
    >>> for run in range(2):
    ...     with Results("results.jsonl", "needles", {"seed": 1}) as file:
    ...         done = file.done(("method", "index"))
    ...         if ("exact", 0) not in done:
    ...             file.add({"kind": "answer", "method": "exact", "index": 0, "score": 1.0})
    >>> done
    {('exact', 0)}
    """

    def __init__(
        self, path: Union[str, pathlib.Path], benchmark: str, choices: Dict[str, Any], write: bool = True
    ) -> None:
        self.path = pathlib.Path(path)
        self.file: Optional[BinaryIO] = None
        if not write:
            whole = self.path.read_bytes().count(b"\n") if self.path.is_file() else 0
            self._begin(benchmark, choices, list(read_lines(self.path, whole)) if whole else [])
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.file = open(self.path, "a+b")
        except OSError as error:
            raise OutputError(
                f"{self.path}: cannot be written ({error.strerror}): name another --output folder"
            ) from None
        try:
            self._begin(benchmark, choices, self._locked_lines(self.file))
        except BaseException:
            self.file.close()
            raise

    def _locked_lines(self, file: BinaryIO) -> List[Tuple[int, Dict[str, Any]]]:
        """The lines of the file, which no other process writes from now on, without a last one that was cut off."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise OutputError(
                f"{self.path}: another run is writing it: wait for it, or name another --output folder"
            ) from None
        file.seek(0)
        content = file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            print(
                f"note: {self.path}: its last line was cut off, by a run that was killed; dropped, and computed again",
                file=sys.stderr,
            )
            file.truncate(whole)
        return list(read_lines(self.path))

    def _begin(self, benchmark: str, choices: Dict[str, Any], lines: List[Tuple[int, Dict[str, Any]]]) -> None:
        """Compares the choices with those of the first line, which is written where there is none."""
        begin = {"schema": SCHEMA, "benchmark": benchmark, "choices": json.loads(json.dumps(choices))}
        self.rows: List[Dict[str, Any]] = [row for _, row in lines[1:]]
        self.numbers = [number for number, _ in lines[1:]]
        if not lines:
            self._write(begin)
            return
        first = lines[0][1]
        if first.get("schema") != SCHEMA or first.get("benchmark") != benchmark or "choices" not in first:
            raise InputError(
                f"{self.path}: no results of {benchmark} (its first line does not say {SCHEMA}): name another --output folder"
            )
        old, new = first["choices"], begin["choices"]
        for key in sorted(set(old) | set(new)):
            if old.get(key) != new.get(key):
                raise UsageError(
                    f"{self.path}: its results have {key} = {json.dumps(old.get(key))}, this run "
                    f"{json.dumps(new.get(key))}: name another --output folder"
                )

    def done(self, keys: Tuple[str, ...]) -> Set[Tuple[Any, ...]]:
        """What has an answer.

        Parameters
        ----------
        keys : tuple of str
            Keys that name a result.

        Returns
        -------
        set of tuple
            Their values in each answer.

        Raises
        ------
        InputError
            An answer lacks a key, or its score.

        Examples
        --------
        >>> with Results("done.jsonl", "needles", {}) as file:
        ...     file.add({"kind": "answer", "method": "exact", "index": 3, "score": 1.0})
        >>> with Results("done.jsonl", "needles", {}) as file:
        ...     file.done(("index",))
        {(3,)}
        """
        found = set()
        for number, row in zip(self.numbers, self.rows):
            if row.get("kind") == "answer":
                if any(key not in row for key in (*keys, "score")):
                    raise InputError(f"{self.path}:{number}: no whole answer: delete the line")
                found.add(tuple(row[key] for key in keys))
        return found

    def add(self, row: Dict[str, Any]) -> None:
        """Writes a line and keeps its object in `rows`.

        Parameters
        ----------
        row : dict
            What becomes a line of JSON.

        Returns
        -------
        None

        Raises
        ------
        OutputError
            It cannot be written.

        Examples
        --------
        >>> with Results("add.jsonl", "needles", {}) as file:
        ...     file.add({"kind": "answer", "score": 1.0})
        ...     len(file.rows)
        1
        """
        self._write(row)
        self.rows.append(row)

    def _write(self, row: Dict[str, Any]) -> None:
        if self.file is None:
            return
        try:
            self.file.write(json.dumps(row).encode("ascii") + b"\n")
            self.file.flush()
        except OSError as error:
            raise OutputError(
                f"{self.path}: cannot be written ({error.strerror}): free space, then run again"
            ) from None

    def close(self) -> None:
        if self.file is not None:
            self.file.close()

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
