"""What tools/export-kv must do: `stand-in FOLDER` with caches of three kinds, `real FOLDER` with transformers."""
import importlib.machinery
import importlib.util
import os
import sys
from types import SimpleNamespace

import numpy

tool = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "export-kv")
loader = importlib.machinery.SourceFileLoader("export_kv", tool)
export_kv = importlib.util.module_from_spec(importlib.util.spec_from_loader("export_kv", loader))
sys.dont_write_bytecode = True
loader.exec_module(export_kv)


def entry(layer, side, head, token, dim):
    """A number that half precision holds exactly and that says where it belongs."""
    return 4 * layer + 2 * side + head + (token % 8 * 16 + dim) / 128


class Tensor:
    """As much of a torch tensor as the tool asks for."""

    def __init__(self, values):
        self.values = values

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
    refused = 0
    for cache in ((SimpleNamespace(layers=[SimpleNamespace(keys=None, values=None)])),
                  ((Tensor(numpy.zeros((2, 1, 4, 4))), Tensor(numpy.zeros((2, 1, 4, 4)))),)):
        try:
            export_kv.keys_and_values(cache)
        except SystemExit as failure:
            assert "layer 0" in str(failure), failure
            refused += 1
    try:
        export_kv.write_dump(f"{folder}/large.safetensors", [(numpy.full((1, 8, 4), 1e6), numpy.zeros((1, 8, 4)))])
    except SystemExit as failure:
        assert "--dtype float32" in str(failure), failure
        refused += 1
    assert refused == 3


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
    told = export_kv.export(model, ids, f"{folder}/llama.safetensors", name="llama", dtype="float32")
    assert told["keys"] == "post-rope" and float(told["rope_base"]) == 5000.0, told
    import json
    import struct
    with open(f"{folder}/llama.safetensors", "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        body = file.read()
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
    assert largest > 0.05, "the control: these weights are not all alike"
    scaled = LlamaConfig(**{**config.to_dict(), "rope_scaling": {"type": "linear", "factor": 2.0}})
    assert export_kv.rotary_base(scaled) is None
    plain = GPT2LMHeadModel(GPT2Config(vocab_size=97, n_positions=256, n_embd=32, n_layer=1, n_head=2))
    told = export_kv.export(plain, ids, f"{folder}/gpt2.safetensors")
    assert told["keys"] == "unknown" and "rope_base" not in told, told


if __name__ == "__main__":
    {"stand-in": stand_in, "real": real}[sys.argv[1]](sys.argv[2])
