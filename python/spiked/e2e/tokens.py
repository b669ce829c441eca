"""Tokenizer, chat template and end tokens of a model's folder, by the package tokenizers alone."""

from __future__ import annotations

import hashlib
import json
import pathlib
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

from ..errors import InputError
from .chat import TEMPLATES, rendered, source_of, values_of

__all__ = ["Tokens"]

END_WORDS = ["<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "<|end|>", "</s>"]


def tokenizer_of(path: pathlib.Path) -> Any:
    """Reads tokenizer.json, also as versions of the package tokenizers from 0.20 on write it where an older one is installed."""
    import tokenizers

    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the package has no narrower class
        reason = " ".join(str(error).split())
    try:
        return tokenizers.Tokenizer.from_str(with_joined_merges(path.read_text(encoding="utf-8")))
    except Exception:
        raise InputError(
            f"{path}: tokenizers {tokenizers.__version__} cannot read it ({reason}): copy it again, or install tokenizers 0.20 "
            "or later"
        ) from None


def with_joined_merges(text: str) -> str:
    """The text of a tokenizer.json with merges "a b" in place of ["a", "b"], as versions before 0.20 read them.

    Raises
    ------
    ValueError
        A merge has a text with a space, which that form cannot have, or there is no list of merges.
    """
    found = json.loads(text)
    merges = found.get("model", {}).get("merges")
    if not merges or any(not isinstance(pair, list) or " " in "".join(pair) for pair in merges):
        raise ValueError("its merges cannot be written with a space between the two texts")
    found["model"]["merges"] = [" ".join(pair) for pair in merges]
    return json.dumps(found)


class Tokens:
    """Texts to token ids and back, as a model's folder says.

    Parameters
    ----------
    folder : path_like
        Has ``tokenizer.json``; a chat template in ``tokenizer_config.json`` or ``chat_template.jinja`` needs jinja2.
    template : str, optional
        A name of `TEMPLATES`; the folder's own chat template when not given, else chatml where its tokens exist.
    system : str, optional
        The system message; none when not given (an empty one in a form of `TEMPLATES`).

    Raises
    ------
    InputError
        There is no tokenizer, no form of messages, or no token that ends an answer.

    Examples
    --------
    >>> import pathlib, tokenizers
    >>> words = tokenizers.models.WordLevel({"the": 0, "a": 1, "cat": 2, "?": 3}, unk_token="?")
    >>> tokenizer = tokenizers.Tokenizer(words)
    >>> tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    >>> _ = tokenizer.add_special_tokens(["</s>"])
    >>> tokenizer.save("tokenizer.json")
    >>> tokens = Tokens(".", template="none", system=None)
    >>> tokens.ids("the cat"), tokens.text([1, 2]), tokens.end_tokens
    ([0, 2], 'a cat', [4])
    """

    def __init__(self, folder: Union[str, pathlib.Path], template: Optional[str], system: Optional[str]) -> None:
        self.folder = pathlib.Path(folder)
        path = self.folder / "tokenizer.json"
        if not path.exists():
            raise InputError(
                f"{path}: no such file (the tokenizer makes token ids): copy it from where the model is from"
            )
        self.sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        self.tokenizer = tokenizer_of(path)
        self.system = system
        self.form, source, self.template = self.chat(template)
        self.template_sha256 = hashlib.sha256(source.encode()).hexdigest()
        alone, whole = self.ids("a"), self.tokenizer.encode("a", add_special_tokens=True).ids
        self.first: List[int] = whole[: whole.index(alone[0])] if alone[0] in whole else []
        special = {
            token.content: id for id, token in self.tokenizer.get_added_tokens_decoder().items() if token.special
        }
        self.end_tokens = sorted(
            {special[word] for word in END_WORDS if word in special}
            | set(values_of(self.folder, "generation_config.json", "eos_token_id"))
        )
        if not self.end_tokens:
            raise InputError(
                f"{path}: none of {', '.join(END_WORDS)} is a special token (an answer would not end): "
                "write eos_token_id into generation_config.json"
            )

    def chat(self, asked: Optional[str]) -> Tuple[str, str, Callable[[str], str]]:
        """The name of the form of messages, its text, and a function from the user's text to the whole prompt."""
        if asked:
            form = TEMPLATES[asked].replace("{system}", self.system or "")
            return asked, TEMPLATES[asked], lambda user: form.replace("{user}", user)
        source = source_of(self.folder)
        if source is not None:
            return "of the folder", source, rendered(source, self.folder, self.system)
        if self.tokenizer.token_to_id("<|im_start|>") is not None:
            return self.chat("chatml")
        raise InputError(
            f"{self.folder}: no chat template (a question needs the form of the model's messages): give "
            f"--template {', '.join(TEMPLATES)}"
        )

    def ids(self, text: str) -> List[int]:
        """Token ids of a text, without those that the tokenizer puts around a prompt."""
        found: List[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return found

    def prompt_ids(self, ids: List[int]) -> List[int]:
        """Token ids behind those with which the tokenizer begins a text, which a chat template may have written already."""
        return ids if ids[: len(self.first)] == self.first else self.first + ids

    def text(self, ids: Sequence[int]) -> str:
        """The text of token ids, without special tokens."""
        found: str = self.tokenizer.decode(list(ids), skip_special_tokens=True)
        return found

    def vocabulary(self) -> List[str]:
        """The text of every id behind other text; alone, some tokenizers drop a leading space."""
        anchor = self.ids("a")
        before = self.tokenizer.decode(anchor, skip_special_tokens=False)
        size = 1 + max(self.tokenizer.get_vocab(with_added_tokens=True).values())
        texts = [self.tokenizer.decode(anchor + [id], skip_special_tokens=False) for id in range(size)]
        return [text[len(before) :] if text.startswith(before) else "" for text in texts]
