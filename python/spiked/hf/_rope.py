"""Rotary embeddings of a model, taken off its keys and put on again by the model's own code."""

from __future__ import annotations

import inspect
import sys
from typing import Any, Dict, Optional, Tuple

import torch

from ..errors import UsageError

__all__ = ["Rotation", "rotation_of"]

# Scalings whose angles depend on the position alone. Those of the others depend on the length of the text.
_KINDS = ("default", "linear", "llama3", "yarn")


class Rotation:
    """A rotary embedding. It never changes.

    Parameters
    ----------
    rotary : torch.nn.Module
        Gives cos and sin of positions.
    apply : callable
        ``apply_rotary_pos_emb`` of the model's module.
    """

    def __init__(self, rotary: Any, apply: Any) -> None:
        self._rotary, self._apply = rotary, apply
        names = inspect.signature(rotary.forward).parameters
        self._by_length = "position_ids" not in names  # some models of transformers 4.44
        self._extra = {"layer_type": "full_attention"} if "layer_type" in names else {}

    def __deepcopy__(self, memo: Dict[int, Any]) -> Rotation:
        return self

    def _tables(self, start: int, tokens: int, like: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        device = next((buffer.device for buffer in self._rotary.buffers()), torch.device("cpu"))
        values = torch.empty(1, 1, 1, dtype=like.dtype, device=device)
        if self._by_length:
            cos, sin = (table[start:] for table in self._rotary(values, seq_len=start + tokens))
        else:
            positions = torch.arange(start, start + tokens, device=device)[None]
            cos, sin = self._rotary(values, positions, **self._extra)
        return cos.to(like.device), sin.to(like.device)

    def _rotate(self, keys: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        if self._by_length:
            positions = torch.arange(keys.shape[-2], device=keys.device)[None]
            found: torch.Tensor = self._apply(keys, keys, cos, sin, positions)[1]
        else:
            found = self._apply(keys, keys, cos, sin)[1]
        return found

    @torch.no_grad()
    def apply(self, keys: torch.Tensor, start: int) -> torch.Tensor:
        """Keys (texts, heads, tokens, channels) of the positions from `start` on with their rotary embedding."""
        return self._rotate(keys, *self._tables(start, keys.shape[-2], keys))

    @torch.no_grad()
    def undo(self, keys: torch.Tensor, start: int) -> torch.Tensor:
        """Keys as they were before their rotary embedding."""
        cos, sin = self._tables(start, keys.shape[-2], keys)
        found = self._rotate(keys, cos, -sin)
        # Scalings such as yarn multiply cos and sin by one factor; channels that are not rotated do not have it. Tables may
        # have one column for each channel or for each pair, so that the code of the model says which channels are rotated.
        factor = (cos.square() + sin.square())[..., :1].reshape(1, 1, -1, 1)
        rotated = self._rotate(torch.ones_like(keys[:1, :1]), torch.full_like(cos, 2), torch.zeros_like(sin)) > 1.5
        return found / torch.where(rotated, factor, torch.ones_like(factor))


def _kind(rotary: Any, config: Any) -> str:
    found = getattr(rotary, "rope_type", None)
    if isinstance(found, dict):  # a kind for each type of layer
        found = found.get("full_attention")
    scaling = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    scaling = scaling.get("full_attention", scaling)
    if scaling.get("mrope_section"):
        return "mrope"
    return str(found or scaling.get("rope_type") or scaling.get("type") or "default")


def rotation_of(model: Any, attention: Optional[Any], config: Any, channels: int) -> Rotation:
    """The rotary embedding of the keys of a layer with full attention.

    Parameters
    ----------
    model : transformers.PreTrainedModel
    attention : torch.nn.Module or None
        The attention of the layer.
    config : transformers.PretrainedConfig
        Of the text model.
    channels : int
        Entries of a key.

    Raises
    ------
    UsageError
        The model has none, or one that depends on the length of the text, or its code does not undo it.
    """
    hint = "give a key method without unrope+"
    apply = getattr(sys.modules.get(type(attention).__module__), "apply_rotary_pos_emb", None)
    rotary = getattr(attention, "rotary_emb", None)
    if rotary is None:
        found = [module for name, module in model.named_modules() if name.split(".")[-1] == "rotary_emb"]
        rotary = found[0] if found else None
    if apply is None or rotary is None:
        raise UsageError(f"unrope: no rotary embedding was found in {type(model).__name__}: {hint}")
    kind = _kind(rotary, config)
    if kind not in _KINDS:
        raise UsageError(
            f"unrope: the rotary embedding is of type {kind} (its angles are not those of positions alone; possible are "
            f"{', '.join(_KINDS)}): {hint}"
        )
    rotation = Rotation(rotary, apply)
    keys = torch.linspace(-1, 1, 4 * channels).reshape(1, 1, 4, channels)
    try:
        rotated = rotation.apply(keys, 5)
        derotated = rotation.undo(rotated, 5)
    except (TypeError, RuntimeError, IndexError, AttributeError, ValueError) as problem:
        raise UsageError(
            f"unrope: apply_rotary_pos_emb of {type(model).__name__} failed ({problem}): {hint}"
        ) from problem
    if not (torch.allclose(derotated, keys, atol=1e-4) and not torch.allclose(rotated, keys, atol=1e-2)):
        raise UsageError(f"unrope: apply_rotary_pos_emb of {type(model).__name__} is not undone by -sin: {hint}")
    return rotation
