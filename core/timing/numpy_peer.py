"""The common part of the NumPy programs that Spiked times. Spiked starts them, sends a header line and the data that
belong to it, and then one command per line. The class `Work(numpy, header, source)` is in a file that is appended to
this one; the result of its answer(command, ...) is sent back as a line of JSON."""
import json
import os
import signal
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"
signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it


def blas_of_numpy(numpy):
    """The BLAS and LAPACK that NumPy's modules are linked against: the description by the library itself, and files."""
    import ctypes
    numpy.linalg.svd(numpy.ones((2, 2), numpy.float32))
    with open("/proc/self/maps") as maps:
        files = sorted({line.split(None, 5)[5].strip() for line in maps if "/" in line})

    def named(word):
        return [file for file in files if word in os.path.basename(file)]

    blas = (named("libblas") + named("openblas") + [""])[0]
    described = {"blas": None, "blas_file": blas or None, "lapack_file": (named("liblapack") + [None])[0],
                 "threads": None}
    try:
        library = ctypes.CDLL(blas)
        library.openblas_get_config.restype = ctypes.c_char_p
        described["blas"] = library.openblas_get_config().decode()
        described["threads"] = library.openblas_get_num_threads()
    except (AttributeError, OSError):
        pass
    return described


def read_matrix(numpy, source, rows, columns, kind):
    """Reads a column-major matrix, the storage order of Spiked."""
    entries = numpy.frombuffer(source.read(kind().itemsize * rows * columns), kind)
    return numpy.ascontiguousarray(entries.reshape((rows, columns), order="F"))


def microseconds(work, count):
    begin = time.thread_time()
    work()  # warms the caches, which another process has used
    once = time.thread_time() - begin
    if count == 1 and once > 5.0:
        return once * 1e6  # for which they do not matter
    begin = time.thread_time()
    for _ in range(count):
        work()
    return (time.thread_time() - begin) / count * 1e6


def main(make, source, target):
    def say(document):
        target.write(json.dumps(document).encode() + b"\n")
        target.flush()

    try:
        import numpy
        work = make(numpy, json.loads(source.readline()), source)
        say({"python": sys.version.split()[0], "numpy": numpy.__version__, **blas_of_numpy(numpy)})
        for line in source:
            say(work.answer(*line.decode().split()))
    except Exception as problem:
        say({"error": f"{type(problem).__name__}: {problem}"})
