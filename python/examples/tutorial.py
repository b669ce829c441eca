# %% [markdown]
# ## From a noisy matrix to its rank and a denoised matrix
#
# Three signals in noise whose columns have different variances and whose rows are correlated. Nothing is told about the noise.

# %%
import json
import pathlib
import struct

import numpy as np
import spiked

rng = np.random.default_rng(2026)
n, d, strengths = 200, 300, [5.0, 3.0, 2.2]
left = np.linalg.qr(rng.standard_normal((n, 3)))[0]
right = np.linalg.qr(rng.standard_normal((d, 3)))[0]
signal = left @ np.diag(strengths) @ right.T
rows = np.linalg.cholesky(0.3 ** np.abs(np.subtract.outer(range(n), range(n))))
columns = np.linspace(0.3, 1.7, d) ** 0.5
X = signal + rows @ rng.standard_normal((n, d)) * columns / d**0.5

found = spiked.denoise(X)
print(found)

# %% [markdown]
# `strength` estimates the singular values 5, 3, 2.2 of the clean signal, which the observed ones exceed. `shrunk` is smaller than
# both, because observed singular vectors are only partly those of the signal: `overlaps` are their squared inner products.


# %%
def error(estimate):
    return np.linalg.norm(estimate - signal) / np.linalg.norm(signal)


print(f"relative error of the data     {error(X):.2f}")
print(f"of the truncated SVD           {error(spiked.denoise(X, 'svd:3').signal):.2f}")
print(f"of eOptShrink                  {error(found.signal):.2f}")
axes = found.plot()

# %% [markdown]
# ## Intervals
#
# How far the estimates may be off, by the theory of their fluctuations over the estimated noise, one line for each component. The
# strengths are 5, 3 and 2.2.

# %%
print(spiked.denoise(X, intervals="theory", confidence=0.95).intervals)

# %% [markdown]
# `intervals="bootstrap"` draws the signal's vectors anew beside the estimated noise instead. Of 20 such intervals, one misses the
# truth on average.

# %% [markdown]
# ## What could be seen
#
# The limit for matrices of this shape and this noise: signals below the threshold leave no trace in the singular values.

# %%
row_eigenvalues = np.linalg.eigvalsh(rows @ rows.T)
law = spiked.theory(row_eigenvalues, columns**2, n / d, strengths=[5.0, 3.0, 2.2, 1.0])
print(law)

# %% [markdown]
# ## From a KV tensor to bits and error
#
# A layer of a language model's cache, (heads, tokens, channels), cut into blocks of 128 tokens. With PyTorch, pass the tensor.


# %%
def tensor(path, name):
    """A tensor of a safetensors file in fp16."""
    content = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    entry = json.loads(content[8 : 8 + length])[name]
    begin, end = (8 + length + offset for offset in entry["data_offsets"])
    return np.frombuffer(content[begin:end], dtype="<f2").reshape(entry["shape"])


value = tensor("sim/kv/tests/data/rope-lm-cut.safetensors", "layers.3.value")
blocks = value.reshape(-1, 128, 128)

methods = ["tq-mse", "kivi", "eoptshrink+tq-mse"]
codecs = [spiked.Codec(method, dim=128, bits=2) for method in methods]
table = spiked.roundtrip(codecs, blocks)
print("method              bits   error  rank")
for i, method in enumerate(methods):
    bits, errors, ranks = (x[i].mean() for x in (table.bits_per_entry, table.relative_l2, table.rank))
    print(f"{method:18} {bits:5.2f} {100 * errors:6.1f} % {ranks:4.1f}")

# %% [markdown]
# `bits` are stored bits an entry, counted from the bytes; a ledger says what they are spent on.

# %%
code = codecs[2].encode(blocks[0])
print(f"{len(code.bytes)} bytes in place of {blocks[0].nbytes}")
for item, bits in code.ledger.items():
    if bits > 0:
        print(f"{item:16} {bits:.4f}")
