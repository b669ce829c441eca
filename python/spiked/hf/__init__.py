"""Compressed caches for models of Hugging Face; PyTorch and transformers must be installed to import this module.

==================  ====================================================================================
`SpikedCache`       a cache whose full blocks are coded; give it to ``model.generate``
`prefill`           reads a prompt in blocks into such a cache, so that later blocks read the coded ones
`compressed`        within it, ``model.generate`` does both for each prompt
`without_window`    takes the sliding window out of a configuration, for texts that are shorter
`token_losses`      the loss of each token of a text that is read through a cache
==================  ====================================================================================

``cache.report()`` says what is stored.
"""

from __future__ import annotations

import contextlib
import inspect
from typing import Any, Dict, Iterator, Optional

import torch
import transformers
import transformers.cache_utils

from ..errors import InputError, UsageError
from ._adapters import cache_class
from ._plan import without_window
from ._report import Report

__all__ = [
    "Compressed",
    "Report",
    "SpikedCache",
    "cache_argument",
    "compressed",
    "prefill",
    "token_losses",
    "without_window",
]

SpikedCache: Any = cache_class(transformers.cache_utils, transformers.__version__)


def cache_argument(model: Any) -> str:
    """The name of a model's argument for its cache, which changed in late versions of transformers 5.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A decoder.

    Returns
    -------
    str
        ``"past_key_values"`` or ``"cache"``, for ``model.generate(ids, **{cache_argument(model): cache})``.

    Examples
    --------
    >>> import transformers
    >>> config = transformers.MistralConfig(vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=2,
    ...     num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=512, sliding_window=None)
    >>> model = transformers.MistralForCausalLM(config).eval()
    >>> cache_argument(model) in ("past_key_values", "cache")
    True
    """
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def _checked(ids: Any, attention_mask: Optional[Any]) -> torch.Tensor:
    if not isinstance(ids, torch.Tensor) or ids.ndim != 2 or ids.shape[1] == 0:
        shape = tuple(ids.shape) if isinstance(ids, torch.Tensor) else type(ids).__name__
        raise InputError(f"ids is {shape} (it is a tensor of token ids, texts by tokens): pass ids[None] for one text")
    if attention_mask is not None and not bool(torch.as_tensor(attention_mask).ne(0).all()):
        raise InputError("attention_mask has zeros (padding is not supported): pass texts of equal lengths")
    return ids


def _forward(model: Any, ids: torch.Tensor, begin: int, cache: Optional[Any], last_only: bool) -> torch.Tensor:
    """Logits of ids, whose first token has the position `begin`."""
    names = inspect.signature(model.forward).parameters
    positions = torch.arange(begin, begin + ids.shape[1], device=ids.device)
    arguments: Dict[str, Any] = {"position_ids": positions[None], "use_cache": cache is not None}
    if cache is not None:
        arguments[cache_argument(model)] = cache
        if "cache_position" in names:
            arguments["cache_position"] = positions
    for name in ("num_logits_to_keep", "logits_to_keep"):
        if last_only and name in names:
            arguments[name] = 1
    with torch.no_grad():
        logits: torch.Tensor = model(ids, **arguments).logits
    return logits


# Types of models whose layers with a state go on from the state that the part of a text before left behind.
_STATE_IN_PARTS = ("qwen3_next",)


def _check_states(model: Any, cache: Any, chunk: Optional[int], tokens: int) -> None:
    """Rejects reading in parts where layers with a state, such as those of Mamba, may begin anew with each part."""
    kinds = {type(layer).__name__ for layer in getattr(cache, "layers", []) if hasattr(layer, "conv_states")}
    kind = getattr(model.config, "model_type", "")
    if kinds and chunk is not None and tokens > int(chunk) and kind not in _STATE_IN_PARTS:
        raise UsageError(
            f"chunk is {chunk}: layers of {kind} have a state ({', '.join(sorted(kinds))} of transformers), which it may not "
            "carry from one part of a text to the next: use another model"
        )


def _chunks(begin: int, end: int, chunk: Optional[int]) -> Iterator[Any]:
    """Parts of begin .. end that end at multiples of `chunk`."""
    if chunk is not None and int(chunk) < 1:
        raise UsageError(f"chunk is {chunk}: pass a number of tokens from 1 on, or None for one pass")
    while begin < end:
        until = end if chunk is None else min(end, (begin // int(chunk) + 1) * int(chunk))
        yield begin, until
        begin = until


def prefill(
    model: Any, ids: torch.Tensor, cache: Any, *, chunk: Optional[int] = 128, attention_mask: Optional[Any] = None
) -> Any:
    """Reads a prompt into a cache, all but its last token, which ``model.generate(ids, past_key_values=cache)`` reads.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A decoder.
    ids : torch.Tensor, (texts, tokens)
        The whole prompt; the tokens that the cache already holds are skipped.
    cache : SpikedCache
        Filled by this function. Any other cache of transformers may be given, for comparison.
    chunk : int or None
        Tokens of a pass, which the pass reads exactly. None: one pass, in which nothing is read from codes.
    attention_mask : torch.Tensor, (texts, tokens), optional
        Only checked: zeros are an error.

    Returns
    -------
    SpikedCache
        The cache.

    Raises
    ------
    InputError
        The prompt has padding, or is no matrix of ids.
    UsageError
        `chunk` is not positive.

    Examples
    --------
    >>> import torch, transformers
    >>> config = transformers.MistralConfig(vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=2,
    ...     num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=512, sliding_window=None)
    >>> model = transformers.MistralForCausalLM(config).eval()
    >>> ids = torch.arange(300)[None] % 64
    >>> cache = prefill(model, ids, SpikedCache(model, bits=3))
    >>> cache.report().coded_tokens
    256
    """
    ids = _checked(ids, attention_mask)
    _check_states(model, cache, chunk, ids.shape[1] - 1)
    for begin, end in _chunks(cache.get_seq_length(), ids.shape[1] - 1, chunk):
        _forward(model, ids[:, begin:end], begin, cache, last_only=True)
    return cache


def token_losses(
    model: Any, ids: torch.Tensor, cache: Optional[Any] = None, *, chunk: Optional[int] = 128
) -> torch.Tensor:
    """The loss in nats of each token of a text but its first, when the text is read through a cache in parts.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A decoder.
    ids : torch.Tensor, (texts, tokens)
        Texts of equal lengths.
    cache : SpikedCache, optional
        An empty cache. Without one, the model reads the text exactly, in one pass.
    chunk : int or None
        As in `prefill`. None is a control: one pass never reads the cache, and its losses are those without a cache.

    Returns
    -------
    torch.Tensor of float64, (texts, tokens - 1)
        On the CPU.

    Raises
    ------
    InputError
        The cache is not empty, or `ids` is no matrix of ids.
    UsageError
        `chunk` is not positive.

    Examples
    --------
    >>> import torch, transformers
    >>> config = transformers.MistralConfig(vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=2,
    ...     num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=512, sliding_window=None)
    >>> model = transformers.MistralForCausalLM(config).eval()
    >>> ids = torch.arange(300)[None] % 64
    >>> added = token_losses(model, ids, SpikedCache(model, bits=2)) - token_losses(model, ids)
    >>> added.shape, bool(added[:, :127].abs().max() < 1e-4), bool(added.abs().max() > 0)
    (torch.Size([1, 299]), True, True)
    """
    ids = _checked(ids, None)
    if cache is not None and cache.get_seq_length() > 0:
        raise InputError(
            f"cache holds {cache.get_seq_length()} tokens (losses are those of a whole text): pass a new one"
        )
    _check_states(model, cache, chunk, ids.shape[1] - 1)
    found = []
    for begin, end in _chunks(0, ids.shape[1] - 1, None if cache is None else chunk):
        logits = _forward(model, ids[:, begin:end], begin, cache, last_only=False)
        wanted = ids[:, begin + 1 : end + 1, None].to(logits.device)
        each = -torch.log_softmax(logits.double(), dim=-1).gather(-1, wanted)[..., 0]
        found.append(each.cpu())
    return torch.cat([torch.empty(ids.shape[0], 0, dtype=torch.float64), *found], dim=1)


class Compressed:
    """What `compressed` gives.

    Attributes
    ----------
    cache : SpikedCache or None
        The cache that the last call of ``model.generate`` used; None before the first.

    Examples
    --------
    >>> import torch, transformers
    >>> config = transformers.MistralConfig(vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=2,
    ...     num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=512, sliding_window=None)
    >>> model = transformers.MistralForCausalLM(config).eval()
    >>> with compressed(model, bits=2) as used:
    ...     answer = model.generate(torch.arange(200)[None] % 64, max_new_tokens=2, do_sample=False, pad_token_id=0)
    >>> used.cache.get_seq_length(), used.report().coded_tokens
    (201, 128)
    """

    def __init__(self) -> None:
        self.cache: Optional[Any] = None

    def report(self) -> Report:
        """What the cache of the last call of ``model.generate`` stores.

        Returns
        -------
        Report

        Raises
        ------
        UsageError
            Nothing was generated yet.

        Examples
        --------
        >>> import torch, transformers
        >>> config = transformers.MistralConfig(vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=2,
        ...     num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=512, sliding_window=None)
        >>> model = transformers.MistralForCausalLM(config).eval()
        >>> with compressed(model, bits=2) as used:
        ...     answer = model.generate(torch.arange(200)[None] % 64, max_new_tokens=2, do_sample=False, pad_token_id=0)
        >>> used.report().tokens
        201
        """
        if self.cache is None:
            raise UsageError("nothing was generated yet: call model.generate first")
        report: Report = self.cache.report()
        return report


def _texts_of_each(model: Any, arguments: Dict[str, Any]) -> int:
    """How often ``generate`` repeats a prompt."""
    config = arguments.get("generation_config") or model.generation_config

    def value(name: str) -> int:
        given = arguments.get(name)
        return int(getattr(config, name, None) or 1) if given is None else int(given)

    return max(value("num_beams"), value("num_return_sequences"))


def _repeat(cache: Any, times: int) -> None:
    """Repeats each text of a cache."""
    for layer in getattr(cache, "layers", []):
        if not hasattr(layer, "batch_repeat_interleave"):
            raise UsageError(
                f"a cache with {type(layer).__name__} of transformers cannot be repeated for {times} beams: generate one text"
            )
    cache.batch_repeat_interleave(times)


@contextlib.contextmanager
def compressed(model: Any, *, chunk: int = 128, **options: Any) -> Iterator[Compressed]:
    """Within it, ``model.generate`` reads each prompt through a new `SpikedCache`.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A decoder.
    chunk : int
        As in `prefill`.
    **options
        As in `SpikedCache`.

    Returns
    -------
    context manager of Compressed
        Has the cache of the last call and its report.

    Raises
    ------
    InputError
        A prompt has padding.
    UsageError
        As `SpikedCache`, when ``generate`` is called; or ``generate`` is called with a cache, or without ids.

    Examples
    --------
    >>> import torch, transformers
    >>> config = transformers.MistralConfig(vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=2,
    ...     num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=512, sliding_window=None)
    >>> model = transformers.MistralForCausalLM(config).eval()
    >>> with compressed(model, bits=3) as used:
    ...     answer = model.generate(torch.arange(300)[None] % 64, max_new_tokens=4, do_sample=False, pad_token_id=0)
    >>> used.report().coded_tokens
    256
    """
    used = Compressed()
    original = model.generate
    of_instance = "generate" in vars(model)

    def generate(inputs: Optional[torch.Tensor] = None, *args: Any, **arguments: Any) -> Any:
        ids = inputs if inputs is not None else arguments.pop("input_ids", None)
        if ids is None:
            raise UsageError("generate was called without token ids (embeddings are not supported): pass input_ids")
        if arguments.get("past_key_values") is not None or arguments.get("cache") is not None:
            raise UsageError("generate was called with a cache (compressed makes its own): leave out one of them")
        if args and not arguments.get("generation_config"):
            arguments["generation_config"], args = args[0], args[1:]
        arguments.setdefault("attention_mask", torch.ones_like(ids))
        cache = SpikedCache(model, **options)
        prefill(model, ids, cache, chunk=chunk, attention_mask=arguments.get("attention_mask"))
        times = _texts_of_each(model, arguments)
        if times > 1:
            _repeat(cache, times)
        arguments[cache_argument(model)] = used.cache = cache
        return original(ids, *args, **arguments)

    model.generate = generate
    try:
        yield used
    finally:
        if of_instance:
            model.generate = original
        else:
            del model.generate
