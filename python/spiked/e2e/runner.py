"""A model with a compressed cache that answers prompts greedily."""

from __future__ import annotations

import contextlib
import json
import math
import pathlib
import re
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..errors import InputError, LibraryNotFound, OutOfMemory, SpikedError, UsageError

__all__ = ["Answer", "Architecture", "Method", "Runner", "architecture_of", "methods_of"]

EXACT = "exact"
UNROPE = "unrope+"
# Which rotations of codecs are drawn, for every prompt the same.
ROTATIONS: Dict[str, Any] = {"seed": "0x5eed", "sequence": 0}
NEEDED = ("num_hidden_layers", "num_attention_heads", "hidden_size", "vocab_size", "max_position_embeddings")


class Method(NamedTuple):
    """A way to hold the cache: `EXACT`, which goes through the same cache as the others, or a codec at a number of bits.

    Attributes
    ----------
    name : str
        ``exact``, or a method of `spiked.Codec`, before which ``unrope+`` stands for keys without their rotary embedding.
    bits : float or None
        Bits of an index; None for ``exact``.

    Examples
    --------
    >>> method = Method("unrope+tq-mse", 2.0)
    >>> method.codec, method.cache_options(128)["value"]
    ('tq-mse', 'tq-mse')
    """

    name: str
    bits: Optional[float]

    def cache_options(self, block: int) -> Dict[str, Any]:
        """The arguments of `spiked.hf.SpikedCache`."""
        if self.name == EXACT:
            return {"key": "identity", "value": "identity", "block": block}
        return {"key": self.name, "value": self.codec, "bits": self.bits, "block": block, **ROTATIONS}

    @property
    def codec(self) -> str:
        """The name without `unrope+`, which is for keys alone."""
        return self.name[len(UNROPE) :] if self.name.startswith(UNROPE) else self.name


class Architecture(NamedTuple):
    """What a model's config.json says.

    Attributes
    ----------
    layers, heads, key_value_heads : int
        Their numbers.
    head_dim, hidden, intermediate : int
        Channels of a head, of the model, and of the feed-forward layers: four times `hidden` where the file does not say.
    vocabulary, positions : int
        Token ids, and tokens of the longest text.
    window : int or None
        The sliding window in tokens, of those layers that have one.

    Examples
    --------
    >>> small = Architecture(2, 4, 2, 16, 64, 256, 1000, 512)
    >>> small.blocks(tokens=300, generated=20, block=128)       # two of keys and two of values, for each layer and head
    16
    >>> f"{small.operations(tokens=300, generated=20):.3g}"
    '1.08e+08'
    """

    layers: int
    heads: int
    key_value_heads: int
    head_dim: int
    hidden: int
    intermediate: int
    vocabulary: int
    positions: int
    window: Optional[int] = None

    def operations(self, tokens: int, generated: int) -> float:
        """Floating-point operations for a prompt and its answer."""
        width = self.head_dim * (2 * self.heads + 2 * self.key_value_heads)
        weights = self.layers * self.hidden * (width + 3 * self.intermediate)
        total = tokens + generated
        attention = 4.0 * self.layers * self.heads * self.head_dim * total * (total + 1) / 2
        return 2.0 * weights * total + attention + 2.0 * self.hidden * self.vocabulary * (generated + 1)

    def blocks(self, tokens: int, generated: int, block: int) -> int:
        """Matrices that are coded for a prompt and its answer."""
        return 2 * self.layers * self.key_value_heads * ((tokens + generated) // block)


class Answer(NamedTuple):
    """What a model generated.

    Attributes
    ----------
    ids : list of int
        Token ids, with the one that ended them.
    seconds : float
        The time that they took.
    coded_bits, stored_bits : float or None
        Bits per entry of coded entries, and of all with the exact rows; None where nothing was coded.

    Examples
    --------
    >>> Answer([5, 7], 0.1).coded_bits is None
    True
    """

    ids: List[int]
    seconds: float
    coded_bits: Optional[float] = None
    stored_bits: Optional[float] = None


def architecture_of(folder: str) -> Architecture:
    """Reads config.json of a model's folder.

    Parameters
    ----------
    folder : str
        A model of Hugging Face.

    Returns
    -------
    Architecture

    Raises
    ------
    InputError
        There is no such file, or a number is missing in it that transformers does not know either.

    Examples
    --------
    >>> import json, pathlib
    >>> config = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64, "vocab_size": 1000}
    >>> _ = pathlib.Path("config.json").write_text(json.dumps({**config, "max_position_embeddings": 512}))
    >>> architecture_of(".").head_dim
    16
    """
    path = pathlib.Path(folder) / "config.json"
    if not path.is_file():
        raise InputError(f"{path}: no such file: --model names a folder with a model of Hugging Face")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        nested = config.get("text_config") or {}
        config = nested or config
        if nested or any(key not in config for key in NEEDED):
            config = whole_config(folder, config)
        heads, hidden = int(config["num_attention_heads"]), int(config["hidden_size"])
        window = config.get("sliding_window") if config.get("use_sliding_window", True) else None
        return Architecture(
            layers=int(config["num_hidden_layers"]),
            heads=heads,
            key_value_heads=int(config.get("num_key_value_heads") or heads),
            head_dim=int(config.get("head_dim") or hidden // heads),
            hidden=hidden,
            intermediate=int(config.get("intermediate_size") or 4 * hidden),
            vocabulary=int(config["vocab_size"]),
            positions=int(config["max_position_embeddings"]),
            window=None if window is None else int(window),
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: cannot be used ({error}): copy it from where the model is from") from None
    except KeyError as error:
        raise InputError(f"{path}: it has no {error.args[0]}: copy it from where the model is from") from None


def whole_config(folder: str, config: Dict[str, Any]) -> Dict[str, Any]:
    """The values of a configuration that is not complete or has other names, with those of transformers; without that
    package, or where it does not know the model, as it is."""
    try:
        import transformers

        from ..hf._plan import text_config

        found = text_config(transformers.AutoConfig.from_pretrained(folder))
    except Exception:  # many classes of errors; the caller names the key that is missing
        return config
    names = (*NEEDED, "num_key_value_heads", "head_dim", "intermediate_size", "sliding_window", "use_sliding_window")
    return {name: getattr(found, name) for name in names if hasattr(found, name)}


def methods_of(names: str, bits: float, head_dim: int) -> List[Method]:
    """The methods of a list with commas, each checked by making its codec.

    Parameters
    ----------
    names : str
        ``exact`` and methods, as in `Method`.
    bits : float
        Bits of an index, for all but ``exact``.
    head_dim : int
        Channels of a head.

    Returns
    -------
    list of Method

    Raises
    ------
    UsageError
        A name is unknown, impossible at this width, or there twice.

    Examples
    --------
    >>> methods_of("exact,tq-mse", 2.0, 64)
    [Method(name='exact', bits=None), Method(name='tq-mse', bits=2.0)]
    """
    from ..quantization import Codec

    found: List[Method] = []
    for name in names.split(","):
        method = Method(EXACT, None) if name == EXACT else Method(name, bits)
        if name != EXACT:
            try:
                Codec(method.codec, dim=head_dim, bits=bits)
            except UsageError as error:
                raise UsageError(f"--method {name}: {error}") from None
        if method in found:
            raise UsageError(f"--method {name} is there twice: name it once")
        found.append(method)
    return found


def on_device(model: Any, device: str) -> Any:
    """The model on a device of PyTorch, for answers."""
    try:
        return model.to(device).eval()
    except (RuntimeError, AssertionError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"--device {device} cannot hold the model ({reason}): give another one") from None


class Runner:
    """A model of Hugging Face on its device.

    Parameters
    ----------
    folder : str
        What ``AutoModelForCausalLM.from_pretrained`` reads.
    dtype : str
        ``auto`` (that of the file), ``float32``, ``bfloat16`` or ``float16``.
    device : str
        A device of PyTorch.
    block : int
        Rows of a coded block and tokens of a chunk of the prompt, which reads what the chunks before it left in the cache.
    no_window : bool
        Load the model without its sliding window, which changes nothing for prompts that are shorter.

    Raises
    ------
    LibraryNotFound
        PyTorch or transformers is not installed.
    InputError
        transformers cannot load the folder.
    UsageError
        The device cannot hold the model, or its window cannot be left out.

    Examples
    --------
    >>> import torch, transformers
    >>> config = transformers.MistralConfig(vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=2,
    ...     num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=512, sliding_window=None)
    >>> transformers.MistralForCausalLM(config).save_pretrained("random-model")
    >>> runner = Runner("random-model", dtype="float32")
    >>> answer = runner.answer(Method("tq-mse", 2.0), [i % 64 for i in range(200)], most=4, ends=[63], least=4)
    >>> len(answer.ids), round(answer.coded_bits, 3)            # 2 bits, and a norm of 16 bits for each 32 channels
    (4, 2.5)
    """

    def __init__(
        self, folder: str, dtype: str = "auto", device: str = "cpu", block: int = 128, no_window: bool = False
    ) -> None:
        try:
            import torch
            import transformers
        except ImportError as error:
            raise LibraryNotFound(f"{error} (they run the model): pip install torch transformers") from None
        self.block = block
        self.versions = {"torch": torch.__version__, "transformers": transformers.__version__}
        try:
            config = transformers.AutoConfig.from_pretrained(folder)
            if no_window:
                from ..hf import without_window

                config = without_window(config)
            # The argument has another name from transformers 4.56 on, as the entry of the configuration has.
            name = "dtype" if hasattr(config, "dtype") else "torch_dtype"
            given = {name: dtype if dtype == "auto" else getattr(torch, dtype)}
            self.model = transformers.AutoModelForCausalLM.from_pretrained(folder, config=config, **given)
        except UsageError as error:
            raise UsageError(f"--no-sliding-window: {error}") from None
        except Exception as error:  # what a folder lacks raises many classes of errors
            reason = " ".join(str(error).split())
            raise InputError(
                f"{folder}: transformers cannot load it ({reason}): give a folder with all its files"
            ) from None
        self.model = on_device(self.model, device)

    @contextlib.contextmanager
    def cache(self, method: Method) -> Iterator[Any]:
        """What generation in this block writes to and reads from.

        Parameters
        ----------
        method : Method
            How the cache is held.

        Yields
        ------
        spiked.hf.Compressed
            It has the cache of the last call of ``model.generate``.
        """
        from .. import hf

        with hf.compressed(self.model, chunk=self.block, **method.cache_options(self.block)) as found:
            yield found

    def answer(self, method: Method, ids: Sequence[int], most: int, ends: Sequence[int], least: int = 0) -> Answer:
        """Generates tokens behind a prompt, greedily.

        Parameters
        ----------
        method : Method
            How the cache is held.
        ids : sequence of int
            The prompt's token ids.
        most, least : int
            Numbers of tokens at most and at least.
        ends : sequence of int
            Ids that end the answer, at least one.

        Returns
        -------
        Answer

        Raises
        ------
        OutOfMemory
            The prompt takes more memory than there is.
        InputError
            The model fails on it.
        """
        import torch

        prompt = torch.tensor([list(ids)], device=self.model.device)
        begin = time.perf_counter()
        with one_line_errors(len(ids)), torch.no_grad(), self.cache(method) as cache:
            whole = self.model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=most,
                min_new_tokens=least or None,
                do_sample=False,
                num_beams=1,
                temperature=1.0,
                top_p=1.0,
                top_k=50,
                repetition_penalty=1.0,
                eos_token_id=list(ends),
                pad_token_id=ends[0],
            )
        seconds = time.perf_counter() - begin
        return Answer(whole[0, len(ids) :].tolist(), seconds, *bits_of(cache))


@contextlib.contextmanager
def one_line_errors(tokens: int) -> Iterator[None]:
    """Turns what a model raises into an error of one line; PyTorch says by several classes of errors that memory ran out."""
    try:
        yield
    except SpikedError:
        raise
    except Exception as error:
        if isinstance(error, MemoryError) or re.search("out of memory|allocate memory", str(error)):
            raise OutOfMemory(
                f"a prompt of {tokens} tokens takes more memory than there is: give --dtype bfloat16, or shorter prompts"
            ) from None
        reason = " ".join(str(error).split())
        raise InputError(
            f"the model fails on a prompt of {tokens} tokens ({type(error).__name__}: {reason}): see whether it generates "
            "without spiked in this version of transformers"
        ) from None


def bits_of(cache: Any) -> Tuple[Optional[float], Optional[float]]:
    """Bits per coded entry of keys and values together, and per entry with exact rows; None where nothing was coded."""
    report = cache.report()
    sides = list(report.bits_per_entry.values())
    numbers = (sum(sides) / len(sides), report.stored_bits_per_entry)
    coded, stored = (float(number) if math.isfinite(number) else None for number in numbers)
    return coded, stored
