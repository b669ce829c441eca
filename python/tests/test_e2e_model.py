"""spiked.e2e with a real model of transformers, small and random, and the model class for lm-eval."""

import contextlib
import importlib
import importlib.util
import io
import json
import os
import pathlib
import shutil
import string
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

from e2e_support import DATA, lines
from support import run_python

NEEDED = ("torch", "transformers", "tokenizers")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
CHARACTERS = string.digits + string.ascii_letters + string.punctuation + " \n"


def save_model(folder):
    """A random model whose tokens are characters."""
    import torch
    import transformers
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    torch.manual_seed(1)
    config = transformers.MistralConfig(
        vocab_size=128,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=4096,
        sliding_window=1024,
        initializer_range=0.2,
    )
    transformers.MistralForCausalLM(config).save_pretrained(folder)
    ids = {character: at for at, character in enumerate(CHARACTERS)}
    tokenizer = Tokenizer(models.WordLevel({**ids, "?": ids["?"]}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens([AddedToken("</s>", special=True)])
    tokenizer.save(str(pathlib.Path(folder) / "tokenizer.json"))


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class WithModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp())
        cls.model = cls.root / "random"
        save_model(cls.model)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root)

    def run_e2e(self, command, *words):
        from spiked.e2e.__main__ import main

        given = [command, "--model", self.model, "--template", "none", "--output", self.root / command, "--block", "32"]
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(main([str(word) for word in [*given, *words]]), 0)
        return [row for row in lines(self.root / command / f"{command}.jsonl") if row.get("kind") == "answer"]

    def test_the_exact_cache_answers_as_the_model_alone(self):
        import torch
        import transformers

        from spiked.e2e import longbench
        from spiked.e2e.tasks import TASKS
        from spiked.e2e.tokens import Tokens

        rows = self.run_e2e(
            *(
                "longbench",
                "--data",
                DATA,
                "--tasks",
                "samsum,qasper",
                "--method",
                "exact,tq-mse",
                "--max-length",
                "300",
            ),
            "--no-sliding-window",
        )
        self.assertEqual(len(rows), 6)
        model = transformers.AutoModelForCausalLM.from_pretrained(self.model).eval()
        tokens = Tokens(self.model, "none", None)
        exact = [row for row in rows if row["method"] == "exact"]
        for row, coded in zip(exact, rows[len(exact) :]):
            self.assertGreater(coded["coded_bits"], 2)
            self.assertGreater(coded["stored_bits"], coded["coded_bits"])
            line = lines(DATA / f"{row['task']}.jsonl")[row["index"]]
            ids = longbench.prompt_of(row["task"], row["index"], line, "", tokens, 300).ids
            self.assertEqual(len(ids), row["tokens"])
            alone = model.generate(
                torch.tensor([ids]),
                attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                do_sample=False,
                max_new_tokens=TASKS[row["task"]].answer_tokens,
                min_new_tokens=1,
                eos_token_id=longbench.ends_of(TASKS[row["task"]], tokens),
                pad_token_id=0,
            )
            self.assertEqual(tokens.text(alone[0, len(ids) :].tolist()), row["pred"])
        self.assertTrue(any(a["pred"] != b["pred"] for a, b in zip(exact, rows[len(exact) :])))

    def test_needles_run(self):
        rows = self.run_e2e(
            *("needles", "--needles", "2", "--context", "1k", "--prompts", "1", "--method", "exact,tq-mse"),
            *("--answer-tokens", "8", "--no-sliding-window"),
        )
        self.assertEqual([(row["control"], row["score"]) for row in rows], 2 * [(False, 0), (True, 0)])

    def save(self, kind, name, **changes):
        """The folder of a small random model; the test is skipped where transformers has no such model."""
        import torch
        import transformers

        if not hasattr(transformers, f"{kind}Config"):
            self.skipTest(f"transformers {transformers.__version__} has no {kind}")
        torch.manual_seed(1)
        config = getattr(transformers, f"{kind}Config")(vocab_size=97, initializer_range=0.2, **changes)
        getattr(transformers, name)(config).save_pretrained(self.root / kind)
        return str(self.root / kind)

    def test_a_model_without_its_sliding_window_is_compressed_whole(self):
        import torch
        import transformers

        from spiked import errors
        from spiked.e2e.runner import EXACT, Method, Runner

        shape = {
            **{"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 2},
            **{"num_key_value_heads": 1, "head_dim": 32, "max_position_embeddings": 512, "sliding_window": 100},
        }
        qwen = {"use_sliding_window": True, "max_window_layers": 1}
        ids = torch.randint(1, 97, (1, 40), generator=torch.Generator().manual_seed(2))
        for kind, more in (("Mistral", {}), ("Ministral", {}), ("Qwen2", qwen), ("Gemma2", {})):
            with self.subTest(kind):
                folder = self.save(kind, f"{kind}ForCausalLM", **shape, **more)
                if kind == "Gemma2" and not hasattr(transformers, "MinistralConfig"):
                    with self.assertRaisesRegex(errors.UsageError, "gemma2 cannot be taken out in this version"):
                        Runner(folder, no_window=True)
                    continue
                before = Runner(folder).model
                after = Runner(folder, block=16, no_window=True)
                with torch.no_grad():
                    torch.testing.assert_close(after.model(ids).logits, before(ids).logits)
                answer = after.answer(Method(EXACT, None), ids[0].tolist(), 4, [0])
                alone = before.generate(ids, max_new_tokens=4, do_sample=False, eos_token_id=0, pad_token_id=0)
                self.assertEqual(answer.ids, alone[0, 40:].tolist())
                self.assertEqual(answer.coded_bits, 32)
                with after.cache(Method("tq-mse", 2)) as used:
                    after.model.generate(ids, max_new_tokens=2, do_sample=False, pad_token_id=0)
                self.assertEqual((used.report().layers, used.report().left_alone), ((0, 1), {}))
        # Layers with a window have another rotary embedding, or are the only ones with one.
        for kind, name in (("Gemma3Text", "Gemma3ForCausalLM"), ("Cohere2", "Cohere2ForCausalLM")):
            with self.subTest(kind):
                folder = self.save(kind, name, **shape)
                with self.assertRaisesRegex(errors.UsageError, "--no-sliding-window: the sliding window of .* possible"):
                    Runner(folder, no_window=True)

    def test_what_a_model_raises_ends_in_one_line(self):
        from spiked import errors
        from spiked.e2e.runner import EXACT, Method, Runner

        runner = Runner(str(self.model), no_window=True)
        for problem in (ValueError("two\nlines"), TypeError("two lines"), KeyError("two lines")):
            with mock.patch.object(runner.model, "forward", side_effect=problem):
                with self.assertRaisesRegex(errors.InputError, "the model fails on a prompt of 3 tokens .*two lines"):
                    runner.answer(Method(EXACT, None), [1, 2, 3], 2, [0])
        with mock.patch.object(runner.model, "forward", side_effect=RuntimeError("CUDA out of memory")):
            with self.assertRaises(errors.OutOfMemory):
                runner.answer(Method(EXACT, None), [1, 2, 3], 2, [0])
        with self.assertRaises(errors.UsageError):
            runner.answer(Method("tq-mse", 99), [1, 2, 3], 2, [0])

    def test_the_exact_cache_stores_entries_as_wide_as_those_of_the_model(self):
        from spiked.e2e.runner import EXACT, Method, Runner

        for dtype, bits in (("float32", 32), ("bfloat16", 16)):
            answer = Runner(str(self.model), dtype, block=16, no_window=True).answer(
                Method(EXACT, None), list(range(1, 41)), 2, [0]
            )
            self.assertEqual((answer.coded_bits, answer.stored_bits), (bits, bits))

    def test_configurations_that_transformers_completes(self):
        from spiked.e2e.runner import Architecture, architecture_of

        self.assertEqual(
            architecture_of(self.save("GPT2", "GPT2LMHeadModel", n_embd=64, n_layer=3, n_head=4, n_positions=512)),
            Architecture(3, 4, 4, 16, 64, 256, 97, 512),
        )
        opt = {"hidden_size": 64, "ffn_dim": 96, "num_hidden_layers": 3, "num_attention_heads": 4}
        self.assertEqual(
            architecture_of(self.save("OPT", "OPTForCausalLM", **opt, word_embed_proj_dim=64)),
            Architecture(3, 4, 4, 16, 64, 256, 97, 2048),
        )
        falcon = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4}
        found = architecture_of(self.save("Falcon", "FalconForCausalLM", **falcon))
        self.assertEqual(found, Architecture(3, 4, 4, 16, 64, 256, 97, 2048))

    def test_a_gemma_3_whose_text_leaves_defaults_out(self):
        import transformers

        from spiked.e2e.runner import architecture_of

        if not hasattr(transformers, "Gemma3Config"):
            self.skipTest(f"transformers {transformers.__version__} has no Gemma3")
        folder = self.root / "gemma3"
        folder.mkdir()
        text = {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34}
        (folder / "config.json").write_text(json.dumps({"model_type": "gemma3", "text_config": text}))
        found = architecture_of(str(folder))
        self.assertEqual((found.layers, found.heads, found.key_value_heads, found.head_dim), (34, 8, 4, 256))
        self.assertEqual((found.hidden, found.intermediate), (2560, 10240))

    def test_lm_eval_reads_texts_through_the_cache(self):
        import torch
        import transformers

        class HFLM:  # what SpikedLM uses of lm-eval's class of this name
            def __init__(self, pretrained, backend, batch_size):
                self.model = pretrained

            def _model_generate(self, context, max_length, stop, **options):
                return self.model.generate(context, max_length=max_length, do_sample=False, pad_token_id=0)

        names = ("lm_eval", "lm_eval.api", "lm_eval.api.registry", "lm_eval.models", "lm_eval.models.huggingface")
        modules = {name: types.ModuleType(name) for name in names}
        modules["lm_eval.api.registry"].register_model = lambda name: lambda kind: kind
        modules["lm_eval.models.huggingface"].HFLM = HFLM
        with mock.patch.dict(sys.modules, modules):
            SpikedLM = importlib.import_module("spiked.e2e.lm_eval").SpikedLM
        model = transformers.AutoModelForCausalLM.from_pretrained(self.model).eval()
        model.config.sliding_window = None
        for layer in model.model.layers:
            layer.self_attn.sliding_window = None
        ids = torch.randint(1, 90, (1, 100), generator=torch.Generator().manual_seed(2))
        with torch.no_grad():
            plain = model(ids).logits
        exact = SpikedLM(model, block=32)._model_call(ids)
        coded = SpikedLM(model, method="tq-mse", bits="2", block=32)._model_call(ids)
        self.assertEqual(exact.shape, plain.shape)
        self.assertLess(float((exact - plain).abs().max()), 1e-3 * float(plain.abs().max()))
        self.assertLess(float((coded - plain)[:, :32].abs().max()), 1e-3 * float(plain.abs().max()))
        self.assertGreater(float((coded - plain)[:, 32:].abs().max()), 1e-2 * float(plain.abs().max()))
        one_pass = SpikedLM(model, method="tq-mse", block=128)._model_call(
            ids
        )  # the control: nothing is read from codes
        self.assertLess(float((one_pass - plain).abs().max()), 1e-3 * float(plain.abs().max()))
        answer = SpikedLM(model, block=32)._model_generate(ids, 104, [])
        alone = model.generate(ids, max_length=104, do_sample=False, pad_token_id=0)
        self.assertEqual(answer.tolist(), alone.tolist())
        with self.assertRaisesRegex(ValueError, "batch_size 4 is not possible"):
            SpikedLM(model, batch_size=4)


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
@unittest.skipIf(importlib.util.find_spec("lm_eval") is None, "lm_eval is not installed")
class LmEval(unittest.TestCase):
    """lm-eval itself with tasks of a local folder."""

    def test_a_task_reads_the_cache(self):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "random"
            save_model(model)
            config = json.loads((model / "config.json").read_text())
            (model / "config.json").write_text(json.dumps({**config, "sliding_window": None}))
            tokenizer = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "</s>"}
            (model / "tokenizer_config.json").write_text(json.dumps(tokenizer))
            data = pathlib.Path(folder) / "data.jsonl"
            rows = [{"text": f"The cat sat on mat {i} and saw a dog. " * 4, "choices": ["cat", "dog"]} for i in range(2)]
            data.write_text("".join(json.dumps(row) + "\n" for row in rows))
            common = {"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(data)}}, "test_split": "test"}
            rolling = {
                **{"task": "rolling", "output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": "text"},
                **{"metric_list": [{"metric": "bits_per_byte"}], **common},
            }
            generate = {
                **{"task": "generate", "output_type": "generate_until", "doc_to_text": "{{text}}", "doc_to_target": "a"},
                **{"generation_kwargs": {"until": ["</s>"], "max_gen_toks": 8}, **common},
                **{"metric_list": [{"metric": "exact_match"}]},
            }
            for task in (rolling, generate):  # JSON is YAML
                (pathlib.Path(folder) / f"{task['task']}.yaml").write_text(json.dumps(task))
            program = (
                "import json, sys, lm_eval, lm_eval.tasks, spiked.e2e.lm_eval\n"
                "folder, found = sys.argv[1], {}\n"
                "tasks = lm_eval.tasks.TaskManager(include_path=folder)\n"
                "for name, more in (('hf', ''), ('spiked', ''), ('spiked', ',method=tq-mse')):\n"
                "    more += ',block=32' if name == 'spiked' else ''\n"
                "    given = {'model': name, 'model_args': f'pretrained={folder}/random' + more, 'device': 'cpu'}\n"
                "    given['task_manager'] = tasks\n"
                "    out = lm_eval.simple_evaluate(tasks=['rolling', 'generate'], bootstrap_iters=0, **given)\n"
                "    bits = out['results']['rolling']['bits_per_byte,none']\n"
                "    found[name + more] = bits, [row['resps'] for row in out['samples']['generate']]\n"
                "print(json.dumps(list(found.values())))\n"
            )
            offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": folder}
            with mock.patch.dict(os.environ, offline):
                done = run_python(program, folder, timeout=600)
            self.assertEqual(done.returncode, 0, done.stderr)
            plain, exact, coded = json.loads(done.stdout.splitlines()[-1])
            self.assertAlmostEqual(exact[0], plain[0], places=4)
            self.assertEqual(exact[1], plain[1])
            self.assertGreater(abs(coded[0] - plain[0]), 1e-3)
            self.assertNotEqual(coded[1], plain[1])


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class SmolLM2(unittest.TestCase):
    """The whole command with a trained model, whose tokenizer.json is of a newer form than tokenizers 0.19 reads."""

    def test_longbench_and_needles(self):
        import torch
        import transformers
        from hf_support import trained_folder

        from spiked.e2e.__main__ import main
        from spiked.e2e.tokens import Tokens

        model = trained_folder("smollm2-135m-instruct")
        tokens = Tokens(model, None, None)
        text = "The magic number is 1234567.\n\tCaf\u00e9"
        self.assertEqual(tokens.text(tokens.ids(text)), text)
        out = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(out):
            given = ["--model", str(model), "--output", folder, "--method", "exact,tq-mse", "--dtype", "float32"]
            self.assertEqual(main(["longbench", *given, "--data", str(DATA), "--tasks", "trec,qasper", "--dry-run"]), 0)
            self.assertRegex(out.getvalue(), r"8 prompts to answer[^$]*tq-mse at 2 bits: \d+ blocks of 128 x 64")
            short = ["--needles", "1", "--context", "300", "--prompts", "1", "--controls", "0", "--answer-tokens", "8"]
            start = ["--answer-start", "The special magic number is:", "--block", "64"]
            self.assertEqual(main(["needles", *given, *short, *start]), 0)
            exact, coded = lines(pathlib.Path(folder) / "needles.jsonl")[1:]
        self.assertEqual((exact["method"], exact["coded_bits"], coded["coded_bits"]), ("exact", 32, 2.25))
        self.assertTrue(exact["pred"].strip())

    def test_longbench_that_is_killed_goes_on_and_gives_the_table(self):
        import torch
        import transformers
        from hf_support import trained_folder

        from spiked.e2e import longbench
        from spiked.e2e.tasks import TASKS
        from spiked.e2e.tokens import Tokens

        model = trained_folder("smollm2-135m-instruct")
        tasks = "trec,samsum,lcc,passage_retrieval_en,qasper"
        with tempfile.TemporaryDirectory() as folder:
            program = [sys.executable, "-m", "spiked.e2e"]
            words = ["--model", str(model), "--output", folder, "--data", str(DATA), "--tasks", tasks, "--limit", "1"]
            words += ["--method", "exact,tq-mse", "--dtype", "float32", "--block", "32"]
            path = pathlib.Path(folder) / "longbench.jsonl"
            running = subprocess.Popen([*program, "longbench", *words], stdout=subprocess.PIPE, text=True)
            self.assertIn("10 prompts to answer, 0 answered before", running.stdout.readline())
            running.stdout.readline(), running.stdout.readline()  # two answers
            running.kill()
            running.communicate()
            self.assertEqual(running.returncode, -9)
            before = path.read_bytes()
            first = before[: before.rfind(b"\n") + 1].count(b'"kind": "answer"')
            self.assertTrue(2 <= first < 10, first)
            done = subprocess.run([*program, "longbench", *words], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stdout.startswith(f"{10 - first} prompts to answer, {first} answered before"), done.stdout)
            self.assertTrue(path.read_bytes().startswith(before[: before.rfind(b"\n") + 1]))
            rows = [row for row in lines(path) if row.get("kind") == "answer"]
            self.assertEqual(len({(row["method"], row["task"]) for row in rows}), len(rows))
            self.assertEqual(len(rows), 10)
            done = subprocess.run([*program, "table", folder, "--json"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            exact, coded = json.loads(done.stdout)["tables"][0]["methods"]
        self.assertEqual((exact["coded_bits"], coded["coded_bits"]), (32, 2.25))
        for found in (exact, coded):
            mine = {row["task"]: row["score"] for row in rows if row["method"] == found["method"]}
            self.assertEqual({task: entry["value"] for task, entry in found["tasks"].items()}, mine)
            few = (mine["trec"] + mine["samsum"]) / 2
            groups = [mine["qasper"], few, mine["passage_retrieval_en"], mine["lcc"]]
            self.assertAlmostEqual(found["groups"]["Avg"]["value"], sum(groups) / 4)
        alone = transformers.AutoModelForCausalLM.from_pretrained(model).float().eval()
        tokens = Tokens(model, None, None)
        self.assertEqual(tokens.form, "chatml")
        for row in rows:
            if row["method"] == "exact":
                task = TASKS[row["task"]]
                line = lines(DATA / f"{row['task']}.jsonl")[0]
                ids = torch.tensor([longbench.prompt_of(row["task"], 0, line, "", tokens, 1000).ids])
                answer = alone.generate(
                    ids,
                    attention_mask=torch.ones_like(ids),
                    do_sample=False,
                    max_new_tokens=task.answer_tokens,
                    min_new_tokens=1 if task.ends_at_newline else 0,
                    eos_token_id=longbench.ends_of(task, tokens),
                    pad_token_id=0,
                )
                self.assertEqual(tokens.text(answer[0, ids.shape[1] :].tolist()), row["pred"])
        self.assertTrue(any(a["pred"] != b["pred"] for a, b in zip(rows, rows[5:])))


if __name__ == "__main__":
    unittest.main()
