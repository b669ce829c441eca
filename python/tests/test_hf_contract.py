"""SpikedLayer and SpikedCache in the real cache_utils.py of several versions of transformers."""

import ast
import inspect
import types
import unittest

from hf_support import for_each_library, random_model, token_ids, torch, transformers
from spiked import errors, hf
from spiked.hf import SpikedCache, _adapters, token_losses

LAYERED = ("4.57.6", "newest")
LEGACY = ("4.53.3",)


def config_of(sliding=(), layers=3):
    """What DynamicCache(config=..) of several versions reads."""
    types_of_layers = ["sliding_attention" if i in sliding else "full_attention" for i in range(layers)]
    config = types.SimpleNamespace(
        num_hidden_layers=layers,
        num_attention_heads=4,
        hidden_size=128,
        head_dim=32,
        layer_types=types_of_layers,
        sliding_window=64,
        per_layer_config=[types.SimpleNamespace(sliding_window=64)] * layers,
    )
    config.get_text_config = lambda decoder=True: config
    return config


class Model:
    """Only a configuration."""

    def __init__(self, **options):
        self.config = config_of(**options)

    def named_modules(self):
        return []


def mask_sizes(cache, length, layer):
    """What a cache says of the mask of so many tokens more."""
    by_positions = "cache_position" in inspect.signature(cache.get_mask_sizes).parameters
    query = torch.arange(length) + cache.get_seq_length(layer) if by_positions else length
    return cache.get_mask_sizes(query, layer)


class Facade(transformers.DynamicCache):
    """A cache of another version, driven by the model of the installed one."""

    def __init__(self, cache):
        super().__init__()
        object.__setattr__(self, "inner", cache)

    def update(self, keys, values, layer_idx, *given, **named):
        before = self.get_mask_sizes(keys.shape[-2], layer_idx)
        told = next(iter((*given, *named.values())), None)  # what the installed version calls cache_kwargs or kwargs
        found = self.inner.update(keys, values, layer_idx, **{self.name_of_rest(): told})
        if layer_idx == 0:  # masks are made once, before the first layer
            assert before == (found[0].shape[-2], 0)
        return found

    def name_of_rest(self):
        return "cache_kwargs" if "cache_kwargs" in inspect.signature(self.inner.update).parameters else "kwargs"

    def get_mask_sizes(self, query, layer_idx):
        """Called by models of transformers from 4.53 on, with positions or their number."""
        return mask_sizes(self.inner, query if isinstance(query, int) else len(query), layer_idx)

    def get_seq_length(self, layer_idx=0):
        return self.inner.get_seq_length(layer_idx)


def calls_on_layers(source):
    """Names, numbers of arguments and keywords of calls on a layer inside the class Cache: `self.layers[..].NAME(..)`,
    `layer.NAME(..)`."""
    (cache,) = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == "Cache"]
    for node in ast.walk(cache):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        called_on = node.func.value
        subscript = isinstance(called_on, ast.Subscript) and ast.unparse(called_on.value) == "self.layers"
        if subscript or ast.unparse(called_on) == "layer":
            starred = any(isinstance(argument, ast.Starred) for argument in node.args)
            keywords = [keyword.arg for keyword in node.keywords if keyword.arg]
            yield node.func.attr, len(node.args) - starred, keywords


class Layered(unittest.TestCase):
    @for_each_library(*LAYERED)
    def test_a_layer_has_every_method_that_the_cache_calls_with_its_arguments(self, version, library):
        cls = _adapters.cache_class(library, version)
        layer = cls.Layer
        self.assertFalse(getattr(layer, "__abstractmethods__", None))
        # Layers of linear attention and indexers have methods of their own, which attention layers do not.
        others = {"update_indexer", "update_conv_state", "update_recurrent_state", "activate_past_recording"}
        names = set()
        for name, count, keywords in calls_on_layers(library.SOURCE):
            if name in others:
                continue
            inspect.signature(getattr(layer, name)).bind(None, *range(count), **dict.fromkeys(keywords))
            names.add(name)
        self.assertLessEqual({"update", "get_seq_length", "get_mask_sizes", "reorder_cache", "crop", "reset"}, names)

    @for_each_library(*LAYERED)
    def test_a_layer_has_every_attribute_of_the_layer_of_the_library(self, version, library):
        layer = _adapters.cache_class(library, version).Layer
        for name in dir(library.DynamicLayer):
            if not name.startswith("_"):
                self.assertTrue(hasattr(layer, name), name)

    @for_each_library(*LAYERED)
    def test_full_layers_are_compressed_and_sliding_layers_are_left_alone(self, version, library):
        cls = _adapters.cache_class(library, version)
        cache = cls(Model(sliding=(1,)), "tq-mse", "tq-mse", 2, block=16)
        self.assertEqual(cache.is_sliding, [False, True, False])
        self.assertIs(type(cache.layers[1]), library.DynamicSlidingWindowLayer)
        rows = torch.randn(1, 2, 40, 32)
        for layer in range(3):
            torch.testing.assert_close(cache.update(rows, rows, layer)[0], rows, rtol=0, atol=0)
        report = cache.report()
        self.assertEqual((report.layers, report.left_alone), ((0, 2), {1: "a sliding window of 64 tokens"}))
        self.assertEqual((report.tokens, report.coded_tokens), (40, 32))
        with self.assertRaisesRegex(errors.UsageError, "no layer of this model"):
            cls(Model(sliding=(0, 1, 2)), "tq-mse", "tq-mse", 2)

    @for_each_library(*LAYERED)
    def test_texts_longer_than_the_window(self, version, library):
        model = Model(sliding=(1,))
        cache = _adapters.cache_class(library, version)(model, "tq-mse", "tq-mse", 1, block=16)
        own = library.DynamicCache(config=model.config)
        for count in (40, 16, 50, 1, 1):  # the window has 64 tokens
            rows = torch.randn(2, 2, count, 32)
            for layer in range(3):
                self.assertEqual(mask_sizes(cache, count, layer), mask_sizes(own, count, layer))
                found, expected = cache.update(rows, -rows, layer), own.update(rows, -rows, layer)
                if layer == 1:
                    torch.testing.assert_close(found, expected, rtol=0, atol=0)
                self.assertEqual([each.shape for each in found], [each.shape for each in expected])
            beams = torch.tensor([1, 0])
            cache.reorder_cache(beams)
            own.reorder_cache(beams)
        self.assertLess(cache.layers[1].keys.shape[-2], 64)
        report = cache.report()
        self.assertEqual((report.tokens, report.coded_tokens, cache.get_seq_length(1)), (108, 96, 108))

    @for_each_library(*LAYERED)
    def test_a_model_gives_the_losses_of_the_cache_of_its_own_version(self, version, library):
        model = random_model()
        ids = token_ids(1, 90)
        own = SpikedCache(model, "tq-mse", "tq-mse", 2, block=16)
        expected = token_losses(model, ids, own, chunk=16)
        inner = _adapters.cache_class(library, version)(Model(layers=2), "tq-mse", "tq-mse", 2, block=16)
        found = token_losses(model, ids, Facade(inner), chunk=16)
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
        self.assertEqual(inner.report().ledger, own.report().ledger)

    @for_each_library(*LAYERED)
    def test_reordered_repeated_cropped_and_reset_by_the_cache(self, version, library):
        cache = _adapters.cache_class(library, version)(Model(layers=1), "identity", "identity", block=16)
        rows = torch.randn(2, 2, 40, 32)
        cache.update(rows, -rows, 0)
        cache.reorder_cache(torch.tensor([1, 1]))
        torch.testing.assert_close(cache.layers[0].keys, rows[[1, 1]], rtol=0, atol=0)
        cache.batch_repeat_interleave(2)
        cache.batch_select_indices(torch.tensor([3, 0, 1]))
        self.assertEqual(cache.layers[0].values.shape, (3, 2, 40, 32))
        cache.crop(-3)
        self.assertEqual(cache.get_seq_length(), 37)
        with self.assertRaisesRegex(errors.InputError, "are coded"):
            cache.crop(-6)
        self.assertFalse(getattr(cache, "is_croppable", False))
        longest = cache.get_max_length if hasattr(cache, "get_max_length") else cache.get_max_cache_shape
        self.assertEqual(longest(), -1)
        cache.reset()
        self.assertEqual((cache.get_seq_length(), cache.layers[0].keys), (0, None))


class Legacy(unittest.TestCase):
    @for_each_library(*LEGACY)
    def test_every_method_that_reads_the_rows_is_replaced_with_the_same_arguments(self, version, library):
        cls = _adapters.cache_class(library, version)
        others = ("__init__", "__iter__", "to_legacy_cache")  # they read the rows by other methods, or none
        for name, function in vars(library.DynamicCache).items():
            if inspect.isfunction(function) and name not in others:
                self.assertIn(name, vars(cls), name)
                given = [argument for argument in inspect.signature(function).parameters if argument != "self"]
                inspect.signature(vars(cls)[name]).bind(None, **dict.fromkeys(given))

    @for_each_library(*LEGACY)
    def test_a_model_gives_the_losses_of_the_cache_of_its_own_version(self, version, library):
        model = random_model()
        ids = token_ids(1, 90)
        expected = token_losses(model, ids, SpikedCache(model, "tq-mse", "tq-mse", 2, block=16), chunk=16)
        cache = _adapters.cache_class(library, version)(model, "tq-mse", "tq-mse", 2, block=16)
        torch.testing.assert_close(token_losses(model, ids, Facade(cache), chunk=16), expected, rtol=0, atol=0)


class OtherModels(unittest.TestCase):
    def test_a_model_without_attention_is_rejected(self):
        config = transformers.MambaConfig(vocab_size=97, hidden_size=64, num_hidden_layers=2)
        with self.assertRaisesRegex(errors.UsageError, "MambaForCausalLM has no attention"):
            SpikedCache(transformers.MambaForCausalLM(config), "tq-mse", "tq-mse")

    def test_a_state_that_is_not_carried_on_is_not_read_in_parts(self):
        options = {"num_experts": 2, "attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 8}
        model = random_model("Jamba", use_mamba_kernels=False, **options)
        cache = SpikedCache(model, "identity", "identity", block=16)
        if not any(hasattr(layer, "conv_states") for layer in getattr(cache, "layers", [])):
            self.skipTest(f"the cache of transformers {transformers.__version__} has no layers with a state")
        ids = token_ids(1, 60)
        self.assertEqual(list(cache.report().left_alone), [0])
        greedy = {"do_sample": False, "max_new_tokens": 12, "pad_token_id": 0}
        expected = model.generate(ids, **greedy)
        for call in (
            lambda: hf.prefill(model, ids, cache, chunk=16),
            lambda: token_losses(model, ids, cache, chunk=16),
            lambda: self.generate(model, ids, 16, greedy),
        ):
            with self.assertRaisesRegex(errors.UsageError, "layers of jamba have a state .LinearAttentionLayer"):
                call()
        self.assertEqual(self.generate(model, ids, 64, greedy).tolist(), expected.tolist())
        with self.assertRaisesRegex(errors.UsageError, "cannot be repeated for 3 beams"):
            self.generate(model, ids, 64, {**greedy, "num_beams": 3})

    def generate(self, model, ids, chunk, options):
        with hf.compressed(model, key="identity", value="identity", block=16, chunk=chunk):
            return model.generate(ids, **options)


class Versions(unittest.TestCase):
    def test_versions_between_the_interfaces_are_rejected(self):
        for version in ("4.43.4", "4.54.0", "4.55.4", "4.56.2"):
            with self.assertRaisesRegex(errors.LibraryNotFound, "4.44 to 4.53, or 4.57"):
                _adapters.cache_class(None, version)
            with self.assertRaises(ImportError):
                _adapters.cache_class(None, version)


if __name__ == "__main__":
    unittest.main()
