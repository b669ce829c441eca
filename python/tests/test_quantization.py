"""Codes: golden vectors, and the command bit for bit."""

import json
import pathlib
import pickle
import subprocess
import tempfile
import unittest

import numpy as np
import spiked
from spiked._command import command_path
from spiked.errors import InputError, UsageError
from support import command, matrix


def options_of(method):
    """The options of `spiked quantize` that have an effect on a method; others are errors."""
    quantizer = method.split("+")[-1].split(":")[0]
    entry = next(entry for entry in spiked.list_methods("quantizers") if entry["name"] == quantizer)
    names = {option["key"].strip("-").replace("-", "_") for option in entry["options"] if option["where"] == "command"}
    return names | ({"factor_bits", "factor_codebook"} if "+" in method else set())


class Golden(unittest.TestCase):
    def test_every_vector_is_encoded_and_decoded_through_python(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "golden.json"
            subprocess.run(
                [command_path(), "kv", "golden", "--write", path, "-q"], check=True, stdout=subprocess.DEVNULL
            )
            vectors = json.loads(path.read_text())["vectors"]
        self.assertGreater(len(vectors), 700)
        for vector in vectors:
            with self.subTest(vector["name"]):
                given = vector["options"]
                options = {key: given[key] for key in options_of(vector["method"]) if key in given}
                codec = spiked.Codec(
                    vector["method"],
                    vector["columns"],
                    vector["bits"],
                    seed=given["seed"],
                    index=given["rotation_index"],
                    **options,
                )
                code = codec.encode(vector["input"])
                self.assertEqual(code.bytes.hex(), vector["encoded"])
                np.testing.assert_array_equal(
                    codec.decode(bytes.fromhex(vector["encoded"]), vector["rows"]), vector["decoded"]
                )


class EqualsTheCommand(unittest.TestCase):
    def test_bit_for_bit(self):
        X = matrix(48, 64)
        with tempfile.TemporaryDirectory() as folder:
            data, decoded = pathlib.Path(folder) / "data.npy", pathlib.Path(folder) / "decoded.npy"
            np.save(data, X)
            for method, bits, options in (
                ("tq-mse", 2, {}),
                ("eoptshrink+tq-mse", 3, {}),
                ("svd:1+tq-prod", 2, {"seed": 7}),
                ("kivi", 2, {"axis": "key", "group": 16, "residual": 16}),
                ("eoptshrink+eden", 2, {"rotation": "rht2", "factor_bits": 8}),
                ("svd:2+tq-mse", 2, {"open_loop": True}),
                ("ecsq", 1.5, {}),
            ):
                words = ["--method", method, "--bits", bits, "-o", decoded]
                for key, value in options.items():
                    words += ["--" + key.replace("_", "-")] + ([] if value is True else [value])
                document = command("quantize", data, *words)
                found = spiked.quantize(X, method, bits, **options)
                for key in ("bits_per_entry", "paper_bits", "bytes", "rank", "ledger", "relative_l2"):
                    self.assertEqual(getattr(found, key), document[key], (method, key))
                np.testing.assert_array_equal(found.decoded, np.load(decoded))


class Sequences(unittest.TestCase):
    """Causal methods: the rows are the tokens of a sequence."""

    def test_equals_kv_run_on_the_values_of_a_head(self):
        rng = np.random.default_rng(5)
        values = rng.standard_normal((300, 6)) @ rng.standard_normal((6, 32)) + 0.1 * rng.standard_normal((300, 32))
        values = values.astype(np.float32)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "values.npz"
            np.savez(path, **{"layers.0.value": values[np.newaxis]})
            for method, bits in (("causal-klt", 2.5), ("causal-klt:basis=none:freeze=128", 3)):
                words = ["--layout", "head,token,dim", "--side", "value", "--method", method, "--bits", bits]
                words += ["--residual", 0, "--attention", "none"]
                row = command("kv", "run", path, *words)["rows"][0]
                found = spiked.quantize(values, method, bits)
                self.assertAlmostEqual(found.bits_per_entry, row["bits_per_entry"], places=12)
                # The command averages over the blocks of 128 tokens, which two of the three parts are.
                parts = [slice(0, 128), slice(128, 256)]
                errors = [np.linalg.norm((found.decoded - values)[p]) / np.linalg.norm(values[p]) for p in parts]
                self.assertAlmostEqual(np.mean(errors), row["relative_l2"], places=6)
                self.assertLess(abs(found.bits_per_entry - bits), 0.02 * bits)

    def test_keys_and_values_share_a_basis_whatever_their_size(self):
        rng = np.random.default_rng(6)
        rows = rng.standard_normal((512, 4)) @ rng.standard_normal((4, 64)) + 0.1 * rng.standard_normal((512, 64))
        rows[:, 32:] *= 100  # values, much larger than keys
        joint = spiked.Codec("causal-klt-joint", 64, 2, keys=2, values=2)
        code = joint.encode(rows)
        decoded = pickle.loads(pickle.dumps(joint)).decode(code)
        for part in (slice(0, 32), slice(32, 64)):
            self.assertLess(np.linalg.norm(decoded[:, part] - rows[:, part]) / np.linalg.norm(rows[:, part]), 0.1)
        one = spiked.quantize(rows, "causal-klt", 2).decoded  # control: nothing scales the keys to the values
        self.assertGreater(np.linalg.norm(one[:, :32] - rows[:, :32]) / np.linalg.norm(rows[:, :32]), 0.3)
        self.assertTrue(np.isnan(code.paper_bits))
        self.assertLess(abs(8 * len(code.bytes) / rows.size - 2), 0.03)
        with self.assertRaisesRegex(UsageError, "keys=1 values=1"):
            spiked.Codec("causal-klt-joint", 64, 2)
        with self.assertRaisesRegex(UsageError, "group has no effect on causal-klt"):
            spiked.Codec("causal-klt", 64, 2, group=8)
        with self.assertRaises(InputError):
            joint.decode(code.bytes[:-3], rows=512)


class Streams(unittest.TestCase):
    """Rows that arrive in blocks of 128."""

    def setUp(self):
        self.rows = matrix(700, 32) * np.geomspace(3, 0.1, 32)
        self.codec = spiked.Codec("causal-klt", 32, 2.5)

    def append_all(self, stream, rows):
        found = [stream.append(rows[first : first + 128]) for first in range(0, len(rows), 128)]
        return np.concatenate([decoded for decoded, _ in found]), sum(bits for _, bits in found) / rows.size

    def test_bits_are_met_and_the_error_is_that_of_the_whole_sequence(self):
        decoded, bits = self.append_all(self.codec.stream(tokens=700), self.rows)
        self.assertLess(abs(bits - 2.5), 0.025)
        whole = spiked.quantize(self.rows, "causal-klt", 2.5)
        error = np.linalg.norm(decoded - self.rows) / np.linalg.norm(self.rows)
        self.assertLess(abs(error / whole.relative_l2 - 1), 0.05)
        coarse, fewer = self.append_all(spiked.Codec("causal-klt", 32, 1.5).stream(700), self.rows)
        self.assertLess(fewer, 1.55)
        self.assertGreater(np.linalg.norm(coarse - self.rows) / np.linalg.norm(self.rows), 1.5 * error)

    def test_no_later_row_changes_what_was_decoded(self):
        changed = self.rows.copy()
        changed[300:] *= -2
        decoded, other = (self.append_all(self.codec.stream(), rows)[0] for rows in (self.rows, changed))
        self.assertTrue(np.array_equal(decoded[:256], other[:256]))
        self.assertFalse(np.array_equal(decoded[256:384], other[256:384]))

    def test_copies_go_on_apart(self):
        stream = self.codec.stream()
        stream.append(self.rows[:128])
        other = stream.copy()
        found = [each.append(self.rows[first : first + 128]) for each, first in ((stream, 128), (other, 256))]
        self.assertFalse(np.array_equal(found[0][0], found[1][0]))
        again = self.codec.stream()
        again.append(self.rows[:128])
        self.assertTrue(np.array_equal(again.append(self.rows[256:384])[0], found[1][0]))

    def test_errors(self):
        stream = self.codec.stream()
        for rows, kind, message in (
            (self.rows[:129], UsageError, "129 rows .a block has 128"),
            (np.full((5, 32), np.nan), InputError, "NaN"),
            (self.rows[:5, :31], InputError, "rows of 31 entries"),
            (1e300 * self.rows[:5], InputError, "scale the data"),
        ):
            with self.assertRaisesRegex(kind, message):
                stream.append(rows)
        stream.append(self.rows[:100])    # nothing of that counts
        with self.assertRaisesRegex(UsageError, "has ended with a block of fewer than 128"):
            stream.append(self.rows[:128])
        with self.assertRaisesRegex(UsageError, "use Codec.encode"):
            spiked.Codec("tq-mse", 32, 2).stream()
        with self.assertRaisesRegex(UsageError, "tokens is -1"):
            self.codec.stream(-1)


class Ledger(unittest.TestCase):
    def test_bits_are_those_of_the_bytes(self):
        X = matrix(48, 64)
        for method in ("tq-mse", "tq-prod", "eoptshrink+tq-mse", "kivi"):
            code = spiked.Codec(method, 64, 2).encode(X)
            self.assertAlmostEqual(code.bits_per_entry, sum(code.ledger.values()), places=12)
            self.assertLessEqual(abs(8 * len(code.bytes) - code.bits_per_entry * X.size), 8)

    def test_error_is_that_of_the_decoded_matrix(self):
        X = matrix(48, 64)
        found = spiked.quantize(X, "tq-mse", 2)
        self.assertAlmostEqual(found.relative_l2, np.linalg.norm(X - found.decoded) / np.linalg.norm(X), places=14)


class Codecs(unittest.TestCase):
    def test_roundtrip_equals_single_calls_whatever_the_threads_and_the_memory_order(self):
        blocks = np.stack([matrix(48, 64, seed=seed) for seed in range(6)])
        codecs = [spiked.Codec("eoptshrink+tq-mse", 64, 2), spiked.Codec("tq-mse", 64, 3)]
        for given in (blocks, np.asfortranarray(blocks), np.repeat(blocks, 2, axis=2)[:, :, ::2]):
            for threads in (1, 2, 0):
                found = spiked.roundtrip(codecs, given, threads=threads)
                for c, codec in enumerate(codecs):
                    for b, block in enumerate(blocks):
                        single = spiked.quantize(block, codec.method, codec.bits)
                        np.testing.assert_array_equal(found.decoded[c, b], single.decoded)
                        for key in ("bits_per_entry", "relative_l2", "rank", "bytes", "paper_bits"):
                            self.assertEqual(getattr(found, key)[c, b], getattr(single, key), key)
                        self.assertEqual({key: values[c, b] for key, values in found.ledger.items()}, single.ledger)

    def test_one_codec_gives_arrays_without_an_axis_of_codecs(self):
        blocks = np.stack([matrix(48, 64, seed=seed) for seed in range(3)]).astype(np.float32)
        found = spiked.roundtrip(spiked.Codec("tq-mse", 64, 2), blocks)
        self.assertEqual((found.decoded.shape, found.decoded.dtype), (blocks.shape, np.float32))
        self.assertEqual(found.ledger["indices"].tolist(), [2.0, 2.0, 2.0])
        self.assertIn("3 blocks", repr(found))
        for name in ("bits_per_entry", "paper_bits", "relative_l2", "bytes", "rank"):
            column = getattr(found, name)
            self.assertEqual(column.shape, (3,), name)
            self.assertIs(column, getattr(found, name), name)
            self.assertTrue(column.flags.c_contiguous, name)
        self.assertEqual(pickle.loads(pickle.dumps(found)).rank.tolist(), found.rank.tolist())

    def test_seed_and_index_choose_other_rotations(self):
        X = matrix(48, 64)
        codes = {
            spiked.Codec("tq-mse", 64, 2, **options).encode(X).bytes
            for options in ({}, {"seed": 1}, {"seed": "1"}, {"index": 1}, {"seed": 0x5EED})
        }
        self.assertEqual(len(codes), 3)

    def test_a_codec_can_be_pickled(self):
        X = matrix(48, 64)
        codec = spiked.Codec("tq-mse", 64, 2, seed=3, rotation="rht1")
        self.assertEqual(pickle.loads(pickle.dumps(codec)).encode(X).bytes, codec.encode(X).bytes)

    def test_a_code_is_decoded_by_its_own_codec_alone(self):
        X = matrix(8, 16)
        codec = spiked.Codec("tq-mse", 16, 3)
        code = codec.encode(X)
        for other in (spiked.Codec("tq-mse", 16, 3, seed=7), spiked.Codec("eden", 16, 3), spiked.Codec("tq-mse", 16, 2)):
            with self.assertRaisesRegex(spiked.errors.InputError, "another codec"):
                other.decode(code)
        with self.assertRaisesRegex(spiked.errors.InputError, "rows is 7"):
            codec.decode(code, 7)
        again = spiked.Codec("tq-mse", 16, 3, seed=np.int64(0x5EED))
        np.testing.assert_array_equal(again.decode(pickle.loads(pickle.dumps(code)), 8), codec.decode(code))
        for wrong in (5, "code"):
            with self.assertRaisesRegex(spiked.errors.InputError, "of type"):
                codec.decode(wrong, 64)
        with self.assertRaises(MemoryError):
            codec.decode(code.bytes, 2**60)

    def test_arguments_that_would_be_cut_off_or_split(self):
        with self.assertRaisesRegex(ValueError, "dim is 16.5"):
            spiked.Codec("tq-mse", 16.5, 3)
        for value in ("fp16,seed=1", "fp16 seed=1", ""):
            with self.assertRaisesRegex(spiked.errors.UsageError, "norm"):
                spiked.Codec("tq-mse", 16, 3, norm=value)
        with self.assertRaisesRegex(spiked.errors.UsageError, "no codec"):
            spiked.roundtrip("tq-mse", np.ones((1, 4, 4)))

    def test_bad_bytes_and_arguments_are_clear_exceptions(self):
        codec = spiked.Codec("eoptshrink+tq-mse", 64, 2)
        code = codec.encode(matrix(48, 64)).bytes
        for call in (
            lambda: codec.decode(code[:-1], 48),
            lambda: codec.decode(code, 47),
            lambda: codec.decode(b"", 48),
            lambda: codec.decode(code, 0),
            lambda: codec.encode(np.ones((3, 5))),
            lambda: spiked.Codec("tq-mse", 0, 2),
            lambda: spiked.Codec("tq-mse", 64, 0),
            lambda: spiked.Codec("tq-mse", 64, float("nan")),
            lambda: spiked.Codec("tq-mze", 64, 2),
            lambda: spiked.Codec("tq-mse", 64, 2, residual=3),
            lambda: spiked.Codec("tq-mse", 64, 2, colour="red"),
            lambda: spiked.Codec("tq-mse\0", 64, 2),
            lambda: spiked.Codec("unrope+tq-mse", 64, 2),
            lambda: spiked.roundtrip([], np.ones((1, 48, 64))),
            lambda: spiked.roundtrip(codec, np.ones((48, 64))),
        ):
            with self.assertRaises(ValueError):
                call()
        for call, text in (
            (lambda: codec.decode(code), "pass rows"),
            (lambda: spiked.Codec(3, 64, 2), "pass a str"),
            (lambda: spiked.Codec("tq-mse\0", 64, 2), "character 0"),
            (lambda: spiked.Codec("tq-mse", 64, 2, index=np.arange(2)), "index is"),
        ):
            with self.assertRaisesRegex(spiked.SpikedError, text):
                call()
        bad = np.ones((3, 48, 64))
        bad[2, 5, 6] = np.nan
        with self.assertRaisesRegex(spiked.errors.InputError, "block 2.*row 5, column 6"):
            spiked.roundtrip(codec, bad)
        for call in (lambda: spiked.quantize(bad[2], "tq-mse", 2), lambda: codec.encode(bad[2])):
            with self.assertRaisesRegex(spiked.errors.InputError, "^X: 1 NaN.*row 5, column 6"):
                call()

    def test_repr_tells_bits_and_error(self):
        X = matrix(48, 64)
        found = spiked.quantize(X, "tq-mse", 2)
        self.assertIn(f"relative L2 error {100 * found.relative_l2:.4g} %", repr(found))
        codec = spiked.Codec("tq-mse", 64, 2, seed=3)
        self.assertEqual(repr(codec), "spiked.Codec('tq-mse', dim=64, bits=2, seed=3)")
        self.assertIn("bits per entry (indices 2", repr(codec.encode(X)))


if __name__ == "__main__":
    unittest.main()
