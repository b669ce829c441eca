"""The caches of the library transformers, on top of `BlockStore`: one for its versions 4.44 to 4.53, one from 4.57 on."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional, Tuple

import torch

from ..errors import InputError, LibraryNotFound, UsageError
from ._plan import Plan
from ._report import Report, report_of
from ._store import BlockStore

__all__ = ["cache_class"]


def _count(query: Any) -> int:
    """Tokens of a query: a number, or a tensor of positions."""
    return query if isinstance(query, int) else int(query.shape[0])


def _check_positions(options: Tuple[Any, ...], named: Dict[str, Any]) -> None:
    """Raises an error where texts of a batch have different positions, which older versions of the library tell."""
    given = [entry for entry in (*options, *named.values()) if isinstance(entry, dict)]
    for entry in given:
        cos = entry.get("cos")
        if isinstance(cos, torch.Tensor) and cos.ndim == 3 and cos.shape[0] > 1 and not bool((cos == cos[:1]).all()):
            raise InputError(
                "texts of a batch have different positions (padding is not supported): pass texts of equal lengths"
            )


class _Pair:
    """The keys and values of a layer."""

    def __init__(self, keys: BlockStore, values: BlockStore) -> None:
        self.keys, self.values = keys, values

    def append(self, keys: torch.Tensor, values: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        return self.keys.append(keys), self.values.append(values)

    def each(self, name: str, *arguments: Any) -> None:
        """Calls a method of both."""
        for store in (self.keys, self.values):
            getattr(store, name)(*arguments)


class _SpikedCache:
    """A cache whose full blocks are compressed, for `model.generate` and for a model's `forward`.

    Each block of tokens is coded when its last token has been read, once, and never changes; the rows after it stay exact.
    The pass that brings tokens reads them exactly, so that a text that is read in one pass is read without compression:
    fill the cache with `prefill`, or use `compressed`.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A decoder. Layers with a sliding window and layers without keys and values are left alone; `report` names them.
    key, value : str
        Methods of keys and values, as in `spiked.Codec`. ``unrope+`` before the method of keys codes them without their
        rotary embedding (of type default, linear, llama3 or yarn), as ``"causal-klt"`` does by itself; its keys are not
        weighted by queries, which a cache does not see. ``"identity"`` stores them exactly: a control.
    bits : float
        Bits of the index of an entry; of ``causal-klt``, the stored bits.
    block : int
        Tokens of a block.
    keep : {"decoded", "packed"}
        ``"decoded"`` keeps decoded rows: fast, and takes the memory of an ordinary cache. ``"packed"`` keeps the codes alone
        and decodes all blocks for each token.
    threads : int
        0: one for each processor. Results do not depend on it.
    sequence : int
        Which rotations are drawn, one set for each text: document i of ``spiked kv perplexity`` has sequence i.
    tokens : int
        Of ``causal-klt``: how many tokens will be coded, where it is known, so that the stored bits are met within 1 %. 0: not
        known; then the first block takes up to half as much more, which later ones repay.
    **options
        Other options of `spiked.Codec`, such as ``seed``.

    Raises
    ------
    UsageError
        A method or a width is wrong, the model has an encoder or, before transformers 4.53, computes with a hybrid cache
        (Gemma 2 and 3, Cohere 2), no layer would be compressed, or ``unrope`` is not possible for its rotary embedding.

    Notes
    -----
    Texts of a batch must have equal lengths: padding is not supported. With beams, fill the cache and then call
    ``cache.batch_repeat_interleave(beams)``. The codec runs on the CPU; blocks of a model on another device are moved, and a
    warning says so.

    Examples
    --------
    >>> import torch, transformers
    >>> from spiked.hf import SpikedCache, prefill
    >>> config = transformers.MistralConfig(vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=2,
    ...     num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=512, sliding_window=None)
    >>> model = transformers.MistralForCausalLM(config).eval()
    >>> cache = prefill(model, torch.arange(300)[None] % 64, SpikedCache(model, bits=2))
    >>> cache.get_seq_length(), cache.report().coded_tokens     # two blocks of 128; the other 43 rows are exact
    (299, 256)
    """

    # `_fill` calls the constructor of the library, and gives a pair of stores to each layer that is compressed and a
    # reason to each that is not.

    _plan: Plan
    _pairs: Dict[int, _Pair]
    _left_alone: Dict[int, str]

    def __init__(
        self,
        model: Any,
        key: str = "unrope+eoptshrink+tq-mse",
        value: str = "eoptshrink+tq-mse",
        bits: float = 2,
        *,
        block: int = 128,
        keep: str = "decoded",
        threads: int = 0,
        sequence: int = 0,
        tokens: int = 0,
        **options: Any,
    ) -> None:
        plan = Plan(
            model,
            key,
            value,
            bits,
            block=block,
            keep=keep,
            threads=threads,
            sequence=sequence,
            tokens=tokens,
            options=options,
        )
        self._fill(model, plan)

    def _fill(self, model: Any, plan: Plan) -> None:
        raise NotImplementedError

    def report(self) -> Report:
        """Stored bits by item, exact rows, and the layers that were left alone, with the reason.

        Returns
        -------
        Report

        Examples
        --------
        >>> import torch, transformers
        >>> from spiked.hf import SpikedCache, prefill
        >>> config = transformers.MistralConfig(vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=2,
        ...     num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=512, sliding_window=None)
        >>> model = transformers.MistralForCausalLM(config).eval()
        >>> cache = prefill(model, torch.arange(300)[None] % 64, SpikedCache(model, "kivi", "kivi", bits=2))
        >>> round(cache.report().bits_per_entry["value"], 4)    # 2 bits, and two numbers of 16 bits for each 32 entries
        3.0
        """
        return report_of(self._plan, {i: (p.keys, p.values) for i, p in self._pairs.items()}, self._left_alone)


def _layer_class(library: Any) -> Any:
    """`SpikedLayer`, a layer of a cache of transformers from 4.57 on."""

    class SpikedLayer(library.CacheLayerMixin):  # type: ignore[misc]
        """A layer whose full blocks are compressed."""

        is_sliding = False
        is_compileable = False
        is_croppable = False  # not into coded blocks

        def __init__(self, pair: _Pair) -> None:
            self.pair = pair
            super().__init__()

        @property
        def keys(self) -> Optional[torch.Tensor]:
            return self.pair.keys.read()

        @keys.setter
        def keys(self, value: Any) -> None:
            """The library assigns None before the first token."""

        @property
        def values(self) -> Optional[torch.Tensor]:
            return self.pair.values.read()

        @values.setter
        def values(self, value: Any) -> None:
            """As that of keys."""

        def lazy_initialization(self, key_states: torch.Tensor, value_states: Optional[torch.Tensor] = None) -> None:
            self.dtype, self.device = key_states.dtype, key_states.device
            self.is_initialized = True

        def update(
            self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
        ) -> Tuple[torch.Tensor, torch.Tensor]:
            if not self.is_initialized:
                self.lazy_initialization(key_states, value_states)
            _check_positions(args, kwargs)
            return self.pair.append(key_states, value_states)

        def get_mask_sizes(self, query: Any) -> Tuple[int, int]:
            return self.get_seq_length() + _count(query), 0

        def get_seq_length(self) -> int:
            return self.pair.keys.tokens

        def get_max_cache_shape(self) -> int:
            return -1

        def get_max_length(self) -> int:
            return -1

        def offload(self) -> None:
            """Rows stay where they are."""

        def prefetch(self) -> None:
            """As `offload`."""

        def reset(self) -> None:
            self.pair.each("reset")
            self.is_initialized = False

        def crop(self, tokens: int) -> None:
            """Keeps `tokens` tokens; a negative number removes so many."""
            if tokens != 0:
                self.pair.each("crop", tokens)

        def reorder_cache(self, beam_idx: torch.Tensor) -> None:
            self.pair.each("select", beam_idx)

        def batch_repeat_interleave(self, repeats: int) -> None:
            self.pair.each("repeat", repeats)

        def batch_select_indices(self, indices: torch.Tensor) -> None:
            self.pair.each("select", indices)

    return SpikedLayer


def _reason(layer: Any) -> str:
    window = getattr(layer, "sliding_window", None)
    if window is not None:
        return f"a sliding window of {int(window)} tokens"
    return f"{type(layer).__name__} of transformers"


def _layered_class(library: Any) -> Any:
    """`SpikedCache` for transformers from 4.57 on."""
    spiked_layer = _layer_class(library)

    class SpikedCache(_SpikedCache, library.Cache):  # type: ignore[misc]
        def _fill(self, model: Any, plan: Plan) -> None:
            layers = list(library.DynamicCache(config=model.config).layers)
            pairs: Dict[int, _Pair] = {}
            left_alone: Dict[int, str] = {}
            for i, layer in enumerate(layers):
                if type(layer) is library.DynamicLayer:
                    pairs[i] = _Pair(plan.store(i, "key"), plan.store(i, "value"))
                    layers[i] = spiked_layer(pairs[i])
                else:
                    left_alone[i] = _reason(layer)
            for i in range(len(layers), plan.layers):
                left_alone[i] = "it shares the keys and values of another layer"
            plan.check_some(left_alone)
            library.Cache.__init__(self, layers=layers)
            self._plan, self._pairs, self._left_alone = plan, pairs, left_alone

    SpikedCache.Layer = spiked_layer
    return SpikedCache


def _legacy_class(library: Any, masks_by_layer: bool) -> Any:
    """`SpikedCache` for transformers 4.44 to 4.53, whose models make a mask for each type of layer from 4.53 on."""

    class SpikedCache(_SpikedCache, library.DynamicCache):  # type: ignore[misc]
        _all: List[_Pair] = []  # the layers, those that are left alone too

        def _fill(self, model: Any, plan: Plan) -> None:
            if not masks_by_layer and getattr(plan.config, "cache_implementation", None) == "hybrid":
                raise UsageError(
                    f"{type(model).__name__} computes with a cache of its own in this version of transformers (its masks are those "
                    "of one that keeps the last rows alone): install transformers 4.53, or 4.57 or later"
                )
            windows = {i: plan.sliding_window(i) for i in range(plan.layers)}
            left_alone = {i: f"a sliding window of {w} tokens" for i, w in windows.items() if w is not None}
            plan.check_some(left_alone)
            library.DynamicCache.__init__(self)
            self._plan, self._left_alone = plan, left_alone
            self._all = [
                (
                    _Pair(plan.exact_store(), plan.exact_store())
                    if i in left_alone
                    else _Pair(plan.store(i, "key"), plan.store(i, "value"))
                )
                for i in range(plan.layers)
            ]
            self._pairs = {i: pair for i, pair in enumerate(self._all) if i not in left_alone}

        @property
        def key_cache(self) -> List[Any]:
            return [pair.keys.read() for pair in self._all[: len(self)]]

        @key_cache.setter
        def key_cache(self, value: Any) -> None:
            """The library assigns an empty list."""

        @property
        def value_cache(self) -> List[Any]:
            return [pair.values.read() for pair in self._all[: len(self)]]

        @value_cache.setter
        def value_cache(self, value: Any) -> None:
            """As that of keys."""

        def __len__(self) -> int:
            return sum(pair.keys.open is not None for pair in self._all)

        def __getitem__(self, layer_idx: int) -> Tuple[Any, Any]:
            if layer_idx >= len(self):
                raise KeyError(f"the cache has {len(self)} layers: there is no layer {layer_idx}")
            return self._all[layer_idx].keys.read(), self._all[layer_idx].values.read()

        def update(
            self,
            key_states: torch.Tensor,
            value_states: torch.Tensor,
            layer_idx: int,
            cache_kwargs: Optional[Dict[str, Any]] = None,
        ) -> Tuple[torch.Tensor, torch.Tensor]:
            _check_positions((cache_kwargs,), {})
            found = self._all[layer_idx].append(key_states, value_states)
            if layer_idx == 0:
                self._seen_tokens = self.get_seq_length()
            return found

        def get_seq_length(self, layer_idx: Optional[int] = 0) -> int:
            index = layer_idx or 0
            return self._all[index].keys.tokens if index < len(self._all) else 0

        def get_max_length(self) -> Optional[int]:
            return None

        def get_max_cache_shape(self) -> Optional[int]:
            return None

        def _each(self, name: str, *arguments: Any) -> None:
            for pair in self._all:
                pair.each(name, *arguments)
            self._seen_tokens = self.get_seq_length()

        def reorder_cache(self, beam_idx: torch.Tensor) -> None:
            self._each("select", beam_idx)

        def batch_repeat_interleave(self, repeats: int) -> None:
            self._each("repeat", repeats)

        def batch_select_indices(self, indices: torch.Tensor) -> None:
            self._each("select", indices)

        def crop(self, max_length: int) -> None:
            self._each("crop", max_length)

        def reset(self) -> None:
            self._each("reset")

        def batch_split(self, *args: Any, **kwargs: Any) -> Any:
            raise UsageError("a compressed cache cannot be split by texts: generate without low_memory")

        @classmethod
        def from_batch_splits(cls, *args: Any, **kwargs: Any) -> Any:
            raise UsageError("a compressed cache is not made from other caches: pass the model")

        from_legacy_cache = from_batch_splits

    return SpikedCache


def cache_class(library: Any, version: str) -> Any:
    """`SpikedCache` for a version of the library.

    Parameters
    ----------
    library : module
        ``transformers.cache_utils``.
    version : str
        Of transformers.

    Raises
    ------
    LibraryNotFound
        A version before 4.44 or from 4.54 to 4.56.
    """
    numbers = re.findall(r"\d+", version)
    major, minor = (int(number) for number in numbers[:2])
    if (major, minor) < (4, 44) or (4, 54) <= (major, minor) < (4, 57):
        raise LibraryNotFound(
            f"spiked.hf does not support transformers {version} (its caches changed from 4.54 to 4.56): install 4.44 to 4.53, "
            "or 4.57 or later"
        )
    masks_by_layer = (major, minor) >= (4, 53)
    found = _legacy_class(library, masks_by_layer) if (major, minor) < (4, 57) else _layered_class(library)
    found.__doc__ = _SpikedCache.__doc__
    found.__module__ = "spiked.hf"
    found.__qualname__ = "SpikedCache"
    return found
