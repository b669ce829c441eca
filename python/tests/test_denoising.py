"""Denoising: equal to the command bit for bit, and to formulas worked out here."""

import os
import pathlib
import tempfile
import unittest

import numpy as np
import spiked
from support import command, matrix, operator_optimum

NAMES = (
    "eoptshrink",
    "eoptshrink:paper",
    "eoptshrink:author",
    "eoptshrink:edgefit",
    "eoptshrink:rank=3",
    "optshrink:2",
    "svd:2",
    "gd-hard",
    "gd-shrink",
    "gd-shrink:sigma=0.1291",
    "screenot:5",
    "tw-test",
    "dyson+eoptshrink",
    "whiten+gd-shrink",
)


class EqualsTheCommand(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compare(self, X, name, loss="frobenius", arguments=(), **options):
        data, denoised, residual = (self.folder / f"{what}.npy" for what in ("data", "denoised", "residual"))
        np.save(data, X)
        document = command(
            "spectrum",
            data,
            "--estimator",
            name,
            "--denoised",
            denoised,
            "--residual",
            residual,
            "--loss",
            loss,
            *arguments,
        )
        expected = document["estimators"][0]
        found = spiked.denoise(X, name, loss=loss, **options)
        self.assertEqual(found.singular_values.tolist(), document["singular_values"])
        for key in ("rank", "bulk_edge", "note"):
            self.assertEqual(getattr(found, key), expected[key], key)
        for key in ("strengths", "overlap_left", "overlap_right", "shrunk"):
            np.testing.assert_array_equal(getattr(found, key), np.array(expected[key], dtype=float), key)
        self.assertEqual(found.expected_relative_error, expected["expected_relative_error"])
        self.assertEqual(
            (found.stripped_rows, found.stripped_cols), (document["stripped_rows"], document["stripped_cols"])
        )
        np.testing.assert_array_equal(found.signal, np.load(denoised))
        np.testing.assert_array_equal(found.residual, np.load(residual))
        return found

    def test_for_every_kind_of_estimator(self):
        X = matrix()
        ranks = {name: self.compare(X, name).rank for name in NAMES}
        self.assertEqual(ranks["eoptshrink"], 2)
        self.assertEqual(ranks["eoptshrink:rank=3"], 3)

    def test_for_every_loss_and_shape(self):
        for shape in ((40, 60), (60, 40), (50, 50)):
            for loss in ("frobenius", "operator", "nuclear"):
                self.compare(matrix(*shape), "eoptshrink", loss)

    def test_for_known_spectra_given_by_name_or_as_arrays(self):
        X = matrix()
        named = self.compare(X, "whiten+gd-shrink", arguments=("--row-spectrum", "ar1:0.5"), row_spectrum="ar1:0.5")
        index = np.arange(40)
        covariance = 0.5 ** np.abs(index[:, None] - index)
        given = spiked.denoise(X, "whiten+gd-shrink", row_spectrum=covariance)
        np.testing.assert_allclose(given.signal, named.signal, rtol=0, atol=1e-9)
        variances = spiked.denoise(X, "whiten+gd-shrink", row_spectrum=np.ones(40), col_spectrum=np.ones(60))
        np.testing.assert_allclose(variances.signal, spiked.denoise(X, "gd-shrink").signal, atol=1e-9)

    def test_with_rows_and_columns_of_zeros(self):
        X = matrix()
        X[3] = 0.0
        X[:, [5, 7]] = 0.0
        found = self.compare(X, "eoptshrink")
        self.assertEqual((found.stripped_rows, found.stripped_cols, len(found.singular_values)), (1, 2, 39))
        self.assertFalse(found.signal[3].any())
        kept = self.compare(X, "eoptshrink", arguments=("--keep-empty",), keep_empty=True)
        self.assertEqual(len(kept.singular_values), 40)


class Meaning(unittest.TestCase):
    def test_signal_is_the_sum_of_shrunk_components(self):
        X = matrix()
        found = spiked.denoise(X)
        left, values, right = np.linalg.svd(X)
        np.testing.assert_allclose(found.singular_values, values, rtol=1e-12)
        expected = left[:, :2] @ np.diag(found.shrunk) @ right[:2]
        np.testing.assert_allclose(found.signal, expected, atol=1e-12)
        np.testing.assert_array_equal(found.residual, X - found.signal)

    def test_gavish_donoho_is_the_closed_form(self):
        """For y > 1 + sqrt(beta), of white noise with entries of variance 1/d."""
        X = matrix(40, 60)
        beta = 40 / 60
        y = np.linalg.svd(X, compute_uv=False)[:2]
        root = np.sqrt((y**2 - beta - 1) ** 2 - 4 * beta)
        strength = np.sqrt((y**2 - beta - 1 + root) / 2)
        nuclear = (strength**4 - beta - np.sqrt(beta) * strength * y) / (strength**2 * y)
        left = (strength**4 - beta) / (strength**4 + beta * strength**2)
        right = (strength**4 - beta) / (strength**4 + strength**2)
        operator = operator_optimum(strength, left, right)
        expected = {"frobenius": root / y, "operator": operator, "nuclear": nuclear}
        for loss, values in expected.items():
            found = spiked.gavish_donoho(X, sigma=60**-0.5, loss=loss)
            self.assertEqual(found.rank, 2)
            np.testing.assert_allclose(found.shrunk, values, rtol=1e-8, err_msg=loss)
            np.testing.assert_allclose(found.strengths, strength, rtol=1e-9)

    def test_the_named_functions_name_the_method(self):
        X = matrix()
        for found, name in (
            (spiked.eoptshrink(X), "eoptshrink"),
            (spiked.eoptshrink(X, reading="paper", rank=1, impute="j"), "eoptshrink:paper:rank=1:impute=j"),
            (spiked.eoptshrink(X, clip=False), "eoptshrink:clip=no"),
            (spiked.gavish_donoho(X, sigma=0.125), "gd-shrink:sigma=0.125"),
            (spiked.gavish_donoho(X, rule="hard"), "gd-hard"),
            (spiked.screenot(X, 4, impute="w"), "screenot:4:impute=w"),
        ):
            self.assertEqual(found.method, name)
            np.testing.assert_array_equal(found.signal, spiked.denoise(X, name).signal)

    def test_shrink_finds_the_same_without_the_matrix(self):
        X = matrix()
        whole = spiked.denoise(X, loss="operator")
        found = spiked.shrink(whole.singular_values, X.shape, loss="operator")
        self.assertEqual(found.rank, whole.rank)
        for key in ("shrunk", "strengths", "overlap_left", "overlap_right", "singular_values"):
            np.testing.assert_allclose(getattr(found, key), getattr(whole, key), rtol=1e-12, err_msg=key)
        self.assertEqual(found.bulk_edge, whole.bulk_edge)
        self.assertFalse(hasattr(found, "signal"))

    def test_repr_tells_the_rank_and_every_component(self):
        found = spiked.denoise(matrix())
        text = repr(found)
        self.assertIn(f"40 x 60, rank 2, bulk edge at singular value {found.bulk_edge ** 0.5:.6g}", text)
        self.assertEqual(len(text.splitlines()), 4)
        self.assertIn("and 2 more", repr(spiked.denoise(matrix(), "svd:10")))

    def test_plot_draws_what_was_found(self):
        try:
            import matplotlib
        except ImportError:
            self.skipTest("matplotlib is not installed")
        matplotlib.use("Agg")
        found = spiked.denoise(matrix())
        axes = found.plot()
        observed, shrunk, edge = axes.get_lines()
        np.testing.assert_array_equal(observed.get_ydata(), found.singular_values)
        np.testing.assert_array_equal(shrunk.get_ydata(), found.shrunk)
        self.assertEqual(edge.get_ydata()[0], found.bulk_edge**0.5)
        self.assertIs(found.plot(axes), axes)
        matplotlib.pyplot.close("all")


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    unittest.main()
