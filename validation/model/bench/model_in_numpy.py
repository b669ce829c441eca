# Appended to numpy_peer.py, whose functions it uses.
class Work:
    """The forward pass of `spiked bench model` in NumPy: float32, blocks of tokens, a cache of keys and values.
        time COUNT    runs COUNT forward passes; the answer is microseconds per pass
        nats          the answer is the mean nats of the tokens after the first"""

    def __init__(self, numpy, header, source):
        self.numpy = numpy
        self.shape = header["shape"]
        self.tokens = numpy.array(header["tokens"])
        self.block = header["block"]
        self.weights = {}
        import struct
        for path in header["files"]:
            with open(path, "rb") as file:
                tensors = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
                data = file.read()
            for name, tensor in tensors.items():
                if name == "__metadata__":
                    continue
                first, last = tensor["data_offsets"]
                kinds = {"F16": "<f2", "BF16": "<u2", "F32": "<f4", "F64": "<f8"}
                entries = numpy.frombuffer(data[first:last], kinds[tensor["dtype"]])
                if tensor["dtype"] == "BF16":
                    entries = (entries.astype(numpy.uint32) << 16).view(numpy.float32)
                self.weights[name] = entries.reshape(tensor["shape"]).astype(numpy.float32)
        half = self.shape["head_dim"] // 2
        frequencies = self.shape["rope_base"] ** (-numpy.arange(half) / half)
        angles = numpy.arange(len(self.tokens))[:, None] * frequencies
        self.cosines, self.sines = (f(angles).astype(numpy.float32)[:, None] for f in (numpy.cos, numpy.sin))

    def norm(self, rows, name):
        numpy = self.numpy
        mean = numpy.einsum("ij,ij->i", rows, rows) / rows.shape[1]
        return rows * (1 / numpy.sqrt(mean + self.shape["norm_epsilon"]))[:, None].astype(numpy.float32) * self.weights[name]

    def rotate(self, rows, first):
        half = rows.shape[2] // 2
        a, b = rows[..., :half], rows[..., half:]
        c, s = (table[first:first + len(rows)] for table in (self.cosines, self.sines))
        return self.numpy.concatenate((a * c - b * s, b * c + a * s), axis=2)

    def forward(self):
        numpy, shape, weights = self.numpy, self.shape, self.weights
        heads, kv_heads, dim = shape["heads"], shape["kv_heads"], shape["head_dim"]
        count = len(self.tokens)
        cache = numpy.empty((shape["layers"], 2, kv_heads, count, dim), numpy.float32)
        head = weights["model.embed_tokens.weight" if shape["tied"] else "lm_head.weight"].T
        nats = 0.0
        for first in range(0, count, self.block):
            end = min(first + self.block, count)
            state = weights["model.embed_tokens.weight"][self.tokens[first:end]]
            hidden = numpy.arange(end)[None, :] > numpy.arange(first, end)[:, None]
            for layer in range(shape["layers"]):
                at = f"model.layers.{layer}."
                seen = self.norm(state, at + "input_layernorm.weight")

                def project(name, number):
                    map = at + f"self_attn.{name}_proj."
                    rows = seen @ weights[map + "weight"].T + weights.get(map + "bias", numpy.float32(0))
                    return rows.reshape(end - first, number, dim)

                queries = self.rotate(project("q", heads), first).transpose(1, 0, 2)
                cache[layer, 0, :, first:end] = self.rotate(project("k", kv_heads), first).transpose(1, 0, 2)
                cache[layer, 1, :, first:end] = project("v", kv_heads).transpose(1, 0, 2)
                queries = queries.reshape(kv_heads, -1, end - first, dim)
                keys, values = cache[layer, :, :, None, :end]
                scores = queries @ keys.swapaxes(-1, -2) * numpy.float32(dim ** -0.5)
                scores[..., hidden] = -numpy.inf
                scores -= scores.max(axis=-1, keepdims=True)
                numpy.exp(scores, out=scores)
                scores /= scores.sum(axis=-1, keepdims=True)
                attended = (scores @ values).reshape(heads, end - first, dim).transpose(1, 0, 2)
                attended = attended.reshape(end - first, -1)
                state = state + attended @ weights[at + "self_attn.o_proj.weight"].T
                mlp_input = self.norm(state, at + "post_attention_layernorm.weight")
                gate = mlp_input @ weights[at + "mlp.gate_proj.weight"].T
                gate /= 1 + numpy.exp(-gate)
                gate *= mlp_input @ weights[at + "mlp.up_proj.weight"].T
                state += gate @ weights[at + "mlp.down_proj.weight"].T
            logits = self.norm(state, "model.norm.weight") @ head
            logits -= logits.max(axis=1, keepdims=True)
            sums = numpy.log(numpy.exp(logits).sum(axis=1))
            known = self.tokens[first + 1:end + 1]
            rows = numpy.arange(len(known))
            nats += float((sums[rows] - logits[rows, known]).sum(dtype=numpy.float64))
        return nats / (count - 1)

    def answer(self, command, *count):
        if command == "time":
            return {"microseconds": microseconds(self.forward, int(count[0]))}
        return {"nats": self.forward()}
