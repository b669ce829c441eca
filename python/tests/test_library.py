"""Calls: memory, threads, fork, Ctrl-C, what is loaded and when."""

import ctypes
import os
import re
import signal
import threading
import unittest

import numpy as np
import spiked
from spiked import _estimate_buffers, _library, _waiting, quantization
from support import ROOT, matrix, run_python


def resident_kib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


class Memory(unittest.TestCase):
    def test_a_hundred_thousand_calls_do_not_grow(self):
        X = matrix(6, 8, (4.0,))
        codec = spiked.Codec("tq-mse", 8, 2)

        def calls(count):
            for _ in range(count):
                spiked.denoise(X)
                codec.decode(codec.encode(X))
                try:
                    spiked.denoise(X, "unknown")
                except ValueError:
                    pass
            for _ in range(count // 200):
                spiked.Codec("tq-mse", 8, 2)
                spiked.theory(aspect=0.5, strengths=[2.0]).cdf([1.0])
            spiked.roundtrip(codec, X[None])

        calls(500)
        before = resident_kib()
        calls(25000)
        # 10 bytes a call would be 1 MiB for these 100,000 calls.
        self.assertLess(resident_kib() - before, 1024)


class Threads(unittest.TestCase):
    def test_two_threads_get_the_answers_of_one(self):
        matrices = [matrix(40, 60, seed=seed) for seed in range(8)]
        codec = spiked.Codec("eoptshrink+tq-mse", 60, 2)
        expected = [(spiked.denoise(X).signal, codec.encode(X).bytes) for X in matrices]
        problems = []

        def task(order):
            for _ in range(5):
                for i in order:
                    signal_, code = spiked.denoise(matrices[i]).signal, codec.encode(matrices[i]).bytes
                    if not np.array_equal(signal_, expected[i][0]) or code != expected[i][1]:
                        problems.append(i)
                    try:
                        spiked.denoise(matrices[i], f"unknown{i}")
                    except ValueError as problem:
                        if f"unknown{i}" not in str(problem):
                            problems.append(str(problem))

        threads = [threading.Thread(target=task, args=(order,)) for order in (range(8), reversed(range(8)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(problems, [])

    def test_other_threads_run_during_a_call(self):
        X = matrix(500, 500, (4.0,))
        ticks = 0
        ended = threading.Event()
        library = _library.library()
        values, described = np.empty((500, 500)), _library.matrix_of(X)
        output = _library.matrix_of(values)

        def call():
            library.spiked_denoise_intervals(
                described, b"eoptshrink", None, None, None, 0, None, None, output, None, None
            )
            ended.set()

        thread = threading.Thread(target=call)
        thread.start()
        while not ended.wait(0.001):
            ticks += 1
        thread.join()
        self.assertGreater(ticks, 3)


class Fork(unittest.TestCase):
    def test_a_child_computes_as_its_parent(self):
        X = matrix()
        codec = spiked.Codec("eoptshrink+tq-mse", 60, 2)
        blocks = np.stack([X] * 4)
        expected = spiked.denoise(X).signal, codec.encode(X).bytes, spiked.roundtrip(codec, blocks, threads=2).decoded
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            same = (
                np.array_equal(spiked.denoise(X).signal, expected[0])
                and codec.encode(X).bytes == expected[1]
                and np.array_equal(spiked.roundtrip(codec, blocks, threads=2).decoded, expected[2])
            )
            os._exit(0 if same else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_a_child_has_the_number_of_threads_from_before(self):
        done = run_python(FORKED)
        if done.returncode == 77:
            self.skipTest("there is no OpenBLAS with threads")
        self.assertEqual(done.stdout, "2 2 2\n", done.stderr)


FORKED = """
import ctypes, os, threading, time
import numpy as np, spiked
try:
    blas = ctypes.CDLL("libopenblas.so.0")
except OSError:
    os._exit(77)
spiked.denoise(np.eye(3))
blas.openblas_set_num_threads(2)
before = blas.openblas_get_num_threads()
X = np.random.default_rng(0).standard_normal((1000, 1000))
thread = threading.Thread(target=spiked.denoise, args=(X,))
thread.start()
while before > 1 and blas.openblas_get_num_threads() != 1 and thread.is_alive():
    time.sleep(0.001)
if before == 1 or not thread.is_alive():
    os._exit(77)
child = os.fork()
if child == 0:
    os._exit(blas.openblas_get_num_threads())
status = os.waitpid(child, 0)[1]
thread.join()
print(before, status >> 8, blas.openblas_get_num_threads())
"""


# Prints the processor time until the exception, which does not depend on what else the machine does.
INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np, spiked
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell makes what it runs in the background ignore it
started = time.process_time()
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    {call}
    print("ended")
except KeyboardInterrupt:
    print("stopped", time.process_time() - started)
"""


# Interrupts a call after a tenth of the time that it takes, and prints the processor time until its thread has ended, over
# that of the whole call.
STOPPED = """
import os, signal, threading, time
import numpy as np, spiked
signal.signal(signal.SIGINT, signal.default_int_handler)
X = np.random.default_rng(0).standard_normal((1200, 1200))
expected = spiked.denoise(X[:60]).signal
codec = spiked.Codec("svd:4+tq-mse", 1200, 2)
calls = {{
    "denoise": lambda: spiked.denoise(X),
    "pca": lambda: spiked.pca(X),
    "spectrum": lambda: spiked.spectrum(X, 6),
    "roundtrip": lambda: spiked.roundtrip(codec, X[None]),
    "encode": lambda: codec.encode(X),
}}
started, used = time.monotonic(), time.process_time()
calls["{name}"]()
whole, used = time.monotonic() - started, time.process_time() - used
started = time.process_time()
threading.Timer(whole / 10, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    calls["{name}"]()
    print("ended")
except KeyboardInterrupt:
    for thread in threading.enumerate():
        if thread.name == "spiked":
            thread.join()
    same = np.array_equal(spiked.denoise(X[:60]).signal, expected)
    print("stopped", same, (time.process_time() - started) / used)
"""


# Interrupts a call early in the some 10 seconds that its 49,999 copies take, and prints whether its thread ended soon.
COPIES = """
import os, signal, threading, time
import numpy as np, spiked
signal.signal(signal.SIGINT, signal.default_int_handler)
X = np.random.default_rng(0).standard_normal((100, 150)) + 1
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    spiked.denoise(X, "{method}")
    print("ended")
except KeyboardInterrupt:
    for thread in threading.enumerate():
        if thread.name == "spiked":
            thread.join(2.0)
    print("stopped", not any(thread.name == "spiked" for thread in threading.enumerate()))
"""


class Interruption(unittest.TestCase):
    def check(self, call, longest):
        done = run_python(INTERRUPTED.format(call=call))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        words = done.stdout.split()
        self.assertEqual(words[0], "stopped")
        self.assertLess(float(words[1]), longest)

    ROUNDTRIP = (
        "spiked.roundtrip(spiked.Codec('svd:8+tq-mse', 128, 2), np.broadcast_to(np.eye(128, dtype='f4'), (10000, 128, 128)), threads=1)"
    )

    def test_ctrl_c_stops_a_roundtrip(self):
        self.check(self.ROUNDTRIP, 5.0)

    def test_ctrl_c_that_another_thread_receives_stops_a_roundtrip(self):
        self.check("signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]); " + self.ROUNDTRIP, 5.0)

    def test_ctrl_c_returns_from_an_encoder_that_searches(self):
        self.check("spiked.Codec('tcq', 64, 4).encode(np.random.default_rng(0).standard_normal((20000, 64)))", 2.0)

    def test_ctrl_c_stops_ranks_by_copies_of_a_block_between_them(self):
        for method in ("svd:pa:level=0.00002", "tw-test:level=0.00002:null=signflip"):
            with self.subTest(method):
                done = run_python(COPIES.format(method=method))
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(done.stdout, "stopped True\n")

    def test_ctrl_c_stops_a_decomposition_and_the_next_call_is_as_before(self):
        for name in ("denoise", "spectrum", "pca", "roundtrip", "encode"):
            with self.subTest(name):
                done = run_python(STOPPED.format(name=name))
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                words = done.stdout.split()
                self.assertEqual(words[:2], ["stopped", "True"])
                self.assertLess(float(words[2]), 0.8)

    def test_each_ctrl_c_asks_the_call_to_stop_and_the_second_does_not_wait(self):
        asked = []
        ended = threading.Event()
        self.addCleanup(ended.set)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        for pause in (0.2, 0.6):
            threading.Timer(pause, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            _waiting.interruptible(lambda: ended.wait(30.0), lambda: asked.append(ended.is_set()))
        self.assertEqual(asked, [False, False])

    def test_ctrl_c_returns_from_a_preparation(self):
        self.check("spiked.prepare(np.ones((6000, 4000)), center='both')", 5.0)

    def test_the_work_of_a_method_is_estimated_by_its_name(self):
        for method, cost in (
            ("eoptshrink:paper", 1.0),
            ("unrope+svd:2", 1.0),
            ("eoptshrink:rank=pa", 65535.0),
            ("svd:pa+tq-mse", 65535.0),
            ("tw-test:null=signflip", 65535.0),
            ("svd:bcv", 65535.0),
            ("optshrink:ddpa", 65535.0),
            ("tcq", 200.0),
        ):
            self.assertEqual(_library.cost_of(method), cost, method)


class Runner(unittest.TestCase):
    def test_a_failure_is_no_skip_however_much_is_skipped(self):
        import run_tests

        class Cases(unittest.TestCase):
            def fails(self):
                for part in range(3):
                    with self.subTest(part):
                        self.skipTest("a part")
                self.fail("on purpose")

            def skips(self):
                self.skipTest("all of it")

            def passes(self):
                pass

        for names, code in ((["fails"], 1), (["skips"], 77), (["passes", "skips"], 0), (["passes"], 0), ([], 1)):
            result = unittest.TestResult()
            unittest.TestSuite(map(Cases, names)).run(result)
            self.assertEqual(run_tests.exit_code(result), code, names)


class Addresses(unittest.TestCase):
    def test_are_those_of_numpy(self):
        X = np.arange(12.0).reshape(3, 4)
        fixed = X.copy()
        fixed.flags.writeable = False
        codes = np.zeros(2, _library.CODE)
        for array in (X, X.T, X[:, 1:], X[::-1], X[:0], fixed, X.astype("f4"), codes, np.broadcast_to(X[:1], (3, 4))):
            self.assertEqual(_library.address_of(array), array.ctypes.data)


class Loading(unittest.TestCase):
    def test_importing_loads_numpy_alone(self):
        done = run_python(
            "import sys, spiked; print([m for m in ('pandas', 'torch', 'sklearn', 'matplotlib', 'scipy') if m in sys.modules], "
            "spiked._library._loaded)"
        )
        self.assertEqual(done.stdout, "[] None\n", done.stderr)

    def test_a_missing_library_says_where_it_was_looked_for(self):
        done = run_python(
            "import os; os.environ['SPIKED_LIBRARY'] = '/missing/libspiked.so.0'\n"
            "import spiked\n"
            "try:\n    spiked.denoise([[1.0]])\n"
            "except ImportError as problem:\n    print(type(problem).__name__, problem)"
        )
        self.assertRegex(
            done.stdout, "^LibraryNotFound libspiked.so.0 cannot be loaded .*set SPIKED_LIBRARY to its path$"
        )

    def test_the_version_is_that_of_the_project(self):
        self.assertIn(f"VERSION {spiked.__version__} ", (ROOT / "CMakeLists.txt").read_text())

    def test_structures_are_those_of_the_header(self):
        """The fields of each struct in app/c/spiked.h, in order."""
        header = (ROOT / "app/c/spiked.h").read_text()
        for name, fields in (
            ("matrix", [field for field, _ in _library.Matrix._fields_]),
            ("estimate", [field for field, _ in _library.Estimate._fields_]),
            ("intervals", [field for field, _ in _library.Intervals._fields_]),
            ("leading", [field for field, _ in _library.Leading._fields_]),
            ("pca_options", [field for field, _ in _library.PcaOptions._fields_]),
            ("components", [field for field, _ in _library.Components._fields_]),
            ("covariance", [field for field, _ in _library.Covariance._fields_]),
            ("spectrum", [field for field, _ in _library.Spectrum._fields_]),
            ("bulk", [field for field, _ in _library.Bulk._fields_]),
            ("code", list(_library.CODE.names)),
            ("spike", list(_library.SPIKE.names)),
        ):
            body = header[header.index(f"typedef struct spiked_{name} {{") :]
            body = body[body.index("{") + 1 : body.index(f"}} spiked_{name};")]
            found = []
            for line in body.splitlines():
                code = line.split("/*")[0].strip()
                if code.endswith(";"):
                    found.append(code[:-1].split("[")[0].split()[-1].lstrip("*"))
            self.assertEqual(found, fields, name)
        for packed, fields in (
            (_library.MATRIX.size, ctypes.sizeof(_library.Matrix)),
            (_library.BLOCKS.size, ctypes.sizeof(_library.Matrix) + 16),
            (_library.ESTIMATE_GIVEN.size, _library.Estimate.values.offset),
            (_library.ESTIMATE_GIVEN.size + _library.ESTIMATE_FOUND.size, ctypes.sizeof(_library.Estimate)),
            (_estimate_buffers._HEAD * 8, ctypes.sizeof(_library.Estimate)),
            (quantization._CODE.size, _library.CODE.itemsize),
        ):
            self.assertEqual(packed, fields)

    def test_functions_are_those_of_the_header_and_all_are_exported(self):
        header = re.sub(r"/\*.*?\*/", "", (ROOT / "app/c/spiked.h").read_text(), flags=re.S)
        declared = set(re.findall(r"\b(spiked_\w+)\(", header))
        exported = re.findall(r"^ +(spiked_\w+);$", (ROOT / "app/c/spiked.map").read_text(), re.M)
        self.assertEqual(sorted(declared), sorted(exported))
        self.assertEqual(set(_library._FUNCTIONS) - declared, set())


class Errors(unittest.TestCase):
    def test_each_is_the_built_in_exception_of_its_kind(self):
        errors = spiked.errors
        for kind, built_in, exit_code in (
            (errors.UsageError, ValueError, 2),
            (errors.InputError, ValueError, 4),
            (errors.FailedReplicates, RuntimeError, 5),
            (errors.OutputError, OSError, 6),
            (errors.OutOfMemory, MemoryError, 7),
            (errors.InternalError, RuntimeError, 70),
            (errors.Stopped, RuntimeError, 75),
        ):
            found = errors.error_of(exit_code, "the text")
            self.assertIsInstance(found, kind)
            self.assertIsInstance(found, built_in)
            self.assertIsInstance(found, spiked.SpikedError)
            self.assertEqual((str(found), found.exit_code), ("the text", exit_code))
        self.assertIsInstance(errors.error_of(99, "x"), errors.InternalError)


class Methods(unittest.TestCase):
    def test_every_listed_name_works(self):
        X = matrix(20, 24, (4.0,))
        for entry in spiked.list_methods():
            self.assertTrue(entry["summary"] and entry["source"], entry)
            name = entry["form"].replace(":R", ":2").replace(":K", ":2")
            self.assertLessEqual(spiked.denoise(X, name).rank, 20, name)
        for entry in spiked.list_methods("quantizers"):
            bits = 2 if 2 in entry["bits"] else entry["bits"][0]
            self.assertEqual(spiked.quantize(X, entry["form"], bits).decoded.shape, X.shape, entry["name"])
        self.assertIn("ar1", [entry["name"] for entry in spiked.list_methods("spectra")])
        with self.assertRaisesRegex(ValueError, "topic"):
            spiked.list_methods("colours")

    def test_the_library_knows_every_topic_that_the_package_asks_for(self):
        # Also the parts that need PyTorch, which may not be installed here.
        package = ROOT / "python/spiked"
        asked = {topic for file in package.rglob("*.py") for topic in re.findall(r'list_methods\("([^"]+)"\)', file.read_text())}
        self.assertGreaterEqual(asked, {"quantizers", "caches"})
        for topic in asked:
            self.assertTrue(spiked.list_methods(topic), topic)
        names = [entry["name"] for entry in spiked.list_methods("caches")]
        for name in ("causal-klt", "causal-klt-joint", "kvtc"):
            self.assertIn(name, names)


if __name__ == "__main__":
    unittest.main()
