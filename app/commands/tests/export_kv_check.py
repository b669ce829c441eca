"""Tests of tools/export-kv: `stand-in FOLDER` with caches of three kinds, `real FOLDER` with transformers."""
import importlib.machinery
import importlib.util
import os
import sys
from types import SimpleNamespace

import numpy

tool = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tools", "export-kv")
loader = importlib.machinery.SourceFileLoader("export_kv", tool)
export_kv = importlib.util.module_from_spec(importlib.util.spec_from_loader("export_kv", loader))
sys.dont_write_bytecode = True
loader.exec_module(export_kv)


def entry(layer, side, head, token, dim):
    """A number that fp16 represents exactly and that encodes its position."""
    return 4 * layer + 2 * side + head + (token % 8 * 16 + dim) / 128


class Tensor:
    """The part of the interface of a torch tensor that the tool uses."""

    def __init__(self, values):
        self.values, self.shape = values, values.shape

    def detach(self):
        return self

    float = cpu = detach

    def numpy(self):
        return self.values


def tensors(layer):
    grid = numpy.indices((2, 128, 16))
    return tuple(Tensor(entry(layer, side, *grid)[None].astype(numpy.float32)) for side in (0, 1))


def stand_in(folder):
    pairs = [tensors(layer) for layer in range(3)]
    caches = {
        "tuple": tuple(pairs),
        "lists": SimpleNamespace(key_cache=[p[0] for p in pairs], value_cache=[p[1] for p in pairs]),
        "layers": SimpleNamespace(layers=[SimpleNamespace(keys=p[0], values=p[1]) for p in pairs]),
    }
    for name, cache in caches.items():
        taken = export_kv.keys_and_values(cache)
        assert [part.shape for pair in taken for part in pair] == [(2, 128, 16)] * 6
        export_kv.write_dump(f"{folder}/{name}.safetensors", taken, {0: taken[0][0]},
                             {"model": "stand-in", "keys": "post-rope", "attention": "causal", "rope_base": 10000.0,
                              "rope_style": "rotate-half", "position_start": 0, "prompt_id": "page 1"})
    export_kv.write_dump(f"{folder}/some.safetensors", taken, layers={2}, dtype="float32")
    zeros = numpy.zeros((2, 1, 4, 4), dtype=numpy.float32)
    for cache, part in ((SimpleNamespace(layers=[SimpleNamespace(keys=None, values=None)]), "none of the 1 layers"),
                        (SimpleNamespace(layers=[SimpleNamespace(state=zeros)]), "none of the 1 layers"),
                        (((Tensor(zeros), Tensor(zeros)),), "layer 0")):
        rejected(lambda: export_kv.keys_and_values(cache), part)
    large = [(numpy.full((1, 8, 4), 1e6), numpy.zeros((1, 8, 4)))]
    rejected(lambda: export_kv.write_dump(f"{folder}/large.safetensors", large), "--dtype float32")
    rejected(lambda: export_kv.write_dump(f"{folder}/large.safetensors", [None], layers={0}), "has keys and values")
    check_layers_without_keys(folder, pairs)
    check_quantized_caches()
    check_detected_metadata()
    check_rope_metadata(folder)


def rejected(action, part):
    """The module raises an exception; only its main function ends the program."""
    try:
        action()
    except export_kv.ExportError as failure:
        assert part in str(failure), failure
    else:
        raise AssertionError(f"no error; one with {part!r} is expected")


def check_layers_without_keys(folder, pairs):
    """Hybrid models have layers that keep something else; the other layers keep their numbers."""
    empty = Tensor(numpy.zeros((0,), dtype=numpy.float32))
    for cache in (SimpleNamespace(layers=[SimpleNamespace(state=1), SimpleNamespace(keys=pairs[1][0], values=pairs[1][1]),
                                          SimpleNamespace(keys=None, values=None)]),
                  SimpleNamespace(key_cache=[empty, pairs[1][0], None], value_cache=[empty, pairs[1][1], None]),
                  (None, pairs[1], (None, None))):
        taken = export_kv.keys_and_values(cache)
        assert taken[0] is None and taken[2] is None and taken[1][0].shape == (2, 128, 16)
        export_kv.write_dump(f"{folder}/hybrid.safetensors", taken)
        assert set(header_of(f"{folder}/hybrid.safetensors")) == {"__metadata__", "layers.1.key", "layers.1.value"}


def check_quantized_caches():
    """Codes are dequantized, the last tokens follow them; a layer that keeps a window only is left out."""
    codes, recent = numpy.arange(32.0).reshape(1, 2, 4, 4), numpy.ones((1, 2, 2, 4))
    layer = SimpleNamespace(keys=recent, values=numpy.zeros(0), cumulative_length=6, _quantized_keys=codes,
                            _quantized_values=codes, _dequantize=lambda q: q / 2.0)
    window = SimpleNamespace(keys=codes, values=codes, cumulative_length=9)
    older = SimpleNamespace(key_cache=[recent], value_cache=[numpy.zeros(0)], _quantized_key_cache=[codes],
                            _quantized_value_cache=[codes], _dequantize=lambda q: q / 2.0)
    for cache in (SimpleNamespace(layers=[layer, window]), older):
        taken = export_kv.keys_and_values(cache)
        keys, values = taken[0]
        assert numpy.array_equal(keys, numpy.concatenate([codes / 2.0, recent], axis=2)[0])
        assert numpy.array_equal(values, codes[0] / 2.0)
        assert taken[1:] in ([], [None])


def check_rope_metadata(folder):
    """Configurations of both generations of transformers give the metadata that the reader knows."""
    def found(**config):
        return export_kv.rope_metadata(SimpleNamespace(**config))

    llama = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
             "rope_type": "llama3"}
    for config in ({"rope_scaling": llama, "rope_theta": 500000.0}, {"rope_parameters": {**llama, "rope_theta": 500000.0}}):
        assert found(**config) == {"rope_base": 500000.0, "rope_scaling": llama}, config
    assert found(rope_theta=10000.0) == found(rope_theta=10000, rope_scaling=None) == {"rope_base": 10000.0}
    assert found(rope_parameters={"rope_type": "default", "rope_theta": 5000.0}) == {"rope_base": 5000.0}
    assert found(rope_theta=1e4, rope_scaling={"type": "linear", "factor": 4.0}) == {
        "rope_base": 1e4, "rope_scaling": {"rope_type": "linear", "factor": 4.0}}
    assert found(rope_theta=1e4, no_rope_layers=[1, 1], rotary_pct=1.0, partial_rotary_factor=1) == {"rope_base": 1e4}
    yarn = found(rope_theta=1e6, rope_scaling={"type": "yarn", "factor": None}, max_position_embeddings=131072,
                 original_max_position_embeddings=32768)
    assert yarn["rope_scaling"] == {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}, yarn
    for config in ({}, {"rope_theta": 1e4, "rope_scaling": {"type": "dynamic", "factor": 2.0}},
                   {"rope_theta": 1e4, "rope_scaling": {"rope_type": "longrope"}},
                   {"rope_theta": 1e4, "partial_rotary_factor": 0.5}, {"rope_theta": 1e4, "rotary_pct": 0.25},
                   {"rope_theta": 1e4, "rotary_dim": 64}, {"rope_theta": 1e4, "qk_rope_head_dim": 64},
                   {"rope_theta": 1e6, "rope_local_base_freq": 1e4, "layer_types": ["sliding_attention", "full_attention"]},
                   {"rope_theta": 1e4, "no_rope_layers": [1, 1, 1, 0]},
                   {"rope_theta": 1e4, "rope_scaling": {"rope_type": "default", "mrope_section": [16, 24, 24]}},
                   {"rope_parameters": {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}}):
        assert found(**config) == {}, config
    # Llama 3.1 8B: the three ranges of frequencies, from the formula by wavelengths.
    frequencies, factor = export_kv.rotary_frequencies(500000.0, 128, llama)
    plain = 500000.0 ** (-numpy.arange(64) / 64)
    assert factor == 1.0 and numpy.array_equal(frequencies[:29], plain[:29])
    assert abs(frequencies[29] / 0.002166570763503359 - 1.0) < 1e-13 and abs(frequencies[34] / 0.0001785078127679964 - 1.0) < 1e-13
    assert abs(frequencies[35:] / plain[35:] * 8.0 - 1.0).max() < 1e-14
    frequencies, factor = export_kv.rotary_frequencies(1e6, 128, yarn["rope_scaling"])
    assert abs(factor - 1.138629436111989) < 1e-14 and abs(frequencies[30] / 0.001064360981247002 - 1.0) < 1e-13
    # A dump of keys that were rotated with the scaling of Llama; the C++ side undoes it.
    random = numpy.random.default_rng(3)
    plain = random.standard_normal((1, 128, 32))
    scaled = dict(llama, original_max_position_embeddings=64)
    frequencies, factor = export_kv.rotary_frequencies(500.0, 32, scaled)
    rotation = numpy.exp(1j * numpy.outer(numpy.arange(128), frequencies))
    rotated = (plain[..., :16] + 1j * plain[..., 16:]) * rotation
    keys = numpy.concatenate([rotated.real, rotated.imag], axis=2)
    assert export_kv.rotary_style(plain, keys, 500.0, scaled) == "rotate-half"
    assert export_kv.rotary_style(plain, keys, 500.0) is None, "control: without the scaling the angles differ"
    export_kv.write_dump(f"{folder}/scaled.safetensors", [(keys, plain)], dtype="float32",
                         metadata={"keys": "post-rope", "rope_base": 500.0, "rope_style": "rotate-half", "rope_scaling": scaled})


def check_detected_metadata():
    """Rotary styles, kinds of attention and windows are detected from the numbers alone."""
    random = numpy.random.default_rng(5)
    tokens, dim, base = 40, 16, 10000.0
    before = random.standard_normal((4, tokens, dim))
    angles = numpy.outer(numpy.arange(tokens), base ** (-numpy.arange(0, dim, 2) / dim))
    rotations = numpy.exp(1j * angles)
    half = before[..., :8] + 1j * before[..., 8:]
    pairs = before[..., 0::2] + 1j * before[..., 1::2]
    rotate_half = numpy.concatenate([(half * rotations).real, (half * rotations).imag], axis=2)
    interleaved = numpy.stack([(pairs * rotations).real, (pairs * rotations).imag], axis=3).reshape(before.shape)
    assert export_kv.rotary_style(before, rotate_half, base) == "rotate-half"
    assert export_kv.rotary_style(before, interleaved, base) == "interleaved"
    assert export_kv.rotary_style(before, rotate_half, 2.0 * base) is None
    assert export_kv.rotary_style(before[..., :8], rotate_half, base) is None

    def weights(logits, causal):
        if causal:
            logits = numpy.where(numpy.tri(tokens) > 0, logits, -numpy.inf)
        found = numpy.exp(logits - logits.max(axis=-1, keepdims=True))
        return found / found.sum(axis=-1, keepdims=True)

    keys = random.standard_normal((2, tokens, dim))
    logits = rotate_half @ numpy.repeat(keys, 2, axis=0).transpose(0, 2, 1) / 4.0
    assert export_kv.attends_as(rotate_half, keys, weights(logits, True)) == "causal"
    assert export_kv.attends_as(rotate_half, keys, weights(logits, False)) == "bidirectional"
    assert export_kv.attends_as(rotate_half, keys, weights(0.5 * logits, True)) is None, "another scale"
    assert export_kv.attends_as(rotate_half, keys, weights(numpy.tanh(logits), True)) is None, "capped"
    assert export_kv.attends_as(rotate_half[..., :8], keys, weights(logits, True)) is None, "a part of the dimensions"
    window = weights(numpy.where(numpy.tri(tokens, k=-8) > 0, -1e9, logits), True)
    assert export_kv.attends_as(rotate_half, keys, window) is None, "a window"

    def reach(**config):
        return export_kv.shortest_window(SimpleNamespace(**config))

    assert reach() is None and reach(sliding_window=None) is None
    assert reach(sliding_window=4096) == 4096
    assert reach(sliding_window=4096, use_sliding_window=False) is None
    assert reach(sliding_window=512, layer_types=["full_attention"]) is None
    assert reach(sliding_window=512, layer_types=["full_attention", "sliding_attention"]) == 512
    assert reach(attention_chunk_size=128) == 128


def real(folder):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=97, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, rope_theta=5000.0, max_position_embeddings=512,
                         attn_implementation="eager")
    model = LlamaForCausalLM(config)
    for part in model.parameters():  # attention that is far from uniform
        part.data *= 4.0
    ids = [7 * i % 97 for i in range(160)]
    metadata = export_kv.export(model, ids, f"{folder}/llama.safetensors", name="llama", dtype="float32")
    assert metadata["keys"] == "post-rope" and float(metadata["rope_base"]) == 5000.0, metadata
    header = header_of(f"{folder}/llama.safetensors")
    with open(f"{folder}/llama.safetensors", "rb") as file:
        body = file.read()
    body = body[8 + int.from_bytes(body[:8], "little"):]
    dumped = {name: numpy.frombuffer(body[slice(*line["data_offsets"])], "<f4").reshape(line["shape"])
              for name, line in header.items() if name != "__metadata__"}
    with torch.no_grad():
        wanted = model(torch.tensor([ids]), output_attentions=True).attentions
    largest = 0.0
    for layer in range(2):
        query, key = dumped[f"layers.{layer}.query"], dumped[f"layers.{layer}.key"]
        for head in range(4):  # two query heads share a head of keys
            logits = query[head] @ key[head // 2].T / numpy.sqrt(16.0)
            logits[numpy.triu_indices(160, 1)] = -numpy.inf
            weights = numpy.exp(logits - logits.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            truth = wanted[layer][0, head].numpy()
            largest = max(largest, float(truth[80:].max()))
            assert abs(weights - truth).max() < 1e-5, (layer, head, abs(weights - truth).max())
    assert largest > 0.05, "control: these weights are not all alike"
    check_scaled_positions(folder, config, ids)
    plain = GPT2LMHeadModel(GPT2Config(vocab_size=97, n_positions=256, n_embd=32, n_layer=1, n_head=2))
    metadata = export_kv.export(plain, ids, f"{folder}/gpt2.safetensors")
    assert metadata["keys"] == "unknown" and "rope_base" not in metadata, metadata
    check_a_layer_without_an_embedding(folder, model, ids)
    check_other_families(folder, ids)


def check_scaled_positions(folder, config, ids):
    """The scaling is written where it reproduces the rotated queries of the model, and no other is."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    plain = {key: value for key, value in config.to_dict().items() if key not in ("rope_parameters", "rope_scaling")}
    for scaling in ({"rope_type": "linear", "factor": 2.0},
                    {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 64},
                    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128},
                    {"rope_type": "dynamic", "factor": 2.0}):
        torch.manual_seed(3)
        model = LlamaForCausalLM(LlamaConfig(**{**plain, "rope_theta": 5000.0, "rope_scaling": dict(scaling),
                                                "attn_implementation": "eager"}))
        metadata = export_kv.export(model, ids, f"{folder}/{scaling['rope_type']}.safetensors", dtype="float32")
        if scaling["rope_type"] == "dynamic":
            assert "rope_base" not in metadata, metadata
        else:
            assert metadata["rope_style"] == "rotate-half" and float(metadata["rope_base"]) == 5000.0, metadata
            assert scaling.items() <= metadata["rope_scaling"].items(), metadata


def header_of(path):
    import json
    import struct
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(length))


def check_a_layer_without_an_embedding(folder, model, ids):
    """Some models rotate the keys of some layers only: a dump states one style for all layers, or none."""
    module = sys.modules[type(model).__module__]
    attention, path = model.model.layers[0].self_attn, f"{folder}/mixed.safetensors"
    plain = attention.forward

    def without_rotation(*words, **options):
        kept = module.apply_rotary_pos_emb
        module.apply_rotary_pos_emb = lambda q, k, *_, **__: (q, k)
        try:
            return plain(*words, **options)
        finally:
            module.apply_rotary_pos_emb = kept

    attention.forward = without_rotation
    metadata = export_kv.export(model, ids, path, dtype="float32")
    assert metadata["keys"] == "unknown" and "rope_base" not in metadata and metadata["attention"] == "causal", metadata
    assert "layers.1.query" in header_of(path) and "layers.0.query" not in header_of(path)
    metadata = export_kv.export(model, ids, path, layers={1}, dtype="float32")
    assert metadata["keys"] == "post-rope" and metadata["rope_style"] == "rotate-half", metadata
    assert set(header_of(path)) == {"__metadata__", "layers.1.key", "layers.1.value", "layers.1.query"}
    # A layer whose angles differ from those of the configuration; here they are zero.
    attention.forward = lambda *words, **options: plain(*words, **{
        **options, "position_embeddings": tuple(part * 0 + one for one, part in zip((1, 0), options["position_embeddings"]))})
    metadata = export_kv.export(model, ids, path, dtype="float32")
    assert metadata["keys"] == "post-rope" and "rope_base" not in metadata, metadata
    assert {"layers.0.query", "layers.1.query"} <= set(header_of(path)), "queries and keys agree all the same"
    attention.forward = plain
    rejected(lambda: export_kv.export(model, ids, path, layers={1, 2}), "layer 2 not in the cache (it has 0 to 1)")


def check_other_families(folder, ids):
    """Families whose embedding, window or logits differ from those of Llama."""
    import torch
    import transformers

    def exported(family, layers=2, **options):
        torch.manual_seed(2)
        config = getattr(transformers, family + "Config")(**{
            "vocab_size": 97, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": layers,
            "num_attention_heads": 4, "max_position_embeddings": 512, "attn_implementation": "eager",
            "pad_token_id": 0, **options})
        model = getattr(transformers, family + "ForCausalLM")(config)
        for part in model.parameters():
            part.data *= 3.0
        path = f"{folder}/{family.lower()}.safetensors"
        return export_kv.export(model, ids, path, dtype="float32"), path

    def names(path):
        return set(header_of(path))

    metadata, path = exported("Cohere", num_key_value_heads=2)
    assert metadata["rope_style"] == "interleaved" and metadata["attention"] == "causal", metadata
    assert "layers.1.query" in names(path)
    metadata, path = exported("Mistral", num_key_value_heads=2, sliding_window=160)
    assert metadata["rope_style"] == "rotate-half" and metadata["attention"] == "causal", metadata
    for short in (64, 159):
        rejected(lambda: exported("Mistral", num_key_value_heads=2, sliding_window=short), f"add --length {short}")
    for family, options in (("GPTNeoX", {"rotary_pct": 0.25}), ("Phi", {"partial_rotary_factor": 0.5}),
                            ("Gemma2", {"num_key_value_heads": 2, "head_dim": 16, "query_pre_attn_scalar": 64,
                                        "sliding_window": 4096})):
        metadata, path = exported(family, **options)
        assert "attention" not in metadata and not any("query" in name for name in names(path)), (family, metadata)
        assert {"layers.0.key", "layers.1.value"} <= names(path), family
        assert ("rope_style" in metadata) == (family == "Gemma2"), (family, metadata)


if __name__ == "__main__":
    {"stand-in": stand_in, "real": real}[sys.argv[1]](sys.argv[2])
