"""Spiked: spectral denoising of matrices, the limits of spiked models, and codes of matrices with their bits and errors.

====================================================  =================================================================
`denoise`, `eoptshrink`, `gavish_donoho`, `screenot`  the low-rank signal of a noisy matrix
`shrink`                                              the same from singular values
`spectrum`                                            the largest singular values of a matrix
`pca`                                                 noise level and components of a sample covariance
`prepare`                                             centred and standardized matrices
`theory`                                              edges, detection thresholds, overlaps, optimal shrinkage
`symmetric_components`, `symmetric_theory`            both for symmetric and Hermitian matrices
`covariance_theory`, `profile_theory`                 the same for principal components, and for unequal variances
`quantize`, `Codec`, `roundtrip`                      compressed matrices
`run`, `Store`                                        studies
`list_methods`                                        all names
`spiked.sklearn.SpectralDenoiser`                     an estimator for scikit-learn
`spiked.hf`                                           compressed caches for models of Hugging Face
====================================================  =================================================================

Matrices are NumPy arrays or PyTorch tensors of real numbers; rows are observations (tokens), columns variables (channels).
``help(spiked.denoise)`` and so on describe arguments, results, errors and sources.

>>> import numpy as np, spiked
>>> X = np.random.default_rng(0).standard_normal((60, 80)) / 80**0.5
>>> X[:, 0] += 0.4                                  # a signal of rank 1 in white noise
>>> found = spiked.denoise(X)
>>> found.rank, found.signal.shape
(1, (60, 80))
>>> code = spiked.Codec("tq-mse", dim=80, bits=2).encode(X)
>>> len(code.bytes), X.nbytes
(1320, 38400)
"""

from . import errors
from .components import PrincipalComponents, pca
from .denoising import denoise, eoptshrink, gavish_donoho, screenot, shrink
from .errors import SpikedError
from .estimates import Denoised, Estimate, Intervals
from .laws import Theory, theory
from .leading import Spectrum, spectrum
from .methods import list_methods
from .models import CovarianceTheory, ProfileTheory, covariance_theory, profile_theory
from .preparation import prepare
from .quantization import Codec, Encoded, Quantized, Roundtrip, quantize, roundtrip
from .store import Store, run
from .streams import Stream
from .symmetric import SymmetricComponents, SymmetricTheory, symmetric_components, symmetric_theory

__all__ = [
    "Codec",
    "CovarianceTheory",
    "Denoised",
    "Encoded",
    "Estimate",
    "Intervals",
    "PrincipalComponents",
    "ProfileTheory",
    "Quantized",
    "Roundtrip",
    "Spectrum",
    "SpikedError",
    "Store",
    "Stream",
    "SymmetricComponents",
    "SymmetricTheory",
    "Theory",
    "covariance_theory",
    "denoise",
    "eoptshrink",
    "errors",
    "gavish_donoho",
    "list_methods",
    "pca",
    "prepare",
    "profile_theory",
    "quantize",
    "roundtrip",
    "run",
    "screenot",
    "shrink",
    "spectrum",
    "symmetric_components",
    "symmetric_theory",
    "theory",
]


def __getattr__(name: str) -> str:
    if name == "__version__":  # of the library, which is loaded by its first use
        from ._library import library, text_of

        return text_of(library().spiked_version())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
