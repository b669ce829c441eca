"""What codes which rows of a model's cache."""

from __future__ import annotations

import os
import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch

from ..errors import InputError, UsageError
from ..methods import list_methods
from ..quantization import Codec, Encoded
from ._rope import Rotation, rotation_of
from ._store import Block, BlockStore

__all__ = ["IdentityCodec", "Plan", "text_config", "without_window"]

SIDES = ("key", "value")
UNROPE = "unrope+"
MEAN = "mean+"
CAUSAL = ("causal-klt", "causal-klt-joint")
CAUSAL_BLOCK = 128
# Types of models whose layers with a sliding window differ from the others by the mask alone: those that read the window of
# the configuration, and those that read the types of their layers. Layers of other models have another rotary embedding, too,
# or are the only ones with one (Gemma 3, Cohere 2, EXAONE 4).
WINDOW_OF_MODEL = ("ministral3", "mistral", "mixtral", "phi3", "qwen3_moe", "starcoder2")
WINDOW_OF_LAYERS = ("gemma2", "gpt_oss", "ministral", "qwen2", "qwen2_moe", "qwen3")
IDENTITY = "identity"


class IdentityCodec:
    """Stores rows as they are, in the type of the cache: the control with which generation must equal that of an ordinary
    cache."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype

    def encode(self, X: torch.Tensor) -> Encoded:
        """Keeps a block (rows, channels), whose entries have values of this type."""
        rows = X.to(self.dtype).contiguous()
        bits = 8.0 * rows.element_size()
        return Encoded(rows.view(torch.uint8).numpy().tobytes(), rows.shape[0], {"exact": bits}, bits, bits, 0)

    def decode(self, code: Encoded) -> np.ndarray[Any, Any]:
        """The same block, in single precision at least."""
        rows = torch.frombuffer(bytearray(code.bytes), dtype=self.dtype).reshape(code.rows, -1)
        found: np.ndarray[Any, Any] = _wide(rows).numpy()
        return found


def _wide(rows: torch.Tensor) -> torch.Tensor:
    """Rows on the CPU in a type that codecs read."""
    found: torch.Tensor = rows.to(device="cpu", dtype=torch.float64 if rows.dtype == torch.float64 else torch.float32)
    return found


def text_config(config: Any) -> Any:
    """The part of a configuration that describes the language model."""
    found = getattr(config, "get_text_config", None)
    return config if found is None else found()


def without_window(config: Any) -> Any:
    """Takes the sliding window out of a configuration, so that all layers of a model that is loaded with it are compressed.

    This changes nothing for texts that are shorter than the window.

    Parameters
    ----------
    config : transformers.PretrainedConfig
        Changed in place. One without a sliding window stays as it is.

    Returns
    -------
    transformers.PretrainedConfig
        The same object, for ``from_pretrained(folder, config=config)``.

    Raises
    ------
    UsageError
        Layers of this type of model may differ by more than their mask.

    Examples
    --------
    >>> import transformers
    >>> without_window(transformers.MistralConfig(sliding_window=64)).sliding_window is None
    True
    """
    text = text_config(config)
    types, full = getattr(text, "layer_types", None) or [], "full_attention"
    window = getattr(text, "sliding_window", None)
    if all(each == full for each in types) if types else window is None:
        return config
    known = text.model_type in WINDOW_OF_MODEL + WINDOW_OF_LAYERS
    if not known or (text.model_type == "gemma2" and not types):  # older versions compute with its window
        raise UsageError(
            f"the sliding window of {text.model_type} cannot be taken out in this version of transformers (its layers may differ "
            f"by more than their mask): leave it; possible are {', '.join(sorted(WINDOW_OF_MODEL + WINDOW_OF_LAYERS))}"
        )
    if types:
        text.layer_types = [full] * len(types)
    if not types or text.model_type in WINDOW_OF_MODEL:
        text.sliding_window = None
    if hasattr(text, "use_sliding_window"):
        text.use_sliding_window = False
    return config


def _attention_modules(model: Any) -> Dict[int, Any]:
    """The attention of each layer."""
    found: Dict[int, Any] = {}
    for _, module in model.named_modules():
        index = getattr(module, "layer_idx", None)
        if isinstance(index, int) and "Attention" in type(module).__name__:
            found.setdefault(index, module)
    return found


def _has_axis(method: str) -> bool:
    """Whether a method treats keys and values differently, and does not say which these are."""
    if method.startswith(MEAN):
        return True
    name, _, options = method.split("+")[-1].partition(":")
    for known in list_methods("quantizers"):
        if name == known["name"] or name in known["aliases"]:
            return any(option["key"] == "axis" for option in known["options"]) and "axis=" not in options
    return False


class _Coder:
    """The codecs of one side of one layer, one for each head. It never changes what it coded."""

    def __init__(self, plan: Plan, layer: int, side: str, rotation: Optional[Rotation]) -> None:
        self._plan, self._layer, self._side, self._rotation = plan, layer, side, rotation
        self._codecs: List[Any] = []

    def __deepcopy__(self, memo: Dict[int, Any]) -> _Coder:
        return self

    def encode(self, rows: torch.Tensor, start: int, states: Sequence[Dict[int, Any]]) -> List[Block]:
        return self._encoded(self._exact(rows, start), rows.dtype, states)

    def _exact(self, rows: torch.Tensor, start: int) -> torch.Tensor:
        """The rows as the codecs read them, keys without their rotary embedding where it is taken off."""
        channels = rows.shape[-1]
        if self._rotation is not None and channels != self._plan.channels:
            raise UsageError(
                f"unrope: keys have {channels} channels (the configuration says {self._plan.channels}, and which of them are "
                "rotated is not known): give a key method without unrope+"
            )
        if rows.device.type != "cpu":
            self._plan.say_device(rows.device)
        exact = _wide(rows)
        return exact if self._rotation is None else self._rotation.undo(exact, start)

    def _named(self, head: int, problem: InputError) -> InputError:
        """The error with the place of the head."""
        reason = str(problem).replace("X: ", "", 1)
        return InputError(f"{self._side}s of layer {self._layer}, head {head}: {reason}")

    def _encoded(self, exact: torch.Tensor, dtype: torch.dtype, states: Sequence[Dict[int, Any]]) -> List[Block]:
        texts, heads, _, channels = exact.shape
        if not self._codecs:
            kept = dtype if self._rotation is None else exact.dtype
            self._codecs = [
                self._plan.codec(self._layer, self._side, head, heads, channels, kept) for head in range(heads)
            ]

        def code(item: Tuple[int, int]) -> Encoded:
            text, head = item
            try:
                found: Encoded = self._codecs[head].encode(exact[text, head])
            except InputError as problem:
                raise self._named(head, problem) from None
            return found

        codes = self._plan.map(code, [(text, head) for text in range(texts) for head in range(heads)])
        return [_block(codes[text * heads : (text + 1) * heads], channels) for text in range(texts)]

    def _rows(self, block: Block, head: int) -> Any:
        """The decoded rows of a head."""
        return self._codecs[head].decode(block.codes[head])

    def decode(self, blocks: Sequence[Block], start: int, like: torch.Tensor) -> torch.Tensor:
        alone = {id(block): block for block in blocks}  # beams share blocks
        items = [(key, head) for key, block in alone.items() for head in range(len(block.codes))]
        rows = self._plan.map(lambda item: self._rows(alone[item[0]], item[1]), items)
        found: Dict[int, List[Any]] = {}
        for (key, _), row in zip(items, rows):
            found.setdefault(key, []).append(row)
        exact: torch.Tensor = torch.from_numpy(np.stack([np.stack(found[id(block)]) for block in blocks]))
        exact = exact.to(torch.float64 if like.dtype == torch.float64 else torch.float32)
        if self._rotation is not None:
            exact = self._rotation.apply(exact, start)
        found_rows: torch.Tensor = exact.to(device=like.device, dtype=like.dtype)
        return found_rows


class _CausalCoder(_Coder):
    """The streams of one side of one layer, one for each text and for heads that are coded together. A block holds the rows
    that it decodes to: its bytes could be read with those of all blocks before it alone."""

    def _encoded(self, exact: torch.Tensor, dtype: torch.dtype, states: Sequence[Dict[int, Any]]) -> List[Block]:
        texts, heads, tokens, channels = exact.shape
        together = self._plan.heads_together(self._side, heads)
        groups = [range(first, min(first + together, heads)) for first in range(0, heads, together)]

        def code(item: Tuple[int, range]) -> Tuple[Any, float]:
            text, group = item
            state = states[text]
            if group.start not in state:
                state[group.start] = self._plan.causal_codec(self._side, len(group), channels).stream(self._plan.tokens)
            rows = exact[text, group.start : group.stop].transpose(0, 1).reshape(tokens, len(group) * channels)
            try:
                decoded, bits = state[group.start].append(rows)
            except InputError as problem:
                raise self._named(group.start, problem) from None
            return decoded.reshape(tokens, len(group), channels).swapaxes(0, 1), bits

        found = self._plan.map(code, [(text, group) for text in range(texts) for group in groups])
        blocks = []
        for text in range(texts):
            of_text = found[text * len(groups) : (text + 1) * len(groups)]
            codes = tuple(rows for decoded, _ in of_text for rows in decoded)
            blocks.append(Block(codes, {"total": sum(bits for _, bits in of_text)}, heads * tokens * channels))
        return blocks

    def _rows(self, block: Block, head: int) -> Any:
        return block.codes[head]


def _block(codes: Sequence[Encoded], channels: int) -> Block:
    bits: Dict[str, float] = {}
    for code in codes:
        for item, value in code.ledger.items():
            bits[item] = bits.get(item, 0.0) + value * code.rows * channels
    return Block(tuple(codes), bits, sum(code.rows for code in codes) * channels)


class Plan:
    """The options of a cache, checked against a model. It never changes."""

    def __init__(
        self,
        model: Any,
        key: str,
        value: str,
        bits: float,
        *,
        block: int,
        keep: str,
        threads: int,
        sequence: int,
        tokens: int,
        options: Dict[str, Any],
    ) -> None:
        if keep not in ("decoded", "packed"):
            raise UsageError(f'keep is {keep!r} (possible are "decoded" and "packed"): pass one of them')
        if int(block) < 1:
            raise UsageError(f"block is {block}: pass a number of tokens from 1 on, such as 128")
        if getattr(model.config, "is_encoder_decoder", False):
            raise UsageError(f"{type(model).__name__} has an encoder (only decoders are supported): use another model")
        if value.startswith(UNROPE):
            raise UsageError(f"value is {value!r} (values have no rotary embedding): leave out {UNROPE}")
        self.methods = {"key": key, "value": value}
        self.bits, self.block, self.keep, self.sequence = bits, int(block), keep, int(sequence)
        self.tokens = int(tokens)
        self._check_caches()
        self._options = options
        self._warned = False
        self.device = "cpu"
        self.threads = int(threads) or os.cpu_count() or 1
        self.config = text_config(model.config)
        if not getattr(self.config, "num_attention_heads", None):
            raise UsageError(
                f"{type(model).__name__} has no attention (there are no keys and values to compress): use another model"
            )
        self.layers = int(self.config.num_hidden_layers)
        self._attention = _attention_modules(model)
        self.channels = int(
            getattr(self.config, "head_dim", None) or self.config.hidden_size // self.config.num_attention_heads
        )
        self._rotation: Dict[int, Optional[Rotation]] = {}
        self._model = model if key.startswith(UNROPE) or self.causal("key") else None
        for side in SIDES:
            if self.causal(side):
                self.causal_codec(side, 1, self.channels)
            else:
                self.codec(0, side, 0, 1, self.channels)

    def __deepcopy__(self, memo: Dict[int, Any]) -> Plan:
        return self

    def causal(self, side: str) -> bool:
        """Whether the blocks of a side are coded from those before them."""
        return self.methods[side].split(":")[0] in CAUSAL

    def _check_caches(self) -> None:
        """Raises an error for methods that code whole sequences, but for causal ones of one side."""
        for side, method in self.methods.items():
            name = method.removeprefix(UNROPE).split(":")[0]
            if name in [known["name"] for known in list_methods("caches")] and name not in CAUSAL:
                raise UsageError(
                    f"{side} is {method!r} (it codes a whole sequence, and a cache of a model grows by blocks): use another "
                    "method here, and spiked kv perplexity or kv retrieve for this one"
                )
            if name == CAUSAL[0] and method.startswith(UNROPE):
                raise UsageError(
                    f"{side} is {method!r} ({CAUSAL[0]} takes the rotary embedding off by itself): leave out {UNROPE}"
                )
            if name == CAUSAL[1]:
                raise UsageError(
                    f"{side} is {method!r} (it joins keys and values, and a cache of transformers has them apart): use "
                    f"{CAUSAL[0]} or {CAUSAL[0]}:heads=0 here, and spiked kv perplexity or kv retrieve for this one"
                )
        causal = [side for side in SIDES if self.causal(side)]
        if not causal and self.tokens:
            raise UsageError(f"tokens is {self.tokens} (it has an effect on {CAUSAL[0]} alone): leave it out")
        if causal and self.block != CAUSAL_BLOCK:
            raise UsageError(f"block is {self.block} ({CAUSAL[0]} codes blocks of {CAUSAL_BLOCK} tokens): leave it out")
        if causal and self.keep != "decoded":
            raise UsageError(
                f'keep is {self.keep!r} (blocks of {CAUSAL[0]} decode from those before them): pass "decoded", or another method'
            )

    def heads_together(self, side: str, heads: int) -> int:
        """How many of the heads of a layer a causal method codes together."""
        found = re.search(r":heads=([0-9]+)", self.methods[side])
        return min(int(found.group(1)) if found else 1, heads) or heads

    def causal_codec(self, side: str, heads: int, channels: int) -> Codec:
        """The codec of heads that a causal method codes together."""
        given = {f"{side}s": heads} if heads > 1 or side == "key" else {}
        return Codec(self.methods[side], heads * channels, self.bits, **given, **self._options)

    def codec(
        self, layer: int, side: str, head: int, heads: int, channels: int, dtype: torch.dtype = torch.float32
    ) -> Any:
        """The codec of a head, with the rotation that `spiked kv perplexity` gives it."""
        method = self.methods[side][len(UNROPE) :] if self.methods[side].startswith(UNROPE) else self.methods[side]
        if method == IDENTITY:
            return IdentityCodec(dtype)
        index = (layer * len(SIDES) + SIDES.index(side)) * heads + head
        index += self.sequence * self.layers * len(SIDES) * heads
        axis = {"axis": side} if _has_axis(method) else {}
        return Codec(method, channels, self.bits, index=index, **{**axis, **self._options})

    def store(self, layer: int, side: str) -> BlockStore:
        """An empty store for one side of a layer."""
        rotation = None
        if side == "key" and self._model is not None:
            rotation = rotation_of(self._model, self._attention.get(layer), self.config, self.channels)
        coder = _CausalCoder if self.causal(side) else _Coder
        return BlockStore(coder(self, layer, side, rotation), self.block, self.keep == "packed")

    def exact_store(self) -> BlockStore:
        """A store that codes nothing."""
        return BlockStore(None, self.block, False)

    def sliding_window(self, layer: int) -> Optional[int]:
        """The sliding window of a layer in tokens, where the library does not say it."""
        missing = object()
        window = getattr(self._attention.get(layer), "sliding_window", missing)
        if window is not missing:
            return None if window is None else int(window)  # type: ignore[call-overload]
        window = getattr(self.config, "sliding_window", None)
        types = getattr(self.config, "layer_types", None)
        if types is not None:
            full = types[layer] not in ("sliding_attention", "chunked_attention")
        else:
            full = not getattr(self.config, "use_sliding_window", True)
            full = full or layer < getattr(self.config, "max_window_layers", 0)
        return None if full or window is None else int(window)

    def check_some(self, left_alone: Dict[int, str]) -> None:
        """Raises an error where no layer would be compressed."""
        if len(left_alone) == self.layers:
            reason = next(iter(left_alone.values()), "it has no layers")
            raise UsageError(
                f"no layer of this model would be compressed ({reason}): where texts are shorter than the sliding window, "
                "load the model with config=spiked.hf.without_window(config), or by --no-sliding-window"
            )

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> List[Any]:
        """`function` of each item, in threads where there are several."""
        if self.threads < 2 or len(items) < 2:
            return [function(item) for item in items]
        with ThreadPoolExecutor(min(self.threads, len(items))) as pool:
            return list(pool.map(function, items))

    def say_device(self, device: torch.device) -> None:
        """Says once that blocks move between a device and the CPU."""
        self.device = str(device)
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"the codec runs on the CPU: full blocks move from {device} and, decoded, back to it", stacklevel=2
            )
