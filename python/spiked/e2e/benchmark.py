"""A benchmark as prompts with scores of their answers, and the loop that answers those that have no result yet."""

from __future__ import annotations

import argparse
from typing import Any, Callable, Dict, List, NamedTuple, Sequence

from ..errors import UsageError
from .cost import cost_lines
from .results import Results
from .runner import Architecture, Method, Runner
from .tokens import Tokens


class Question(NamedTuple):
    """A prompt, how its answer is generated and scored, and what the line of its result says of it."""

    key: Dict[str, Any]  # with the method and its bits it names a result; all questions have the same keys
    label: str  # for the progress
    ids: List[int]
    most: int  # tokens of an answer
    ends: List[int]  # ids that end it
    least: int  # tokens before one of them may
    score: Callable[[str], float]  # of the text of an answer
    fields: Dict[str, Any]


class Benchmark(NamedTuple):
    """All questions, what the results depend on beside them, and the SHA-256 of data files by task."""

    questions: List[Question]
    choices: Dict[str, Any]
    sums: Dict[str, str]


def check_sums(results: Results, sums: Dict[str, str]) -> None:
    """Records the data of each task; results of other data are not added to."""
    known = {row["task"]: row["sha256"] for row in results.rows if row.get("kind") == "data"}
    for task, found in sums.items():
        if known.get(task, found) != found:
            raise UsageError(f"{results.path}: its {task}.jsonl was another file: name another --output folder")
        if task not in known:
            results.add({"kind": "data", "task": task, "sha256": found})


def check_window(options: argparse.Namespace, model: Architecture, questions: Sequence[Question]) -> None:
    """Rejects prompts that a model without its sliding window answers otherwise than with it."""
    longest = max((len(question.ids) + question.most for question in questions), default=0)
    if options.no_sliding_window and model.window is not None and longest > model.window:
        raise UsageError(
            f"--no-sliding-window: a prompt and its answer have {longest} tokens (the window has {model.window}, and longer ones "
            "are answered otherwise without it): give shorter prompts, or leave the option out"
        )


def answer_all(
    benchmark: Benchmark,
    options: argparse.Namespace,
    methods: Sequence[Method],
    tokens: Tokens,
    model: Architecture,
    load: Callable[[], Runner],
    results: Callable[[Dict[str, Any]], Results],
    say: Callable[[str], None],
) -> None:
    """Answers all questions that have no result yet, by one method after the other; a dry run says what that costs."""
    questions = benchmark.questions
    with results(benchmark.choices) as file:
        check_sums(file, benchmark.sums)
        done = file.done(("method", "bits", *questions[0].key))
        todo = [(m, q) for m in methods for q in questions if (m.name, m.bits, *q.key.values()) not in done]
        check_window(options, model, [question for _, question in todo])
        say(f"{len(todo)} prompts to answer, {len(methods) * len(questions) - len(todo)} answered before, in {file.path}")
        if options.dry_run:
            sizes = {m: [(len(q.ids), q.most) for method, q in todo if method == m] for m in methods}
            for line in cost_lines(sizes, model, options.block):
                say(line)
            return
        runner = load() if todo else None
        for number, (method, question) in enumerate(todo, 1):
            assert runner is not None
            answer = runner.answer(method, question.ids, question.most, question.ends, question.least)
            text = tokens.text(answer.ids)
            value = question.score(text)
            file.add(
                {
                    "kind": "answer",
                    "method": method.name,
                    "bits": method.bits,
                    **question.key,
                    "score": value,
                    "tokens": len(question.ids),
                    "answer_tokens": len(answer.ids),
                    "coded_bits": answer.coded_bits,
                    "stored_bits": answer.stored_bits,
                    "seconds": round(answer.seconds, 3),
                    "pred": text,
                    **question.fields,
                }
            )
            say(f"{number}/{len(todo)} {method.name} {question.label}: {value:.3f}, {answer.seconds:.1f} s")
