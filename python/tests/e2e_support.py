"""Stand-ins for the package tokenizers and for a model, with which the tests of spiked.e2e need neither."""

import contextlib
import io
import json
import pathlib
import shutil
import sys
import tempfile
import types
import unittest
from unittest import mock

from spiked.e2e.__main__ import main
from spiked.e2e.runner import Answer

HERE = "trec,samsum,lcc,passage_retrieval_en,qasper"
DATA = pathlib.Path(__file__).resolve().parent / "data" / "longbench"
FIRST, END = 1, 0  # ids of the tokens that begin a text and end an answer; other tokens are characters
CONFIG = {
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "hidden_size": 64,
    "intermediate_size": 128,
    "vocab_size": 1114112,
    "max_position_embeddings": 20000,
}


class Tokenizer:
    """Every character is a token; FIRST stands before a text."""

    @staticmethod
    def from_file(path):
        return Tokenizer()

    def encode(self, text, add_special_tokens):
        ids = ([FIRST] if add_special_tokens else []) + [ord(character) for character in text]
        offsets = [(at, at + 1) for at in range(len(text))]
        return types.SimpleNamespace(ids=ids, offsets=offsets)

    def decode(self, ids, skip_special_tokens=True):
        return "".join(chr(id) for id in ids if id not in (FIRST, END) or not skip_special_tokens)

    def token_to_id(self, word):
        return None

    def get_added_tokens_decoder(self):
        return {END: types.SimpleNamespace(content="</s>", special=True)}


class Model:
    """Answers by a function of the method's name and the prompt's text."""

    def __init__(self, reply):
        self.reply = reply
        self.asked = []

    def load(self, folder, dtype, device, block, no_window):
        return self

    def answer(self, method, ids, most, ends, least=0):
        text = "".join(chr(id) for id in ids)
        self.asked.append((method.name, text, most, list(ends), least))
        said = self.reply(method.name, text)
        if isinstance(said, BaseException):
            raise said
        found = [ord(character) for character in said][:most]
        stop = [at for at, id in enumerate(found) if id in ends and at >= least]
        coded = 32.0 if method.bits is None else method.bits + 0.25
        return Answer(found[: stop[0] + 1] if stop else found, 0.5, coded, coded)


def folder_of_model(root):
    """A folder that has what the harness reads of a model."""
    folder = pathlib.Path(root) / "Tiny-Llama"
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "tokenizer.json").write_text("{}")
    return folder


def run(arguments, reply=lambda method, text: "", model=None, tokenizers=None):
    """Exit code, standard output and standard error of a command, with these stand-ins."""
    model = model or Model(reply)
    out, err = io.StringIO(), io.StringIO()
    tokenizers = tokenizers or types.SimpleNamespace(Tokenizer=Tokenizer)
    with mock.patch.dict(sys.modules, {"tokenizers": tokenizers}):
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main([str(word) for word in arguments], load=model.load)
            except SystemExit as end:
                code = end.code
    return code, out.getvalue(), err.getvalue()


def lines(path):
    return [json.loads(line) for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines()]


def knows(method, text):
    """Right answers for the exact cache; the codec forgets one of them."""
    if "radium" in text:
        return " Individual\nand more"
    if "war end" in text:
        return " Date" if method == "exact" else " Distance"
    if "train is late" in text:
        return "\nDora waits because Cid's train is late.\nDialogue: again"
    if "volume(" in text:
        return "\n    return width * height * depth\n"
    return "Paragraph 2" if "seafaring" in text else "cork"


class Folder(unittest.TestCase):
    """A folder with a model, and the commands on it."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        self.model = folder_of_model(self.root)
        self.results = self.root / "results"

    def longbench(self, *words, reply=knows, model=None, template="none", tokenizers=None):
        form = ["--template", template] if template else []
        given = ["longbench", "--model", self.model, "--data", DATA, "--tasks", HERE, "--output", self.results]
        return run([*given, *form, "--method", "exact,tq-mse", *words], reply, model, tokenizers)

    def needles(self, *words, reply=knows, model=None):
        given = ["needles", "--model", self.model, "--output", self.results, "--template", "none", "--context", "3k"]
        return run([*given, "--needles", "2,3", "--prompts", "2", "--method", "exact,tq-mse", *words], reply, model)

    def fails(self, outcome, code, *parts):
        found, _, err = outcome
        self.assertEqual(found, code, err)
        self.assertEqual(err.count("\n"), 1, err)
        for part in parts:
            self.assertIn(part, err)
