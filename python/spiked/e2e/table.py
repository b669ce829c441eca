"""Tables of results: scores with paired errors, and the paper's numbers beside them."""

from __future__ import annotations

import argparse
import csv
import json
import pathlib
from typing import Any, Dict, Hashable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ..errors import InputError
from .results import SCHEMA, read_lines
from .runner import EXACT
from .tasks import GROUPS, TASKS

__all__ = ["Estimate", "bootstrap", "read"]

AVERAGE = "Avg"
PROTOCOL = (
    "The paper's protocol is unknown: it does not state the truncation length, the chat template, the wording of needles and "
    "haystack, the limits of answers, the variant of code similarity, or the number of prompts. Its averages are the means of "
    "its six groups, as here; a mean of 16 tasks would be other numbers."
)
PAPER_BITS = 2.0
DRAWS = 2000
SEED = 1

# Scores of a method by task, or by cell of needles: from the key of a prompt to its score.
Scores = Dict[Hashable, Dict[Hashable, float]]
Label = Tuple[str, Optional[float]]


class Estimate(NamedTuple):
    """A mean of scores.

    Attributes
    ----------
    value : float
        The mean.
    error : float
        Its standard error; NaN where a task has one prompt.
    prompts : int
        How many prompts it is of.

    Examples
    --------
    >>> Estimate(0.5, 0.1, 20).error
    0.1
    """

    value: float
    error: float
    prompts: int


class Benchmark(NamedTuple):
    """The results of one file."""

    name: str
    choices: Dict[str, Any]
    scores: Dict[Label, Scores]
    controls: Dict[Label, List[float]]
    bits: Dict[Label, List[float]]


def bootstrap(
    scores: Mapping[Hashable, Sequence[float]], groups: Mapping[str, Sequence[Hashable]], average: str = AVERAGE
) -> Dict[str, Estimate]:
    """Means by group, each the mean of its tasks' means, the mean of the groups as `average`, and their standard errors.

    Errors are standard deviations over draws in which the prompts of each task are drawn again with replacement, as many as
    there are: tasks are fixed, as in the benchmark. Deviations from a task's mean of n prompts are enlarged by the square root
    of n / (n - 1), so that the error of one task is the usual standard error. Groups without results are left out.

    Parameters
    ----------
    scores : mapping
        From task to the scores of its prompts, or to their differences between two methods.
    groups : mapping
        From group to tasks.
    average : str
        What the mean of all groups is called.

    Returns
    -------
    dict of str to Estimate
        In the unit of the scores. The draws are the same at every call.

    Examples
    --------
    >>> found = bootstrap({"qasper": [0.0, 1.0], "trec": [1.0]}, {"one": ["qasper"], "two": ["trec"]})
    >>> found["one"].value, found["Avg"].value, found["Avg"].prompts
    (0.5, 0.75, 3)
    >>> bool(0.45 < found["one"].error < 0.55)              # sqrt(0.5 / 2)
    True
    """
    rng = np.random.default_rng(SEED)
    means: Dict[str, Tuple[float, np.ndarray, int]] = {}
    for group, tasks in groups.items():
        present = [np.asarray(scores[task], dtype=float) for task in tasks if task in scores and len(scores[task])]
        if present:
            value = float(np.mean([values.mean() for values in present]))
            draws = np.mean([deviations(values, rng) for values in present], axis=0)
            means[group] = (value, draws, sum(len(values) for values in present))
    if means and average not in means:
        value = float(np.mean([mean for mean, _, _ in means.values()]))
        draws = np.mean([draws for _, draws, _ in means.values()], axis=0)
        means[average] = (value, draws, sum(count for _, _, count in means.values()))
    return {name: Estimate(value, float(draws.std(ddof=1)), count) for name, (value, draws, count) in means.items()}


def deviations(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Deviations of means of prompts that are drawn again from the mean of the prompts; NaN for one prompt."""
    n = len(values)
    if n < 2:
        return np.full(DRAWS, np.nan)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=DRAWS)
    drawn: np.ndarray = counts @ (values - values.mean()) / n * np.sqrt(n / (n - 1))
    return drawn


def read(path: pathlib.Path) -> Benchmark:
    """Reads a file of results. A last line that was cut off is left out.

    Parameters
    ----------
    path : pathlib.Path
        ``longbench.jsonl`` or ``needles.jsonl``.

    Returns
    -------
    Benchmark
        Its name and choices; scores by method and bits, then task (or context and number of needles), then prompt; scores of
        controls and stored bits by method and bits.

    Raises
    ------
    InputError
        It is no file of results, or a line is none.

    Examples
    --------
    >>> import pathlib
    >>> from spiked.e2e.results import Results
    >>> with Results("read.jsonl", "needles", {}) as file:
    ...     file.add({"kind": "answer", "method": "exact", "bits": None, "context": 4096, "needles": 2, "index": 0, "score": 1.0})
    >>> read(pathlib.Path("read.jsonl")).scores
    {('exact', None): {(4096, 2): {0: 1.0}}}
    """
    lines = list(read_lines(path, path.read_bytes().count(b"\n")))
    if not lines or lines[0][1].get("schema") != SCHEMA:
        raise InputError(f"{path}: no results (its first line does not say {SCHEMA}): name a folder that a run wrote")
    found = Benchmark(lines[0][1]["benchmark"], lines[0][1]["choices"], {}, {}, {})
    for number, row in lines[1:]:
        if row.get("kind") != "answer":
            continue
        try:
            label: Label = (row["method"], row["bits"])
            if found.name == "longbench":
                task: Hashable = row["task"]
                if task not in TASKS:
                    raise KeyError(task)
            else:
                task = (row["context"], row["needles"])
            if row.get("control"):
                found.controls.setdefault(label, []).append(float(row["score"]))
                continue
            found.scores.setdefault(label, {}).setdefault(task, {})[row["index"]] = float(row["score"])
            if row.get("coded_bits") is not None:
                found.bits.setdefault(label, []).append(float(row["coded_bits"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}:{number}: no result ({error} is missing or wrong): delete the line") from None
    return found


def groups_of(results: Benchmark) -> Dict[str, List[Hashable]]:
    if results.name == "longbench":
        return {title: [name for name, task in TASKS.items() if task.group == group] for group, title in GROUPS.items()}
    cells = {cell for scores in results.scores.values() for cell in scores}
    return {AVERAGE: sorted(cells)}  # type: ignore[type-var]


def paired(ours: Scores, base: Scores) -> Dict[Hashable, List[float]]:
    """Differences of the prompts that both have."""
    return {
        task: [score - base[task][key] for key, score in scores.items() if key in base[task]]
        for task, scores in ours.items()
        if task in base
    }


def name_of(label: Label) -> str:
    return label[0] if label[1] is None else f"{label[0]} at {label[1]:g}"


def shown(estimate: Optional[Estimate], scale: float, digits: int, sign: bool = False) -> str:
    if estimate is None:
        return "-"
    text = f"{scale * estimate.value:{'+' if sign else ''}.{digits}f}"
    return text if np.isnan(estimate.error) else f"{text} ({scale * estimate.error:.{digits}f})"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> List[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["|" + "|".join(line) + "|" for line in lines]


def prompts_of(summary: Summary) -> int:
    return sum(estimate.prompts for estimate in summary.tasks.values())


class Summary(NamedTuple):
    """Of one method: means, differences from the exact cache, tasks, bits per coded entry, and prompts without an answer that
    another method has. Without one of them there is no average."""

    label: Label
    means: Dict[str, Estimate]
    differences: Dict[str, Estimate]
    tasks: Dict[Hashable, Estimate]
    bits: Optional[float]
    controls: Optional[float]
    missing: int


def summaries(results: Benchmark) -> List[Summary]:
    groups = groups_of(results)
    base = results.scores.get((EXACT, None))
    every = {(task, key) for scores in results.scores.values() for task, by_key in scores.items() for key in by_key}
    found = []
    for label, scores in results.scores.items():
        missing = len(every) - sum(map(len, scores.values()))
        values = {task: list(by_key.values()) for task, by_key in scores.items()}
        each = bootstrap(values, {str(task): [task] for task in values})
        means = bootstrap(values, groups)
        differences = {} if base is None or label[0] == EXACT else bootstrap(paired(scores, base), groups)
        if missing:
            means.pop(AVERAGE, None)
            differences.pop(AVERAGE, None)
        bits, controls = results.bits.get(label), results.controls.get(label)
        found.append(
            Summary(
                label,
                means,
                differences,
                {task: each[str(task)] for task in values},
                float(np.mean(bits)) if bits else None,
                float(np.mean(controls)) if controls else None,
                missing,
            )
        )
    return found


def lines_of(results: Benchmark, paper: List[Paper]) -> List[str]:
    """The tables of one benchmark."""
    longbench = results.name == "longbench"
    scale, digits = (100.0, 1) if longbench else (1.0, 3)
    columns = [*GROUPS.values(), AVERAGE] if longbench else [AVERAGE]
    all_of = summaries(results)
    head = ["method", "bits", *columns, f"{AVERAGE} - exact", "prompts"] + ([] if longbench else ["absent facts"])
    rows = []
    for summary in all_of:
        bits = "-" if summary.bits is None else f"{summary.bits:.3f}"
        row = [f"`{name_of(summary.label)}`", bits]
        row += [shown(summary.means.get(column), scale, digits) for column in columns]
        row += [shown(summary.differences.get(AVERAGE), scale, digits, sign=True), str(prompts_of(summary))]
        row += [] if longbench else ["-" if summary.controls is None else f"{summary.controls:.3f}"]
        rows.append(row)
    title = "LongBench, scores of 100" if longbench else "Needles, fraction of facts found"
    lines = [f"## {title}, {results.choices.get('model', '?')}", "", *markdown(head, rows), ""]
    lines.append(
        "In parentheses: standard errors, from drawing the prompts of each task again; those of differences are paired by "
        "prompt. Bits: of coded entries, as stored."
    )
    absent = [group for group in columns[:-1] if all(group not in summary.means for summary in all_of)]
    if absent:
        lines.append(f"Averages leave out groups that have no results: {', '.join(absent)}.")
    for summary in all_of:
        if summary.missing:
            lines.append(
                f"`{name_of(summary.label)}` has no average: it lacks {summary.missing} prompts that other methods have."
            )
    present = {task for summary in all_of for task in summary.tasks}
    tasks: List[Hashable] = [task for task in TASKS if task in present] if longbench else sorted(present)  # type: ignore[type-var]
    names = [task if longbench else f"{task[1]} of {task[0]} tokens" for task in tasks]  # type: ignore[index]
    rows = [
        [str(name), *(shown(summary.tasks.get(task), scale, digits) for summary in all_of)]
        for name, task in zip(names, tasks)
    ]
    lines += ["", *markdown(["task" if longbench else "needles", *(f"`{name_of(s.label)}`" for s in all_of)], rows), ""]
    for table in paper:
        lines += against(table, results, all_of, columns, scale, digits)
    return [*lines, "", PROTOCOL] if paper else lines


class Paper(NamedTuple):
    """A table of printed numbers: columns are "method", "bits" and "BENCHMARK MODEL", or "BENCHMARK MODEL GROUP"."""

    name: str
    columns: List[str]
    rows: List[Dict[str, str]]


def read_paper(path: str) -> Paper:
    """Reads the paper's numbers from a table with commas."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read ({error}): name a table with commas") from None
    columns = list(rows[0]) if rows else []
    if columns[:2] != ["method", "bits"]:
        raise InputError(
            f'{path}: no columns "method" and "bits" at its beginning: give a table such as '
            "validation/studies/paper-longbench.csv"
        )
    for number, row in enumerate(rows, 2):
        for column in columns[1:]:
            try:
                float(row[column] or 0)
            except (TypeError, ValueError):
                raise InputError(
                    f"{path}:{number}: {column} is {row[column]!r} (expected a number): correct it"
                ) from None
    return Paper(pathlib.Path(path).name, columns[2:], rows)


def against(
    paper: Paper, results: Benchmark, ours: List[Summary], columns: List[str], scale: float, digits: int
) -> List[str]:
    """The paper's numbers of this benchmark, each before the one measured here."""
    wanted = []
    for column in paper.columns:
        benchmark, model, group = (column.split(" ", 2) + ["", ""])[:3]
        if benchmark == results.name and (group or AVERAGE) in columns:
            wanted.append((column, model, group or AVERAGE))
    mine = str(results.choices.get("model", "")).lower()
    same = [entry for entry in wanted if entry[1].lower() in mine]
    if not wanted:
        return []
    by_name = {"none" if s.label[0] == EXACT else s.label[0]: s for s in ours if s.label[1] in (None, PAPER_BITS)}
    rows = []
    for row in paper.rows:
        summary = by_name.get(row["method"])
        cells = [f"`{row['method']}`", row["bits"]]
        for column, _, group in same or wanted:
            number = f"{float(row[column]):.{digits}f}" if row[column] else "-"
            cells.append(f"{number} / {shown(summary.means.get(group) if summary else None, scale, digits)}")
        rows.append(cells)
    head = ["method", "paper's bits", *(f"{model} {group}" for _, model, group in same or wanted)]
    other = "" if same else f"; its models are not {results.choices.get('model')}"
    return ["", f"Paper ({paper.name}) / here at B = 2; protocol unknown{other}:", "", *markdown(head, rows)]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="RESULTS", help="the folder that longbench and needles wrote")
    parser.add_argument(
        "--against",
        action="append",
        default=[],
        metavar="FILE.csv",
        help="the paper's numbers: paper-longbench.csv or paper-tasks.csv in the folder validation/studies of the source, which "
        "is not installed; may be given twice",
    )
    parser.add_argument("--json", action="store_true", help="JSON of the schema spiked.e2e-table/1")


def plain(estimates: Mapping[Any, Estimate]) -> Dict[str, Any]:
    return {
        str(name): {"value": e.value, "error": None if np.isnan(e.error) else e.error, "prompts": e.prompts}
        for name, e in estimates.items()
    }


def run(options: argparse.Namespace) -> str:
    """The text of the tables."""
    folder = pathlib.Path(options.folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder: name the one that longbench or needles wrote")
    files = [path for path in (folder / "longbench.jsonl", folder / "needles.jsonl") if path.is_file()]
    if not files:
        raise InputError(
            f"{folder}: no longbench.jsonl or needles.jsonl: name the folder that longbench or needles wrote"
        )
    paper = [read_paper(path) for path in options.against]
    found = [read(path) for path in files]
    if not options.json:
        return "\n".join(line for results in found for line in lines_of(results, paper)).rstrip() + "\n"
    tables = [
        {
            "benchmark": results.name,
            "choices": results.choices,
            "methods": [
                {
                    "method": summary.label[0],
                    "bits": summary.label[1],
                    "coded_bits": summary.bits,
                    "absent_facts": summary.controls,
                    "missing_prompts": summary.missing,
                    "groups": plain(summary.means),
                    "minus_exact": plain(summary.differences),
                    "tasks": plain(
                        {"/".join(map(str, t)) if isinstance(t, tuple) else t: e for t, e in summary.tasks.items()}
                    ),
                }
                for summary in summaries(results)
            ],
        }
        for results in found
    ]
    return json.dumps({"schema": "spiked.e2e-table/1", "tables": tables, "paper": PROTOCOL if paper else None}) + "\n"
