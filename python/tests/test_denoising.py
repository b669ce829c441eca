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

    def test_for_any_number_of_threads(self):
        X = np.random.default_rng(7).standard_normal((720, 710))  # large enough for threads to share its work
        one = self.compare(X, "svd:3", arguments=("--threads", "3"), threads=1)
        for threads in (0, 2):
            found = spiked.denoise(X, "svd:3", threads=threads)
            np.testing.assert_array_equal(found.signal, one.signal)
            np.testing.assert_array_equal(found.singular_values, one.singular_values)
        for wrong in (-1, 5000):
            with self.assertRaises(spiked.errors.UsageError):
                spiked.denoise(X, threads=wrong)
        with self.assertRaises(spiked.errors.InputError):
            spiked.denoise(X, threads=1.5)

    def test_leading_values_are_those_of_the_command(self):
        """The first matrix is decomposed, the second one large enough for the iteration."""
        large = np.random.default_rng(9).standard_normal((1030, 1100))
        large[:, 0] *= 8.0
        large[:, 1] *= 4.0
        large[7] = 0.0
        for X, values, iterated in ((matrix(), 5, False), (large, 2, True)):
            np.save(self.folder / "data.npy", X)
            document = command("spectrum", self.folder / "data.npy", "--values", values)
            for threads in (0, 1, 2):
                found = spiked.spectrum(X, values, threads=threads)
                self.assertEqual(found.singular_values.tolist(), document["singular_values"])
                self.assertEqual(found.bounds.tolist(), document["value_bounds"])
                self.assertEqual(found.krylov_dimension, document["krylov_dimension"])
                self.assertEqual(found.krylov_dimension is not None, iterated)
            expected = np.linalg.svd(X, compute_uv=False)[:values]
            self.assertTrue(np.all(np.abs(found.singular_values - expected) <= found.bounds))
            self.assertTrue(np.all(found.bounds <= 2e-8 * expected))
            np.testing.assert_allclose(X @ found.right, found.left * found.singular_values, atol=1e-6)
            self.assertEqual((found.left.shape, found.right.shape), ((X.shape[0], values), (X.shape[1], values)))
            self.assertIn(f"{values} values of {X.shape[0]} x {X.shape[1]}", repr(found))
        self.assertFalse(found.left[7].any())

    def test_intervals_and_preparation_are_those_of_the_command(self):
        X = matrix() + np.linspace(0, 3, 60)
        np.save(self.folder / "data.npy", X)
        for name, how, confidence, prepare in (
            ("eoptshrink", "theory", 0.95, {"center": "columns"}),
            ("gd-shrink", "bootstrap", 0.8, {"center": "both"}),
            ("gd-shrink", "theory", 0.5, {"standardize": "columns"}),
            ("svd:2", "theory", 0.95, {"standardize": "rows"}),
        ):
            words = [word for key, value in prepare.items() for word in (f"--{key}", value)]
            document = command(
                "spectrum",
                self.folder / "data.npy",
                "--estimator",
                name,
                "--intervals",
                how,
                "--confidence",
                confidence,
                *words,
            )
            found = spiked.denoise(X, name, intervals=how, confidence=confidence, **prepare)
            self.assertEqual(found.singular_values.tolist(), document["singular_values"])
            expected = document["estimators"][0]
            self.assertEqual(found.next_component_p_value, expected["next_component_p_value"])
            for key in ("strength", "overlap_left", "overlap_right"):
                ends = [[np.nan, np.nan] if pair is None else pair for pair in expected["intervals"][key]]
                np.testing.assert_array_equal(getattr(found.intervals, key), np.reshape(ends, (-1, 2)), f"{name} {key}")
            self.assertEqual(list(found.intervals.reasons), expected["intervals"]["reasons"])
            self.assertEqual((found.intervals.method, found.intervals.confidence), (how, confidence))
            self.assertIn("intervals", repr(found.intervals).lower())

    def test_notes_are_those_of_the_command(self):
        random = np.random.default_rng(7)
        plain = random.standard_normal((60, 300))
        two_bulks = plain * np.repeat([1.0, 5.0], 30)[:, None]
        symmetric = plain[:, :60] + plain[:, :60].T - 20 * np.eye(60)
        few = np.where(random.random(plain.shape) < 0.6, plain, np.nan)
        for X, part, words, options in (
            (plain, None, (), {}),
            (two_bulks, "a gap in the bulk", (), {}),
            (two_bulks, "a gap in the bulk", ("--center", "columns"), {"center": "columns"}),
            (plain @ plain.T, "covariance", (), {}),
            (symmetric, "symmetric", (), {}),
            (plain + 1.0, "mean", (), {}),
            (np.column_stack([np.arange(60), plain]), "counts", (), {}),
            (few, "with only", ("--missing", "uniform"), {"missing": "uniform"}),
            (np.zeros((4, 5)), None, (), {}),
        ):
            np.save(self.folder / "data.npy", X)
            expected = command("spectrum", self.folder / "data.npy", *words)["notes"]
            found = spiked.denoise(X, **options)
            self.assertEqual([note for note in expected if "--keep-empty" not in note], list(found.notes))
            if part is None:
                self.assertEqual(found.notes, ())
            else:
                self.assertTrue(any(part in note for note in found.notes), (part, found.notes))
                self.assertIn(found.notes[0], repr(found))

    def test_components_are_those_of_the_command(self):
        X = np.random.default_rng(3).standard_normal((80, 30)) * np.linspace(0.5, 3, 30) ** 0.1
        X[:, 4] = 7.0
        X[:, 9] *= 4.0
        np.save(self.folder / "data.npy", X)
        kept = np.delete(X, 4, axis=1)
        np.save(self.folder / "kept.npy", kept)
        np.save(self.folder / "covariance.npy", np.cov(kept, rowvar=False))
        for given, words, options in (
            ("data", (), {}),
            ("data", ("--center", "none", "--noise", "median"), {"center": False, "noise": "median"}),
            ("kept", ("--standardize", "columns", "--level", 0.2), {"standardize": True, "level": 0.2}),
            ("data", ("--loss", "stein", "--noise-level", 1.5), {"loss": "stein", "noise_level": 1.5}),
            ("data", ("--shrinker", "debiased"), {"shrinker": "debiased"}),
            ("covariance", ("--covariance", 79), {"covariance_of": 79}),
        ):
            document = command("pca", self.folder / f"{given}.npy", *words)
            found = spiked.pca(np.load(self.folder / f"{given}.npy"), **options)
            for key in (
                "samples",
                "features",
                "degrees_of_freedom",
                "stripped_features",
                "components",
                "noise_level",
                "bulk_edge",
            ):
                self.assertEqual(getattr(found, key), document[key], (words, key))
            for key in ("eigenvalues", "debiased", "debiased_errors", "cosines", "cosine_errors", "shrunk"):
                self.assertEqual(getattr(found, key).tolist(), document[key], (words, key))
            cumulants = found.score_cumulants
            self.assertEqual(None if cumulants is None else cumulants.tolist(), document["score_cumulants"], words)
            self.assertIn(f"{document['components']} above the noise", repr(found))
        self.assertIn("1 constant feature left out", spiked.pca(X).notes)


class Meaning(unittest.TestCase):
    def test_preparation_is_that_of_numpy(self):
        X = matrix() + 3.0
        centred = X - X.mean(axis=0)
        np.testing.assert_allclose(spiked.prepare(X, center="columns"), centred, atol=1e-12)
        np.testing.assert_allclose(
            spiked.prepare(X, center="both"), centred - centred.mean(axis=1)[:, None], atol=1e-12
        )
        np.testing.assert_allclose(
            spiked.prepare(X, standardize="columns"), centred / X.std(axis=0, ddof=1), rtol=1e-9, atol=1e-12
        )
        found = spiked.denoise(X, center="columns")
        np.testing.assert_allclose(found.residual + found.signal, centred, atol=1e-12)
        X[:, 2] = 5.0
        with self.assertWarnsRegex(UserWarning, "1 constant column became zero"):
            spiked.prepare(X, center="columns")
        self.assertEqual(spiked.denoise(X, center="columns").notes, ("1 constant column became zero by centring",))
        for wrong in ({"center": "column"}, {"standardize": "both"}, {"center": "rows", "standardize": "columns"}):
            with self.assertRaises(spiked.errors.UsageError):
                spiked.prepare(X, **wrong)
        with self.assertRaisesRegex(spiked.errors.InputError, "constant"):
            spiked.prepare(X, standardize="columns")

    def test_leading_values_of_any_number_layout_and_dtype(self):
        X = matrix(30, 20)
        expected = np.linalg.svd(X, compute_uv=False)
        for given in (X, X.T, np.asfortranarray(X), X[:, ::-1], X.astype(np.float32).tolist()):
            for values in (1, np.int64(7), 20):
                found = spiked.spectrum(given, values)
                np.testing.assert_allclose(found.singular_values, expected[:values], rtol=1e-6)
                np.testing.assert_allclose(found.left.T @ found.left, np.eye(values), atol=1e-12)
        self.assertEqual(len(repr(found).splitlines()), 10)
        padded = np.zeros((30, 25))
        padded[:, :4] = X[:, :4]
        self.assertEqual(spiked.spectrum(padded, 6).singular_values.size, 4)
        self.assertEqual(spiked.spectrum(padded, 6).left.shape, (30, 4))
        self.assertEqual(spiked.spectrum(padded, 6, keep_empty=True).singular_values.size, 6)
        self.assertEqual(spiked.spectrum(np.zeros((3, 4)), 2).right.shape, (4, 0))
        for wrong, words in (
            (0, "^values is 0 .a 30 x 20 matrix has 20 singular values.: pass 1 to 20$"),
            (21, "^values is 21 .*pass 1 to 20$"),
            (-(2**63), "pass 1 to 20$"),
        ):
            with self.assertRaisesRegex(spiked.errors.UsageError, words):
                spiked.spectrum(X, wrong)
        for wrong in (2.5, "3", None, 2**64):
            with self.assertRaisesRegex(spiked.errors.InputError, "^values is "):
                spiked.spectrum(X, wrong)
        X[3, 4] = np.nan
        with self.assertRaisesRegex(spiked.errors.InputError, "^X: 1 NaN"):
            spiked.spectrum(X, 1)

    def test_pca_finds_eigenvalues_of_the_covariance(self):
        rng = np.random.default_rng(5)
        X = rng.standard_normal((400, 40)) * np.r_[4.0, np.ones(39)]
        found = spiked.pca(X)
        np.testing.assert_allclose(found.eigenvalues, np.linalg.eigvalsh(np.cov(X, rowvar=False))[::-1], rtol=1e-9)
        self.assertEqual(found.components, 1)
        self.assertLess(abs(found.debiased[0] - 16.0), 4 * found.debiased_errors[0])
        for wrong in (
            {"noise_level": -1.0},
            {"level": 2.0},
            {"shrinker": "x"},
            {"noise": "x"},
            {"loss": "x"},
            {"covariance_of": 1},
        ):
            with self.assertRaises(spiked.errors.UsageError, msg=str(wrong)):
                spiked.pca(X, **wrong)
        with self.assertRaises(spiked.errors.InputError):
            spiked.pca(X[:1])

    def test_intervals_that_are_no_intervals_are_errors(self):
        X = matrix()
        self.assertIsNone(spiked.denoise(X).intervals)
        for wrong in (
            {"intervals": "guess"},
            {"intervals": "theory", "confidence": 1.0},
            {"intervals": "theory", "confidence": np.nan},
        ):
            with self.assertRaises(spiked.errors.UsageError):
                spiked.denoise(X, **wrong)

    def test_intervals_hold_the_truth_as_often_as_they_say(self):
        """40 matrices with 2 strengths at 90 %: fewer than 60 of 80 would be 4.5 deviations below 72."""
        inside = 0
        for seed in range(40):
            ends = spiked.denoise(matrix(seed=seed), intervals="theory", confidence=0.9).intervals.strength
            inside += sum(low <= truth <= high for (low, high), truth in zip(ends, (4.0, 3.0)))
        self.assertGreaterEqual(inside, 60)
        self.assertLess(inside, 80)

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
            (spiked.eoptshrink(X, margin=1e20), "eoptshrink:margin=1e20"),
            (spiked.eoptshrink(X, margin=np.float64(1e-20)), "eoptshrink:margin=1e-20"),
            (spiked.gavish_donoho(X, sigma=0.125), "gd-shrink:sigma=0.125"),
            (spiked.gavish_donoho(1e30 * X, sigma=1e30), "gd-shrink:sigma=1e30"),
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
        self.assertIn(f"40 x 60, rank 2, bulk edge at singular value {found.bulk_edge**0.5:.6g}", text)
        self.assertEqual(len(text.splitlines()), 4)
        kept = repr(spiked.denoise(matrix(), "svd:10"))
        self.assertIn("and 2 more", kept)
        self.assertNotIn("nan", kept)  # it estimates no strengths and overlaps
        self.assertEqual([kept.splitlines()[2].split()[i] for i in (1, 3, 4)], ["-", "-", "-"])

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
