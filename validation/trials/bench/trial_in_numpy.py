# Appended to numpy_peer.py, whose functions it uses.
class Work:
    """The trial of `spiked bench trial` in NumPy.
        time METHOD COUNT    runs COUNT trials on new draws; the answer is microseconds per trial
        run METHOD           runs one trial on the normals that follow; the answer is its result
    METHOD selects the decomposition: svd, or eigh of the Gram matrix (blocks are square)."""

    def __init__(self, numpy, header, source):
        self.numpy = numpy
        rows, columns, rank = header["rows"], header["columns"], header["rank"]

        def read(*shape):
            return read_matrix(numpy, source, *shape, numpy.float32)

        self.shape = rows, columns
        self.source = source
        self.row_root = read(rows, rows)
        self.column_root = read(columns, columns)
        self.left = read(rows, rank)
        self.right = numpy.ascontiguousarray(read(columns, rank).T)
        self.rotation = numpy.ascontiguousarray(read(columns, columns).T)
        self.levels = numpy.array(header["levels"], numpy.float32)
        self.thresholds = numpy.array(header["thresholds"], numpy.float32)
        self.generator = numpy.random.default_rng(1)
        self.read = read
        # eOptShrink's constants.
        self.size = min(self.shape)
        self.pilot = int(self.size ** (1 / 2.01))
        self.extrapolation = 1 / (2 ** (2 / 3) - 1)
        self.imputed = (1 - (numpy.arange(self.pilot) / self.pilot) ** (2 / 3)) * self.extrapolation

    def draw(self):
        return self.generator.standard_normal(self.shape, dtype=self.numpy.float32)

    def eoptshrink(self, values):
        numpy, k = self.numpy, self.pilot
        squares = values.astype(numpy.float64) ** 2
        edge = squares[k] + (squares[k] - squares[2 * k]) * self.extrapolation
        rank = numpy.count_nonzero(squares / edge - 1 > self.size ** (-1 / 3))
        anchor, below = squares[rank + k], squares[rank + 2 * k]
        noise = numpy.concatenate((anchor + self.imputed * (anchor - below), squares[rank + k:]))
        outliers = squares[:rank]
        terms = 1 / (noise - outliers[:, None])
        stieltjes = terms.mean(axis=1)
        slope = (terms * terms).mean(axis=1)
        transform = outliers * stieltjes ** 2
        overlap = stieltjes * transform / (stieltjes ** 2 + 2 * outliers * stieltjes * slope)
        return overlap / numpy.sqrt(transform)

    def run(self, white, method):
        numpy = self.numpy
        observed = self.row_root @ white @ self.column_root
        observed += self.left @ self.right
        if method == "svd":
            left, values, right = numpy.linalg.svd(observed, full_matrices=False)
            shrunk = self.eoptshrink(values)
            rank = len(shrunk)
            estimate = (left[:, :rank] * shrunk.astype(numpy.float32)) @ right[:rank]
        else:
            squares, vectors = numpy.linalg.eigh(observed.T @ observed)
            values = numpy.sqrt(numpy.maximum(squares[::-1], 0))
            shrunk = self.eoptshrink(values)
            rank = len(shrunk)
            right = vectors[:, ::-1][:, :rank]
            estimate = ((observed @ right) * (shrunk / values[:rank]).astype(numpy.float32)) @ right.T
        rotated = (observed - estimate) @ self.rotation
        squares = numpy.einsum("ij,ij->i", rotated, rotated)
        columns = numpy.float32(self.shape[1])
        coordinates = rotated * numpy.sqrt(columns / squares)[:, None]
        codes = numpy.searchsorted(self.thresholds, coordinates)
        errors = coordinates - self.levels[codes]
        error = numpy.einsum("ij,ij->i", errors, errors) @ squares / (columns * errors.size)
        return {"rank": rank, "shrunk": shrunk, "mean_squared_error": error}

    def answer(self, command, method, *count):
        if command == "time":
            return {"microseconds": microseconds(lambda: self.run(self.draw(), method), int(count[0]))}
        found = self.run(self.read(*self.shape), method)
        return {"rank": found["rank"], "shrunk": found["shrunk"].tolist(),
                "mean_squared_error": float(found["mean_squared_error"])}
