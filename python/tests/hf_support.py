"""Models and versions of the library transformers for the tests of spiked.hf."""

import functools
import importlib.util
import json
import os
import pathlib
import sys
import tempfile
import types
import unittest
import zipfile
from unittest import mock

import numpy as np

try:
    import torch
    import transformers
except ImportError as problem:
    raise unittest.SkipTest(f"{problem.name} is not installed: make check-hf") from None

torch.set_num_threads(1)
MODELS = os.environ.get("SPIKED_EXTRA_MODELS", "")
WHEELS = os.environ.get("SPIKED_HF_WHEELS", "")


def random_model(kind="Mistral", layers=2, seed=0, **changes):
    """A small model with random weights, two heads of 32 for keys and four for queries."""
    torch.manual_seed(seed)
    options = {
        "vocab_size": 97,
        "hidden_size": 128,
        "intermediate_size": 96,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 1024,
        "sliding_window": None,
        "initializer_range": 0.2,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": 0,
        **changes,
    }
    config = getattr(transformers, f"{kind}Config")(**options)
    return getattr(transformers, f"{kind}ForCausalLM")(config).float().eval()


def trained_folder(name):
    """The folder of a model in SPIKED_EXTRA_MODELS, which may name several; the test is skipped where it is not there."""
    for folder in MODELS.split(os.pathsep):
        path = pathlib.Path(folder or ".") / name
        if folder and (path / "model.safetensors").is_file():
            return path
    raise unittest.SkipTest(f"SPIKED_EXTRA_MODELS has no folder {name}")


def trained_model(name):
    """A model of SPIKED_EXTRA_MODELS in single precision, and its folder."""
    path = trained_folder(name)
    entries = json.loads((path / "config.json").read_text())
    for key in ("model_type", "architectures", "torch_dtype"):
        entries.pop(key)
    # The code of Llama in transformers 4.44 has no head_dim, that of Mistral has.
    config = transformers.MistralConfig(**entries, sliding_window=None)
    model = transformers.MistralForCausalLM.from_pretrained(path, config=config, torch_dtype=torch.float32).eval()
    return model, path


def token_ids(texts, tokens, seed=1, vocabulary=97):
    return torch.from_numpy(np.random.default_rng(seed).integers(1, vocabulary, (texts, tokens)))


def wheel_of(version):
    """The wheel of a version in SPIKED_HF_WHEELS, "newest" for the newest; the test is skipped where it is not there."""
    found = {}
    for path in pathlib.Path(WHEELS or os.devnull).glob("transformers-*.whl"):
        text = path.name.split("-")[1]
        if all(part.isdigit() for part in text.split(".")):
            found[tuple(map(int, text.split(".")))] = path
    wanted = max(found, default=None) if version == "newest" else tuple(map(int, version.split(".")))
    if wanted not in found:
        raise unittest.SkipTest(f"SPIKED_HF_WHEELS has no wheel of transformers {version}: make check-hf")
    return ".".join(map(str, wanted)), found[wanted]


class _Anything(types.ModuleType):
    """A module whose names are functions that say False; classes where their names begin with a capital letter."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "logging":
            return types.SimpleNamespace(get_logger=lambda _: None)
        return type(name, (), {}) if name[0].isupper() else lambda *args, **kwargs: False


def cache_library(version):
    """The real cache_utils.py of a version, loaded beside the installed one: what it imports from its package is replaced,
    because newer versions do not run with the PyTorch of the tests. Gives the version and the module."""
    version, wheel = wheel_of(version)
    package = "transformers_" + version.replace(".", "_")
    if package + ".cache_utils" not in sys.modules:
        sys.modules[package] = types.ModuleType(package)
        sys.modules[package].__path__ = []
        for name in ("configuration_utils", "utils", "pytorch_utils"):
            sys.modules[f"{package}.{name}"] = _Anything(f"{package}.{name}")
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
            path = pathlib.Path(archive.extract("transformers/cache_utils.py", folder))
            source = path.read_text().replace("from transformers.", "from .")
            path.write_text(source)
            specification = importlib.util.spec_from_file_location(package + ".cache_utils", path)
            module = importlib.util.module_from_spec(specification)
            # A dtype that PyTorch has from 2.1 on, in the default of an argument.
            with mock.patch.object(torch, "float8_e4m3fn", torch.float16, create=not hasattr(torch, "float8_e4m3fn")):
                specification.loader.exec_module(module)
            module.SOURCE = source
            sys.modules[package + ".cache_utils"] = module
    return version, sys.modules[package + ".cache_utils"]


def for_each_library(*versions):
    """Runs a test for the cache library of each version, which it is given with its version."""

    def decorator(test):
        @functools.wraps(test)
        def run(self):
            for wanted in versions:
                with self.subTest(wanted):
                    test(self, *cache_library(wanted))

        return run

    return decorator
