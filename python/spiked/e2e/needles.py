"""Multi-needle retrieval: which of the facts asked for stand in a model's answer."""

from __future__ import annotations

import argparse
import hashlib
import pathlib
import re
from typing import Any, Dict, List, Sequence, Tuple

from ..errors import UsageError
from .benchmark import Benchmark, Question
from .needle_prompts import ASKED, BEFORE, DEPTHS, check_needles, draws_of, prompt_of, sentences
from .runner import Architecture
from .tokens import Tokens

__all__ = ["lengths", "recall"]

NUMBER = re.compile(r"(\d+)(k?)")


def whole_number(text: str) -> int:
    """Reads 4096 or 4k."""
    found = NUMBER.fullmatch(text.strip().lower())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no number (such as 4096 or 4k)")
    return int(found.group(1)) * (1024 if found.group(2) else 1)


def lengths(text: str) -> List[int]:
    """Reads a list of numbers and ranges.

    Parameters
    ----------
    text : str
        Numbers with commas, where 4k is 4096. ``4k..104k`` is 4k, twice that and so on, and 104k; ``4k..104k:20k`` has steps
        of 20k.

    Returns
    -------
    list of int
        In ascending order, each once.

    Raises
    ------
    argparse.ArgumentTypeError
        A part is no number and no range.

    Examples
    --------
    >>> lengths("1k..3k,100")
    [100, 1024, 2048, 3072]
    """
    found: List[int] = []
    for part in text.split(","):
        ends, _, step = part.partition(":")
        low, dots, high = ends.partition("..")
        begin, end = whole_number(low), whole_number(high if dots else low)
        by = whole_number(step) if step else 0
        if end < begin or begin < 1 or (step and by < 1) or (step and not dots):
            raise argparse.ArgumentTypeError(f"{part!r} is no range (such as 4k..104k or 4k..104k:20k)")
        while begin < end:
            found.append(begin)
            begin = begin + by if step else 2 * begin
        found.append(end)
    return sorted(set(found))


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--needles", type=lengths, default=[2, 4, 6, 8, 10], help="numbers of needles (2,4,6,8,10)")
    parser.add_argument(
        "--context", type=lengths, default=lengths("4k"), help="tokens of prompt and answer: 4k,8k or 4k..104k (4k)"
    )
    parser.add_argument("--prompts", type=int, default=4, help="prompts of each number of needles and context (4)")
    parser.add_argument(
        "--controls", type=int, default=1, help="prompts without the needles that they ask for, of each context (1)"
    )
    parser.add_argument("--haystack", default="noise", help="noise, a text file, or token ids as .npy (noise)")
    parser.add_argument("--seed", type=int, default=1, help="draws keys, numbers and beginnings of the haystack (1)")
    parser.add_argument("--answer-start", default="", help="text with which the model's answer begins ('')")
    parser.add_argument("--answer-tokens", type=int, default=0, help="an answer at most (twice a complete one, and 32)")


def choices_of(options: argparse.Namespace, tokens: Tokens) -> Dict[str, Any]:
    """What the paper leaves open, and how it is done here."""
    path = pathlib.Path(options.haystack)
    return {
        "question": BEFORE + "..." + ASKED,
        "depths": DEPTHS,
        "haystack": hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else options.haystack,
        "seed": options.seed,
        "template": tokens.form,
        "answer_start": options.answer_start,
        "answer_tokens": options.answer_tokens or "twice a complete answer, and 32",
        "end_tokens": tokens.end_tokens,
        "match": "a number of the answer, as a whole, is that of the needle",
    }


def recall(text: str, numbers: Sequence[str]) -> float:
    """Fraction of numbers that stand in a text as whole numbers.

    Parameters
    ----------
    text : str
        A model's answer.
    numbers : sequence of str
        Digits of each number, at least one number.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> recall("The numbers are 123 and 4567.", ["123", "456"])
    0.5
    """
    found = set(re.findall(r"\d+", text))
    return sum(number in found for number in numbers) / len(numbers)


def cells_of(options: argparse.Namespace) -> List[Tuple[int, int, int, bool]]:
    """Context, needles, number and whether it is a control, of all prompts."""
    cells: List[Tuple[int, int, int, bool]] = []
    for context in options.context:
        cells += [(context, needles, i, False) for needles in options.needles for i in range(options.prompts)]
        cells += [(context, max(options.needles), i, True) for i in range(options.controls)]
    return cells


def prompts_of(options: argparse.Namespace, tokens: Tokens) -> Dict[Tuple[int, int, int, bool], Dict[str, Any]]:
    source = sentences(options.haystack, tokens)
    found = {}
    for context, needles, number, control in cells_of(options):
        draws = draws_of(options.seed, context, needles, number, control)
        found[context, needles, number, control] = prompt_of(
            tokens, source, draws, needles, context, control, options.answer_tokens, options.answer_start
        )
    return found


def check(options: argparse.Namespace, model: Architecture) -> None:
    check_needles(options.needles, options.context, options.prompts)
    if options.controls < 0 or options.answer_tokens < 0:
        raise UsageError("--controls and --answer-tokens are numbers from 0 on: give another one")
    if max(options.context) > model.positions:
        raise UsageError(
            f"--context {max(options.context)} is not possible (the model has {model.positions} positions): give a shorter one"
        )


def question_of(
    cell: Tuple[int, int, int, bool], prompt: Dict[str, Any], options: argparse.Namespace, tokens: Tokens
) -> Question:
    expected = [needle["answer"] for needle in prompt["needles"]]
    return Question(
        key=dict(zip(("context", "needles", "index", "control"), cell)),
        label=f"{cell[0]} tokens, {cell[1]} {'absent ' if cell[3] else ''}needles",
        ids=tokens.prompt_ids(prompt["tokens"]),
        most=prompt["most_tokens"],
        ends=tokens.end_tokens,
        least=0,
        score=lambda text: recall(options.answer_start + text, expected),
        fields={"answers": expected, "depths": [round(needle["depth"], 4) for needle in prompt["needles"]]},
    )


def benchmark_of(options: argparse.Namespace, tokens: Tokens, model: Architecture) -> Benchmark:
    check(options, model)
    prompts = prompts_of(options, tokens)
    questions = [question_of(cell, prompt, options, tokens) for cell, prompt in prompts.items()]
    return Benchmark(questions, choices_of(options, tokens), {})
