"""Prompts with needles: facts between the sentences of a haystack, and one question that asks for all of them.

A needle is the sentence "One of the special magic numbers for KEY is: NUMBER." (Hsieh et al. 2024, RULER), with a key of
two words and a number of seven digits. N needles stand where a sentence ends nearest to the fractions (n + 1/2) / N of the
haystack's tokens, n from 0. The answer of a control prompt is nowhere in its text.
"""

from __future__ import annotations

import pathlib
import random
import re
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from ..errors import InputError, UsageError
from .tokens import Tokens

FIRST = [
    "amber",
    "brisk",
    "calm",
    "dusty",
    "eager",
    "frosty",
    "gentle",
    "hollow",
    "ivory",
    "jolly",
    "keen",
    "lunar",
    "mellow",
    "narrow",
    "olive",
    "plain",
    "quiet",
    "rusty",
    "silent",
    "tidy",
    "urban",
    "velvet",
    "windy",
    "young",
]
SECOND = [
    "anchor",
    "basket",
    "candle",
    "desert",
    "engine",
    "feather",
    "garden",
    "hammer",
    "island",
    "jacket",
    "kettle",
    "ladder",
    "magnet",
    "needle",
    "orchard",
    "pencil",
    "quarry",
    "ribbon",
    "saddle",
    "tunnel",
    "valley",
    "window",
]
NOISE = [
    "The river was low that week.",
    "Two boats lay at the pier.",
    "Rain fell until noon.",
    "The baker opened his door early.",
    "A dog slept beside the gate.",
    "Nobody had wound the clock.",
    "The road goes up and then down again.",
    "Some birds sat on the wire.",
]
BEFORE = (
    "The text below hides special magic numbers between its other sentences. Read it carefully, because you will be "
    "asked for these numbers.\n\n"
)
ASKED = "\n\nWhat are the special magic numbers for {keys} in the text above? Give the number of each, one to a line."
DEPTHS = "(n + 1/2) / N"
DIGITS = 7


def needle(key: str, number: str) -> str:
    return f"One of the special magic numbers for {key} is: {number}."


def joined(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def check_needles(needles: Sequence[int], context: Sequence[int], prompts: int) -> None:
    """Raises UsageError for numbers of which there are no prompts."""
    most = len(FIRST) * len(SECOND) // 2
    for name, values in (("--needles", needles), ("--context", context), ("--prompts", [prompts])):
        if min(values) < 1:
            raise UsageError(f"{name} {min(values)} is not possible (at least 1): give another number")
    if max(needles) > most:
        raise UsageError(f"--needles {max(needles)} is not possible (there are keys for {most}): give fewer")


def draws_of(seed: int, context: int, needles: int, number: int, control: bool) -> random.Random:
    """The random numbers of one prompt."""
    return random.Random(f"{seed} {context} {needles} {number} {control}")


def sentences(haystack: str, model: Tokens) -> List[str]:
    """The sentences of the haystack: "noise", a text, or token ids of the model as .npy."""
    if haystack == "noise":
        return NOISE
    path = pathlib.Path(haystack)
    if not path.exists():
        raise InputError(f"{haystack}: no such file: give --haystack noise, a text, or token ids as .npy")
    try:
        if path.suffix == ".npy":
            text = " ".join(model.tokenizer.decode(row.tolist()) for row in np.atleast_2d(np.load(path)))
        else:
            text = path.read_text(encoding="utf-8")
    except (OSError, ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{haystack}: cannot be read ({error}): give a text in UTF-8, or token ids as .npy") from None
    found = [part for part in re.split(r"(?<=[.!?])\s+", " ".join(text.split())) if part]
    if len(found) < 2:
        raise InputError(f"{haystack}: {len(found)} sentences (expected 2 or more): give a longer text")
    return found


def haystack_of(model: Tokens, source: List[str], draws: random.Random, room: int) -> List[Tuple[str, int]]:
    """Sentences in the order of the source, which is repeated, from a random one on, that take at most `room` tokens, with
    their tokens."""
    at, left = draws.randrange(len(source)), room
    taken: List[Tuple[str, int]] = []
    lengths: Dict[str, int] = {}
    while True:
        sentence = source[at % len(source)]
        if sentence not in lengths:
            lengths[sentence] = len(model.ids(" " + sentence))
        left -= lengths[sentence]
        if left < 0:
            return taken
        taken.append((sentence, lengths[sentence]))
        at += 1


def places_of(hay: List[Tuple[str, int]], needles: int) -> List[int]:
    """For each needle the number of sentences before it: the one nearest to its depth in tokens."""
    before = [0]
    for _, tokens in hay:
        before.append(before[-1] + tokens)
    return [
        min(range(len(before)), key=lambda at: abs(before[at] - (n + 0.5) / needles * before[-1]))
        for n in range(needles)
    ]


def planted_in(hay: List[Tuple[str, int]], planted: List[str]) -> Tuple[str, List[Tuple[int, int, int]]]:
    """The text with its needles, and for each needle its number, where it begins and its length in characters."""
    places = places_of(hay, len(planted))
    parts: List[Tuple[str, Optional[int]]] = []
    for at in range(len(hay) + 1):
        parts += [(planted[n], n) for n in range(len(planted)) if places[n] == at]
        parts += [(hay[at][0], None)] if at < len(hay) else []
    text, starts = BEFORE, []
    for part, needle_number in parts:
        text += "" if text == BEFORE else " "
        starts += [(needle_number, len(text), len(part))] if needle_number is not None else []
        text += part
    return text, sorted(starts)


def prompt_of(
    model: Tokens,
    source: List[str],
    draws: random.Random,
    needles: int,
    context: int,
    control: bool,
    answer_tokens: int = 0,
    answer_start: str = "",
) -> Dict[str, Any]:
    """One prompt as in the file of tools/needle-prompts, whose text describes it. The number of sentences is the largest with
    which prompt and answer fit the context. `answer_tokens` 0 is twice a complete answer, and 32."""
    keys = draws.sample([f"{a} {b}" for a in FIRST for b in SECOND], 2 * needles)
    numbers = [str(number) for number in draws.sample(range(10 ** (DIGITS - 1), 10**DIGITS), 2 * needles)]
    asked = list(zip(keys, numbers))[:needles]
    hidden = list(zip(keys, numbers))[needles:] if control else asked
    question = ASKED.format(keys=joined([key for key, _ in asked]))
    lines = "".join(f"{key}: {number}\n" for key, number in asked)
    most = answer_tokens or 2 * len(model.ids(lines)) + 32
    planted = [needle(key, number) for key, number in hidden]
    around = len(model.ids(model.template(BEFORE + " ".join(planted) + question) + answer_start))
    hay = haystack_of(model, source, draws, context - around - most)
    while True:
        if len(hay) < needles:
            raise UsageError(
                f"--context {context} has no room for {needles} needles between sentences (answer: {most} tokens, "
                f"text around the haystack: {around}): give a longer one"
            )
        text, starts = planted_in(hay, planted)
        whole = model.template(text + question) + answer_start
        encoded = model.tokenizer.encode(whole, add_special_tokens=False)
        if len(encoded.ids) + most <= context:
            break
        hay.pop()
    shift = whole.index(text)

    def inside(first: int, length: int) -> List[int]:
        return [
            t for t, (low, high) in enumerate(encoded.offsets) if high > low and low < first + length and high > first
        ]

    begin, question_at = inside(shift + len(BEFORE), 1)[0], inside(shift + len(text), len(question))[0]
    found = []
    for (key, number), (_, first, length) in zip(asked, starts):
        covered = inside(shift + first, length)
        found.append(
            {
                "key": key,
                "answer": number,
                "answer_tokens": model.ids(number),
                "depth": (covered[0] - begin) / (question_at - begin),
                "first_token": covered[0],
                "tokens": len(covered),
            }
        )
    return {
        "context": context,
        "control": control,
        "most_tokens": most,
        "question_at": question_at,
        "needles": found,
        "tokens": encoded.ids,
    }
