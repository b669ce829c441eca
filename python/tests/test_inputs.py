"""What is given as a matrix: the right answer or one clear exception."""

import sys
import types
import unittest

import numpy as np
import spiked
from spiked import _arrays
from support import matrix, run_python


class Accepted(unittest.TestCase):
    def setUp(self):
        self.X = matrix()
        self.expected = spiked.denoise(self.X).signal

    def check(self, value, expected=None):
        found = spiked.denoise(value).signal
        self.assertEqual(found.dtype, np.float64)
        np.testing.assert_array_equal(found, self.expected if expected is None else expected)

    def test_any_order_and_strides(self):
        X = self.X
        wide = np.zeros((80, 180))
        wide[1::2, 2::3] = X
        self.check(np.asfortranarray(X))
        self.check(wide[1::2, 2::3])
        self.check(np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1])
        self.check(np.ascontiguousarray(X.T).T)
        constant = np.broadcast_to(X[:1], (30, 60))
        self.assertEqual(constant.strides[0], 0)
        self.check(constant, spiked.denoise(constant.copy()).signal)

    def test_read_only_arrays_and_lists(self):
        X = self.X.copy()
        X.flags.writeable = False
        self.check(X)
        self.check(X.tolist())
        self.check(np.ma.masked_invalid(self.X))

    def test_fields_of_records_and_unaligned_memory(self):
        records = np.zeros((40, 60), dtype=[("mark", "i1"), ("x", "f8")])
        records["x"] = self.X
        self.check(records["x"])
        memory = np.zeros(self.X.nbytes + 1, dtype=np.uint8)
        unaligned = memory[1:].view(np.float64).reshape(40, 60)
        unaligned[:] = self.X
        self.check(unaligned)

    def test_the_other_byte_order(self):
        self.check(self.X.astype(self.X.dtype.newbyteorder()))

    def test_every_kind_of_number_is_read_by_its_value(self):
        whole = np.round(20 * self.X)
        expected = spiked.denoise(whole).signal
        for dtype in ("f2", "f4", "f8", "g", "i1", "i2", "i4", "i8"):
            self.check(whole.astype(dtype), expected)
        truth = self.X > 0
        self.check(truth, spiked.denoise(truth.astype(float)).signal)
        self.check(np.abs(whole).astype("u2"), spiked.denoise(np.abs(whole)).signal)

    def test_floats_are_not_copied(self):
        for dtype in (np.float32, np.float64):
            X = self.X.astype(dtype)
            self.assertTrue(np.shares_memory(_arrays.matrix(X), X))

    def test_matrices_of_all_shapes_are_read_and_written_whole(self):
        rng = np.random.default_rng(2)
        for rows, cols in ((1, 1), (1, 2), (2, 1), (3, 3), (16, 17), (17, 16), (33, 5), (5, 33), (18, 34)):
            X = rng.standard_normal((rows, cols))
            wide = np.full((rows, 2 * cols), np.nan)
            wide[:, :cols] = X
            for given in (X, wide[:, :cols], np.asfortranarray(X), X[::-1, ::-1], X.astype(np.float32)):
                np.testing.assert_array_equal(spiked.prepare(given), given)
                for at in {0, given.size // 2, given.size - 1, cols - 1, (rows - 1) * cols}:
                    row, column = divmod(at, cols)
                    bad = given.copy(order="K")
                    bad[row, column] = (np.nan, np.inf, -np.inf)[at % 3]
                    with self.assertRaisesRegex(
                        ValueError, f"1 NaN or infinite entry .first at row {row}, column {column},"
                    ):
                        spiked.prepare(bad)

    def test_a_column_and_a_row_are_matrices(self):
        for X in (self.X[:, :1], self.X[:1]):
            self.assertEqual(spiked.denoise(X, "svd:1").rank, 1)
            np.testing.assert_allclose(spiked.denoise(X, "svd:1").signal, X, atol=1e-12)

    def test_large_and_small_values_scale_the_answer(self):
        for scale in (2.0**500, 2.0**-500):
            found = spiked.denoise(scale * self.X)
            self.assertEqual(found.rank, 2)
            np.testing.assert_allclose(found.signal / scale, self.expected, atol=1e-9)

    def test_a_frame_of_pandas(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is not installed")
        self.check(pandas.DataFrame(self.X))
        with self.assertRaisesRegex(ValueError, "columns without numbers .'b'"):
            spiked.denoise(pandas.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}))
        self.check(pandas.DataFrame(self.X).astype("Float64"))
        self.check([pandas.Series(row, dtype="Float64") for row in self.X])
        truth = pandas.DataFrame({"a": [True, False], "b": [1, 2]})
        np.testing.assert_array_equal(_arrays.matrix(truth), [[1.0, 1.0], [0.0, 2.0]])
        with self.assertRaisesRegex(ValueError, "NaN"):
            spiked.denoise(pandas.DataFrame({"a": [1, None], "b": [3, 4]}, dtype="Int64"))


class Rejected(unittest.TestCase):
    CASES = (
        ("complex", np.ones((3, 3), dtype=complex), "complex numbers"),
        ("objects", np.array([[1, None], [2, 3]], dtype=object), "Python objects"),
        ("texts", np.array([["a", "b"]]), "texts"),
        ("bytes", np.array([[b"a"]]), "texts"),
        ("dates", np.zeros((2, 2), "M8[s]"), "dates"),
        ("durations", np.zeros((2, 2), "m8[s]"), "durations"),
        ("records", np.zeros((2, 2), "f8,f8"), "records"),
        ("none", None, "Python objects"),
        ("text", "data.npy", "texts"),
        ("NaN", np.array([[1.0, 2.0], [3.0, np.nan]]), "^X: 1 NaN.*row 1, column 1"),
        ("infinity", np.array([[1.0, np.inf], [3.0, 4.0]]), "infinite.*row 0, column 1"),
        ("NaN of float32", np.full((2, 2), np.nan, dtype=np.float32), "NaN"),
        ("no rows", np.ones((0, 3)), "empty"),
        ("no columns", np.ones((3, 0)), "empty"),
        ("0 dimensions", np.float64(3.0), "0 dimensions"),
        ("1 dimension", np.ones(5), r"1 dimension.*X\.reshape"),
        ("3 dimensions", np.ones((2, 3, 4)), "3 dimensions"),
        ("ragged", [[1.0, 2.0], [3.0]], "rows of equal length|objects"),
        ("masked", np.ma.masked_less(np.eye(3), 0.5), "masked"),
    )

    def test_by_one_clear_exception_each(self):
        for name, value, text in self.CASES:
            of_matrices = (spiked.denoise, spiked.eoptshrink, spiked.gavish_donoho, spiked.quantize, spiked.pca, spiked.prepare)
            for call in (*of_matrices, lambda X: spiked.spectrum(X, 1)):
                with self.subTest(name, call=call.__name__):
                    with self.assertRaisesRegex(spiked.errors.InputError, text) as caught:
                        call(value)
                    self.assertIsInstance(caught.exception, ValueError)
                    self.assertNotIn("\n", str(caught.exception))

    def test_what_are_no_numbers_is_one_clear_exception_in_every_function(self):
        codec, law = spiked.Codec("tq-mse", 3, 2), spiked.theory()
        calls = {
            "screenot": lambda value: spiked.screenot(value, 1),
            "encode": codec.encode,
            "roundtrip": lambda value: spiked.roundtrip(codec, value),
            "roundtrip of a list": lambda value: spiked.roundtrip(codec, [value]),
            "shrink": lambda value: spiked.shrink(value, (3, 3)),
            "theory": spiked.theory,
            "strengths": lambda value: spiked.theory(strengths=value),
            "density": law.density,
            "cdf": law.cdf,
            "quantiles": law.quantiles,
            "spectrum": lambda value: spiked.denoise(np.eye(3), "whiten+gd-shrink", row_spectrum=value),
        }
        for name, value, _ in self.CASES[:9] + self.CASES[-2:]:
            for called, call in calls.items():
                if value is None and called == "spectrum":
                    continue
                with self.subTest(name, call=called), self.assertRaises(spiked.SpikedError) as caught:
                    call(value)
                self.assertIsInstance(caught.exception, ValueError)
                self.assertNotIn("\n", str(caught.exception))

    def test_masked_values_in_a_list(self):
        X = matrix()
        masked = np.ma.masked_less(X, 0)
        codec = spiked.Codec("tq-mse", 60, 2)
        for call, given in ((lambda value: spiked.roundtrip(codec, value), [masked, X]), (spiked.denoise, list(masked))):
            with self.assertRaisesRegex(spiked.errors.InputError, "masked values"):
                call(given)
        with self.assertRaisesRegex(spiked.errors.InputError, "rows of equal length"):
            spiked.denoise([masked[0], masked[1, :5]])
        found = spiked.denoise(list(masked), missing="uniform")
        np.testing.assert_array_equal(found.signal, spiked.denoise(masked, missing="uniform").signal)
        np.testing.assert_array_equal(
            spiked.roundtrip(codec, [np.ma.array(X)]).decoded, spiked.roundtrip(codec, X[np.newaxis]).decoded
        )

    def test_sparse_matrices_say_how_to_convert_them(self):
        try:
            import scipy.sparse
        except ImportError:
            self.skipTest("SciPy is not installed")
        with self.assertRaisesRegex(ValueError, r"X\.toarray\(\)"):
            spiked.denoise(scipy.sparse.eye(4))

    def test_names_that_are_wrong(self):
        X = matrix()
        for options, text in (
            ({"method": "eoptshrnk"}, 'did you mean "eoptshrink"'),
            ({"loss": "l2"}, "frobenius, operator, nuclear"),
            ({"row_spectrum": "ar1:0.5"}, "row_spectrum"),
            ({"method": "whiten+gd-shrink", "row_spectrum": np.eye(3)}, "row_spectrum is 3 x 3.*40"),
            ({"method": "whiten+gd-shrink", "col_spectrum": -np.eye(60)}, "negative eigenvalue"),
            ({"method": "svd"}, "svd:"),
        ):
            with self.subTest(options=str(options)[:40]), self.assertRaisesRegex(ValueError, text):
                spiked.denoise(X, **options)
        with self.assertRaisesRegex(spiked.errors.UsageError, "pass a str"):
            spiked.denoise(X, 3)
        for call in (
            lambda: spiked.eoptshrink(X, reading="literal"),
            lambda: spiked.eoptshrink(X, reading=["paper"]),
            lambda: spiked.gavish_donoho(X, rule="soft"),
            lambda: spiked.gavish_donoho(X, rule=np.arange(2)),
        ):
            with self.assertRaisesRegex(spiked.errors.UsageError, "is unknown: use"):
                call()
        for values, shape in (
            ([1.0, 2.0], (2, 3)),
            ([2.0], (2, 3)),
            ([2.0, np.nan], (2, 3)),
            ([], (2, 3)),
            ([1.0], (0, 1)),
        ):
            with self.assertRaises(ValueError):
                spiked.shrink(values, shape)

    def test_more_memory_than_there_is_is_a_memory_error(self):
        codec = spiked.Codec("kivi", 2**10, 2)
        for dtype in (np.float64, np.float32, np.int8):
            X = np.broadcast_to(dtype(1), (2**40, 2**10))
            for call in (spiked.denoise, spiked.prepare, spiked.quantize, codec.encode):
                with self.subTest(dtype.__name__, call=call.__name__):
                    with self.assertRaisesRegex(spiked.errors.OutOfMemory, "does not fit into memory"):
                        call(X)
            law = spiked.theory()
            for call, value in (
                (lambda blocks: spiked.roundtrip(codec, blocks), X[np.newaxis]),
                (lambda blocks: spiked.roundtrip(codec, blocks), [X]),
                (law.density, X),
                (law.cdf, X),
                (law.quantiles, X),
            ):
                with self.assertRaisesRegex(spiked.errors.OutOfMemory, "does not fit into memory"):
                    call(value)

    def test_whole_numbers_have_64_bits(self):
        X = matrix()
        for excess in (2**64, -(2**64), 2**63):
            for call in (
                lambda: spiked.shrink([3.0, 2.0, 1.0], (excess + 3, 3)),
                lambda: spiked.Codec("tq-mse", excess + 8, 2),
                lambda: spiked.denoise(X, threads=excess + 1),
                lambda: spiked.pca(np.eye(3), covariance_of=excess + 5),
                lambda: spiked.theory().curve(excess + 9),
            ):
                with self.assertRaisesRegex(spiked.errors.InputError, "more than 64 bits"):
                    call()

    def test_arguments_that_are_no_numbers_and_no_truth_values(self):
        X = matrix()
        for call, text in (
            (lambda: spiked.Codec("tq-mse", 8, None), "^bits is None .of type NoneType.: pass a number$"),
            (lambda: spiked.denoise(X, intervals="theory", confidence="a"), "^confidence is 'a'"),
            (lambda: spiked.pca(X, level="0.01"), "^level is '0.01'"),
            (lambda: spiked.pca(X, noise_level=[1.0, 2.0]), "^noise_level is "),
            (lambda: spiked.theory(aspect="a"), "^aspect is 'a'"),
            (lambda: spiked.gavish_donoho(X, sigma="a"), "^sigma is 'a'"),
            (lambda: spiked.denoise(X, keep_empty=np.ones(3)), "^keep_empty is .*pass True or False$"),
            (lambda: spiked.pca(X, center="rows"), "^center is 'rows'.*pass True or False$"),
            (lambda: spiked.pca(X, standardize=2), "^standardize is 2.*pass True or False$"),
            (lambda: spiked.pca(np.eye(3), covariance_of=0), "^covariance_of is 0 "),
            (lambda: spiked.roundtrip(None, X[np.newaxis]), "^codecs is None"),
            (lambda: spiked.theory(["a"]), r"numpy\.asarray\(row, dtype=float\)$"),
        ):
            with self.assertRaisesRegex(spiked.SpikedError, text) as caught:
                call()
            self.assertIsInstance(caught.exception, ValueError)
        self.assertEqual(spiked.denoise(X, keep_empty=np.True_).rank, spiked.denoise(X, keep_empty=1).rank)


class _Tensor:
    """As much of a tensor of PyTorch as the package uses."""

    def __init__(self, values, dtype, device="cpu", requires_grad=False):
        self.values, self.dtype, self.device = values, dtype, types.SimpleNamespace(type=device)
        self.layout, self.requires_grad = "strided", requires_grad

    shape = property(lambda self: self.values.shape)

    def detach(self):
        found = _Tensor(self.values, self.dtype, self.device.type)
        found.layout = self.layout
        return found

    def is_complex(self):
        return self.dtype == "complex64"

    def is_floating_point(self):
        return "float" in self.dtype

    def element_size(self):
        return {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "complex64": 8}[self.dtype]

    def cpu(self):
        return _Tensor(self.values, self.dtype)

    def resolve_conj(self):
        return self

    def resolve_neg(self):
        return self

    def float(self):
        return _Tensor(self.values.astype(np.float32), "float32")

    def to(self, device, dtype):
        return _Tensor(self.values, dtype, device.type)

    def numpy(self):
        assert self.device.type == "cpu" and not self.requires_grad and self.dtype != "bfloat16"
        return self.values

    def __sub__(self, other):
        assert (self.dtype, self.device.type) == (other.dtype, other.device.type)
        return _Tensor(self.values - other.values, self.dtype, self.device.type)


class Tensors(unittest.TestCase):
    """With PyTorch where it is installed; otherwise with a class in its place."""

    def setUp(self):
        if "torch" in sys.modules:
            self.skipTest("PyTorch is imported")
        torch = types.ModuleType("torch")
        torch.Tensor, torch.strided = _Tensor, "strided"
        torch.from_numpy = lambda values: _Tensor(values, str(values.dtype))
        sys.modules["torch"] = torch
        self.addCleanup(sys.modules.pop, "torch")

    def test_results_have_the_dtype_and_the_device_of_the_data(self):
        X = matrix()
        for dtype, device in (("float64", "cpu"), ("float32", "cpu"), ("bfloat16", "cuda"), ("float16", "cpu")):
            values = X if dtype == "float64" else X.astype(np.float32)
            tensor = _Tensor(values, dtype, device, requires_grad=True)
            found = spiked.denoise(tensor)
            self.assertEqual((found.signal.dtype, found.signal.device.type), (dtype, device))
            np.testing.assert_array_equal(found.signal.values, spiked.denoise(values).signal)
            self.assertEqual(found.residual.dtype, dtype)
            decoded = spiked.quantize(tensor, "tq-mse", 2).decoded
            self.assertEqual((decoded.dtype, decoded.device.type, decoded.shape), (dtype, device, (40, 60)))
            blocks = _Tensor(np.stack([values, values]), dtype, device)
            self.assertEqual(spiked.roundtrip(spiked.Codec("tq-mse", 60, 2), blocks).decoded.dtype, dtype)

    def test_a_list_of_tensors_is_stacked(self):
        X = matrix()
        rows = [_Tensor(row, "float64", "cuda", requires_grad=True) for row in X]
        np.testing.assert_array_equal(spiked.denoise(rows).signal, spiked.denoise(X).signal)

    def test_integers_become_doubles_and_complex_ones_are_rejected(self):
        found = spiked.denoise(_Tensor(np.round(9 * matrix()).astype("i8"), "int64"))
        self.assertEqual((found.signal.dtype, found.residual.dtype), ("float64", "float64"))
        with self.assertRaisesRegex(ValueError, "complex numbers"):
            spiked.denoise(_Tensor(np.ones((2, 2), complex), "complex64"))
        sparse = _Tensor(matrix(), "float64")
        sparse.layout = "sparse_coo"
        with self.assertRaisesRegex(ValueError, "to_dense"):
            spiked.denoise(sparse)


REAL = """
import numpy as np, spiked, sys
try:
    import torch
except ImportError:
    print("not installed")
    sys.exit()
X = np.random.default_rng(0).standard_normal((40, 60))
X[:, 0] += 5.0
for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
    tensor = torch.tensor(X, dtype=dtype, requires_grad=True)
    found = spiked.denoise(tensor.T)
    assert (found.signal.dtype, tuple(found.signal.shape)) == (dtype, (60, 40))
    assert found.residual.dtype == dtype
    expected = spiked.denoise(tensor.detach().double().numpy().T).signal
    assert torch.equal(found.signal, torch.from_numpy(expected).to(dtype))
    blocks = torch.stack([tensor, tensor])
    assert spiked.roundtrip(spiked.Codec("tq-mse", 60, 2), blocks).decoded.dtype == dtype
assert spiked.denoise(torch.arange(12).reshape(3, 4)).signal.dtype == torch.float64
for wrong in (torch.ones(2, 2, dtype=torch.complex64), torch.eye(3).to_sparse(), torch.ones(3), torch.ones(0, 2), torch.ones(2, 2) / 0):
    try:
        spiked.denoise(wrong)
    except ValueError as problem:
        assert len(str(problem).splitlines()) == 1
    else:
        raise AssertionError(wrong)
print("passed")
"""


class RealTensors(unittest.TestCase):
    """In a process of its own, because PyTorch stays once it is imported."""

    def test_of_torch(self):
        done = run_python(REAL)
        if done.stdout == "not installed\n":
            self.skipTest("PyTorch is not installed")
        self.assertEqual((done.stdout, done.returncode), ("passed\n", 0), done.stderr)


if __name__ == "__main__":
    unittest.main()
