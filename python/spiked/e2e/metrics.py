"""The metrics of LongBench (Bai et al. 2024), as its scripts compute them, quirks included.

Each takes a prediction, one right answer and the classes of the task, and gives a number between 0 and 1. `score` takes the
largest over all right answers. ROUGE-L is that of the package rouge 1.0.1 (summary level, distinct words), which raises a
RecursionError at sentences of about 1000 words together, for which LongBench counts 0; here such texts are scored, too.
"""

from __future__ import annotations

import collections
import difflib
import re
import string
from typing import Callable, Dict, List, Sequence, Set

__all__ = ["score"]

NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def plain_words(text: str) -> List[str]:
    """Words in small letters, without punctuation of ASCII and without articles."""
    return re.sub(r"\b(?:a|an|the)\b", " ", text.lower().translate(NO_PUNCTUATION)).split()


def word_f1(prediction: str, truth: str, classes: Sequence[str]) -> float:
    """F1 of the words, each counted as often as it stands in both."""
    found, expected = plain_words(prediction), plain_words(truth)
    common = sum((collections.Counter(found) & collections.Counter(expected)).values())
    if common == 0:
        return 0.0
    precision, recall = common / len(found), common / len(expected)
    return 2 * precision * recall / (precision + recall)


def rouge_sentences(text: str) -> List[List[str]]:
    """Words of each sentence. Only full stops end sentences, and a sentence of blanks has one word, the empty one."""
    return [part.split() or [""] for part in text.split(".") if part]


def common_subsequence(a: List[str], b: List[str]) -> Set[str]:
    """The words of a longest common subsequence: of several, the one found from the end where, at a tie, a word of b is left
    out before one of a."""
    lengths = [[0] * (len(b) + 1)]
    for word in a:
        above, row = lengths[-1], [0]
        for j, other in enumerate(b):
            row.append(above[j] + 1 if word == other else max(above[j + 1], row[j]))
        lengths.append(row)
    words, i, j = set(), len(a), len(b)
    while i > 0 and j > 0:
        if a[i - 1] == b[j - 1]:
            words.add(a[i - 1])
            i, j = i - 1, j - 1
        elif lengths[i - 1][j] > lengths[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return words


def rouge_l(prediction: str, truth: str, classes: Sequence[str]) -> float:
    """F of the distinct words in longest common subsequences of any two sentences."""
    found, expected = rouge_sentences(prediction), rouge_sentences(truth)
    if not found or not expected:
        return 0.0
    common: Set[str] = set()
    for sentence in expected:
        for other in found:
            common |= common_subsequence(sentence, other)
    recall = len(common) / len(set().union(*expected))
    precision = len(common) / len(set().union(*found))
    return 2 * precision * recall / (precision + recall + 1e-8)


def class_match(prediction: str, truth: str, classes: Sequence[str]) -> float:
    """1 / (number of classes that the prediction names), 0 without the right one. A class that is part of the right one's
    name does not count, but the class behind a left-out one is not looked at, as in LongBench."""
    named = [name for name in classes if name in prediction]
    at = 0
    while at < len(named):
        if named[at] in truth and named[at] != truth:
            named.remove(named[at])
        at += 1
    return 1 / len(named) if truth in named else 0.0


def fraction_of_numbers(prediction: str, right: str) -> float:
    numbers = re.findall(r"\d+", prediction)
    return numbers.count(right) / len(numbers) if numbers else 0.0


def count_match(prediction: str, truth: str, classes: Sequence[str]) -> float:
    """Fraction of the prediction's numbers that are the right one."""
    return fraction_of_numbers(prediction, truth)


def paragraph_match(prediction: str, truth: str, classes: Sequence[str]) -> float:
    """The same for the number in "Paragraph N"."""
    number = re.search(r"Paragraph (\d+)", truth)
    return fraction_of_numbers(prediction, number.group(1)) if number else 0.0


def first_line_of_code(prediction: str) -> str:
    """The first line without a mark of code blocks or comments."""
    lines = prediction.lstrip("\n").split("\n")
    return next((line for line in lines if not any(mark in line for mark in ("`", "#", "//"))), "")


def percent(ratio: float) -> float:
    return round(100 * ratio) / 100


def matching_blocks(a: str, b: str) -> float:
    """Ratio of Ratcliff and Obershelp, by difflib: what fuzzywuzzy computes alone."""
    return difflib.SequenceMatcher(None, a, b).ratio()


def indel(a: str, b: str) -> float:
    """1 - (insertions and deletions from a to b) / (length of both): what fuzzywuzzy computes beside python-Levenshtein."""
    lengths = [0] * (len(b) + 1)
    for character in a:
        before = 0
        for j, other in enumerate(b):
            above = lengths[j + 1]
            lengths[j + 1] = before + 1 if character == other else max(above, lengths[j])
            before = above
    return 2 * lengths[-1] / (len(a) + len(b))


CODE_SIMILARITIES: Dict[str, Callable[[str, str], float]] = {"difflib": matching_blocks, "indel": indel}


def code_similarity(prediction: str, truth: str, ratio: Callable[[str, str], float]) -> float:
    """Similarity of the first line of code to the right one, in whole percent."""
    line = first_line_of_code(prediction)
    if line == truth:
        return 1.0
    return percent(ratio(line, truth)) if line and truth else 0.0


METRICS: Dict[str, Callable[[str, str, Sequence[str]], float]] = {
    "f1": word_f1,
    "rouge-l": rouge_l,
    "class": class_match,
    "count": count_match,
    "paragraph": paragraph_match,
}


def score(
    metric: str,
    prediction: str,
    answers: Sequence[str],
    classes: Sequence[str] = (),
    first_line: bool = False,
    similarity: str = "difflib",
) -> float:
    """The largest value of a metric over the right answers.

    Parameters
    ----------
    metric : str
        A name of `METRICS` (``f1``, ``rouge-l``, ``class``, ``count``, ``paragraph``), or ``code``.
    prediction : str
        What the model wrote.
    answers : sequence of str
        Right answers, at least one.
    classes : sequence of str
        All classes of the task, for ``class``.
    first_line : bool
        Compare the first line that is not empty alone.
    similarity : {"difflib", "indel"}
        How ``code`` compares lines.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    KeyError
        There is no such metric or similarity.

    Examples
    --------
    >>> score("f1", "The cat sat.", ["a cat", "a dog"])     # words without articles: "cat", "sat" and "cat"
    0.6666666666666666
    >>> score("count", "3 paragraphs, not 4", ["3"])
    0.5
    """
    if first_line:
        prediction = prediction.lstrip("\n").split("\n")[0]
    if metric == "code":
        return max(code_similarity(prediction, truth, CODE_SIMILARITIES[similarity]) for truth in answers)
    return max(METRICS[metric](prediction, truth, classes) for truth in answers)
