"""Metrics of LongBench against its scripts' values, other implementations, and computations by hand."""

import json
import pathlib
import random
import unittest

from spiked.e2e import metrics

GOLDEN = json.loads((pathlib.Path(__file__).parent / "data" / "longbench-metrics.json").read_text(encoding="utf-8"))
WORDS = [
    *(
        "a",
        "an",
        "the",
        "THE",
        "cat",
        "cats",
        "dog",
        "sat",
        "mat.",
        "theory",
        "anna",
        "Paragraph",
        "3",
        "12",
        "7,",
        "0",
    ),
    *(".", "..", "?", "-", "#", "//x", "`", "\n", "\t", "  ", "É", "日本", "\u0663", "\u00a0", "x" * 30),
]


def texts(count, seed):
    """Pairs of random texts of adversarial words; of every three pairs one is equal and one nearly so."""
    draws = random.Random(seed)
    for number in range(count):
        words = draws.choices(WORDS, k=draws.choice([0, 1, 2, 3, 5, 8, 13, 40]))
        one = draws.choice([" ", "", ".", " . ", "\n"]).join(words)
        if number % 3 == 0:
            yield one, one
        elif number % 3 == 1 and one:
            at = draws.randrange(len(one))
            yield one, one[:at] + draws.choice("ab .#\n") + one[at + 1 :]
        else:
            yield one, " ".join(draws.choices(WORDS, k=draws.randrange(20)))


def ratcliff_obershelp(a, b):
    """Matching characters, by the definition: a longest common block, first in a, then in b, and the same on both sides."""
    if not a or not b:
        return 0
    best = (0, 0, 0)
    for i in range(len(a)):
        for j in range(len(b)):
            length = 0
            while i + length < len(a) and j + length < len(b) and a[i + length] == b[j + length]:
                length += 1
            if length > best[2]:
                best = (i, j, length)
    i, j, length = best
    if length == 0:
        return 0
    return length + ratcliff_obershelp(a[:i], b[:j]) + ratcliff_obershelp(a[i + length :], b[j + length :])


class GoldenStability(unittest.TestCase):
    def test_values_are_those_of_the_scripts_of_longbench(self):
        for row in GOLDEN["rows"]:
            said, truth, f1, rouge, code, count, paragraph, named, right, classes, matched = row
            with self.subTest(prediction=said, truth=truth):
                self.assertAlmostEqual(metrics.score("f1", said, [truth]), f1, places=12)
                self.assertAlmostEqual(metrics.score("rouge-l", said, [truth]), rouge, places=12)
                self.assertAlmostEqual(metrics.score("code", said, [truth]), code, places=12)
                self.assertAlmostEqual(metrics.score("count", said, ["3"]), count, places=12)
                self.assertAlmostEqual(metrics.score("paragraph", said, ["Paragraph 12"]), paragraph, places=12)
                self.assertAlmostEqual(metrics.score("class", named, [right], classes), matched, places=12)


class PublishedReference(unittest.TestCase):
    def test_rouge_l_is_that_of_the_package_rouge(self):
        try:
            from rouge import Rouge
        except ImportError:
            self.skipTest("the package rouge is not installed")
        published = Rouge()
        for said, truth in texts(2000, 11):
            try:
                expected = published.get_scores([said], [truth], avg=True)["rouge-l"]["f"]
            except ValueError:  # of a text without sentences; the scripts of LongBench count 0
                expected = 0.0
            self.assertAlmostEqual(metrics.rouge_l(said, truth, ()), expected, places=12, msg=repr((said, truth)))

    def test_the_variant_of_code_similarity_is_that_of_rapidfuzz(self):
        try:
            from rapidfuzz import fuzz
        except ImportError:
            self.skipTest("the package rapidfuzz is not installed")
        for said, truth in texts(2000, 12):
            if said and truth:
                self.assertAlmostEqual(metrics.indel(said, truth), fuzz.ratio(said, truth) / 100, places=12)


class DefinitionReference(unittest.TestCase):
    def test_similar_code_has_long_blocks_in_common(self):
        draws = random.Random(13)
        for _ in range(300):
            a, b = ("".join(draws.choices("abc (", k=draws.randrange(1, 14))) for _ in range(2))
            expected = 2 * ratcliff_obershelp(a, b) / (len(a) + len(b))
            self.assertAlmostEqual(metrics.matching_blocks(a, b), expected, places=12, msg=repr((a, b)))

    def test_a_longest_common_subsequence_has_as_many_words(self):
        draws = random.Random(14)
        for _ in range(200):
            a, b = ([str(n) for n in draws.sample(range(9), draws.randrange(9))] for _ in range(2))
            found = metrics.common_subsequence(a, b)
            subsequences = [[]]
            for word in a:
                subsequences += [[*part, word] for part in subsequences]
            orders = [part for part in subsequences if [w for w in b if w in part] == part]
            self.assertEqual(len(found), max(map(len, orders)))
            self.assertIn(found, [set(part) for part in orders])

    def test_by_hand(self):
        score = metrics.score
        self.assertAlmostEqual(score("f1", "The red cat.", ["a cat"]), 2 * 0.5 * 1 / 1.5)  # red cat against cat
        self.assertEqual(score("f1", "no", ["yes", "No!"]), 1)
        self.assertEqual(score("f1", "the", ["the"]), 0)  # nothing is left of either
        self.assertEqual(score("f1", "x\ny", ["x"], first_line=True), 1)
        self.assertEqual(score("f1", "\n\nx\ny", ["x"], first_line=True), 1)
        self.assertEqual(score("count", "3 of 4, or 3", ["3"]), 2 / 3)
        self.assertEqual(score("count", "none", ["3"]), 0)
        self.assertEqual(score("paragraph", "Paragraph 12 or 13", ["Paragraph 12"]), 1 / 2)
        self.assertEqual(score("class", "Date of birth", ["Date of birth"], ["Date", "Date of birth"]), 1)
        self.assertEqual(score("class", "Date of birth", ["Date"], ["Date", "Date of birth"]), 1 / 2)
        self.assertEqual(score("class", "nothing", ["Date"], ["Date"]), 0)
        self.assertEqual(score("code", "```python\n# area\nx = 1\ny = 2", ["x = 1"]), 1)
        self.assertEqual(score("code", "# only\n// comments", ["x"]), 0)
        self.assertEqual(score("code", "  \nx = 1", ["x = 1"]), 0.57)  # a line of blanks is a line
        self.assertAlmostEqual(score("rouge-l", "b c d", ["a b c"]), 2 / 3, places=7)

    def test_long_texts_have_a_score(self):
        """With rouge 1.0.1 they end in an error of recursion, which the scripts of LongBench count as 0."""
        words = [f"w{n}" for n in range(1200)]
        self.assertAlmostEqual(metrics.rouge_l(" ".join(words), " ".join(words[:600]), ()), 2 / 3, places=6)


if __name__ == "__main__":
    unittest.main()
