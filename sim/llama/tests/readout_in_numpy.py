"""Writes a dump with needles and the readout of the last layer, and computes its answers in NumPy's double precision.

usage: readout_in_numpy.py DUMP [CHANGE]

Prints for each needle the log-probability of its answer and, for each query head, the attention weight of its value.
CHANGE makes the dump different or faulty, see below. another-prompt: other random numbers; few: only the first 6 needles,
one of them with a wrong answer.
"""
import json
import struct
import sys

import numpy as np

path, change = sys.argv[1], (sys.argv + [""])[2]
random = np.random.default_rng(12 if change == "another-prompt" else 11)
layer, heads, kv_heads, dim, hidden, inner, answers, tokens, asked = 2, 4, 2, 16, 24, 40, 30, 200, 24
first_answer, context = 70, tokens - 2 * asked
as_fp16 = lambda values: values.astype(np.float16).astype(np.float64)
tensors = {}


def draw(name, *shape, scale=1.0):
    tensors[name] = as_fp16(scale * random.standard_normal(shape))
    return tensors[name]


key = draw(f"layers.{layer}.key", kv_heads, tokens, dim)
value = draw(f"layers.{layer}.value", kv_heads, tokens, dim)
query = draw(f"layers.{layer}.query", heads, tokens, dim)
draw("layers.0.value", kv_heads, tokens, dim)
at = 1 + 2 * random.permutation((context - 1) // 2)[:asked]
needles = []
for i in range(asked):
    question = context + 2 * i + 1
    needles.append({"key_at": int(at[i]), "value_at": int(at[i]) + 1, "asked_at": question})
    for h in range(heads):
        query[h, question] = as_fp16((2.0 + h) * key[h // (heads // kv_heads), at[i] + 1])
residual = draw("readout.residual", asked, hidden, scale=0.1)
wo = draw("readout.wo", hidden, heads * dim, scale=0.3)
mlp_norm = draw("readout.mlp_norm", hidden, scale=0.1) + 1
norm = draw("readout.final_norm", hidden, scale=0.1) + 1
tensors["readout.mlp_norm"], tensors["readout.final_norm"] = mlp_norm, norm = as_fp16(mlp_norm), as_fp16(norm)
gate, up = draw("readout.gate", inner, hidden, scale=0.2), draw("readout.up", inner, hidden, scale=0.2)
down = draw("readout.down", hidden, inner, scale=0.2)
unembed = draw("readout.unembed", answers, hidden)

attended, masses = np.zeros((asked, heads * dim)), np.zeros((asked, heads))
for i, needle in enumerate(needles):
    for h in range(heads):
        seen = needle["asked_at"] + 1
        scores = key[h // (heads // kv_heads), :seen] @ query[h, needle["asked_at"]] / np.sqrt(dim)
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        masses[i, h] = weights[needle["value_at"]]
        attended[i, h * dim : (h + 1) * dim] = weights @ value[h // (heads // kv_heads), :seen]
scaled = lambda rows, weight: rows / np.sqrt((rows**2).mean(axis=1, keepdims=True) + 1e-5) * weight
state = residual + attended @ wo.T
mlp_input = scaled(state, mlp_norm)
gated = mlp_input @ gate.T
state = state + (gated / (1 + np.exp(-gated)) * (mlp_input @ up.T)) @ down.T
logits = scaled(state, norm) @ unembed.T
log_p = logits - logits.max(axis=1, keepdims=True)
log_p -= np.log(np.exp(log_p).sum(axis=1, keepdims=True))
for i, needle in enumerate(needles):
    needle["answer"] = first_answer + int(log_p[i].argmax())
    print(repr(float(log_p[i].max())), *[repr(float(mass)) for mass in masses[i]])

readout = {"layer": layer, "first_value_token": first_answer, "rms_eps": 1e-5, "correct": asked}
metadata = {"layout": "head,token,dim", "attention": "causal", "context": str(context), "keys": "none"}
if change == "few":
    needles = needles[:6]
    tensors["readout.residual"] = residual[:6]
    needles[0]["answer"] = first_answer + (needles[0]["answer"] - first_answer + 1) % answers
    readout["correct"] = 5
elif change == "shifted":  # every needle is one token later
    for needle in needles:
        needle["key_at"], needle["value_at"] = needle["key_at"] + 1, needle["value_at"] + 1
elif change == "outside":
    needles[3]["value_at"] = tokens
elif change == "too-early":
    needles[3]["asked_at"] = needles[3]["value_at"]
elif change == "another-answer":
    needles[3]["answer"] = first_answer + (needles[3]["answer"] - first_answer + 1) % answers
elif change == "no-such-answer":
    needles[3]["answer"] = first_answer + answers
elif change == "no-position":
    del needles[3]["key_at"]
elif change == "no-queries":
    del tensors[f"layers.{layer}.query"]
elif change == "odd-heads":
    tensors[f"layers.{layer}.query"] = query[:3]
elif change == "short-queries":
    tensors[f"layers.{layer}.query"] = query[:, :-1]
elif change == "no-wo":
    del tensors["readout.wo"]
elif change == "narrow-wo":
    tensors["readout.wo"] = wo[:, :-1]
elif change == "few-residuals":
    tensors["readout.residual"] = residual[:-1]
elif change == "not-finite":
    tensors["readout.gate"][1, 2] = np.inf
elif change == "bidirectional":
    metadata["attention"] = "bidirectional"
elif change == "value-is-key":
    needles[3]["value_at"] = needles[3]["key_at"]
elif change == "twice":
    needles[3] |= {key: needles[2][key] for key in ("key_at", "value_at")}
elif change == "one-key":
    needles[3]["key_at"] = needles[2]["key_at"]
    needles[3]["value_at"] = max(needles[3]["value_at"], needles[2]["key_at"] + 1)
elif change == "asked-twice":
    needles[3]["asked_at"] = needles[2]["asked_at"]
elif change == "no-epsilon":
    del readout["rms_eps"]
elif change == "odd-epsilon":
    readout["rms_eps"] = "x"
elif change == "said-scale":
    readout["attention_scale"] = dim**-0.5
elif change == "odd-scale":
    readout["attention_scale"] = 0.5
elif change == "odd-context":
    metadata["context"] = "many"
elif change == "long-context":
    metadata["context"] = str(context + 2)
elif change == "all-correct":
    readout["correct"] = asked + 1
elif change == "another-model":
    tensors[f"layers.{layer}.query"] = query[:2]
    tensors["readout.wo"] = wo[:, : 2 * dim]
if change != "no-needles":
    metadata["needles"] = json.dumps(needles)
if change != "no-readout":
    metadata["readout"] = json.dumps(readout)
header, end = {"__metadata__": metadata}, 0
for name, values in tensors.items():
    header[name] = {"dtype": "F16", "shape": list(values.shape), "data_offsets": [end, end + 2 * values.size]}
    end += 2 * values.size
text = json.dumps(header).encode()
with open(path, "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text)
    for values in tensors.values():
        file.write(values.astype(np.float16).tobytes())
