"""A model for lm-eval (the Language Model Evaluation Harness) that reads its texts through a compressed cache.

    python -m spiked.e2e.lm_eval --model spiked --model_args pretrained=FOLDER,method=eoptshrink+tq-mse,bits=2 --tasks TASK

lm-eval's own model scores a text in one forward pass, which never reads a cache, so that any codec loses nothing there.
Here texts are read in chunks, each of which reads the coded blocks before it, in the same way as prompts of
``python -m spiked.e2e``. Texts are scored one at a time: the cache takes no padding.
"""

from __future__ import annotations

import sys
from typing import Any, List, Optional

import torch

try:
    from lm_eval.api.registry import register_model
    from lm_eval.models.huggingface import HFLM
except ImportError as error:
    raise ImportError(f"{error} (it runs the tasks): pip install 'lm_eval[hf]'") from None

from .. import hf
from ..errors import SpikedError, UsageError
from .runner import EXACT, Method

__all__ = ["SpikedLM"]


@register_model("spiked")
class SpikedLM(HFLM):  # type: ignore[misc]
    """lm-eval's model of Hugging Face with a `spiked.hf.SpikedCache`.

    Parameters
    ----------
    pretrained : str or transformers.PreTrainedModel
        As of lm-eval's HFLM.
    method : str
        ``exact``, or a method of `spiked.Codec`, before which ``unrope+`` stands for keys without their rotary embedding.
    bits : float
        Bits of an index.
    block : int
        Tokens of a coded block and of a chunk.
    batch_size : int
        1: the cache takes no padding.
    **options
        As of HFLM.

    Raises
    ------
    UsageError
        Another batch size, or a method or a width that is wrong.

    Examples
    --------
    >>> import transformers
    >>> config = transformers.MistralConfig(vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=2,
    ...     num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=512, sliding_window=None)
    >>> SpikedLM(transformers.MistralForCausalLM(config), "tq-mse", batch_size=8)
    Traceback (most recent call last):
      ...
    spiked.errors.UsageError: batch_size 8 is not possible (the cache takes no padding): leave it at 1
    """

    def __init__(
        self,
        pretrained: Any,
        method: str = EXACT,
        bits: float = 2,
        block: int = 128,
        batch_size: Any = 1,
        **options: Any,
    ) -> None:
        if str(batch_size) != "1":
            raise UsageError(f"batch_size {batch_size} is not possible (the cache takes no padding): leave it at 1")
        chosen = Method(method, None if method == EXACT else float(bits))
        self.block = int(block)
        self.cache_options = chosen.cache_options(self.block)
        super().__init__(pretrained=pretrained, backend="causal", batch_size=1, **options)

    def _model_call(
        self, inps: torch.Tensor, attn_mask: Optional[torch.Tensor] = None, labels: Optional[torch.Tensor] = None
    ) -> torch.Tensor:
        """Logits (texts, tokens, vocabulary)."""
        with torch.no_grad():
            cache = hf.SpikedCache(self.model, **self.cache_options)
            parts = [
                hf._forward(self.model, inps[:, begin : begin + self.block], begin, cache, last_only=False)
                for begin in range(0, inps.shape[1], self.block)
            ]
        return torch.cat(parts, dim=1)

    def _model_generate(self, context: torch.Tensor, max_length: int, stop: List[str], **options: Any) -> torch.Tensor:
        """Texts with their answers."""
        with hf.compressed(self.model, chunk=self.block, **self.cache_options):
            found: torch.Tensor = super()._model_generate(context, max_length, stop, **options)
        return found


if __name__ == "__main__":
    from lm_eval.__main__ import cli_evaluate

    try:
        cli_evaluate()
    except SpikedError as error:
        print(f"spiked.e2e.lm_eval: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
