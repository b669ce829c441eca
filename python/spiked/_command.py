"""Runs the command ``spiked`` as a process."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
from typing import Any, Dict, List, Optional, Sequence, Tuple

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
    command = [command_path(), *arguments]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    )
    notes = _LastLines(process.stderr, show)
    output: List[str] = []
    try:
        assert process.stdout is not None
        output.extend(process.stdout)
        code = process.wait()
    except BaseException:
        process.send_signal(signal.SIGTERM)  # it saves what it has, and is resumable
        process.wait()
        raise
    finally:
        notes.join()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    text = "".join(output)
    if code in ANSWERED and not (code == 1 and '"spiked.error/' in text[:60]):
        return code, text
    raise _failure(text, notes.last, code)


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
