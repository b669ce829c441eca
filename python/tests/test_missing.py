"""Missing entries: equal to the command bit for bit, and to weights worked out here."""

import pathlib
import tempfile
import unittest
import warnings

import numpy as np
import spiked
from spiked.errors import InputError, UsageError
from support import command, matrix


def with_missing(share=0.6, seed=3, **options):
    X = matrix(60, 50, (9.0, 6.0), **options)
    seen = np.random.default_rng(seed).random(X.shape) < share
    return np.where(seen, X, np.nan), seen, X


class MissingEntries(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "data.npy"

    def test_weights_are_the_inverse_shares(self):
        X, seen, whole = with_missing()
        rows, cols = seen.mean(1, keepdims=True), seen.mean(0, keepdims=True)
        for kind, share in (
            ("uniform", seen.mean()), ("rows", rows), ("columns", cols), ("both", rows * cols / seen.mean())
        ):
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                weighted = spiked.prepare(X, missing=kind)
            np.testing.assert_allclose(weighted, np.where(seen, whole / share, 0.0), rtol=1e-13)
            self.assertIn("entries are missing", str(found[0].message))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(spiked.prepare(whole, missing="uniform"), whole)

    def test_denoise_is_the_command(self):
        X, seen, whole = with_missing()
        np.save(self.file, X)
        for options in ({}, {"center": "columns"}, {"missing": "both"}):
            options = {"missing": "uniform", **options}
            words = [word for key, value in options.items() for word in (f"--{key}", value)]
            document = command("spectrum", self.file, *words)
            found = spiked.denoise(X, **options)
            self.assertEqual(list(found.singular_values), document["singular_values"])
            self.assertEqual(list(found.shrunk), document["estimators"][0]["shrunk"])
            self.assertEqual(found.share_seen, document["share_seen"])
            np.testing.assert_array_equal(np.isnan(found.residual), ~seen)
            self.assertTrue(np.isfinite(found.signal).all())
        plain = spiked.denoise(X, missing="uniform")
        np.testing.assert_allclose((plain.residual + plain.signal)[seen], whole[seen], rtol=1e-12)
        self.assertEqual(spiked.denoise(whole, missing="uniform").shrunk.tolist(), spiked.denoise(whole).shrunk.tolist())

    def test_pca_is_the_command(self):
        X, seen, _ = with_missing()
        np.save(self.file, X)
        document = command("pca", self.file, "--missing", "uniform")
        found = spiked.pca(X, missing="uniform")
        for key in ("components", "noise_level", "bulk_edge", "share_seen"):
            self.assertEqual(getattr(found, key), document[key])
        self.assertEqual(found.debiased.tolist(), document["debiased"])
        self.assertEqual(found.shrunk.tolist(), document["shrunk"])
        self.assertLess(found.noise_level, spiked.pca(np.where(seen, X, 0.0)).noise_level / seen.mean() ** 2)

    def test_masked_values_are_missing(self):
        X, seen, whole = with_missing()
        masked = np.ma.masked_array(whole, ~seen)
        expected = spiked.denoise(X, missing="uniform")
        np.testing.assert_array_equal(spiked.denoise(masked, missing="uniform").signal, expected.signal)
        integers = np.ma.masked_array(np.arange(12).reshape(3, 4), np.eye(3, 4) > 0)
        as_nan = np.where(np.eye(3, 4) > 0, np.nan, np.arange(12.0).reshape(3, 4))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_array_equal(
                spiked.prepare(integers, missing="uniform"), spiked.prepare(as_nan, missing="uniform")
            )
        with self.assertRaisesRegex(InputError, 'missing="uniform"'):
            spiked.denoise(masked)

    def test_messages_offer_what_works(self):
        X, _, whole = with_missing()
        for call in (spiked.denoise, spiked.pca, spiked.prepare):
            with self.assertRaisesRegex(InputError, 'say missing = "uniform" if they are missing at random'):
                call(X)
            infinite = X.copy()
            infinite[2, 3] = np.inf
            with self.assertRaisesRegex(InputError, "counted from 0.: remove or replace"):
                call(infinite)
            with self.assertRaisesRegex(InputError, "1 infinite entry .first at row 2, column 3"):
                call(infinite, missing="uniform")
            with self.assertRaisesRegex(UsageError, "uniform"):
                call(X, missing="unifrom")
        with self.assertRaisesRegex(UsageError, "pass uniform"):
            spiked.pca(X, missing="rows")
        with self.assertRaisesRegex(InputError, "all 4 entries are missing"):
            spiked.denoise(np.full((2, 2), np.nan), missing="uniform")
        with self.assertRaisesRegex(UsageError, "not separable"):
            spiked.denoise(X, "whiten+gd-shrink", row_spectrum="ar1:0.5", col_spectrum="ar1:0.5", missing="uniform")


if __name__ == "__main__":
    unittest.main()
