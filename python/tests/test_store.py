"""Studies: run, resume, tables, reports, errors and Ctrl-C."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import numpy as np
import spiked
from support import TINY_STUDY, command


class Studies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.study = cls.folder / "tiny.toml"
        cls.study.write_text(TINY_STUDY)
        cls.store = spiked.run(cls.study, output=cls.folder / "tiny.spiked")

    def test_a_store_tells_how_it_ended(self):
        self.assertEqual((self.store.result["status"], self.store.result["replicates"]), ("complete", 40))
        self.assertIn("complete, 40 replicates", repr(self.store))
        self.assertEqual(spiked.run(self.study, output=self.store.path).result["replicates"], 40)

    def test_tables_are_frames_where_pandas_is_there(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is not installed")
        expected = command("export", self.store.path, "--table", "summary", "--format", "json")["rows"]
        found = self.store.table("summary")
        self.assertIsInstance(found, pandas.DataFrame)
        self.assertEqual(len(found), len(expected))
        self.assertEqual(found["mean"].tolist(), [row["mean"] for row in expected])
        empty = self.store.table("failures")
        self.assertEqual((len(empty), len(empty.columns) > 1), (0, True))

    def test_tables_are_structured_arrays_otherwise(self):
        expected = command("export", self.store.path, "--table", "values", "--format", "json")["rows"]
        with mock.patch.dict(sys.modules, {"pandas": None}):
            found = self.store.table("values")
            summary = self.store.table("summary")
            empty = self.store.table("failures")
            for name in spiked.store.TABLES:
                self.store.table(name)
        self.assertEqual(found.dtype.names, tuple(expected[0]))
        self.assertEqual(found["value"].tolist(), [row["value"] for row in expected])
        self.assertEqual(
            (found["rep"].dtype.kind, found["method"].dtype.kind, found["value"].dtype.kind), ("i", "U", "f")
        )
        rank = (summary["method"] == "eoptshrink") & (summary["metric"] == "rank")
        ranks = found["value"][(found["method"] == "eoptshrink") & (found["metric"] == "rank")]
        self.assertEqual(len(ranks), 40)
        np.testing.assert_allclose(summary["mean"][rank], ranks.mean())
        self.assertEqual((empty.shape, len(empty.dtype.names) > 1), ((0,), True))

    def test_settings_are_passed_on(self):
        store = spiked.run(
            self.study,
            output=self.folder / "set.spiked",
            set={
                "run.reps": {"min": 3, "batch": 3},
                "model.signal.strength": [2.5, 1.5],
                "study.name": 'with "quotes"',
            },
            seed=0x77,
            threads=1,
        )
        self.assertEqual((store.result["replicates"], store.result["name"]), (3, 'with "quotes"'))
        self.assertEqual(int(store.result["seed"], 16), 0x77)

    def test_settings_of_numpy_and_paths_are_written_as_toml(self):
        for value, text in (
            (np.bool_(True), "true"),
            (np.array(3), "3"),
            (np.array([1.5, 2.0]), "[1.5, 2.0]"),
            (np.float32(0.5), "0.5"),
            (pathlib.Path("a b"), '"a b"'),
            ({"x": (True, "y")}, '{ "x" = [true, "y"] }'),
        ):
            self.assertEqual(spiked.store._toml(value, "key"), text)
        for value in (None, {"x": None}, [object()], 2j):
            with self.assertRaisesRegex(spiked.errors.InputError, "^set has .* for model"):
                spiked.run(self.study, set={"model": value})
        with self.assertRaisesRegex(spiked.errors.InputError, "pass a mapping"):
            spiked.run(self.study, set="model.n=3")

    def test_paths_of_every_kind(self):
        self.assertEqual(spiked.Store(os.fsencode(self.store.path)).path, self.store.path)
        found = spiked.run(os.fsencode(self.study), output=os.fsencode(self.store.path))
        self.assertEqual(found.path, self.store.path)
        for path in (None, 3):
            for call in (spiked.Store, spiked.run):
                with self.assertRaisesRegex(spiked.errors.InputError, "is no path"):
                    call(path)
        with self.assertRaisesRegex(spiked.errors.InputError, "character 0"):
            spiked.run("a\0b")

    def test_checks_decide_whether_it_passed(self):
        self.assertFalse(self.store.passed)
        for margin, verdict in ((0.05, "passed"), (0.0001, None)):
            study = self.folder / "check.toml"
            study.write_text(TINY_STUDY + f'[[check]]\nclaim = "overlap.left"\nmargin = {{ abs = {margin} }}\n')
            store = spiked.run(study, output=self.folder / f"check-{margin}.spiked")
            self.assertEqual(store.passed, verdict == "passed", store)

    def test_reports_are_written_and_shown(self):
        with mock.patch("webbrowser.open") as opened:
            page = self.store.report()
            self.assertEqual(page, self.store.path.with_suffix(".html"))
            opened.assert_called_once_with(page.resolve().as_uri())
            other = self.store.report(self.folder / "other.html", show=False)
            self.assertEqual(opened.call_count, 1)
        self.assertIn("tiny", other.read_text())
        with self.assertRaises(OSError):
            self.store.report(self.study / "page.html", show=False)

    def test_errors_are_those_of_the_command(self):
        wrong = self.folder / "wrong.toml"
        wrong.write_text(TINY_STUDY.replace('"eoptshrink"', '"eoptshrnk"'))
        with self.assertRaisesRegex(spiked.errors.UsageError, 'wrong.toml:.*did you mean "eoptshrink"'):
            spiked.run(wrong, output=self.folder / "wrong.spiked")
        with self.assertRaisesRegex(spiked.errors.UsageError, "table"):
            self.store.table("sumary")
        with self.assertRaisesRegex(spiked.errors.InputError, "no such file"):
            spiked.Store(self.folder / "missing.spiked")
        with self.assertRaises(ValueError):
            spiked.Store(self.study).table()
        with self.assertRaises(OSError):
            spiked.run(self.study, output=self.study / "store.spiked")
        with mock.patch.dict(os.environ, {"SPIKED_COMMAND": "/missing/spiked"}):
            with self.assertRaisesRegex(ImportError, "SPIKED_COMMAND=/missing/spiked"):
                self.store.table()

    def test_progress_is_shown_where_asked(self):
        program = "import spiked, sys; spiked.run(sys.argv[1], output=sys.argv[2], progress=bool(int(sys.argv[3])))"
        shown = []
        for progress in "01":
            output = self.folder / f"progress-{progress}.spiked"
            done = subprocess.run(
                [sys.executable, "-c", program, self.study, output, progress], capture_output=True, text=True
            )
            self.assertEqual((done.returncode, done.stdout), (0, ""))
            shown.append(done.stderr)
        self.assertEqual(shown[0], "")
        self.assertIn("plan:", shown[1])

    def has_values(self, store):
        try:
            return len(spiked.Store(store)._rows("values")) > 0
        except ValueError:  # it is being made
            return False

    def interrupt_run(self, store, before=""):
        """Ctrl-C reaches Python alone, as in a notebook, once the study has results."""
        program = f"""
import signal, spiked, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell makes what it runs in the background ignore it
{before}
try:
    spiked.run(sys.argv[1], output=sys.argv[2], set={{"run.reps": {{"min": 1000000, "max": 1000000, "batch": 20}}}})
except KeyboardInterrupt:
    print("stopped")
"""
        process = subprocess.Popen(
            [sys.executable, "-c", program, self.study, store],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        deadline = time.monotonic() + 60
        while not self.has_values(store) and time.monotonic() < deadline:
            time.sleep(0.1)
        os.kill(process.pid, signal.SIGINT)
        try:
            output, _ = process.communicate(timeout=60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        self.assertEqual(output, "stopped\n")

    def test_ctrl_c_that_another_thread_receives_stops_a_study(self):
        store = self.folder / "threads.spiked"
        self.interrupt_run(
            store,
            "threading.Thread(target=time.sleep, args=(120,), daemon=True).start()\n"
            "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])",
        )
        self.assertTrue(self.has_values(store))

    def test_ctrl_c_while_the_command_is_started_stops_it(self):
        started = []

        def popen(words, **options):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)
            started.append(subprocess_popen(["sleep", "60"], **options))
            return started[0]

        subprocess_popen = subprocess.Popen
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        with mock.patch("subprocess.Popen", popen), self.assertRaises(KeyboardInterrupt):
            spiked.run(self.study, output=self.folder / "never.spiked")
        self.assertEqual(started[0].poll(), -signal.SIGTERM)

    def test_a_stopped_study_resumes(self):
        store = self.folder / "long.spiked"
        self.interrupt_run(store)
        self.assertTrue(self.has_values(store))
        with self.assertRaises(spiked.errors.Stopped) as caught:
            spiked.run(
                self.study, store, set={"run.reps": {"min": 1000000, "max": 1000000, "batch": 20}}, max_time="1s"
            )
        found = caught.exception.result
        self.assertEqual((found["status"], found["store"]), ("stopped", str(store)))
        self.assertGreater(found["replicates"], 0)
        self.assertEqual(
            str(caught.exception), f"stopped after {found['replicates']} replicates: the same call resumes {store}"
        )


if __name__ == "__main__":
    unittest.main()
