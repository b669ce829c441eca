"""Codes of matrices: bits, bytes and errors."""

from __future__ import annotations

import ctypes
import functools
import struct
import threading
import weakref
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _arrays, _library
from ._library import check, cost_of, library, matrix_of, run_long, text_of, words
from .errors import InputError, SpikedError, UsageError
from .streams import Stream

__all__ = ["Codec", "Encoded", "Quantized", "Roundtrip", "quantize", "roundtrip"]


@functools.lru_cache(maxsize=None)
def _ledger_names() -> Tuple[str, ...]:
    return tuple(text_of(library().spiked_ledger_item(i)) for i in range(_library.LEDGER_ITEMS))


def _ledger(items: Sequence[float]) -> Dict[str, float]:
    return dict(zip(_ledger_names(), items))


_CODE = struct.Struct(f"{_library.LEDGER_ITEMS + 3}d2q")  # struct spiked_code
_CodeRoom = ctypes.c_char * _CODE.size


def _ledger_text(ledger: Dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in ledger.items() if value > 0)


@dataclass(frozen=True, eq=False)
class Encoded:
    """A block that was encoded.

    Attributes
    ----------
    bytes : bytes
        The code alone: only an equal codec decodes it.
    rows : int
        Rows of the block.
    ledger : dict of str to float
        What the bits are spent on, in bits per entry; an item that is 0 is there too.
    bits_per_entry : float
        Their sum.
    paper_bits : float
        By the paper's formula, which leaves out norms and singular values.
    rank : int
        Of the low-rank part; 0 where the method has none.
    codec : tuple
        Method, dim, bits and options of the codec that made it; empty where none did.

    Examples
    --------
    >>> import numpy as np, spiked
    >>> code = spiked.Codec("tq-mse", dim=32, bits=2).encode(np.eye(32))
    >>> code.rows, len(code.bytes), code.bits_per_entry, code.ledger["norms"]
    (32, 320, 2.5, 0.5)
    """

    bytes: bytes
    rows: int
    ledger: Dict[str, float]
    bits_per_entry: float
    paper_bits: float
    rank: int
    codec: Tuple[Any, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<spiked.Encoded {self.rows} rows, {len(self.bytes)} bytes, {self.bits_per_entry:.4g} bits per entry "
            f"({_ledger_text(self.ledger)}), rank {self.rank}>"
        )


@dataclass(frozen=True, eq=False)
class Quantized:
    """A matrix that was encoded and decoded.

    Attributes
    ----------
    decoded : ndarray of float64 or torch.Tensor, (rows, cols)
        What is decoded; a tensor has the dtype and the device of the data.
    bits_per_entry, paper_bits, ledger, rank
        As in `Encoded`.
    relative_l2 : float
        Frobenius norm of the error over that of the data.
    bytes : int
        Length of the code.
    method : str
        As given.
    bits : float
        As given.

    Examples
    --------
    >>> import numpy as np, spiked
    >>> found = spiked.quantize(np.eye(32), "tq-mse", 2)
    >>> found.decoded.shape, found.bytes, found.bits_per_entry
    ((32, 32), 320, 2.5)
    """

    decoded: Any
    bits_per_entry: float
    ledger: Dict[str, float]
    relative_l2: float
    paper_bits: float
    bytes: int
    rank: int
    method: str
    bits: float

    def __repr__(self) -> str:
        shape = tuple(self.decoded.shape)
        return (
            f"<spiked.Quantized {shape[0]} x {shape[1]} by {self.method} at {self.bits:g} bits: relative L2 error "
            f"{100 * self.relative_l2:.4g} %, {self.bytes} bytes, {self.bits_per_entry:.4g} bits per entry "
            f"({_ledger_text(self.ledger)}), rank {self.rank}>"
        )


def _column(name: str) -> "functools.cached_property[np.ndarray]":
    """A field of every code of a `Roundtrip`, copied when it is first asked for."""

    def copied(found: Roundtrip) -> np.ndarray:
        field: np.ndarray = found._codes[name].copy()
        return field

    return functools.cached_property(copied)


@dataclass(frozen=True, eq=False)
class Roundtrip:
    """Blocks that were encoded and decoded. Arrays begin with an axis of codecs where a list of codecs was given.

    Attributes
    ----------
    decoded : ndarray or torch.Tensor, (blocks, rows, cols)
        In the dtype of the blocks: float32 or float64, or the dtype of the tensor.
    bits_per_entry, paper_bits, relative_l2 : ndarray, (blocks,)
        As in `Quantized`.
    bytes, rank : ndarray of int, (blocks,)
        Length of each code, and the rank of its low-rank part.
    ledger : dict of str to ndarray, (blocks,)
        What the bits are spent on, in bits per entry.

    Examples
    --------
    >>> import numpy as np, spiked
    >>> blocks = np.random.default_rng(0).standard_normal((5, 64, 32))
    >>> found = spiked.roundtrip(spiked.Codec("tq-mse", 32, 2), blocks)
    >>> found.decoded.shape, found.bytes.tolist(), found.ledger["norms"].tolist()
    ((5, 64, 32), [640, 640, 640, 640, 640], [0.5, 0.5, 0.5, 0.5, 0.5])
    """

    decoded: Any
    _codes: np.ndarray  # of _library.CODE

    bits_per_entry = _column("bits_per_entry")
    paper_bits = _column("paper_bits")
    relative_l2 = _column("relative_l2")
    bytes = _column("bytes")
    rank = _column("rank")

    @functools.cached_property
    def ledger(self) -> Dict[str, np.ndarray]:
        return dict(zip(_ledger_names(), np.ascontiguousarray(np.moveaxis(self._codes["ledger"], -1, 0))))

    def __repr__(self) -> str:
        def line(index: Tuple[Any, ...]) -> str:
            return (
                f"relative L2 error {100 * self.relative_l2[index].mean():.4g} %, "
                f"{self.bits_per_entry[index].mean():.4g} bits per entry, rank {self.rank[index].mean():.4g}"
            )

        blocks = self.rank.shape[-1]
        if self.rank.ndim == 1:
            return f"<spiked.Roundtrip of {blocks} blocks, means: {line(())}>"
        lines = "\n".join(f"  {i}: {line((i,))}" for i in range(len(self.rank)))
        return f"<spiked.Roundtrip of {blocks} blocks by {len(self.rank)} codecs, means>\n{lines}"


class _Room(threading.local):
    """Memory of a thread for codes. It is kept for the next call when it is less than a mebibyte: an allocator that gives
    it back to the system each time takes longer than to encode a small block."""

    kept: Optional[np.ndarray] = None

    def take(self, capacity: int) -> np.ndarray:
        """Memory of at least so many bytes, which no other call uses, of a handler of signals for example."""
        room, self.kept = self.kept, None
        return _arrays.room((capacity,), "X", np.uint8) if room is None or room.size < capacity else room

    def keep(self, room: np.ndarray) -> None:
        if room.size < 1 << 20:
            self.kept = room


_room = _Room()


class Codec:
    """A method at one width for rows of one length; rotations, codebooks and projections are made once.

    A codec never changes; several threads may use it. It can be pickled.

    Parameters
    ----------
    method : str
        A quantizer, or an estimator and a quantizer: ``"tq-mse"``, ``"eoptshrink+tq-mse"``, ``"svd:1+kivi"``. Or
        ``"causal-klt"`` or ``"causal-klt-joint"``, whose rows are the tokens of a whole sequence in their order, keys
        without their rotary embedding: each is coded from those before it.
    dim : int
        Entries of a row.
    bits : float
        Bits of the index of an entry. Norms and scales are not in it, and are in `Encoded.bits_per_entry`. Of a causal
        method the bits that are stored, everything included; the result is within 1 % of them, but for rows that are
        constant.
    axis : {"value", "key"}, optional
        Direction of a group: along channels, or along tokens. A method that begins with ``mean+`` needs it: only keys
        have their means stored.
    seed : int or str, optional
        Seed of everything random, a number or hexadecimal digits; 0x5eed when not given.
    index : int
        Which rotation of the seed, one for each layer, head and side of a cache.
    **options
        The options of ``spiked quantize``: ``rotation``, ``codebook``, ``norm``, ``group``, ``factor_bits``,
        ``factor_codebook``, ``open_loop``, ``residual``. Of a causal method ``keys`` and ``values``, the numbers of
        heads whose columns stand beside each other in a row, keys first; each is then scaled to equal spread.

    Raises
    ------
    UsageError
        A name is wrong, a width is impossible, or an option has no effect on the method.

    Notes
    -----
    Source: ``list_methods("quantizers")`` has the sources of all quantizers, and ``list_methods()`` of the estimators.

    Examples
    --------
    >>> import numpy as np, spiked
    >>> X = np.random.default_rng(0).standard_normal((64, 32))
    >>> codec = spiked.Codec("tq-mse", dim=32, bits=3)
    >>> code = codec.encode(X)
    >>> len(code.bytes), code.bits_per_entry        # 3 bits an entry, and a norm of 16 bits a row
    (896, 3.5)
    >>> error = codec.decode(code) - X
    >>> bool(np.linalg.norm(error) / np.linalg.norm(X) < 0.25)
    True
    """

    def __init__(
        self,
        method: str,
        dim: int,
        bits: float,
        *,
        axis: Optional[str] = None,
        seed: Union[None, int, str] = None,
        index: int = 0,
        **options: Any,
    ) -> None:
        self.method, self.dim, self.bits = method, _arrays.whole(dim, "dim"), _arrays.number(bits, "bits")
        turn = _arrays.whole(index, "index")
        given = {"axis": axis, "seed": seed, **({"index": turn} if turn else {}), **options}
        self.options = {key: value for key, value in given.items() if value is not None}
        self._handle = ctypes.c_void_p()
        texts = [_option(key, value) for key, value in self.options.items()]
        name, text = words(method, "method"), words(" ".join(texts), "options") if texts else None
        drawn = [] if "seed" in self.options else ["seed=0x5eed"]
        self._identity = (method, self.dim, self.bits, *sorted(texts + drawn))
        self._cost = cost_of(method)

        def call() -> None:
            check(library().spiked_codec_create(name, self.dim, self.bits, text, self._handle))
            self._free = weakref.finalize(self, library().spiked_codec_free, self._handle)

        run_long(self._cost * float(max(self.dim, 0)) ** 3, call, keep=(self,))

    def __repr__(self) -> str:
        options = "".join(f", {key}={value!r}" for key, value in self.options.items())
        return f"spiked.Codec({self.method!r}, dim={self.dim}, bits={self.bits:g}{options})"

    def __reduce__(self) -> Tuple[Any, ...]:
        return _codec_again, (self.method, self.dim, self.bits, self.options)

    def _own(self, array: np.ndarray, name: str) -> np.ndarray:
        if array.shape[-1] != self.dim:
            raise InputError(
                f"{name} has rows of {array.shape[-1]} entries (the codec is for {self.dim}): "
                f"make a codec with dim={array.shape[-1]}"
            )
        return array

    def encode(self, X: Any) -> Encoded:
        """Encodes a block.

        Parameters
        ----------
        X : array_like or torch.Tensor, (rows, dim)
            Any number of rows.

        Returns
        -------
        Encoded

        Raises
        ------
        InputError
            NaN or infinities, or rows of another length.

        Examples
        --------
        >>> import numpy as np, spiked
        >>> codec = spiked.Codec("svd:1+tq-mse", dim=32, bits=2)
        >>> codec.encode(np.random.default_rng(0).standard_normal((64, 32))).rank
        1
        """
        array = self._own(_arrays.matrix(X), "X")
        described = matrix_of(array)
        found = _CodeRoom()
        length = ctypes.c_size_t()

        def call() -> bytes:
            capacity = 8 * array.size + 65536
            while True:
                room = _room.take(capacity)
                status = library().spiked_codec_encode(
                    self._handle, described, _library.address_of(room), capacity, length, found
                )
                if status != _library.TOO_SMALL or length.value <= capacity:
                    check(status)
                    code = room[: length.value].tobytes()
                    _room.keep(room)
                    return code
                capacity = length.value

        code = run_long(self._cost * float(array.size) * self.dim, call, keep=(self, array))
        *ledger, bits_per_entry, paper_bits, _, _, rank = _CODE.unpack(found)
        return Encoded(code, array.shape[0], _ledger(ledger), bits_per_entry, paper_bits, rank, self._identity)

    def decode(self, code: Union[Encoded, bytes], rows: Optional[int] = None) -> np.ndarray:
        """Decodes a block.

        Parameters
        ----------
        code : Encoded or bytes
            What an equal codec encoded.
        rows : int
            Rows of the block; needed with bytes, and those of the code otherwise.

        Returns
        -------
        ndarray of float64, (rows, dim)

        Raises
        ------
        InputError
            Bytes that are no code of so many rows, or the code of another codec. Bytes may come from anyone.

        Examples
        --------
        >>> import numpy as np, spiked
        >>> codec = spiked.Codec("tq-mse", dim=32, bits=4)
        >>> code = codec.encode(np.eye(32))
        >>> bool(np.linalg.norm(codec.decode(code) - np.eye(32)) < 0.15 * np.linalg.norm(np.eye(32)))
        True
        >>> bool(np.array_equal(codec.decode(code.bytes, rows=32), codec.decode(code)))
        True
        """
        if isinstance(code, Encoded):
            given = code.bytes
            if code.codec and code.codec != self._identity:
                raise InputError(
                    f"the code is of another codec ({_codec_text(code.codec)}; this one is "
                    f"{_codec_text(self._identity)}): decode it with its own, or pass code.bytes and code.rows"
                )
            if rows is not None and _arrays.whole(rows, "rows") != code.rows:
                raise InputError(f"rows is {rows} (the code has {code.rows}): leave it out")
            rows = code.rows
        elif isinstance(code, (bytes, bytearray, memoryview)):
            given = bytes(code)
        else:
            raise InputError(f"the code is of type {type(code).__name__}: pass an Encoded, or bytes and their rows")
        if rows is None:
            raise UsageError("decode needs the number of rows with bytes (they do not say it): pass rows")
        count = _arrays.whole(rows, "rows")
        if count < 1:
            raise InputError(f"rows is {rows}: pass at least 1")
        decoded = _arrays.room((count, self.dim), "rows")
        described = matrix_of(decoded)

        def call() -> None:
            check(library().spiked_codec_decode(self._handle, given, len(given), described))

        run_long(self._cost * float(decoded.size) * self.dim, call, keep=(self, given, decoded))
        return decoded


    def stream(self, tokens: int = 0) -> Stream:
        """A sequence that a causal method codes while its tokens arrive.

        Parameters
        ----------
        tokens : int
            Tokens that will come, for which the stored bits are within 1 % of the codec's. 0: not known. The first block
            then takes up to half as much more, which the next ones repay: from the fourth on the bits are within 0.75 %.

        Returns
        -------
        Stream

        Raises
        ------
        UsageError
            The method is not causal.

        Examples
        --------
        >>> import spiked
        >>> spiked.Codec("tq-mse", dim=32, bits=2).stream()
        Traceback (most recent call last):
        ...
        spiked.errors.UsageError: codec codes blocks that do not depend on each other (a stream is of causal-klt or \
causal-klt-joint): use Codec.encode
        """
        handle = ctypes.c_void_p()
        check(library().spiked_stream_create(self._handle, _arrays.whole(tokens, "tokens"), handle))
        return Stream(handle, self.dim, self._cost)


def _codec_text(identity: Tuple[Any, ...]) -> str:
    method, dim, bits, *options = identity
    return " ".join([f"{method} dim={dim} bits={bits:g}", *options])


def _option(key: str, value: Any) -> str:
    name = key.replace("_", "-")
    if isinstance(value, bool):
        value = "true" if value else "false"
    elif key == "seed" and isinstance(value, (int, np.integer)):
        value = hex(int(value))
    text = str(value)
    if not text or any(sign in text for sign in " ,"):
        raise UsageError(f"{key} is {value!r} (blanks and commas separate options): pass one value")
    return f"{name}={text}"


def _codec_again(method: str, dim: int, bits: float, options: Dict[str, Any]) -> Codec:
    return Codec(method, dim, bits, **options)


def _run_blocks(codecs: Sequence[Codec], blocks: np.ndarray, decoded: np.ndarray, threads: int) -> np.ndarray:
    """Encodes and decodes blocks (number, rows, cols) into `decoded` (codecs times number, rows, cols); the codes in the
    same order. Python that runs beside a long call takes three times what it takes in a loop, so this does little."""
    _, rows, cols = blocks.shape
    codes = np.zeros(len(decoded), dtype=_library.CODE)
    given, output = _library.blocks_of(blocks), _library.blocks_of(decoded)
    address = _library.address_of(codes)
    workers = _arrays.whole(threads, "threads")
    work = float(blocks.size) * min(rows, cols) * sum([codec._cost for codec in codecs])
    count = len(codecs)
    handles = ctypes.byref(codecs[0]._handle) if count == 1 else (ctypes.c_void_p * count)(*[c._handle for c in codecs])

    def call() -> None:
        check(library().spiked_roundtrip(handles, count, given, workers, None, None, output, address))

    run_long(work, call, keep=(codecs, blocks, decoded, codes))
    return codes


def quantize(X: Any, method: str = "tq-mse", bits: float = 4, **options: Any) -> Quantized:
    """Compresses a matrix, counts its bits and measures its error.

    Parameters
    ----------
    X : array_like or torch.Tensor, (rows, cols)
        A matrix; rows are quantized.
    method : str
        As in `Codec`.
    bits : float
        Bits of the index of an entry.
    **options
        As in `Codec`.

    Returns
    -------
    Quantized
        Numbers equal those of ``spiked quantize``, bit for bit.

    Raises
    ------
    UsageError
        As `Codec`.
    InputError
        X is empty, has NaN, infinities or complex numbers, or is no matrix.

    Notes
    -----
    Source: ``list_methods("quantizers")`` has the sources of all quantizers, and ``list_methods()`` of the estimators.

    Examples
    --------
    >>> import numpy as np, spiked
    >>> X = np.random.default_rng(0).standard_normal((64, 32))
    >>> found = spiked.quantize(X, "tq-mse", 2)
    >>> found.bits_per_entry, found.ledger["norms"]
    (2.5, 0.5)
    >>> bool(0.2 < found.relative_l2 < 0.5)
    True
    """
    array = _arrays.matrix(X)
    codec = Codec(method, array.shape[1], bits, **options)
    decoded = _arrays.room((1, *array.shape), "X")
    try:
        found = _run_blocks([codec], array[np.newaxis], decoded, 1)[0]
    except SpikedError as problem:
        message = str(problem).replace("block 0: ", "", 1).replace("its entries: ", "X: ", 1)
        raise type(problem)(message) from None
    return Quantized(
        decoded=_arrays.like(decoded[0], X),
        bits_per_entry=float(found["bits_per_entry"]),
        ledger=_ledger(found["ledger"].tolist()),
        relative_l2=float(found["relative_l2"]),
        paper_bits=float(found["paper_bits"]),
        bytes=int(found["bytes"]),
        rank=int(found["rank"]),
        method=method,
        bits=codec.bits,
    )


def roundtrip(codecs: Union[Codec, Sequence[Codec]], blocks: Any, threads: int = 0) -> Roundtrip:
    """Encodes and decodes many blocks, by one codec or several, on all processors.

    Parameters
    ----------
    codecs : Codec or sequence of Codec
        Each with dim = cols. A block is decomposed once for all of them.
    blocks : array_like or torch.Tensor, (blocks, rows, cols)
        Matrices of one shape.
    threads : int
        0: one for each processor. Results do not depend on it.

    Returns
    -------
    Roundtrip
        Its arrays begin with an axis of codecs where `codecs` is a sequence.

    Raises
    ------
    UsageError
        There is no codec.
    InputError
        NaN or infinities, or rows of another length; the message names the first such block, counted from 0.

    Notes
    -----
    Source: ``list_methods("quantizers")`` has the sources of all quantizers, and ``list_methods()`` of the estimators.

    Examples
    --------
    >>> import numpy as np, spiked
    >>> blocks = np.random.default_rng(0).standard_normal((5, 64, 32))
    >>> codecs = [spiked.Codec("tq-mse", 32, bits) for bits in (2, 3)]
    >>> found = spiked.roundtrip(codecs, blocks)
    >>> found.decoded.shape, found.bits_per_entry[:, 0].tolist()
    ((2, 5, 64, 32), [2.5, 3.5])
    >>> spiked.roundtrip(codecs[0], blocks).relative_l2.shape
    (5,)
    """
    array = _arrays.blocks(blocks)
    alone = isinstance(codecs, Codec)
    try:
        chosen: List[Codec] = [codecs] if isinstance(codecs, Codec) else list(codecs)
    except TypeError:
        raise UsageError(f"codecs is {codecs!r} (no codec): pass spiked.Codec(method, dim, bits)") from None
    for codec in chosen:
        if not isinstance(codec, Codec):
            raise UsageError(f"codecs has {codec!r} (no codec): pass spiked.Codec(method, dim, bits)")
    if not chosen:
        raise UsageError("codecs is empty: pass at least one codec")
    for codec in chosen:
        codec._own(array, "blocks")
    count, rows, cols = array.shape
    decoded = _arrays.room((len(chosen) * count, rows, cols), "blocks", array.dtype)
    codes = _run_blocks(chosen, array, decoded, threads)
    if not alone:
        decoded, codes = decoded.reshape(len(chosen), count, rows, cols), codes.reshape(len(chosen), count)
    return Roundtrip(_arrays.like(decoded, blocks), codes)
