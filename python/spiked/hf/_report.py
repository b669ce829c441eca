"""What a cache stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Tuple

from ._store import BlockStore

__all__ = ["Report", "report_of"]


@dataclass(frozen=True)
class Report:
    """The bits of a cache.

    Attributes
    ----------
    methods : dict of str to str
        Of "key" and "value".
    bits : float
        As given: bits of an index.
    keep : str
        As given.
    block : int
        Tokens of a block.
    texts : int
        Texts or beams in the cache.
    tokens, coded_tokens : int
        Tokens of a text, and how many of them are coded; the others are exact.
    layers : tuple of int
        The layers that are compressed.
    left_alone : dict of int to str
        The others, and why.
    ledger : dict of str to dict of str to float
        For "key" and "value" what the bits of coded entries are spent on, in bits per entry.
    bits_per_entry : dict of str to float
        Their sums; NaN where nothing is coded yet.
    stored_bits_per_entry : float
        Of all entries of the compressed layers, exact ones included.
    stored_bytes, exact_bytes : float
        Of the compressed layers: codes and exact rows, and the same without compression.
    held_bytes : float
        What this object holds for them.
    notes : tuple of str
        What to know about these numbers.

    Examples
    --------
    >>> import torch, transformers
    >>> from spiked.hf import SpikedCache, prefill
    >>> config = transformers.MistralConfig(vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=2,
    ...     num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=512, sliding_window=None)
    >>> model = transformers.MistralForCausalLM(config).eval()
    >>> report = prefill(model, torch.arange(300)[None] % 64, SpikedCache(model, bits=2)).report()
    >>> report.tokens, report.coded_tokens, report.layers, report.left_alone
    (299, 256, (0, 1), {})
    >>> 2.0 < report.bits_per_entry["key"] < report.stored_bits_per_entry < 8 * report.exact_bytes
    True
    >>> print(report)                                           # doctest: +ELLIPSIS
    299 tokens, 256 of them coded in blocks of 128, the others exact; 2 layers, 1 text
    ...
    """

    methods: Dict[str, str]
    bits: float
    keep: str
    block: int
    texts: int
    tokens: int
    coded_tokens: int
    layers: Tuple[int, ...]
    left_alone: Dict[int, str]
    ledger: Dict[str, Dict[str, float]]
    bits_per_entry: Dict[str, float]
    stored_bits_per_entry: float
    stored_bytes: float
    exact_bytes: float
    held_bytes: float
    notes: Tuple[str, ...]

    def __str__(self) -> str:
        lines = [
            f"{self.tokens} tokens, {self.coded_tokens} of them coded in blocks of {self.block}, the others exact; "
            f"{_counted(len(self.layers), 'layer')}, {_counted(self.texts, 'text')}"
        ]
        for side, method in self.methods.items():
            items = ", ".join(f"{item} {bits:.4g}" for item, bits in self.ledger[side].items() if bits > 0)
            coded = f"{self.bits_per_entry[side]:.4g} bits per entry ({items})" if self.coded_tokens else "nothing is coded yet"
            lines.append(f"{side}s by {method} at {self.bits:g} bits: {coded}")
        if self.tokens:
            lines.append(
                f"stored {self.stored_bytes:.4g} bytes in place of {self.exact_bytes:.4g}, {self.stored_bits_per_entry:.4g} "
                "bits per entry with the exact rows"
            )
        reasons: Dict[str, List[int]] = {}
        for layer, reason in self.left_alone.items():
            reasons.setdefault(reason, []).append(layer)
        for reason, layers in reasons.items():
            lines.append(f"left alone: layers {', '.join(map(str, layers))} ({reason})")
        return "\n".join([*lines, *self.notes])


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _size(tensor: Any) -> float:
    return 0.0 if tensor is None else float(tensor.numel() * tensor.element_size())


def report_of(plan: Any, stores: Dict[int, Tuple[BlockStore, BlockStore]], left_alone: Dict[int, str]) -> Report:
    """The report of the stores of keys and values of the compressed layers."""
    ledger: Dict[str, Dict[str, float]] = {}
    bits_per_entry: Dict[str, float] = {}
    stored = exact = held = entries_in_all = 0.0
    for i, side in enumerate(plan.methods):
        bits: Dict[str, float] = {}
        entries = 0
        for pair in stores.values():
            store = pair[i]
            for block in store.blocks():
                entries += block.entries
                for item, value in block.bits.items():
                    bits[item] = bits.get(item, 0.0) + value
                held += sum(len(code.bytes) for code in block.codes)
            if store.open is not None:
                coded = sum(block.entries for block in store.blocks())
                stored += _size(store.open)
                exact += _size(store.open) + coded * store.open.element_size()
                held += _size(store.open) + _size(store.decoded)
                entries_in_all += store.open.numel() + coded
        stored += sum(bits.values()) / 8
        ledger[side] = {item: value / entries for item, value in bits.items()} if entries else {}
        bits_per_entry[side] = sum(ledger[side].values()) if entries else float("nan")
    notes = []
    if plan.keep == "decoded":
        notes.append(
            'the decoded rows are kept: stored bytes are what codes would take, keep="packed" holds those alone'
        )
    if plan.device != "cpu":
        notes.append(f"the codec runs on the CPU, the cache is on {plan.device}")
    first = next(iter(stores.values()))[0]
    return Report(
        methods=dict(plan.methods),
        bits=plan.bits,
        keep=plan.keep,
        block=plan.block,
        texts=len(first.texts),
        tokens=first.tokens,
        coded_tokens=first.coded_tokens,
        layers=tuple(stores),
        left_alone=dict(left_alone),
        ledger=ledger,
        bits_per_entry=bits_per_entry,
        stored_bits_per_entry=8 * stored / entries_in_all if entries_in_all else float("nan"),
        stored_bytes=stored,
        exact_bytes=exact,
        held_bytes=held,
        notes=tuple(notes),
    )
