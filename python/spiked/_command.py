"""Runs the command ``spiked`` as a process."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
from typing import Any, Dict, Optional, Sequence, Tuple

from ._waiting import interruptible
from .errors import InternalError, LibraryNotFound, SpikedError, Stopped, error_of

COMMAND_VARIABLE = "SPIKED_COMMAND"

# Codes with which the command ends after it printed a result: fine, a check failed, inconclusive.
ANSWERED = (0, 1, 3)


def command_path() -> str:
    """The path of the command: the variable SPIKED_COMMAND, ``bin`` beside the package, then PATH.

    Raises
    ------
    LibraryNotFound
        It is in none of them.
    """
    named = os.environ.get(COMMAND_VARIABLE)
    beside = pathlib.Path(__file__).resolve().parent / "bin" / "spiked"
    found = named or (str(beside) if beside.is_file() else shutil.which("spiked"))
    if found and os.access(found, os.X_OK):
        return found
    where = f"{COMMAND_VARIABLE}={named}" if named else f"looked at {beside} and in PATH"
    raise LibraryNotFound(
        f"the command spiked is not found ({where}): install it, or set {COMMAND_VARIABLE} to its path"
    )


class _LastLines(threading.Thread):
    """Reads a stream to its end, shows it where asked, and keeps its last line."""

    def __init__(self, stream: Any, show: bool) -> None:
        super().__init__(daemon=True)
        self.stream, self.show, self.last = stream, show, ""
        self.start()

    def run(self) -> None:
        for line in self.stream:
            if self.show:
                sys.stderr.write(line)
                sys.stderr.flush()
            self.last = line.strip() or self.last


class _Command:
    """A process of the command, which is asked to stop by another thread than that which runs it."""

    def __init__(self, words: Sequence[str], show: bool) -> None:
        self.words, self.show = words, show
        self.process: Optional["subprocess.Popen[str]"] = None
        self.stopped = False

    def run(self) -> Tuple[int, str, str]:
        """Its exit code, what it wrote to standard output, and its last line on standard error."""
        with subprocess.Popen(
            self.words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        ) as process:
            self.process = process
            if self.stopped:  # before there was a process to ask
                process.terminate()
            notes = _LastLines(process.stderr, self.show)
            assert process.stdout is not None
            text = process.stdout.read()
            notes.join()
            return process.wait(), text, notes.last

    def stop(self) -> None:
        self.stopped = True
        if self.process is not None:
            self.process.terminate()  # by SIGTERM: `run` saves what it has, and is resumable


def run_command(arguments: Sequence[str], show: bool = False) -> Tuple[int, str]:
    """Runs the command; returns its exit code and what it wrote to standard output.

    Parameters
    ----------
    arguments : sequence of str
        Words after ``spiked``. Options ``--json`` and such are the caller's.
    show : bool
        Write its notes and its progress to `sys.stderr`, line by line.

    Raises
    ------
    SpikedError
        By its exit code, with its message.
    KeyboardInterrupt
        After the command was asked to stop and has ended.
    """
    command = _Command([command_path(), *arguments], show)
    code, text, last_note = interruptible(command.run, command.stop)
    if code in ANSWERED and not (code == 1 and '"spiked.error/' in text[:60]):
        return code, text
    raise _failure(text, last_note, code)


def _failure(text: str, last_note: str, code: int) -> SpikedError:
    """The error of a command, with the message of its JSON document or its last line without the name of the program."""
    found = _document(text) or {}
    if "error" in found:
        return error_of(code, str(found["error"]))
    message = last_note[len("spiked: ") :] if last_note.startswith("spiked: ") else last_note
    if found.get("status") == "stopped":
        message = f"stopped after {found['replicates']} replicates: the same call resumes {found['store']}"
    error = error_of(code, message or f"the command ended without a message (exit code {code}): run it in a shell")
    if isinstance(error, Stopped):
        error.result = found or None
    return error


def run_json(arguments: Sequence[str], show: bool = False) -> Tuple[int, Dict[str, Any]]:
    """Runs the command with ``--json``; returns its exit code and its document."""
    code, text = run_command([*arguments, "--json"], show)
    return code, document_of(text)


def document_of(text: str) -> Dict[str, Any]:
    """The JSON document that the command printed."""
    found = _document(text)
    if found is None:
        raise InternalError(
            f"{command_path()} printed no JSON document ({text[:60]!r}): is it the command of Spiked, of this version?"
        )
    return found


def _document(text: str) -> Optional[Dict[str, Any]]:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
