"""spiked.e2e with a real model of transformers, small and random, and the model class for lm-eval."""

import contextlib
import importlib
import importlib.util
import io
import pathlib
import shutil
import string
import sys
import tempfile
import types
import unittest
from unittest import mock

from e2e_support import DATA, lines

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
        sliding_window=512,
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


if __name__ == "__main__":
    unittest.main()
