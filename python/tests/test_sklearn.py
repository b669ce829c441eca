"""The estimator of scikit-learn: its own checks, and equality with spiked.denoise."""

import unittest

import numpy as np
import spiked
from support import matrix

try:
    from sklearn.pipeline import make_pipeline
    from sklearn.utils import estimator_checks
except ImportError:
    raise unittest.SkipTest("scikit-learn is not installed")

from spiked.sklearn import SpectralDenoiser


def checks_of(estimator):
    """Pairs of an estimator and a check."""
    if hasattr(estimator_checks, "estimator_checks_generator"):  # scikit-learn from 1.6 on
        return estimator_checks.estimator_checks_generator(estimator)
    return estimator_checks.check_estimator(estimator, generate_only=True)


class Estimator(unittest.TestCase):
    def test_passes_the_checks_of_scikit_learn(self):
        checks = 0
        for method in ("eoptshrink", "gd-shrink", "svd:1"):
            for estimator, check in checks_of(SpectralDenoiser(method)):
                with self.subTest(method=method, check=check):
                    check(estimator)
                    checks += 1
        self.assertGreater(checks, 100)

    def test_fit_transform_is_denoise_and_transform_agrees(self):
        for loss in ("frobenius", "operator"):
            for X in (matrix(40, 60), matrix(60, 40), matrix(50, 50).astype(np.float32)):
                denoiser = SpectralDenoiser(loss=loss)
                signal = denoiser.fit_transform(X)
                expected = spiked.denoise(X, loss=loss)
                np.testing.assert_array_equal(signal, expected.signal)
                self.assertEqual((denoiser.rank_, denoiser.bulk_edge_), (expected.rank, expected.bulk_edge))
                self.assertEqual(denoiser.components_.shape, (expected.rank, X.shape[1]))
                np.testing.assert_allclose(denoiser.transform(X), signal, atol=1e-5 if X.dtype == np.float32 else 1e-12)

    def test_new_rows_are_projected(self):
        denoiser = SpectralDenoiser().fit(matrix(40, 60))
        rows = np.random.default_rng(3).standard_normal((7, 60))
        found = denoiser.transform(rows)
        np.testing.assert_allclose(found - found @ denoiser.components_.T @ denoiser.components_, 0, atol=1e-12)
        np.testing.assert_allclose(denoiser.components_ @ denoiser.components_.T, np.eye(2), atol=1e-12)

    def test_masked_values_are_no_numbers(self):
        X = np.ma.masked_less(matrix(40, 60), 0)
        denoiser = SpectralDenoiser()
        for call in (denoiser.fit, denoiser.fit_transform, denoiser.fit(X.data).transform):
            with self.assertRaisesRegex(ValueError, "masked values"):
                call(X)
        np.testing.assert_array_equal(denoiser.fit_transform(np.ma.array(X.data)), denoiser.fit_transform(X.data))

    def test_transforms_are_rejected_and_pipelines_work(self):
        X = matrix(40, 60)
        with self.assertRaisesRegex(ValueError, "whiten"):
            SpectralDenoiser("whiten+gd-shrink").fit(X)
        pipeline = make_pipeline(SpectralDenoiser(), SpectralDenoiser("svd:1"))
        self.assertEqual(np.linalg.matrix_rank(pipeline.fit_transform(X)), 1)
        self.assertEqual(pipeline.set_params(**{"spectraldenoiser-1__loss": "operator"}).steps[0][1].loss, "operator")


if __name__ == "__main__":
    unittest.main()
