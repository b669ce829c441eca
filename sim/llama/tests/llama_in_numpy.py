"""Writes a small random Llama model and computes its predictions in NumPy's double precision, all tokens at once.

usage: llama_in_numpy.py FOLDER tied|untied|shards|scaled[+NAME...] TOKENS [EVICTED [KEPT]]

Writes FOLDER/config.json and the weights in F32, for each NAME a tensor that no prediction uses, the tokens as
FOLDER/tokens.npy, the same tokens and two other texts as FOLDER/documents.npy, and the keys of head 1 of layer 1 as
FOLDER/keys.npy. Prints each token and, for all but the first, its negative log-likelihood in nats given those before it.
EVICTED is a Python expression in t and s that is true where token t cannot attend to token s. KEPT is a Python expression
in t and s, the factor on the key and value of token s when token t attends to them.
"""
import json
import struct
import sys

import numpy as np

folder, (kind, *more), count = sys.argv[1], sys.argv[2].split("+"), int(sys.argv[3])
random = np.random.default_rng(7)
vocabulary, hidden, intermediate, layers, heads, kv_heads, dim = 50, 24, 40, 3, 6, 2, 8
base, epsilon = 500.0, 1e-5
config = {"model_type": "llama", "vocab_size": vocabulary, "hidden_size": hidden, "intermediate_size": intermediate,
          "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": dim,
          "hidden_act": "silu", "rms_norm_eps": epsilon, "rope_theta": base, "max_position_embeddings": max(64, count),
          "tie_word_embeddings": kind == "tied", "rope_scaling": None, "attention_bias": False}
frequencies = base ** (-2.0 * np.arange(dim // 2) / dim)
if kind == "scaled":  # wavelengths 6, 30, 140 and 664 tokens: two are kept, one is interpolated, one becomes longer
    config["rope_scaling"] = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                              "original_max_position_embeddings": 200}
    lengths = 2 * np.pi / frequencies
    smooth = (200 / lengths - 1.0) / (4.0 - 1.0)
    frequencies = np.where(lengths > 200 / 1.0, frequencies / 8.0, np.where(
        lengths < 200 / 4.0, frequencies, (1 - smooth) * frequencies / 8.0 + smooth * frequencies))
weights = {}


def draw(name, *shape, scale=None):
    values = random.standard_normal(shape) * (scale or 1.5 / np.sqrt(shape[-1]))
    weights[name] = values.astype(np.float32)
    return weights[name].astype(np.float64)


def norm(rows, weight):
    return rows / np.sqrt((rows**2).mean(axis=-1, keepdims=True) + epsilon) * weight


def rotate(rows, positions):
    """Applies RoPE to tokens x heads x dim, whose two halves are the real and imaginary parts of complex numbers."""
    angles = positions[:, None] * frequencies
    rotated = (rows[..., : dim // 2] + 1j * rows[..., dim // 2 :]) * np.exp(1j * angles)[:, None, :]
    return np.concatenate([rotated.real, rotated.imag], axis=-1)


tokens = random.integers(0, vocabulary, count)
embedding = draw("model.embed_tokens.weight", vocabulary, hidden, scale=1.0)
state = embedding[tokens]
positions = np.arange(count)
causal = positions[:, None] >= positions[None, :]
if len(sys.argv) > 4:
    causal &= ~eval(sys.argv[4], {"t": positions[:, None], "s": positions[None, :]})
kept = eval(sys.argv[5], {"t": positions[:, None], "s": positions[None, :], "where": np.where}) if len(sys.argv) > 5 else 1.0
for layer in range(layers):
    at = f"model.layers.{layer}."
    normalised = norm(state, 1 + draw(at + "input_layernorm.weight", hidden, scale=0.1))
    weights[at + "input_layernorm.weight"] += 1
    query = rotate((normalised @ draw(at + "self_attn.q_proj.weight", heads * dim, hidden).T).reshape(count, heads, dim), positions)
    key = rotate((normalised @ draw(at + "self_attn.k_proj.weight", kv_heads * dim, hidden).T).reshape(count, kv_heads, dim), positions)
    value = (normalised @ draw(at + "self_attn.v_proj.weight", kv_heads * dim, hidden).T).reshape(count, kv_heads, dim)
    if layer == 1:
        np.save(folder + "/keys.npy", key[:, 1])
    outputs = []
    for head in range(heads):
        scores = query[:, head] @ key[:, head // (heads // kv_heads)].T / np.sqrt(dim) * kept
        scores = np.where(causal, np.exp(scores - scores.max()), 0.0)
        outputs.append(scores / scores.sum(axis=1, keepdims=True) * kept @ value[:, head // (heads // kv_heads)])
    state = state + np.concatenate(outputs, axis=1) @ draw(at + "self_attn.o_proj.weight", hidden, heads * dim).T
    mlp_input = norm(state, 1 + draw(at + "post_attention_layernorm.weight", hidden, scale=0.1))
    weights[at + "post_attention_layernorm.weight"] += 1
    gate = mlp_input @ draw(at + "mlp.gate_proj.weight", intermediate, hidden).T
    up = mlp_input @ draw(at + "mlp.up_proj.weight", intermediate, hidden).T
    state = state + gate / (1 + np.exp(-gate)) * up @ draw(at + "mlp.down_proj.weight", hidden, intermediate).T
state = norm(state, 1 + draw("model.norm.weight", hidden, scale=0.1))
weights["model.norm.weight"] += 1
logits = state @ (embedding if kind == "tied" else draw("lm_head.weight", vocabulary, hidden)).T
log_sums = np.log(np.exp(logits - logits.max(axis=1, keepdims=True)).sum(axis=1)) + logits.max(axis=1)
nats = log_sums[:-1] - logits[np.arange(count - 1), tokens[1:]]


def write(path, names):
    header, at = {}, 0
    for name in names:
        header[name] = {"dtype": "F32", "shape": list(weights[name].shape), "data_offsets": [at, at + weights[name].nbytes]}
        at += weights[name].nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(weights[name].tobytes() for name in names))


weights.update({name: np.full(3, 0.5, np.float32) for name in more})
np.save(folder + "/tokens.npy", tokens[None].astype(np.int32))
np.save(folder + "/documents.npy", np.stack([tokens, np.roll(tokens, 5), tokens[::-1]]).astype(np.int64))
json.dump(config, open(folder + "/config.json", "w"))
if kind == "shards":
    names = sorted(weights)
    parts = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, part in parts.items():
        write(folder + "/" + file, part)
    index = {"weight_map": {name: file for file, part in parts.items() for name in part}}
    json.dump(index, open(folder + "/model.safetensors.index.json", "w"))
else:
    write(folder + "/model.safetensors", weights)
for token, value in zip(tokens, np.concatenate([[0.0], nats])):
    print(token, repr(float(value)))
