"""How Ctrl-C ends a long call: one way for the library and for the command."""

from __future__ import annotations

import math
import threading
import time
from typing import Callable, List, TypeVar

# Seconds between two looks for Ctrl-C.
LOOK_EVERY = 0.1

Result = TypeVar("Result")


def interruptible(call: Callable[[], Result], stop: Callable[[], None], longest: float = math.inf) -> Result:
    """Makes a call so that Ctrl-C ends it.

    A signal reaches Python between two of its instructions, so a long call in the main thread would hear it only when it
    returns. In the main thread the call therefore runs in a thread of its own, for which the main thread waits; other
    threads, which no signal interrupts, make it themselves.

    Parameters
    ----------
    call : callable
        Makes the call.
    stop : callable
        Asks the call to end. Ctrl-C calls it, and again a second Ctrl-C while the first one waits.
    longest : float
        Seconds that Ctrl-C then waits for the end of the call, whose thread goes on when they are over.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    results: List[Result] = []
    problems: List[BaseException] = []
    ended = threading.Event()

    def task() -> None:
        try:
            results.append(call())
        except BaseException as problem:  # handed to the thread that waits
            problems.append(problem)
        finally:
            ended.set()

    # The thread is no daemon: the process must not end while the library computes. An event is waited for, because a thread
    # whose `join` is interrupted counts as ended in some versions of Python.
    thread = threading.Thread(target=task, name="spiked")
    try:
        thread.start()
        _wait(ended)
    except BaseException:
        stop()
        try:
            _wait(ended, longest)
        except BaseException:
            stop()
            raise
        raise
    if problems:
        raise problems[0]
    return results[0]


def _wait(ended: threading.Event, longest: float = math.inf) -> None:
    """Waits in short parts: a signal that comes just before a wait begins, or that another thread receives, is heard when the
    wait ends."""
    until = time.monotonic() + longest
    while not ended.wait(LOOK_EVERY) and time.monotonic() < until:
        pass
