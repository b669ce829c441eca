"""The rows of one side of one layer of a cache: full blocks are coded, the last rows stay as they are."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch

from ..errors import InputError

__all__ = ["Block", "BlockStore"]


@dataclass(frozen=True, eq=False)
class Block:
    """One coded block of one text, with all its heads. It never changes, so that texts and beams can share it.

    Attributes
    ----------
    codes : tuple of Encoded
        One for each head; empty where the decoded rows are kept in their place.
    bits : dict of str to float
        Stored bits of all heads together, by the item of the ledger.
    entries : int
        Numbers that were coded.
    """

    codes: Tuple[Any, ...]
    bits: Dict[str, float]
    entries: int

    def __deepcopy__(self, memo: Dict[int, Any]) -> Block:
        return self


class BlockStore:
    """Rows (texts, heads, tokens, channels), of which each full block of tokens is coded once, when it has been read
    exactly by the tokens that completed it.

    Parameters
    ----------
    coder : object or None
        ``encode(rows, start, states)`` gives one `Block` for each text, ``decode(blocks, start, like)`` their rows; `start` is
        the position of the first token, `states` has a dictionary for each text, in which a method keeps what it has
        learned from its blocks. None: nothing is coded.
    block : int
        Tokens of a block.
    packed : bool
        Keep codes alone and decode them at every read; otherwise keep the decoded rows and drop the codes.
    """

    def __init__(self, coder: Optional[Any], block: int, packed: bool) -> None:
        self.coder, self.block, self.packed = coder, block, packed
        self.reset()

    def reset(self) -> None:
        """Forgets everything."""
        self.texts: List[Tuple[Block, ...]] = []
        self.states: List[Dict[int, Any]] = []
        self.decoded: Optional[torch.Tensor] = None
        self.open: Optional[torch.Tensor] = None

    @property
    def coded_tokens(self) -> int:
        return len(self.texts[0]) * self.block if self.texts else 0

    @property
    def open_tokens(self) -> int:
        return 0 if self.open is None else int(self.open.shape[-2])

    @property
    def tokens(self) -> int:
        return self.coded_tokens + self.open_tokens

    def append(self, rows: torch.Tensor) -> torch.Tensor:
        """Adds rows and gives all that their queries read: what was coded before, decoded, and the others exactly.
        Blocks that these rows complete are coded afterwards."""
        if rows.ndim != 4:
            raise InputError(
                f"keys or values have shape {tuple(rows.shape)} (a cache takes texts, heads, tokens, channels): "
                "this model needs another cache"
            )
        if self.open is not None and self.open.shape[0] != rows.shape[0]:
            raise InputError(
                f"{rows.shape[0]} texts are added to a cache of {self.open.shape[0]}: with beams, repeat a filled cache "
                "first, cache.batch_repeat_interleave(beams)"
            )
        self.texts = self.texts or [() for _ in range(rows.shape[0])]
        self.states = self.states or [{} for _ in range(rows.shape[0])]
        self.open = rows if self.open is None else torch.cat([self.open, rows], dim=-2)
        read = self.read()
        assert read is not None
        self._code_full_blocks()
        return read

    def read(self) -> Optional[torch.Tensor]:
        """What the next token will read; None when there is nothing."""
        if self.open is None:
            return None
        return torch.cat([self._past(self.open), self.open], dim=-2) if self.coded_tokens else self.open

    def _past(self, like: torch.Tensor) -> torch.Tensor:
        if self.decoded is not None:
            return self.decoded
        assert self.coder is not None
        each = [
            self.coder.decode([text[i] for text in self.texts], i * self.block, like) for i in range(len(self.texts[0]))
        ]
        return torch.cat(each, dim=-2)

    def _code_full_blocks(self) -> None:
        if self.coder is None or self.open is None or self.open_tokens < self.block:
            return
        decoded = [] if self.decoded is None else [self.decoded]
        begin = 0
        while self.open_tokens - begin >= self.block:
            rows = self.open[..., begin : begin + self.block, :].detach()
            start = self.coded_tokens
            blocks = self.coder.encode(rows, start, self.states)
            if not self.packed:
                decoded.append(self.coder.decode(blocks, start, rows))
                blocks = [dataclasses.replace(block, codes=()) for block in blocks]
            self.texts = [(*text, block) for text, block in zip(self.texts, blocks)]
            begin += self.block
        if not self.packed:
            self.decoded = torch.cat(decoded, dim=-2)
        self.open = self.open[..., begin:, :].clone()  # frees the rows before it

    def select(self, texts: torch.Tensor) -> None:
        """Keeps these texts, in this order, as often as they are named."""
        if self.open is None:
            return
        indices = texts.to(self.open.device)
        self.texts = [self.texts[int(i)] for i in texts]
        self.states = [copy.deepcopy(self.states[int(i)]) for i in texts]
        self.open = self.open.index_select(0, indices)
        if self.decoded is not None:
            self.decoded = self.decoded.index_select(0, indices)

    def repeat(self, times: int) -> None:
        """Repeats each text."""
        if self.open is not None:
            self.select(torch.arange(self.open.shape[0]).repeat_interleave(times))

    def crop(self, tokens: int) -> None:
        """Keeps the first `tokens` tokens; a negative number removes so many.

        Raises
        ------
        InputError
            They would end inside a coded block.
        """
        kept = self.tokens + tokens if tokens < 0 else tokens
        if kept >= self.tokens:
            return
        if kept < self.coded_tokens:
            raise InputError(
                f"a cache of {self.tokens} tokens cannot be cut to {kept} (the first {self.coded_tokens} are coded): "
                "generate without an assistant or prompt lookup, or begin with a new cache"
            )
        assert self.open is not None
        self.open = self.open[..., : kept - self.coded_tokens, :]

    def blocks(self) -> Sequence[Block]:
        """All blocks, one that beams share counted once for each."""
        return [block for text in self.texts for block in text]
