"""Limits: closed forms of white noise, and the command."""

import copy
import pickle
import unittest

import numpy as np
import spiked
from support import command, operator_optimum


class WhiteNoise(unittest.TestCase):
    """Marchenko and Pastur: the edge is (1 + sqrt(beta))^2, a strength s is seen above beta^(1/4)."""

    def test_edges_outliers_overlaps_and_the_table_of_losses(self):
        for beta in (0.2, 0.7, 1.0, 1.6):
            strengths = np.array([2.5, 1.7, 0.3])
            found = spiked.theory(aspect=beta, strengths=strengths)
            self.assertAlmostEqual(found.bulk_edge, (1 + beta**0.5) ** 2, places=9)
            self.assertAlmostEqual(found.detection_threshold, beta**0.25, places=9)
            self.assertEqual(found.detectable.tolist(), [True, True, False])
            s = strengths[:2]
            outlier = (1 + s**2) * (beta + s**2) / s**2
            np.testing.assert_allclose(found.outliers[:2], outlier, rtol=1e-9)
            left = (s**4 - beta) / (s**4 + s**2)
            right = (s**4 - beta) / (s**4 + beta * s**2)
            left, right = np.minimum(left, right), np.maximum(left, right)
            ours = np.sort([found.overlap_left[:2], found.overlap_right[:2]], axis=0)
            np.testing.assert_allclose(ours, np.sort([left, right], axis=0), rtol=1e-8)
            # The rows are the shorter side where beta < 1, and their vectors are found better.
            self.assertEqual(bool(found.overlap_left[0] > found.overlap_right[0]), beta < 1)
            cosines = np.sqrt(left * right)
            np.testing.assert_allclose(found.shrunk["frobenius"][:2], s * cosines, rtol=1e-8)
            np.testing.assert_allclose(found.shrunk["operator"][:2], operator_optimum(s, left, right), rtol=1e-8)
            sines = np.sqrt((1 - left) * (1 - right))
            np.testing.assert_allclose(found.shrunk["nuclear"][:2], s * (cosines - sines), rtol=1e-8)
            self.assertEqual([found.shrunk[loss][2] for loss in sorted(found.shrunk)], [0.0, 0.0, 0.0])

    def test_density_distribution_and_quantiles(self):
        beta = 0.5
        found = spiked.theory(aspect=beta)
        low, high = (1 - beta**0.5) ** 2, (1 + beta**0.5) ** 2
        x = np.linspace(low + 0.01, high - 0.01, 7).reshape(7, 1)
        expected = np.sqrt((high - x) * (x - low)) / (2 * np.pi * beta * x)
        np.testing.assert_allclose(found.density(x), expected, rtol=1e-6)
        self.assertEqual((found.cdf(x).shape, np.ndim(found.cdf(1.0)), np.ndim(found.quantiles(0.5))), ((7, 1), 0, 0))
        np.testing.assert_allclose(found.quantiles(found.cdf(x)), x, atol=1e-6)
        points, density, cdf = found.curve(50)
        self.assertEqual(points.shape, (50,))
        np.testing.assert_allclose(found.cdf(points), cdf, atol=1e-9)
        np.testing.assert_allclose(found.density(points[1:-1]), density[1:-1], rtol=1e-6)


class EqualsTheCommand(unittest.TestCase):
    def test_bit_for_bit(self):
        document = command(
            "theory", "--row-spectrum", "ar1:0.4", "--col-spectrum", "two-atom:1,4,0.3", "--aspect", "0.7",
            "--strength", "4,3,0.5", "--size", "70x100",
        )  # fmt: skip
        found = spiked.theory("ar1:0.4", "two-atom:1,4,0.3", strengths=[4, 3, 0.5], size=(70, 100))
        for key in (
            "aspect",
            "bulk_edge",
            "lower_edge",
            "detection_threshold",
            "tracy_widom_scale",
            "mean",
            "regular_edge",
        ):
            self.assertEqual(getattr(found, key), document[key], key)
        for i, spike in enumerate(document["spikes"]):
            for key in ("stieltjes_left", "stieltjes_right", "overlap_left", "overlap_right"):
                self.assertEqual(getattr(found, key)[i], spike[key], key)
            self.assertEqual(found.outliers[i], spike["outlier"])
            self.assertEqual({loss: values[i] for loss, values in found.shrunk.items()}, spike["shrunk"])
        self.assertEqual(found.finite_size, document["finite_size"])

    def test_spectra_as_arrays(self):
        named = spiked.theory(col="two-atom:1,4,0.25", aspect=0.5, strengths=[5])
        for col in (([1, 4], [0.75, 0.25]), [1, 1, 1, 4]):
            found = spiked.theory(col=col, aspect=0.5, strengths=[5])
            self.assertAlmostEqual(found.bulk_edge, named.bulk_edge, places=9)
            self.assertAlmostEqual(found.outliers[0], named.outliers[0], places=9)
        self.assertEqual(spiked.theory(col=[1, 1, 1, 4], strengths=[5], size=(30, 60)).finite_size["rows"], 30)


class MissingEntries(unittest.TestCase):
    """Entries that are seen are divided by their share, so that white noise has 1 / share times the variance."""

    def test_law_and_losses_are_those_of_the_command(self):
        self.assertAlmostEqual(spiked.theory(seen=0.25).bulk_edge, 16.0, places=9)
        self.assertIsNone(spiked.theory(strengths=[3.0]).losses)
        for size, words in ((None, ["--aspect", "0.5"]), ((32, 64), ["--size", "32x64"])):
            document = command("theory", "--row-spectrum", "ar1:0.5", "--strength", "9,4", "--seen", "0.4", *words)
            found = spiked.theory("ar1:0.5", aspect=0.5, strengths=[9, 4], size=size, seen=0.4)
            self.assertEqual(found.bulk_edge, document["bulk_edge"])
            self.assertEqual(found.outliers.tolist(), [spike["outlier"] for spike in document["spikes"]])
            self.assertEqual(found.losses, document["losses"])
            self.assertEqual(found.finite_size, document.get("finite_size"))
            again = pickle.loads(pickle.dumps(found))
            self.assertEqual(again.quantiles(0.5), found.quantiles(0.5))

    def test_what_is_impossible(self):
        for seen in (0, 1.5, -1):
            with self.assertRaisesRegex(spiked.errors.UsageError, "seen"):
                spiked.theory(seen=seen)
        with self.assertRaisesRegex(spiked.errors.UsageError, "correlated"):
            spiked.theory("ar1:0.5", "ar1:0.5", seen=0.5)


class Covariances(unittest.TestCase):
    """Johnstone's model: l leaves the bulk above 1 + sqrt(gamma), and is seen at l (1 + gamma / (l - 1))."""

    def test_closed_forms_and_deviations(self):
        found = spiked.covariance_theory([8.0, 2.0], size=(400, 200), noise_variance=2.0)
        gamma, x = 0.5, 4.0
        self.assertAlmostEqual(found.upper_edge, 2 * (1 + gamma**0.5) ** 2, places=9)
        self.assertAlmostEqual(found.detection_threshold, 2 * (1 + gamma**0.5), places=9)
        self.assertEqual(found.detectable.tolist(), [True, False])
        self.assertAlmostEqual(found.sample_eigenvalues[0], 2 * x * (1 + gamma / (x - 1)), places=9)
        cosine = (1 - gamma / (x - 1) ** 2) / (1 + gamma / (x - 1))
        np.testing.assert_allclose(found.squared_cosines, [cosine, 0], rtol=1e-9)
        spread = 2 * x * (2 * (1 - gamma / (x - 1) ** 2) / 400) ** 0.5  # Baik and Silverstein, Paul: of the sample's
        self.assertAlmostEqual(found.sample_eigenvalue_deviations[0], spread, places=9)
        self.assertTrue(np.isnan(found.sample_eigenvalue_deviations[1]))
        self.assertTrue(np.isnan(spiked.covariance_theory([8.0], aspect=2).squared_cosine_deviations[0]))

    def test_what_is_impossible(self):
        for arguments, text in (
            ({"population": []}, "^population is empty"),
            ({"population": [3]}, "aspect"),
            ({"population": [3], "aspect": 2, "noise_variance": 0}, "noise-variance"),
            ({"population": ["a"], "aspect": 2}, "texts"),
        ):
            with self.subTest(arguments=arguments), self.assertRaisesRegex(spiked.errors.SpikedError, text):
                spiked.covariance_theory(**arguments)


class Symmetric(unittest.TestCase):
    """The spiked Wigner model: s is seen at s + 1 / s, with a squared overlap 1 - 1 / s^2."""

    def matrix(self, n, strengths, seed, hermitian=False):
        rng = np.random.default_rng(seed)

        def normal(*shape):
            return rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if hermitian else 0)

        noise = normal(n, n)
        noise = (noise + noise.conj().T) / (2 * np.sqrt(n * (1 if hermitian else 0.5)))
        vectors = np.linalg.qr(normal(n, len(strengths)))[0]
        signal = (vectors * strengths) @ vectors.conj().T
        return signal, signal + noise

    def test_closed_forms(self):
        found = spiked.symmetric_theory([3.0, -2.0, 0.5], 200, noise_level=2.0)
        np.testing.assert_allclose(found.eigenvalues, [3 + 4 / 3, -4, 4], rtol=1e-12)
        np.testing.assert_allclose(found.overlaps, [1 - 4 / 9, 0, 0], rtol=1e-12)
        self.assertAlmostEqual(found.eigenvalue_deviations[0], (2 * 4 * (1 - 4 / 9) / 200) ** 0.5, places=12)
        self.assertTrue(np.isnan(found.eigenvalue_deviations[2]))
        self.assertTrue(np.isnan(spiked.symmetric_theory([3.0]).critical_modulus))
        hollow = spiked.symmetric_theory(size=200, noise_level=2.0, diagonal=0)
        self.assertAlmostEqual(found.critical_modulus - hollow.critical_modulus, 2 * 2 / 200, places=9)

    def test_components_of_both_signs(self):
        for hermitian in (False, True):
            signal, X = self.matrix(150, [-4.0, 3.0], 1, hermitian)
            found = spiked.symmetric_components(X)
            self.assertEqual(np.sign(found.strengths).tolist(), [-1, 1])
            np.testing.assert_allclose(found.strengths, [-4, 3], atol=0.5)    # about four standard deviations
            np.testing.assert_allclose(found.eigenvalues[[-1, 0]], np.linalg.eigvalsh(X)[[0, -1]], rtol=1e-9)
            error = np.linalg.norm(found.signal - signal)
            self.assertEqual(np.iscomplexobj(found.signal), hermitian)
            squares, overlaps = np.array([16, 9]), 1 - 1 / np.array([16, 9])
            limit = np.sqrt(np.sum(squares * (1 - overlaps**2)))    # the least loss of the model
            self.assertLess(abs(error / limit - 1), 0.15)
            self.assertTrue(np.all(found.strength_intervals[:, 0] < found.strengths))
            vectors = np.linalg.eigh(X)
            kept = (vectors[1][:, [0, -1]] * vectors[0][[0, -1]]) @ vectors[1][:, [0, -1]].conj().T
            self.assertLess(error, np.linalg.norm(kept - signal))    # control: the same components, not shrunk

    def test_what_is_impossible(self):
        ok = self.matrix(20, [3.0], 2)[1]
        for X, options, text in (
            (ok[:, :10], {}, "as many rows as columns"),
            (ok + np.triu(np.ones((20, 20)), 1), {}, "not symmetric"),
            (ok, {"level": 2}, "level"),
            (ok, {"noise": "mode"}, "mean|median"),
            (ok, {"loss": "l1"}, "loss"),
        ):
            with self.subTest(options=options), self.assertRaisesRegex(spiked.errors.SpikedError, text):
                spiked.symmetric_components(X, **options)
        with self.assertRaisesRegex(spiked.errors.UsageError, "diagonal has no effect without --size"):
            spiked.symmetric_theory([3.0], diagonal=1)


class Profiles(unittest.TestCase):
    def test_a_product_of_variances_has_the_separable_law(self):
        rows, columns = np.repeat([1.0, 3.0], 20), np.repeat([0.5, 2.0], 30)
        expected = spiked.theory(rows, columns, aspect=40 / 60, strengths=[5.0, 1.0])
        found = spiked.profile_theory(np.outer(rows, columns), strengths=[5.0, 1.0])
        blocks = spiked.profile_theory("blocks:0.5,2/1.5,6", strengths=[5.0, 1.0], aspect=2 / 3)
        for one in (found, blocks):
            for key in ("bulk_edge", "detection_threshold", "tracy_widom_scale"):
                self.assertAlmostEqual(getattr(one, key), getattr(expected, key), places=6)
            np.testing.assert_allclose(one.outliers, expected.outliers, rtol=1e-6)
            np.testing.assert_allclose(one.overlap_left, expected.overlap_left, rtol=1e-6)
            np.testing.assert_allclose(one.shrunk["operator"], expected.shrunk["operator"], rtol=1e-6)
        elsewhere = spiked.profile_theory("blocks:0.5,2/1.5,6", [5.0], 2 / 3, left_squares=[1, 0], right_squares=[1, 0])
        self.assertGreater(elsewhere.overlap_left[0], blocks.overlap_left[0])  # where the noise is weakest

    def test_what_is_impossible(self):
        for variances, text in ((np.ones(3), "shape"), ("block:1", "blocks"), (-np.ones((2, 2)), "-1")):
            with self.subTest(variances=variances), self.assertRaisesRegex(spiked.errors.SpikedError, text):
                spiked.profile_theory(variances, aspect=1.0)


class Errors(unittest.TestCase):
    def test_each_is_one_clear_exception(self):
        for arguments, text in (
            ({"row": "arr1:0.5"}, 'did you mean "ar1"|unknown spectrum'),
            ({"row": [1, -1]}, "-1"),
            ({"row": ([1, 2], [0.5])}, "2 eigenvalues and 1 weights"),
            ({"row": ([1, 2], [0.5, 0.9])}, "1.4|sum"),
            ({"aspect": 0}, "aspect"),
            ({"strengths": [-1]}, "-1"),
            ({"strengths": ["a"]}, "texts"),
            ({"row": []}, "^row is empty"),
            ({"col": ([], [])}, "^col is empty"),
        ):
            with self.subTest(arguments=arguments), self.assertRaisesRegex(ValueError, text):
                spiked.theory(**arguments)
        with self.assertRaisesRegex(spiked.errors.UsageError, "^points is 1 "):
            spiked.theory().curve(1)

    def test_a_law_can_be_pickled_and_copied(self):
        for row in ("ar1:0.5", [1.0, 2.0], ([1.0, 2.0], [0.25, 0.75])):
            law = spiked.theory(row=row, aspect=0.5, strengths=[3.0])
            for again in (pickle.loads(pickle.dumps(law)), copy.deepcopy(law)):
                self.assertEqual(again.bulk_edge, law.bulk_edge)
                self.assertEqual(again.cdf(1.0), law.cdf(1.0))

    def test_sizes_and_strengths_of_other_kinds(self):
        self.assertEqual(spiked.theory(strengths=3.0).strengths.tolist(), [3.0])
        self.assertEqual(spiked.theory().density([]).shape, (0,))
        for size in ((100, 0), (100, 2.5), 100):
            with self.assertRaisesRegex(ValueError, "^size"):
                spiked.theory(size=size)

    def test_columns_of_repr_are_apart(self):
        head, row = repr(spiked.theory(strengths=[1.23456e-100])).splitlines()[1:]
        self.assertEqual(len(row.split()[:3]), 3)
        self.assertEqual(float(row.split()[0]), 1.23456e-100)
        self.assertEqual(head.index("outlier") + len("outlier"), 25)

    def test_repr_names_what_is_not_detectable(self):
        self.assertIn("not detectable", repr(spiked.theory(strengths=[0.5])))
        self.assertNotIn("not detectable", repr(spiked.theory(strengths=[2.0])))


if __name__ == "__main__":
    unittest.main()
