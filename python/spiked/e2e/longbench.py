"""LongBench: prompts of its tasks from the official data, answers of a model, and their scores."""

from __future__ import annotations

import argparse
import hashlib
import pathlib
import re
from typing import Any, Callable, Dict, List, NamedTuple, Tuple, cast

from ..errors import InputError, UsageError
from .metrics import CODE_SIMILARITIES, score
from .results import Results, read_lines
from .runner import Architecture, Method, Runner, cost_lines
from .tasks import TASKS, Task
from .tokens import Tokens

__all__ = ["Prompt", "add_options", "choices_of", "run", "prompts_of"]

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
    names = options.tasks.split(",") if options.tasks else list(TASKS)
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


def check_sums(results: Results, sums: Dict[str, str]) -> None:
    """Records the data of each task; results of other data are not added to."""
    known = {row["task"]: row["sha256"] for row in results.rows if row.get("kind") == "data"}
    for task, found in sums.items():
        if known.get(task, found) != found:
            raise UsageError(f"{results.path}: its {task}.jsonl was another file: name another --output folder")
        if task not in known:
            results.add({"kind": "data", "task": task, "sha256": found})


def run(
    options: argparse.Namespace,
    methods: List[Method],
    tokens: Tokens,
    model: Architecture,
    load: Callable[[], Runner],
    results: Callable[[Dict[str, Any]], Results],
    say: Callable[[str], None],
) -> None:
    """Answers all prompts that have no result yet, by one method after the other."""
    prompts, sums = prompts_of(options, tokens, model)
    if options.dry_run:
        answers = [TASKS[prompt.task].answer_tokens for prompt in prompts]
        for line in cost_lines(methods, model, [len(prompt.ids) for prompt in prompts], answers, options.block):
            say(line)
        return
    with results(choices_of(options, tokens, model)) as file:
        check_sums(file, sums)
        done = file.done(("method", "bits", "task", "index"))
        todo = [(m, p) for m in methods for p in prompts if (m.name, m.bits, p.task, p.number) not in done]
        say(f"{len(todo)} prompts to answer, {len(methods) * len(prompts) - len(todo)} answered before, in {file.path}")
        runner = load() if todo else None
        for number, (method, prompt) in enumerate(todo, 1):
            assert runner is not None
            task = TASKS[prompt.task]
            ends = ends_of(task, tokens)
            answer = runner.answer(method, prompt.ids, task.answer_tokens, ends, int(task.ends_at_newline))
            text = tokens.text(answer.ids)
            value = score(task.metric, text, prompt.answers, prompt.classes, task.first_line, options.code_similarity)
            file.add(
                {
                    "kind": "answer",
                    "method": method.name,
                    "bits": method.bits,
                    "task": prompt.task,
                    "index": prompt.number,
                    "id": prompt.name,
                    "score": value,
                    "tokens": len(prompt.ids),
                    "truncated": prompt.truncated,
                    "answer_tokens": len(answer.ids),
                    "coded_bits": answer.coded_bits,
                    "stored_bits": answer.stored_bits,
                    "seconds": round(answer.seconds, 3),
                    "pred": text,
                    "answers": prompt.answers,
                    "all_classes": prompt.classes,
                    "length": prompt.length,
                }
            )
            say(
                f"{number}/{len(todo)} {method.name} {prompt.task} {prompt.number}: {value:.3f}, {answer.seconds:.1f} s"
            )
