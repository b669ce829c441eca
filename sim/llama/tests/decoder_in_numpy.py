"""Runs decoder models in NumPy, from config.json and safetensors as transformers writes them, to check Spiked's forward pass.

usage: decoder_in_numpy.py make FOLDER
       decoder_in_numpy.py nats FOLDER ROW COUNT
       decoder_in_numpy.py greedy FOLDER ROW COUNT NEW

`make` writes a small random model of every kind below as FOLDER/KIND, with tokens.npy, rows.txt and controls. rows.txt has
the logarithms of all probabilities after each token of the first row of tokens.npy, computed in double precision, and
without-CONTROL.txt the same when the model is computed without one of its parts, so that the numbers must differ.
The others run the first COUNT tokens of a ROW of FOLDER/tokens.npy in single precision: `nats` prints the negative
log-likelihood of each token after the first, `greedy` NEW tokens that follow, each the most probable one.
"""
import json
import os
import struct
import sys

import numpy as np

BASE = {"vocab_size": 50, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 6,
        "num_key_value_heads": 2, "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 500.0,
        "max_position_embeddings": 64, "tie_word_embeddings": False}
QWEN = {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28}
# How the weights are stored, what a control leaves out (`window`: one token of it), and the keys that the files of a family
# have beside those of BASE.
KINDS = {
    "llama": ("F16", [], {"model_type": "llama", "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": True,
                          "head_dim": 8}),
    "llama-biases": ("BF16", ["bias"], {"model_type": "llama", "attention_bias": True, "mlp_bias": True}),
    "llama-yarn": ("F32", ["scaling"], {"model_type": "llama", "rope_scaling": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}}),
    "llama-linear": ("F64", ["scaling"], {"model_type": "llama", "rope_scaling": {"type": "linear", "factor": 2.0}}),
    "mistral": ("F16 shards", [], {"model_type": "mistral", "sliding_window": None, "head_dim": 8}),
    "mistral-window": ("F32", ["window"], {"model_type": "mistral", "sliding_window": 7}),
    "qwen2": ("BF16 shards", ["bias"], {"model_type": "qwen2", **QWEN}),
    "qwen2-window": ("F32", ["bias", "window"], {"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 7,
                                                 "max_window_layers": 1}),
    "qwen3": ("F16", ["norms"], {"model_type": "qwen3", "attention_bias": False, "head_dim": 8, **QWEN,
                                 "sliding_window": None, "layer_types": ["full_attention"] * 3}),
    "qwen3-biases": ("F32", ["norms", "bias", "window"], {
        "model_type": "qwen3", "attention_bias": True, "head_dim": 6, "use_sliding_window": True, "sliding_window": 9,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}),
    "phi3": ("BF16", [], {"model_type": "phi3", "sliding_window": 2047, "rope_scaling": None,
                          "original_max_position_embeddings": 64}),
    "phi3-window": ("F16", ["window"], {"model_type": "phi3", "sliding_window": 5}),
}


def head_dim(config):
    return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]


def shapes(config):
    """The tensors of a model in the order of its modules."""
    hidden, inner, kind = config["hidden_size"], config["intermediate_size"], config["model_type"]
    dim = head_dim(config)
    queries, keys = config["num_attention_heads"] * dim, config["num_key_value_heads"] * dim
    yield "model.embed_tokens.weight", (config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        if kind == "phi3":
            yield at + "self_attn.qkv_proj.weight", (queries + 2 * keys, hidden)
            yield at + "self_attn.o_proj.weight", (hidden, queries)
            yield at + "mlp.gate_up_proj.weight", (2 * inner, hidden)
            yield at + "mlp.down_proj.weight", (hidden, inner)
        else:
            biases = config.get("attention_bias", False)
            for name, shape, bias in [("self_attn.q_proj", (queries, hidden), biases or kind == "qwen2"),
                                      ("self_attn.k_proj", (keys, hidden), biases or kind == "qwen2"),
                                      ("self_attn.v_proj", (keys, hidden), biases or kind == "qwen2"),
                                      ("self_attn.o_proj", (hidden, queries), biases),
                                      ("mlp.gate_proj", (inner, hidden), config.get("mlp_bias", False)),
                                      ("mlp.up_proj", (inner, hidden), config.get("mlp_bias", False)),
                                      ("mlp.down_proj", (hidden, inner), config.get("mlp_bias", False))]:
                yield at + name + ".weight", shape
                if bias:
                    yield at + name + ".bias", shape[:1]
        if kind == "qwen3":
            yield at + "self_attn.q_norm.weight", (dim,)
            yield at + "self_attn.k_norm.weight", (dim,)
        yield at + "input_layernorm.weight", (hidden,)
        yield at + "post_attention_layernorm.weight", (hidden,)
    yield "model.norm.weight", (hidden,)
    if not config["tie_word_embeddings"]:
        yield "lm_head.weight", (config["vocab_size"], hidden)


def stored(values, dtype):
    """The little-endian bytes of numbers; BF16 is the upper half of F32, rounded to nearest even."""
    if dtype != "BF16":
        return values.astype({"F64": "<f8", "F32": "<f4", "F16": "<f2"}[dtype]).tobytes()
    bits = values.astype("<f4").view("<u4").astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2").tobytes()


def write(path, tensors):
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def make(folder, number, stored_as, keys):
    config = {**BASE, **keys}
    os.makedirs(folder)
    with open(folder + "/config.json", "w") as file:
        json.dump({**config, "architectures": ["ForCausalLM"], "torch_dtype": "float32"}, file)
    random = np.random.default_rng(number)
    dtype, *shards = stored_as.split()
    tensors = {}
    for name, shape in shapes(config):
        values = random.standard_normal(shape)
        if "norm" in name:
            values = 1 + 0.3 * values
        elif len(shape) == 2:
            values *= 0.4 if "embed" in name else 1.5 / np.sqrt(shape[1])
        tensors[name] = (dtype, shape, stored(values, dtype))
    if shards:
        names, map_of = list(tensors), {}
        for part in range(2):
            file = f"model-0000{part + 1}-of-00002.safetensors"
            write(f"{folder}/{file}", {name: tensors[name] for name in names[part::2]})
            map_of.update({name: file for name in names[part::2]})
        with open(folder + "/model.safetensors.index.json", "w") as file:
            json.dump({"metadata": {}, "weight_map": map_of}, file)
    else:
        write(folder + "/model.safetensors", tensors)
    np.save(folder + "/tokens.npy", random.integers(0, config["vocab_size"], (2, 40)).astype(np.int32))


def make_all(folder):
    for number, (kind, (stored_as, controls, keys)) in enumerate(KINDS.items()):
        at = f"{folder}/{kind}"
        make(at, number, stored_as, keys)
        tokens = np.load(at + "/tokens.npy")[0]
        np.savetxt(at + "/rows.txt", Decoder(at, np.float64).append(tokens), "%.9g")
        for control in controls:
            np.savetxt(f"{at}/without-{control}.txt", Decoder(at, np.float64, control).append(tokens), "%.9g")


class Tensors:
    """The tensors of a folder by name, converted when they are read."""

    def __init__(self, folder, real):
        self.real, self.at = real, {}
        index = folder + "/model.safetensors.index.json"
        files = ["model.safetensors"]
        if os.path.exists(index):
            with open(index) as file:
                files = sorted(set(json.load(file)["weight_map"].values()))
        for path in (folder + "/" + name for name in files):
            with open(path, "rb") as file:
                length = struct.unpack("<Q", file.read(8))[0]
                header = json.loads(file.read(length))
            header.pop("__metadata__", None)
            for name, about in header.items():
                self.at[name] = (path, about, 8 + length + about["data_offsets"][0])

    def __contains__(self, name):
        return name in self.at

    def __getitem__(self, name):
        path, about, offset = self.at[name]
        kind = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}[about["dtype"]]
        values = np.memmap(path, kind, "r", offset, tuple(about["shape"]))
        if about["dtype"] == "BF16":
            values = (values.astype(np.uint32) << 16).view(np.float32)
        return np.asarray(values, self.real)


class Decoder:
    def __init__(self, folder, real, control=""):
        with open(folder + "/config.json") as file:
            self.config = json.load(file)
        self.tensors, self.real, self.control = Tensors(folder, real), real, control
        self.kind = self.config["model_type"]
        self.dim = head_dim(self.config)
        self.frequencies, self.stretch = self.rotary()
        self.cache = [None] * self.config["num_hidden_layers"]
        self.seen = 0

    def rotary(self):
        """The frequencies of the pairs, and the factor of rotated rows."""
        plain = self.config["rope_theta"] ** (-np.arange(0, self.dim, 2) / self.dim)
        scaling = self.config.get("rope_scaling")
        kind = scaling and (scaling.get("rope_type") or scaling.get("type"))
        if not kind or self.control == "scaling":
            return plain, 1.0
        if kind == "linear":
            return plain / scaling["factor"], 1.0
        assert kind == "yarn"
        turns_at = lambda turns: self.dim * np.log(scaling["original_max_position_embeddings"] / (turns * 2 * np.pi)) / (
            2 * np.log(self.config["rope_theta"]))
        low, high = max(np.floor(turns_at(32)), 0), min(np.ceil(turns_at(1)), self.dim - 1)
        ramp = np.clip((np.arange(self.dim // 2) - low) / max(high - low, 0.001), 0, 1)
        return plain / scaling["factor"] * ramp + plain * (1 - ramp), 0.1 * np.log(scaling["factor"]) + 1

    def window(self, layer):
        """How many tokens a token of the layer sees; None: all."""
        size = self.config.get("sliding_window")
        if self.kind == "llama":
            size = None
        if self.kind.startswith("qwen"):
            types = self.config.get("layer_types")
            if not self.config.get("use_sliding_window"):
                size = None
            elif types[layer] != "sliding_attention" if types else layer < self.config["max_window_layers"]:
                size = None
        return size - 1 if size and self.control == "window" else size

    def norm(self, rows, name):
        sizes = np.sqrt((rows * rows).mean(-1, keepdims=True) + self.config["rms_norm_eps"])
        return rows / sizes.astype(self.real) * self.tensors[name]

    def map(self, rows, name):
        result = rows @ self.tensors[name + ".weight"].T
        if name + ".bias" in self.tensors and self.control != "bias":
            result = result + self.tensors[name + ".bias"]
        return result

    def rotate(self, rows):
        angles = np.arange(self.seen, self.seen + len(rows))[:, None] * self.frequencies
        angles = np.concatenate([angles, angles], 1)[:, None, :]
        half = self.dim // 2
        rotated = np.concatenate([-rows[..., half:], rows[..., :half]], -1)
        return ((rows * np.cos(angles) + rotated * np.sin(angles)) * self.stretch).astype(self.real)

    def attention(self, rows, layer):
        at = f"model.layers.{layer}.self_attn."
        heads, groups = self.config["num_attention_heads"], self.config["num_key_value_heads"]
        if self.kind == "phi3":
            ends = [heads * self.dim, (heads + groups) * self.dim]
            query, key, value = np.split(self.map(rows, at + "qkv_proj"), ends, axis=1)
        else:
            query, key, value = (self.map(rows, at + name + "_proj") for name in "qkv")
        query, key, value = (part.reshape(len(rows), -1, self.dim) for part in (query, key, value))
        if self.kind == "qwen3" and self.control != "norms":
            query, key = self.norm(query, at + "q_norm.weight"), self.norm(key, at + "k_norm.weight")
        query, key = self.rotate(query), self.rotate(key)
        if self.cache[layer] is not None:
            key, value = np.concatenate([self.cache[layer][0], key]), np.concatenate([self.cache[layer][1], value])
        self.cache[layer] = key, value
        key, value = np.repeat(key, heads // groups, 1), np.repeat(value, heads // groups, 1)
        scores = np.einsum("thd,shd->hts", query, key, optimize=True) / np.sqrt(self.real(self.dim))
        t, s = np.arange(self.seen, self.seen + len(rows))[:, None], np.arange(len(key))
        hidden = s > t
        if self.window(layer):
            hidden = hidden | (s <= t - self.window(layer))
        scores = np.where(hidden, -np.inf, scores)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        return self.map(np.einsum("hts,shd->thd", scores, value, optimize=True).reshape(len(rows), -1), at + "o_proj")

    def mlp(self, rows, layer):
        at = f"model.layers.{layer}.mlp."
        if self.kind == "phi3":
            gate, up = np.split(self.map(rows, at + "gate_up_proj"), 2, axis=1)
        else:
            gate, up = self.map(rows, at + "gate_proj"), self.map(rows, at + "up_proj")
        return self.map(gate / (1 + np.exp(-gate)) * up, at + "down_proj")

    def append(self, tokens):
        """The log-probabilities after each of more tokens."""
        embedding = self.tensors["model.embed_tokens.weight"]
        state = embedding[tokens]
        for layer in range(len(self.cache)):
            at = f"model.layers.{layer}."
            state = state + self.attention(self.norm(state, at + "input_layernorm.weight"), layer)
            state = state + self.mlp(self.norm(state, at + "post_attention_layernorm.weight"), layer)
        self.seen += len(tokens)
        head = embedding if self.config.get("tie_word_embeddings") else self.tensors["lm_head.weight"]
        logits = self.norm(state, "model.norm.weight") @ head.T
        logits -= logits.max(-1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def run(what, folder, row, count, new=0):
    tokens = np.load(folder + "/tokens.npy")[int(row)][: int(count)]
    decoder = Decoder(folder, np.float32)
    predicted = decoder.append(tokens)
    if what == "nats":
        np.savetxt(sys.stdout, -predicted[np.arange(len(tokens) - 1), tokens[1:]], "%.6f")
    for _ in range(int(new)):
        token = int(predicted[-1].argmax())
        print(token)
        predicted = decoder.append(np.array([token]))


np.seterr(over="ignore")  # exp(-gate)
make_all(sys.argv[2]) if sys.argv[1] == "make" else run(*sys.argv[1:])
