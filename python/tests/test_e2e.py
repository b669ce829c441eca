"""python -m spiked.e2e with a stand-in for the model: prompts, results, resumption, tables and errors."""

import hashlib
import importlib.util
import json
import math
import pathlib
import re
import shutil
import types
import unittest
from unittest import mock

import numpy as np
import spiked
from e2e_support import CONFIG, DATA, END, FIRST, Folder, Model, Tokenizer, knows, lines, run

from spiked.e2e import needles, table
from spiked.e2e.runner import architecture_of
from spiked.e2e.tokens import with_joined_merges
from spiked.e2e.tasks import TASKS
from support import ROOT

PAPER = ROOT / "validation/studies/paper-longbench.csv"
# The beginnings of SHA-256 sums of the prompts in LongBench's config/dataset2prompt.json, in which "asconcisely" stands.
PROMPTS = {
    "narrativeqa": "aada7ed24b06abac",
    "qasper": "0fbdd123fe7f83d6",
    "multifieldqa_en": "20b4666a2de8a1f7",
    "hotpotqa": "9ec4ae308865bd0c",
    "2wikimqa": "9ec4ae308865bd0c",
    "musique": "9ec4ae308865bd0c",
    "gov_report": "91c25d585b189ced",
    "qmsum": "dca23b678fe0183b",
    "multi_news": "2af3f28c40b902e6",
    "trec": "0eff8bebdba99d91",
    "triviaqa": "00a802e6377e72fc",
    "samsum": "a68d884234907eef",
    "passage_count": "986550b6c61009c6",
    "passage_retrieval_en": "39b96b7fa52bdd2a",
    "lcc": "6a1f24cf0bb83cd9",
    "repobench-p": "ee9ec182ea5ffeb7",
}


class Unreadable(Tokenizer):
    """Reads merges with a space alone, as versions of the package before 0.20."""

    @staticmethod
    def from_file(path):
        raise Exception("no variant")

    @staticmethod
    def from_str(text):
        if json.loads(text)["model"]["merges"] != ["a b", "ab c"]:
            raise Exception("no variant")
        return Tokenizer()


class Protocol(Folder):
    def test_prompts_are_those_of_longbench(self):
        found = {name: hashlib.sha256(task.template.encode()).hexdigest()[:16] for name, task in TASKS.items()}
        self.assertEqual(found, PROMPTS)
        self.assertEqual(sum(task.answer_tokens for task in TASKS.values()), 5 * 32 + 128 * 3 + 64 * 4 + 512 * 3 + 32)

    def test_the_template_of_a_folder_is_for_chat_tasks_alone(self):
        (self.model / "tokenizer_config.json").write_text(
            json.dumps(
                {
                    "bos_token": chr(FIRST),
                    "chat_template": "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<answer>",
                }
            )
        )
        if importlib.util.find_spec("jinja2") is None:
            self.skipTest("jinja2 is not installed")
        model = Model(knows)
        code, _, err = self.longbench("--method", "exact", model=model, template=None)
        self.assertEqual(code, 0, err)
        for _, text, most, ends, least in model.asked:
            self.assertEqual(text.count(chr(FIRST)), 1)
            chat = "lute" not in text and "Faust" not in text and "train" not in text and "volume" not in text
            self.assertEqual(text.startswith(chr(FIRST) + "<user>") and text.endswith("<answer>"), chat, text)
            newline = "train" in text
            self.assertEqual((ends, least), ([END, ord("\n")], 1) if newline else ([END], 0))
            self.assertEqual(most, 32 if "seafaring" in text else 64 if not chat and not newline else 128)

    def test_the_middle_of_a_long_prompt_is_left_out_by_tokens(self):
        model = Model(knows)
        self.assertEqual(self.longbench("--max-length", "101", "--tasks", "lcc", model=model)[0], 0)
        row = json.loads((DATA / "lcc.jsonl").read_text())
        whole = chr(FIRST) + TASKS["lcc"].template.format(**row)
        self.assertEqual(model.asked[0][1], whole[:50] + whole[-50:])
        self.assertTrue(all(line["truncated"] for line in lines(self.results / "longbench.jsonl")[2:]))

    def test_needles_are_found_as_whole_numbers(self):
        self.assertEqual(needles.recall("1234567, and 12345678 or a7654321.", ["1234567", "7654321", "2345678"]), 2 / 3)
        self.assertEqual(needles.lengths("4k..104k"), [1024 * k for k in (4, 8, 16, 32, 64, 104)])
        self.assertEqual(needles.lengths("2,8..20:6,4"), [2, 4, 8, 14, 20])


class Results(Folder):
    def test_scores_and_choices_are_recorded(self):
        code, out, err = self.longbench()
        self.assertEqual(code, 0, err)
        found = lines(self.results / "longbench.jsonl")
        choices = found[0]["choices"]
        self.assertEqual((choices["model"], choices["max_length"], choices["template"]), ("Tiny-Llama", 19400, "none"))
        self.assertEqual((choices["code_similarity"], choices["end_tokens"]), ("difflib", [END]))
        scores = {(r["method"], r["task"], r["index"]): r["score"] for r in found if r.get("kind") == "answer"}
        self.assertEqual(len(scores), 14)
        for method in ("exact", "tq-mse"):
            for key in (("trec", 1), ("lcc", 0), ("passage_retrieval_en", 0), ("qasper", 0)):
                self.assertEqual(scores[(method, *key)], 1)
            self.assertAlmostEqual(scores[method, "samsum", 0], 1, places=7)
            self.assertEqual(scores[method, "qasper", 1], 0)
        self.assertEqual((scores["exact", "trec", 0], scores["tq-mse", "trec", 0]), (1, 0))
        predictions = {(r["method"], r["task"]): r["pred"] for r in found if r.get("kind") == "answer"}
        self.assertEqual(predictions["exact", "samsum"], "\nDora waits because Cid's train is late.\n")

    def test_a_run_that_was_killed_anywhere_goes_on(self):
        self.assertEqual(self.longbench()[0], 0)
        path = self.results / "longbench.jsonl"
        whole = path.read_bytes()
        ends = [at + 1 for at, byte in enumerate(whole) if byte == 10]
        for cut in (ends[0] - 5, ends[0], ends[3] + 1, ends[7], ends[-1] - 1, len(whole)):
            path.write_bytes(whole[:cut])
            model = Model(knows)
            code, _, err = self.longbench(model=model)
            self.assertEqual(code, 0, err)
            self.assertEqual(path.read_bytes(), whole)
            self.assertEqual("was cut off" in err, cut not in ends)
            complete = (
                whole[:cut].count(b'"answer"')
                if cut in ends
                else whole[: whole.rfind(b"\n", 0, cut) + 1].count(b'"answer"')
            )
            self.assertEqual(len(model.asked), 14 - complete)

    def test_a_stop_keeps_what_was_answered(self):
        code, _, err = self.longbench(
            reply=lambda m, text: KeyboardInterrupt() if "seafaring" in text else knows(m, text)
        )
        self.assertEqual(code, 75)
        self.assertEqual(len(lines(self.results / "longbench.jsonl")), 1 + 5 + 4)
        self.assertEqual(self.longbench()[0], 0)
        self.assertEqual(len(lines(self.results / "longbench.jsonl")), 1 + 5 + 14)

    def test_other_choices_need_another_folder(self):
        self.assertEqual(self.longbench()[0], 0)
        self.fails(self.longbench("--max-length", "100"), 2, "max_length = 19400, this run 100", "--output")
        self.fails(self.longbench("--code-similarity", "indel"), 2, "code_similarity")
        data = self.root / "data"
        shutil.copytree(DATA, data)
        (data / "lcc.jsonl").write_text((data / "lcc.jsonl").read_text().replace("area", "size"))
        self.fails(self.longbench("--data", data), 2, "lcc.jsonl was another file")
        self.assertEqual(self.longbench("--bits", "3")[0], 0)  # other bits are other results
        self.assertEqual(len(lines(self.results / "longbench.jsonl")), 1 + 5 + 21)

    def test_a_file_that_another_run_writes_is_left_alone(self):
        from spiked.e2e.results import Results as File

        with File(self.results / "longbench.jsonl", "longbench", {}):
            self.fails(self.longbench(), 6, "another run is writing it")

    def test_a_dry_run_says_the_cost_and_writes_nothing(self):
        for outcome in (self.longbench("--dry-run"), self.needles("--dry-run")):
            code, out, err = outcome
            self.assertEqual(code, 0, err)
            self.assertRegex(out, r"^\d+ prompts to answer, 0 answered before, ")
            self.assertRegex(out, r"floating-point operations, .* hours at 1 TFLOP/s")
            self.assertRegex(out, r"tq-mse at 2 bits: \d+ blocks of 128 x 32 at .* core-hours")
        self.assertFalse(self.results.exists())

    def test_a_dry_run_looks_at_the_results_that_are_there(self):
        self.assertEqual(self.longbench("--method", "exact")[0], 0)
        path = self.results / "longbench.jsonl"
        before = path.read_bytes()
        path.write_bytes(before + b'{"kind": "ans')
        _, cost, _ = self.longbench("--dry-run", "--method", "tq-mse")
        code, out, err = self.longbench("--dry-run")
        self.assertEqual(code, 0, err)
        self.assertTrue(out.startswith("7 prompts to answer, 7 answered before, "), out)
        blocks = re.search(r"tq-mse at 2 bits: \d+ blocks", cost)[0]
        operations = re.search(r"model: .* operations", cost)[0]
        self.assertIn(blocks, out)
        self.assertIn(operations, out)  # of the codec's prompts alone
        self.assertEqual(self.longbench("--dry-run", "--method", "exact")[1].count("\n"), 1)
        self.fails(self.longbench("--dry-run", "--max-length", "100"), 2, "max_length = 19400, this run 100")
        self.assertEqual(path.read_bytes(), before + b'{"kind": "ans')

    def test_a_window_is_not_taken_out_where_prompts_are_longer(self):
        words = ["--no-sliding-window", "--tasks", "lcc", "--dry-run"]
        found = re.search(r"to (\d+) tokens a prompt", self.longbench(*words)[1])
        longest = int(found[1]) + TASKS["lcc"].answer_tokens
        for config, code in (
            ({"sliding_window": None}, 0),
            ({"sliding_window": longest}, 0),
            ({"sliding_window": 5, "use_sliding_window": False}, 0),
            ({"sliding_window": longest - 1}, 2),
            ({"sliding_window": longest - 1, "use_sliding_window": True}, 2),
        ):
            with self.subTest(config):
                (self.model / "config.json").write_text(json.dumps({**CONFIG, **config}))
                outcome = self.longbench(*words)
                if code:
                    self.fails(outcome, code, f"{longest} tokens", f"the window has {longest - 1}")
                else:
                    self.assertEqual(outcome[0], code, outcome[2])
        self.assertEqual(self.longbench("--tasks", "lcc", "--dry-run")[0], 0)  # with its window

    def test_results_of_another_build_of_spiked_are_not_added_to(self):
        self.assertEqual(self.longbench()[0], 0)
        choices = lines(self.results / "longbench.jsonl")[0]["choices"]
        self.assertEqual(choices["versions"]["spiked"], spiked.__version__)
        self.assertEqual(choices["rotations"], {"seed": "0x5eed", "sequence": 0})
        other = self.root / "libspiked.so.0"
        other.write_bytes(b"another build")
        with mock.patch("spiked.e2e.__main__.library_file", return_value=other):
            self.fails(self.longbench(), 2, "spiked_sha256", "--output")

    def test_needles_of_an_able_and_a_forgetful_model(self):
        def reply(method, text):
            facts = re.findall(r"for (\w+ \w+) is: (\d+)\.", text)
            question = text[text.index("What are") :]
            said = [number for key, number in facts if key in question]
            return "\n".join(said if method == "exact" else said[:1])

        code, _, err = self.needles(reply=reply)
        self.assertEqual(code, 0, err)
        rows = [row for row in lines(self.results / "needles.jsonl") if row.get("kind") == "answer"]
        self.assertEqual(len(rows), 2 * (2 * 2 + 1))
        for row in rows:
            expected = 0 if row["control"] else 1 if row["method"] == "exact" else 1 / row["needles"]
            self.assertAlmostEqual(row["score"], expected)
            self.assertLessEqual(row["tokens"] + 20, 3072 + 1)
        code, out, _ = run(["table", self.results, "--json"])
        exact, coded = json.loads(out)["tables"][0]["methods"]
        self.assertAlmostEqual(exact["groups"]["Avg"]["value"], 1)
        self.assertAlmostEqual(coded["groups"]["Avg"]["value"], (1 / 2 + 1 / 3) / 2)
        self.assertEqual((exact["absent_facts"], coded["absent_facts"]), (0, 0))
        code, out, err = run(["table", self.results, "--against", ROOT / "validation/studies/paper-tasks.csv"])
        self.assertEqual(code, 0, err)
        self.assertIn("|`none`|16|0.972 / 1.000 (0.000)|", out)
        self.assertIn("|`tq-mse`|2.00|- / 0.417 (0.000)|", out)
        self.assertIn("|2 of 3072 tokens|1.000 (0.000)|0.500 (0.000)|", out)
        self.assertAlmostEqual(coded["minus_exact"]["Avg"]["error"], 0, places=12)

        path = self.results / "needles.jsonl"
        whole = lines(path)
        path.write_text("".join(line + "\n" for line in path.read_text().splitlines()[:-3]))
        code, out, err = self.needles(reply=reply)
        self.assertEqual(code, 0, err)
        self.assertTrue(out.startswith("3 prompts to answer, 7 answered before"), out)
        timeless = [[{**row, "seconds": 0} for row in rows] for rows in (whole, lines(path))]
        self.assertEqual(*timeless)


class Tables(Folder):
    def test_errors_are_those_of_stratified_samples(self):
        rng = np.random.default_rng(3)
        scores = {"qasper": rng.random(40), "musique": rng.random(60), "lcc": rng.random(25)}
        groups = {"a": ["qasper", "musique"], "b": ["lcc"], "c": ["trec"]}
        found = table.bootstrap(scores, groups)
        self.assertEqual(list(found), ["a", "b", "Avg"])
        variance = {task: values.var(ddof=1) / len(values) for task, values in scores.items()}
        a = (variance["qasper"] + variance["musique"]) / 4
        exact = {"a": a, "b": variance["lcc"], "Avg": (a + variance["lcc"]) / 4}
        for group, estimate in found.items():  # the error of a deviation of 2000 draws is 1.6 %
            self.assertAlmostEqual(estimate.error / math.sqrt(exact[group]), 1, delta=0.08)
        self.assertAlmostEqual(found["a"].value, (scores["qasper"].mean() + scores["musique"].mean()) / 2)

    def test_differences_are_paired_by_prompt(self):
        self.assertEqual(self.longbench()[0], 0)
        code, out, err = run(["table", self.results, "--json"])
        self.assertEqual(code, 0, err)
        exact, coded = json.loads(out)["tables"][0]["methods"]
        self.assertEqual(exact["minus_exact"], {})
        self.assertEqual((exact["coded_bits"], coded["coded_bits"]), (32, 2.25))
        self.assertIn("|`exact`|32.000|", run(["table", self.results])[1])
        few = coded["minus_exact"]["Few"]  # trec: 0 and -1; samsum: 0
        self.assertAlmostEqual(few["value"], -0.25)
        self.assertIsNone(few["error"])  # samsum has one prompt
        self.assertNotIn("Summ", coded["groups"])
        self.assertEqual(coded["minus_exact"]["Code"], {"value": 0.0, "error": None, "prompts": 1})
        exact, coded = {"lcc": {0: 0.1, 1: 0.8}, "trec": {0: 1}}, {"lcc": {0: 0.2, 1: 0.9, 2: 0.5}, "qasper": {0: 0}}
        found = table.bootstrap(table.paired(coded, exact), {"b": ["lcc", "trec", "qasper"]})
        self.assertAlmostEqual(found["b"].value, 0.1)
        self.assertAlmostEqual(found["b"].error, 0)  # each score is larger by as much
        self.assertEqual(found["b"].prompts, 2)

    def test_methods_without_some_prompts_have_no_average(self):
        self.assertEqual(self.longbench("--method", "exact")[0], 0)
        self.assertEqual(self.longbench("--method", "tq-mse", "--limit", "1")[0], 0)
        code, out, err = run(["table", self.results])
        self.assertEqual(code, 0, err)
        self.assertIn("`tq-mse at 2` has no average: it lacks 2 prompts that other methods have.", out)
        self.assertRegex(out, r"\|`tq-mse at 2`\|2.250\|.*\|-\|-\|5\|")

    def test_the_papers_numbers_stand_beside(self):
        self.assertEqual(self.longbench()[0], 0)
        code, out, err = run(["table", self.results, "--against", PAPER])
        self.assertEqual(code, 0, err)
        row = next(line for line in out.splitlines() if line.startswith("|`tq-mse`|2.00|"))
        self.assertIn("|49.2 / 100.0|", row)
        self.assertIn("protocol unknown", out)
        self.assertIn("Llama SingQA", out)
        self.assertNotIn("Ministral", out)
        self.assertIn("Averages leave out groups that have no results: MultQA, Summ.", out)

    def test_the_papers_averages_are_means_of_its_groups(self):
        paper = table.read_paper(str(PAPER))
        for row in paper.rows:
            for model in ("Llama", "Ministral"):
                groups = [
                    float(row[f"longbench {model} {g}"]) for g in ("SingQA", "MultQA", "Summ", "Few", "Synth", "Code")
                ]
                self.assertAlmostEqual(float(row[f"longbench {model}"]), np.mean(groups), delta=0.101)
                by_task = np.average(groups, weights=[3, 3, 3, 3, 2, 2])
                self.assertGreater(abs(float(row[f"longbench {model}"]) - by_task), 0.3)

    def test_both_tables_of_the_paper_agree(self):
        other = table.read_paper(str(ROOT / "validation/studies/paper-tasks.csv"))
        for row, first in zip(table.read_paper(str(PAPER)).rows, other.rows):
            for column in ("method", "bits", "longbench Llama", "longbench Ministral"):
                self.assertEqual(row[column], first[column])


class BadInput(Folder):
    def test_a_tokenizer_that_cannot_be_read_is_named_with_the_version(self):
        tokenizers = types.SimpleNamespace(Tokenizer=Unreadable, __version__="0.19.1")
        merges = [["a", "b"], ["ab", "c"]]
        (self.model / "tokenizer.json").write_text(json.dumps({"model": {"merges": merges}}))
        self.assertEqual(self.longbench(tokenizers=tokenizers)[0], 0)
        for wrong in ({}, {"model": {"merges": ["a b"]}}, {"model": {"merges": [["a", " "]]}}):
            (self.model / "tokenizer.json").write_text(json.dumps(wrong))
            with self.assertRaises(ValueError):
                with_joined_merges(json.dumps(wrong))
            outcome = self.longbench(tokenizers=tokenizers)
            self.fails(outcome, 4, "tokenizers 0.19.1 cannot read it (no variant)", "tokenizers 0.20 or later")

    def test_a_configuration_within_another(self):
        alone = architecture_of(str(self.model))
        (self.model / "config.json").write_text(json.dumps({**CONFIG, "text_config": None}))
        self.assertEqual(architecture_of(str(self.model)), alone)
        (self.model / "config.json").write_text(json.dumps({"text_config": CONFIG}))
        self.assertEqual(architecture_of(str(self.model)), alone)
        few = {key: value for key, value in CONFIG.items() if key != "intermediate_size"}
        (self.model / "config.json").write_text(json.dumps(few))
        self.assertEqual(architecture_of(str(self.model)), alone._replace(intermediate=4 * alone.hidden))
        (self.model / "config.json").write_text(json.dumps({**few, "hidden_size": None}))
        self.fails(self.longbench(), 4, "config.json: cannot be used")
        few.pop("hidden_size")
        (self.model / "config.json").write_text(json.dumps(few))
        self.fails(self.longbench(), 4, "config.json: it has no hidden_size")

    def test_what_is_missing_is_named(self):
        self.fails(self.longbench("--data", self.root / "nowhere"), 4, "nowhere: no such folder")
        self.fails(self.longbench("--tasks", "lcc,hotpotqa"), 4, "hotpotqa.jsonl: no such file", "--tasks")
        self.fails(self.longbench("--model", self.root), 4, "config.json: no such file")
        self.fails(self.needles("--haystack", self.root), 4, "cannot be read")
        self.fails(self.needles("--haystack", self.root / "nowhere"), 4, "nowhere: no such file")
        self.fails(run(["table", self.root / "nowhere"]), 4, "nowhere: no such folder")
        self.fails(run(["table", self.root]), 4, "no longbench.jsonl or needles.jsonl")
        self.assertFalse(self.results.exists())

    def test_wrong_words_are_named(self):
        self.fails(self.longbench("--method", "exact,tq-mze"), 2, "--method tq-mze", "tq-mse")
        self.fails(self.longbench("--method", "exact,exact"), 2, "there twice")
        self.fails(self.longbench("--tasks", "lccc"), 2, "--tasks lccc: there is no such task")
        self.fails(self.longbench("--tasks", "lcc,lcc"), 2, "--tasks lcc is there twice")
        self.fails(self.longbench("--limit", "0"), 2, "--limit 0")
        self.fails(self.longbench("--block", "0"), 2, "--block 0")
        self.fails(self.longbench("--max-length", "20001"), 2, "--max-length 20001")
        self.fails(self.longbench("--wrong"), 2, "--wrong")
        self.fails(self.longbench("--template", "odd"), 2, "odd")
        self.fails(run(["longbench"]), 2, "--model")
        self.fails(run([]), 2, "command")
        self.fails(self.needles("--context", "32k"), 2, "the model has 20000 positions")
        self.fails(self.needles("--context", "8k..4k"), 2, "8k..4k")
        self.fails(self.needles("--needles", "0"), 2, "'0'")
        self.fails(self.needles("--context", "400"), 2, "--context 400 has no room")
        self.assertFalse(self.results.exists())

    def test_malformed_lines_are_named_by_file_and_number(self):
        good = json.loads((DATA / "qasper.jsonl").read_text().splitlines()[0])
        data = self.root / "data"
        data.mkdir()

        def read(*rows):
            content = b"\n".join(row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows)
            (data / "qasper.jsonl").write_bytes(content)
            return self.longbench("--data", data, "--tasks", "qasper")

        place = "qasper.jsonl:2: "
        self.fails(read(good, b'{"context": "a'), 4, place + "no JSON")
        self.fails(read(good, b"[1]"), 4, place + "list (expected an object of JSON)")
        self.fails(read(good, b'{"input": "\xff"}'), 4, place + "no JSON")
        self.fails(read(good, {**good, "context": None}), 4, place + "context")
        self.fails(read(good, {**good, "input": 3}), 4, place + "input")
        for wrong in ([], "cork", [1], None):
            self.fails(read(good, {**good, "answers": wrong}), 4, place + "answers")
        self.fails(read(b""), 4, "it has no lines")
        trec = json.loads((DATA / "trec.jsonl").read_text().splitlines()[0])
        (data / "trec.jsonl").write_text(json.dumps({**trec, "all_classes": None}))
        self.fails(self.longbench("--data", data, "--tasks", "trec"), 4, "trec.jsonl:1: all_classes")
        retrieval = json.loads((DATA / "passage_retrieval_en.jsonl").read_text())
        (data / "passage_retrieval_en.jsonl").write_text(json.dumps({**retrieval, "answers": ["2"]}))
        self.fails(self.longbench("--data", data, "--tasks", "passage_retrieval_en"), 4, "Paragraph N")
        self.assertFalse(self.results.exists())

    def test_damaged_results_are_not_added_to(self):
        self.assertEqual(self.longbench()[0], 0)
        path = self.results / "longbench.jsonl"
        whole = path.read_text().splitlines()
        path.write_text("\n".join([*whole[:3], whole[3][:-7], *whole[4:]]) + "\n")
        before = path.read_bytes()
        self.fails(self.longbench(), 4, "longbench.jsonl:4: no JSON")
        self.fails(run(["table", self.results]), 4, "longbench.jsonl:4: no JSON")
        path.write_text("{}\n")
        self.fails(self.longbench(), 4, "no results of longbench")
        self.fails(run(["table", self.results]), 4, "no results")
        self.assertNotEqual(before, b"")
        path.write_text("\n".join([*whole[:6], '{"kind": "answer"}', *whole[6:]]) + "\n")
        self.fails(run(["table", self.results]), 4, "longbench.jsonl:7: no result")
        self.fails(self.longbench(), 4, "longbench.jsonl")

    def test_wrong_tables_of_the_paper_are_named(self):
        self.assertEqual(self.longbench()[0], 0)
        other = self.root / "other.csv"
        self.fails(run(["table", self.results, "--against", other]), 4, "other.csv: cannot be read")
        other.write_text("a,b\n1,2\n")
        self.fails(run(["table", self.results, "--against", other]), 4, 'no columns "method" and "bits"')
        other.write_text("method,bits,longbench Llama\ntq-mse,2,many\n")
        self.fails(run(["table", self.results, "--against", other]), 4, "other.csv:2: longbench Llama is 'many'")


if __name__ == "__main__":
    unittest.main()
