"""LongBench: prompts of its tasks from the official data, answers of a model, and their scores."""

from __future__ import annotations

import argparse
import hashlib
import pathlib
import re
from typing import Any, Dict, List, NamedTuple, Tuple, cast

from ..errors import InputError, UsageError
from .benchmark import Benchmark, Question
from .metrics import CODE_SIMILARITIES, score
from .results import read_lines
from .runner import Architecture
from .tasks import TASKS, Task
from .tokens import Tokens

# Positions that stay free behind the longest prompt: the longest answer, and the text of a chat template.
RESERVED = 600


class Prompt(NamedTuple):
    """A prompt and what its answer is compared with."""

    task: str
    number: int  # of its line among those of the task, from 0
    name: str
    ids: List[int]
    truncated: bool
    answers: List[str]
    classes: List[str]
    length: Any


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", required=True, metavar="FOLDER", help="the official data: TASK.jsonl for each task")
    parser.add_argument("--tasks", metavar="LIST", help="tasks, with commas (all 16 English ones)")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N prompts of each task")
    parser.add_argument(
        "--max-length", type=int, metavar="N", help=f"tokens of a prompt (positions of the model less {RESERVED})"
    )
    parser.add_argument(
        "--code-similarity",
        choices=sorted(CODE_SIMILARITIES),
        default="difflib",
        help="fuzzywuzzy alone (difflib, the default), or beside python-Levenshtein (indel)",
    )


def tasks_of(options: argparse.Namespace) -> List[str]:
    names: List[str] = options.tasks.split(",") if options.tasks else list(TASKS)
    for at, name in enumerate(names):
        if name in names[:at]:
            raise UsageError(f"--tasks {name} is there twice: name it once")
        if name not in TASKS:
            raise UsageError(f"--tasks {name}: there is no such task: give some of {', '.join(TASKS)}")
    if options.limit is not None and options.limit < 1:
        raise UsageError(f"--limit {options.limit} is not possible (at least 1): give another number")
    return names


def max_length_of(options: argparse.Namespace, model: Architecture) -> int:
    length = model.positions - RESERVED if options.max_length is None else options.max_length
    if not 2 <= length <= model.positions:
        raise UsageError(
            f"--max-length {length} is not possible (2 to {model.positions}, the positions of the model): give another number"
        )
    return int(length)


def choices_of(options: argparse.Namespace, tokens: Tokens, model: Architecture) -> Dict[str, Any]:
    """What the protocol leaves open, and how it is done here."""
    return {
        "protocol": "LongBench pred.py: greedy, middle of long prompts left out by token ids, then the chat template",
        "max_length": max_length_of(options, model),
        "template": tokens.form,
        "no_template": [name for name, task in TASKS.items() if not task.chat],
        "answer_tokens": {name: task.answer_tokens for name, task in TASKS.items()},
        "end_tokens": tokens.end_tokens,
        "newline_ends": [name for name, task in TASKS.items() if task.ends_at_newline],
        "code_similarity": options.code_similarity,
        "rouge": "rouge 1.0.1, sentences of any length",
    }


def texts(row: Dict[str, Any], key: str, place: str) -> List[str]:
    found = row.get(key)
    if not isinstance(found, list) or not found or not all(isinstance(text, str) for text in found):
        raise InputError(f"{place}: {key} is no list of texts (as in the official data): copy the file again")
    return cast(List[str], found)


def truncated(tokens: Tokens, text: str, most: int) -> Tuple[str, bool]:
    """A text of which the middle is left out where it has more than `most` tokens."""
    ids = tokens.prompt_ids(tokens.ids(text))
    if len(ids) <= most:
        return text, False
    half = most // 2
    return tokens.text(ids[:half]) + tokens.text(ids[-half:]), True


def prompt_of(name: str, index: int, row: Dict[str, Any], place: str, tokens: Tokens, most: int) -> Prompt:
    task = TASKS[name]
    for key in ("context", "input"):
        if not isinstance(row.get(key), str):
            raise InputError(f"{place}: {key} is missing or no text (as in the official data): copy the file again")
    answers = texts(row, "answers", place)
    classes = texts(row, "all_classes", place) if task.metric == "class" else []
    if task.metric == "paragraph" and not all(re.search(r"Paragraph \d", text) for text in answers):
        raise InputError(f'{place}: answers have no "Paragraph N" (as in the official data): copy the file again')
    text, cut = truncated(tokens, task.template.format(context=row["context"], input=row["input"]), most)
    ids = tokens.prompt_ids(tokens.ids(tokens.template(text) if task.chat else text))
    return Prompt(name, index, str(row.get("_id", index)), ids, cut, answers, classes, row.get("length"))


def rows_of(options: argparse.Namespace, name: str) -> Tuple[str, List[Tuple[str, Dict[str, Any]]]]:
    """SHA-256 of a task's file, and the place and the object of its lines."""
    folder = pathlib.Path(options.data)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder: --data names one with the official files, TASK.jsonl")
    path = folder / f"{name}.jsonl"
    if not path.is_file():
        raise InputError(
            f"{path}: no such file (a task's data): copy it from LongBench's data, or leave it out by --tasks"
        )
    rows = [(f"{path}:{number}", row) for number, row in read_lines(path)]
    if not rows:
        raise InputError(f"{path}: it has no lines: copy it from LongBench's data again")
    return hashlib.sha256(path.read_bytes()).hexdigest(), rows[: options.limit]


def prompts_of(options: argparse.Namespace, tokens: Tokens, model: Architecture) -> Tuple[List[Prompt], Dict[str, str]]:
    """All prompts, and the SHA-256 of the files by task. Files are read and checked before anything is computed."""
    most = max_length_of(options, model)
    prompts, sums = [], {}
    for name in tasks_of(options):
        sums[name], rows = rows_of(options, name)
        prompts += [prompt_of(name, i, row, place, tokens, most) for i, (place, row) in enumerate(rows)]
    return prompts, sums


def ends_of(task: Task, tokens: Tokens) -> List[int]:
    newline = [tokens.ids("\n")[-1]] if task.ends_at_newline else []
    return tokens.end_tokens + newline


def question_of(prompt: Prompt, tokens: Tokens, code_similarity: str) -> Question:
    task = TASKS[prompt.task]
    return Question(
        key={"task": prompt.task, "index": prompt.number},
        label=f"{prompt.task} {prompt.number}",
        ids=prompt.ids,
        most=task.answer_tokens,
        ends=ends_of(task, tokens),
        least=int(task.ends_at_newline),
        score=lambda text: score(task.metric, text, prompt.answers, prompt.classes, task.first_line, code_similarity),
        fields={
            "id": prompt.name,
            "truncated": prompt.truncated,
            "answers": prompt.answers,
            "all_classes": prompt.classes,
            "length": prompt.length,
        },
    )


def benchmark_of(options: argparse.Namespace, tokens: Tokens, model: Architecture) -> Benchmark:
    prompts, sums = prompts_of(options, tokens, model)
    questions = [question_of(prompt, tokens, options.code_similarity) for prompt in prompts]
    return Benchmark(questions, choices_of(options, tokens, model), sums)
