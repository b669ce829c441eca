"""Compressed caches in small random models of transformers, and tools/hf-check."""

import contextlib
import copy
import importlib.machinery
import importlib.util
import io
import math
import tempfile
import unittest
import warnings
from unittest import mock

import numpy as np
import spiked
from hf_support import random_model, token_ids, torch, transformers
from spiked import errors, hf
from spiked.hf import _plan
from spiked.hf._rope import Rotation
from spiked.hf._store import BlockStore
from support import ROOT

GREEDY = {"do_sample": False, "max_new_tokens": 40, "pad_token_id": 0}


class Identity(unittest.TestCase):
    def setUp(self):
        self.model = random_model()
        self.ids = token_ids(2, 70)

    def test_generation_equals_that_of_an_ordinary_cache(self):
        for beams in (1, 3):
            expected = self.model.generate(self.ids, num_beams=beams, **GREEDY)
            for keep in ("decoded", "packed"):
                with self.subTest(beams=beams, keep=keep):
                    cache = hf.SpikedCache(self.model, "identity", "identity", block=16, keep=keep)
                    given = {hf.cache_argument(self.model): cache}
                    found = self.model.generate(self.ids, num_beams=beams, **GREEDY, **given)
                    self.assertTrue(torch.equal(found, expected))
                    self.assertEqual(cache.report().coded_tokens, 96)
                    with hf.compressed(
                        self.model, key="identity", value="identity", block=16, keep=keep, chunk=32
                    ) as used:
                        found = self.model.generate(self.ids, num_beams=beams, **GREEDY)
                    self.assertTrue(torch.equal(found, expected))
                    self.assertEqual((used.report().coded_tokens, used.report().texts), (96, 2 * beams))
            self.assertNotIn("generate", vars(self.model))

    def test_losses_equal_those_without_a_cache(self):
        exact = hf.token_losses(self.model, self.ids)
        for key in ("identity", "unrope+identity"):
            cache = hf.SpikedCache(self.model, key, "identity", block=16)
            found = hf.token_losses(self.model, self.ids, cache, chunk=16)
            torch.testing.assert_close(found, exact, rtol=0, atol=1e-4)

    def test_a_filled_cache_can_be_copied_and_used_again(self):
        cache = hf.prefill(self.model, self.ids, hf.SpikedCache(self.model, bits=3, block=16))
        name = hf.cache_argument(self.model)
        first, second = (self.model.generate(self.ids, **GREEDY, **{name: copy.deepcopy(cache)}) for _ in range(2))
        self.assertTrue(torch.equal(first, second))
        self.assertEqual(cache.get_seq_length(), 69)


class CausalCodes(unittest.TestCase):
    """Blocks that are coded from those before them."""

    def setUp(self):
        self.model = random_model()
        self.ids = token_ids(2, 420)

    def rows(self, cache, layer=1):
        pair = cache._pairs[layer]
        return pair.keys.read(), pair.values.read()

    def test_many_bits_give_the_exact_losses_and_few_do_not(self):
        exact = hf.token_losses(self.model, self.ids)
        changes = {}
        for bits in (8, 4, 1):
            cache = hf.SpikedCache(self.model, "causal-klt", "causal-klt", bits)
            found = hf.token_losses(self.model, self.ids, cache)[:, 128:]
            changes[bits] = float((found - exact[:, 128:]).square().mean().sqrt())
        # Each bit halves the error of a row, and so about that of a loss.
        self.assertLess(changes[8], changes[4] / 8)
        self.assertLess(changes[4], changes[1] / 3)
        self.assertLess(changes[8], 0.1)

    def test_bits_are_met_where_the_tokens_are_known(self):
        for value in ("causal-klt", "causal-klt:heads=0", "causal-klt:heads=2:ar=off"):
            with self.subTest(value):
                cache = hf.SpikedCache(self.model, "causal-klt", value, 2.5, tokens=384)
                report = hf.prefill(self.model, self.ids, cache).report()
                self.assertEqual(report.coded_tokens, 384)
                for side in ("key", "value"):
                    self.assertLess(abs(report.bits_per_entry[side] - 2.5), 0.025, side)
                    self.assertEqual(list(report.ledger[side]), ["total"])

    def test_a_stream_of_its_own_gives_the_same_rows(self):
        cache = hf.prefill(self.model, self.ids, hf.SpikedCache(self.model, "causal-klt", "causal-klt", 3))
        exact = hf.prefill(self.model, self.ids[1:], hf.SpikedCache(self.model, "identity", "identity"), chunk=None)
        values = self.rows(exact, 0)[1][0, 1]    # of the first layer, which no cache changes
        stream = spiked.Codec("causal-klt", 32, 3).stream()
        expected = np.concatenate([stream.append(values[first : first + 128])[0] for first in (0, 128, 256)])
        found = self.rows(cache, 0)[1][1, 1, :384].numpy()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())

    def test_beams_and_copies_go_on_apart(self):
        cache = hf.prefill(self.model, self.ids[:1, :200], hf.SpikedCache(self.model, "causal-klt", "causal-klt", 3))
        cache.batch_repeat_interleave(2)
        again = copy.deepcopy(cache)
        other = self.ids[:, 199:].clone()
        hf.prefill(self.model, torch.cat([self.ids[:1, :199].repeat(2, 1), other], 1), cache)
        for text in range(2):    # as if each had been read alone
            alone = hf.SpikedCache(self.model, "causal-klt", "causal-klt", 3)
            hf.prefill(self.model, torch.cat([self.ids[:1, :199], other[text : text + 1]], 1), alone)
            for found, expected in zip(self.rows(cache), self.rows(alone)):
                torch.testing.assert_close(found[text], expected[0], rtol=0, atol=1e-3)
        self.assertEqual(again.get_seq_length(), 199)
        hf.prefill(self.model, torch.cat([self.ids[:1, :199].repeat(2, 1), other], 1), again)
        for found, expected in zip(self.rows(again), self.rows(cache)):
            torch.testing.assert_close(found, expected, rtol=0, atol=0)

    def test_generation_reads_the_codes(self):
        options = {**GREEDY, "max_new_tokens": 8}
        with hf.compressed(self.model, key="causal-klt", value="causal-klt", bits=4) as used:
            found = self.model.generate(self.ids, num_beams=2, **options)
        self.assertEqual((tuple(found.shape), used.report().coded_tokens, used.report().texts), ((2, 428), 384, 4))


class Compression(unittest.TestCase):
    def setUp(self):
        self.model = random_model()
        self.ids = token_ids(1, 100)

    def cache(self, key="tq-mse", value="tq-mse", bits=1, **options):
        return hf.SpikedCache(self.model, key, value, bits, block=16, **options)

    def test_one_pass_over_a_prompt_never_reads_the_cache_and_so_shows_no_loss(self):
        exact = hf.token_losses(self.model, self.ids)
        cache = self.cache()
        found = hf.token_losses(self.model, self.ids, cache, chunk=None)
        torch.testing.assert_close(found, exact, rtol=0, atol=1e-4)
        self.assertEqual(cache.report().coded_tokens, 96)  # although all of it was coded
        # The same text in parts does read it, from the second block on.
        in_parts = hf.token_losses(self.model, self.ids, self.cache(), chunk=16) - exact
        self.assertLess(float(in_parts[:, :16].abs().max()), 1e-4)
        self.assertGreater(float(in_parts[:, 16:].abs().mean()), 0.01)

    def test_packed_and_decoded_give_the_same_and_threads_do_not_matter(self):
        found = [
            hf.token_losses(self.model, self.ids, self.cache("unrope+eoptshrink+tq-mse", bits=2, **options), chunk=16)
            for options in ({}, {"keep": "packed"}, {"threads": 1}, {"threads": 3})
        ]
        for other in found[1:]:
            torch.testing.assert_close(other, found[0], rtol=0, atol=1e-6)

    def test_coded_blocks_never_change_and_open_rows_are_exact(self):
        cache, rows = self.cache(), torch.randn(1, 2, 40, 32)
        exact = rows
        cache.update(rows, rows, 0)
        store = cache._pairs[0].keys
        blocks, before = store.texts[0], store.read()
        torch.testing.assert_close(before[..., 32:, :], exact[..., 32:, :], rtol=0, atol=0)
        for _ in range(30):
            rows = torch.randn(1, 2, 1, 32)
            exact = torch.cat([exact, rows], -2)
            cache.update(rows, rows, 0)
        self.assertTrue(all(a is b for a, b in zip(blocks, store.texts[0])))
        self.assertEqual(len(store.texts[0]), 4)
        torch.testing.assert_close(store.read()[..., :32, :], before[..., :32, :], rtol=0, atol=0)
        torch.testing.assert_close(store.read()[..., 64:, :], exact[..., 64:, :], rtol=0, atol=0)
        error = (store.read() - exact)[..., :64, :].norm() / exact[..., :64, :].norm()
        self.assertTrue(0.4 < float(error) < 0.75)  # one bit an entry

    def test_beams_carry_their_own_blocks(self):
        cache, rows = self.cache(keep="packed"), torch.randn(2, 2, 20, 32)
        cache.update(rows, rows, 0)
        first = cache._pairs[0].keys.read()
        cache.batch_repeat_interleave(2)
        cache.reorder_cache(torch.tensor([2, 2, 0, 3]))
        torch.testing.assert_close(cache._pairs[0].keys.read(), first[[1, 1, 0, 1]], rtol=0, atol=0)
        self.assertEqual(cache.report().texts, 4)
        with self.assertRaisesRegex(errors.InputError, "batch_repeat_interleave"):
            cache.update(rows, rows, 0)

    def test_the_report_counts_all_bits(self):
        cache = self.cache("tq-mse", "svd:1+tq-mse", 2, keep="packed")
        hf.prefill(self.model, self.ids, cache, chunk=16)
        report = cache.report()
        self.assertEqual((report.tokens, report.coded_tokens, report.layers), (99, 96, (0, 1)))
        self.assertEqual({k: v for k, v in report.ledger["key"].items() if v > 0}, {"indices": 2.0, "norms": 0.5})
        self.assertGreater(report.bits_per_entry["value"], 2.5)
        # Two layers with two heads of 32; the bytes of the codes, and three rows of floats.
        coded = sum(
            len(c.bytes)
            for pair in cache._pairs.values()
            for s in (pair.keys, pair.values)
            for b in s.blocks()
            for c in b.codes
        )
        tail = 2 * 2 * 2 * 3 * 32 * 4
        self.assertEqual((report.held_bytes, report.stored_bytes), (coded + tail, coded + tail))
        self.assertEqual(report.exact_bytes, 2 * 2 * 2 * 99 * 32 * 4)
        self.assertAlmostEqual(report.stored_bits_per_entry, 8 * report.stored_bytes / (2 * 2 * 2 * 99 * 32))
        self.assertIn("keys by tq-mse at 2 bits: 2.5 bits per entry (indices 2, norms 0.5)", str(report))
        self.assertTrue(math.isnan(self.cache().report().bits_per_entry["key"]))
        empty = str(self.cache().report())
        self.assertIn("the decoded rows are kept", empty)
        self.assertIn("keys by tq-mse at 1 bits: nothing is coded yet\nvalues", empty)
        self.assertNotIn("nan", empty)

    def test_groups_of_keys_run_along_tokens_and_only_keys_have_means(self):
        model, options = self.model, {"block": 64}
        for key, value, axes in (
            ("kivi:group=16", "svd:1+kivi", ("key", "value")),
            ("tq-mse", "gear", (None, "value")),
            ("unrope+mean+tq-mse", "mean+tq-mse", ("key", "value")),
        ):
            plan = hf.SpikedCache(model, key, value, 2, **options)._plan
            found = tuple(plan.codec(0, side, 0, 2, 32).options.get("axis") for side in ("key", "value"))
            self.assertEqual(found, axes)

    def test_a_device_is_named(self):
        cache = self.cache()
        with self.assertWarnsRegex(UserWarning, "codec runs on the CPU"):
            cache._plan.say_device(torch.device("cuda:0"))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cache._plan.say_device(torch.device("cuda:0"))
        self.assertIn("the cache is on cuda:0", str(cache.report()))


class Models(unittest.TestCase):
    def test_rotary_embeddings_are_undone_by_the_code_of_the_model(self):
        scalings = {
            "default": None,
            "linear": {"type": "linear", "factor": 2.0},
            "yarn": {"rope_type": "yarn", "factor": 4.0},
            "llama3": {
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 256,
            },
        }
        for kind, scaling in scalings.items():
            with self.subTest(kind):
                model = random_model("Llama", rope_scaling=scaling)
                rotation = (
                    _plan.Plan(
                        model,
                        "unrope+tq-mse",
                        "tq-mse",
                        2,
                        block=16,
                        keep="decoded",
                        threads=1,
                        sequence=0,
                        tokens=0,
                        options={},
                    )
                    .store(1, "key")
                    .coder._rotation
                )
                before = {}

                def keep(module, given, found):
                    before["keys"] = found.detach().reshape(1, -1, 2, 32).transpose(1, 2)

                handle = model.model.layers[1].self_attn.k_proj.register_forward_hook(keep)
                with torch.no_grad():
                    cache = transformers.DynamicCache()
                    model(token_ids(1, 200), use_cache=True, **{hf.cache_argument(model): cache})
                handle.remove()
                keys = cache.layers[1].keys if hasattr(cache, "layers") else cache.key_cache[1]
                torch.testing.assert_close(rotation.undo(keys, 0), before["keys"], rtol=0, atol=2e-5)
                torch.testing.assert_close(
                    rotation.undo(keys[..., 150:, :], 150), before["keys"][..., 150:, :], rtol=0, atol=2e-5
                )
                self.assertGreater(float((keys - before["keys"]).abs().mean()), 0.1)

    def test_a_factor_is_taken_off_the_channels_that_are_rotated(self):
        """Tables of one column for each pair of channels, as those of gpt-oss, on all channels or on the first half."""

        class Tables(torch.nn.Module):
            def forward(self, x, position_ids):
                angles = position_ids[..., None] * torch.tensor([1.0, 0.1, 0.01, 0.001])
                return 1.2 * angles.cos(), 1.2 * angles.sin()

        def apply(width):
            def rotate(queries, keys, cos, sin):
                (a, b), rest = keys[..., :width].chunk(2, -1), keys[..., width:]
                cos, sin = (table[:, None, :, : width // 2] for table in (cos, sin))
                return None, torch.cat([a * cos - b * sin, b * cos + a * sin, rest], -1)

            return rotate

        keys = torch.randn(2, 3, 20, 8)
        for width in (8, 4):
            rotation = Rotation(Tables(), apply(width))
            rotated = rotation.apply(keys, 7)
            torch.testing.assert_close(rotation.undo(rotated, 7), keys)
            self.assertGreater(float((rotated - keys)[..., :width].abs().mean()), 0.1)

    def test_gpt_oss_with_its_scaling(self):
        if not hasattr(transformers, "GptOssConfig"):
            self.skipTest(f"transformers {transformers.__version__} has no GptOss")
        model = random_model("GptOss", head_dim=32, sliding_window=24, num_local_experts=4)
        ids = token_ids(1, 70)
        cache = hf.SpikedCache(model, "unrope+identity", "identity", block=16)
        found = hf.token_losses(model, ids, cache, chunk=16)
        torch.testing.assert_close(found, hf.token_losses(model, ids), rtol=0, atol=1e-4)

    def test_rotary_embeddings_that_depend_on_the_length_are_rejected(self):
        model = random_model("Llama", rope_scaling={"type": "dynamic", "factor": 2.0})
        with self.assertRaisesRegex(errors.UsageError, "type dynamic.*without unrope"):
            hf.SpikedCache(model)
        hf.SpikedCache(model, "tq-mse", "tq-mse")
        for module in model.modules():
            if hasattr(module, "rope_type"):
                module.rope_type = "longrope"
        with self.assertRaisesRegex(errors.UsageError, "type longrope"):
            hf.SpikedCache(model)

    def test_a_model_without_rotary_embedding_says_so(self):
        config = transformers.GPT2Config(vocab_size=97, n_embd=64, n_layer=2, n_head=2, n_positions=128)
        model = transformers.GPT2LMHeadModel(config).eval()
        with self.assertRaisesRegex(errors.UsageError, "no rotary embedding was found in GPT2LMHeadModel"):
            hf.SpikedCache(model)

    def test_qwen2_with_an_old_rotary_module(self):
        model = random_model("Qwen2", use_sliding_window=False)
        ids = token_ids(1, 70)
        cache = hf.SpikedCache(model, "unrope+identity", "identity", block=16)
        found = hf.token_losses(model, ids, cache, chunk=16)
        torch.testing.assert_close(found, hf.token_losses(model, ids), rtol=0, atol=1e-4)

    def test_sliding_layers_are_left_alone_and_named(self):
        model = random_model("Qwen2", layers=3, use_sliding_window=True, sliding_window=64, max_window_layers=1)
        cache = hf.SpikedCache(model, "tq-mse", "tq-mse", block=16)
        hf.prefill(model, token_ids(1, 50), cache, chunk=16)
        report = cache.report()
        self.assertEqual((report.layers, sorted(report.left_alone)), ((0,), [1, 2]))
        self.assertIn("left alone: layers 1, 2 (a sliding window of 64 tokens)", str(report))
        self.assertEqual(report.exact_bytes, 2 * 2 * 49 * 32 * 4)
        windowed = random_model(sliding_window=64)
        with self.assertRaisesRegex(errors.UsageError, "would be compressed .*64 tokens.*hf.without_window"):
            hf.SpikedCache(windowed)
        config = hf.without_window(windowed.config)
        self.assertEqual(hf.SpikedCache(type(windowed)(config).eval()).report().layers, (0, 1))
        self.assertIs(hf.without_window(config), config)  # once more changes nothing

    def test_texts_longer_than_the_window_of_some_layers(self):
        window = {"use_sliding_window": True, "sliding_window": 24}
        model = random_model("Qwen2", layers=2, max_window_layers=1, **window)
        ids = token_ids(2, 100)
        exact = hf.token_losses(model, ids)
        for chunk in (16, 41):
            cache = hf.SpikedCache(model, "unrope+identity", "identity", block=16)
            found = hf.token_losses(model, ids, cache, chunk=chunk)
            torch.testing.assert_close(found, exact, rtol=0, atol=1e-4)
            self.assertEqual((cache.report().layers, list(cache.report().left_alone)), ((0,), [1]))
        for beams in (1, 3):
            expected = model.generate(ids, num_beams=beams, **GREEDY)
            with hf.compressed(model, key="identity", value="identity", block=16, chunk=16):
                self.assertTrue(torch.equal(model.generate(ids, num_beams=beams, **GREEDY), expected))
        if not hasattr(hf.SpikedCache, "Layer"):
            return  # the cache of this version keeps all rows, and some models compute without their window
        whole = random_model("Qwen2", layers=2, use_sliding_window=False)
        self.assertGreater(float((hf.token_losses(whole, ids) - exact)[:, 24:].abs().mean()), 0.01)
        # Layers before the first coded one have exactly the rows of an ordinary cache.
        model = random_model("Qwen2", layers=2, layer_types=["sliding_attention", "full_attention"], **window)
        own = hf.prefill(model, ids, transformers.DynamicCache(config=model.config), chunk=16)
        cache = hf.prefill(model, ids, hf.SpikedCache(model, "tq-mse", "tq-mse", 1, block=16), chunk=16)
        self.assertEqual(cache.report().coded_tokens, 96)
        torch.testing.assert_close(cache.layers[0].keys, own.layers[0].keys, rtol=0, atol=0)
        torch.testing.assert_close(cache.layers[0].values, own.layers[0].values, rtol=0, atol=0)
        self.assertGreater(float((cache.layers[1].keys - own.layers[1].keys).abs().mean()), 0.01)

    def test_models_that_compute_with_a_cache_of_their_own_are_rejected(self):
        model = random_model("Gemma2", head_dim=32, sliding_window=24, attn_implementation="eager")
        if getattr(model.config, "cache_implementation", None) != "hybrid":
            self.skipTest("Gemma2 of this version of transformers takes any cache")
        with self.assertRaisesRegex(errors.UsageError, "Gemma2ForCausalLM computes with a cache of its own .*4.57"):
            hf.SpikedCache(model)

    def test_models_in_bfloat16_keep_their_dtype(self):
        model = random_model().to(torch.bfloat16)
        cache = hf.prefill(model, token_ids(1, 40), hf.SpikedCache(model, bits=3, block=16), chunk=16)
        self.assertEqual(cache._pairs[0].keys.read().dtype, torch.bfloat16)
        self.assertEqual(cache.report().exact_bytes, 2 * 2 * 2 * 39 * 32 * 2)


class Misuse(unittest.TestCase):
    def setUp(self):
        self.model = random_model()
        self.ids = token_ids(2, 40)

    def test_padding_is_rejected(self):
        mask = torch.ones_like(self.ids)
        mask[0, :3] = 0
        with self.assertRaisesRegex(errors.InputError, "equal lengths"):
            hf.prefill(self.model, self.ids, hf.SpikedCache(self.model), attention_mask=mask)
        with hf.compressed(self.model), self.assertRaisesRegex(errors.InputError, "equal lengths"):
            self.model.generate(self.ids, attention_mask=mask, **GREEDY)
        cache = hf.SpikedCache(self.model)
        # Rotary tables of each text, as versions before 5.8 pass them.
        with self.assertRaisesRegex(errors.InputError, "different positions"):
            rows = torch.zeros(2, 2, 3, 32)
            cache.update(rows, rows, 0, {"cos": torch.rand(2, 3, 32), "sin": torch.rand(2, 3, 32)})

    def test_names_and_options(self):
        for arguments, message in (
            ({"key": "tq-msee"}, "tq-mse"),
            ({"value": "unrope+tq-mse"}, "values have no rotary embedding"),
            ({"value": "kvtc"}, "value is 'kvtc' .it codes a whole sequence"),
            ({"key": "unrope+causal-klt:ar=off"}, "leave out unrope"),
            ({"key": "causal-klt-joint"}, "joins keys and values.*heads=0"),
            ({"key": "causal-klt", "keep": "packed"}, 'pass "decoded"'),
            ({"value": "causal-klt", "block": 16}, "blocks of 128 tokens"),
            ({"value": "causal-klt", "seed": 3}, "seed has no effect on causal-klt"),
            ({"tokens": 256}, "tokens is 256 .*causal-klt"),
            ({"keep": "coded"}, "decoded.*packed"),
            ({"block": 0}, "block is 0"),
            ({"bits": 17}, "bits"),
            ({"group": 8}, "group"),
        ):
            with self.subTest(arguments), self.assertRaisesRegex(errors.UsageError, message):
                hf.SpikedCache(self.model, **arguments)
        for call, message in (
            (lambda: hf.prefill(self.model, self.ids[0], hf.SpikedCache(self.model)), "ids.None"),
            (lambda: hf.token_losses(self.model, self.ids, hf.SpikedCache(self.model), chunk=0), "chunk is 0"),
            (lambda: self.generate(past_key_values=hf.SpikedCache(self.model)), "makes its own"),
            (lambda: self.generate(inputs_embeds=torch.zeros(1, 2, 128), ids=None), "input_ids"),
        ):
            with self.assertRaisesRegex(ValueError, message):
                call()
        if hasattr(transformers.DynamicCache, "batch_split"):
            with self.assertRaisesRegex(errors.UsageError, "low_memory"):
                hf.SpikedCache(self.model).batch_split(2, 1)

    def generate(self, ids=0, **arguments):
        with hf.compressed(self.model):
            self.model.generate(self.ids if ids == 0 else ids, **arguments)

    def test_infinite_keys_are_named(self):
        cache, rows = hf.SpikedCache(self.model, "tq-mse", "tq-mse", block=16), torch.zeros(1, 2, 20, 32)
        rows[0, 1, 3, 5] = math.nan
        with self.assertRaisesRegex(errors.InputError, "keys of layer 1, head 1"):
            cache.update(rows, torch.zeros_like(rows), 1)

    def test_a_cache_is_not_cut_into_coded_blocks(self):
        cache = hf.prefill(self.model, self.ids, hf.SpikedCache(self.model, block=16))
        cache.crop(-3)
        self.assertEqual(cache.get_seq_length(), 36)
        with self.assertRaisesRegex(errors.InputError, "cannot be cut to 31"):
            cache.crop(31)


class HfCheck(unittest.TestCase):
    def setUp(self):
        loader = importlib.machinery.SourceFileLoader("hf_check", str(ROOT / "tools/hf-check"))
        self.check = importlib.util.module_from_spec(importlib.util.spec_from_loader("hf_check", loader))
        loader.exec_module(self.check)

    def run_check(self, *words):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            with mock.patch("sys.argv", ["hf-check", *words]):
                status = self.check.main()
        return status, printed.getvalue()

    def test_passes(self):
        status, printed = self.run_check()
        self.assertEqual(status, 0, printed)
        self.assertIn(f"transformers {transformers.__version__}", printed)
        self.assertEqual(printed.count(": passed"), 4)

    def test_what_cannot_be_checked_ends_in_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            for words, code, text in (
                ([folder], 4, "transformers cannot load it"),
                (["--device", "none-such"], 2, "--device none-such cannot hold the model"),
            ):
                status, printed = self.run_check(*words)
                self.assertEqual(status, code, printed)
                self.assertRegex(printed.splitlines()[-1], f"^hf-check: .*{text} .*: give ")
                self.assertEqual(len(printed.splitlines()), 2)  # the first has the versions
            random_model(sliding_window=400).save_pretrained(folder)
            status, printed = self.run_check(folder)
            self.assertEqual(status, 2, printed)
            self.assertRegex(printed.splitlines()[-1], "hf-check: no layer .*, or by --no-sliding-window$")
            status, printed = self.run_check(folder, "--no-sliding-window")
            self.assertEqual((status, printed.count(": passed")), (0, 4), printed)
        with mock.patch.object(hf, "token_losses", side_effect=RuntimeError("two\nlines")):
            status, printed = self.run_check()
        self.assertEqual(status, 4)
        self.assertIn("two lines", printed.splitlines()[-1])

    def test_fails_when_a_cache_is_not_exact(self):
        original = hf.SpikedCache

        def lossy(model, key, value, *bits):
            return original(model, key.replace("identity", "tq-mse"), value, *(bits or [1]))

        with mock.patch.object(hf, "SpikedCache", lossy):
            status, printed = self.run_check()
        self.assertEqual((status, printed.count("FAILED")), (1, 2), printed)

    def test_fails_when_rows_are_coded_before_they_are_read(self):
        append = BlockStore.append

        def coded_first(store, rows):
            append(store, rows)
            return store.read()

        with mock.patch.object(BlockStore, "append", coded_first):
            status, printed = self.run_check()
        self.assertEqual(status, 1)
        self.assertRegex(printed, "one pass .*FAILED")


if __name__ == "__main__":
    unittest.main()
