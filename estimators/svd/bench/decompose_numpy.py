# This file is appended to core/timing/numpy_peer.py, which calls it.
class Work:
    """numpy.linalg.svd of one block.
        time COUNT    runs COUNT of them and answers with the microseconds of each
        values        answers with the singular values"""

    def __init__(self, numpy, header, source):
        self.numpy = numpy
        kind = numpy.float32 if header["precision"] == "float" else numpy.float64
        self.block = read_matrix(numpy, source, header["rows"], header["columns"], kind)

    def svd(self):
        return self.numpy.linalg.svd(self.block, full_matrices=False)

    def answer(self, command, *count):
        if command == "time":
            return {"microseconds": microseconds(self.svd, int(count[0]))}
        return {"values": self.svd()[1].astype(self.numpy.float64).tolist()}
