"""Runs tools/needle-prompts with a stand-in for the package tokenizers, whose tokens are the characters: FOLDER ARGUMENTS."""
import os
import runpy
import sys
import types

CHARACTERS = "0123456789abcdefghijklmnopqrstuvwxyz .,:?\n-"  # 43 tokens; others become "-", capitals small
END = len(CHARACTERS)


class Tokenizer:
    @staticmethod
    def from_file(path):
        assert os.path.exists(path)
        return Tokenizer()

    def encode(self, text, add_special_tokens):
        ids = [max(CHARACTERS.find(character.lower()), 0) if character.lower() in CHARACTERS else END - 1 for character in text]
        return types.SimpleNamespace(ids=ids, offsets=[(at, at + 1) for at in range(len(text))])

    def decode(self, ids, skip_special_tokens=True):
        return "".join(CHARACTERS[id] if id < END else "" for id in ids)

    def token_to_id(self, word):
        return END if word in ("<|im_end|>", "<|im_start|>") else None

    def get_added_tokens_decoder(self):
        return {END: types.SimpleNamespace(content="<|im_end|>", special=True)}

    def get_vocab(self, with_added_tokens):
        return {character: at for at, character in enumerate(CHARACTERS)} | {"<|im_end|>": END}


sys.dont_write_bytecode = True
sys.modules["tokenizers"] = types.SimpleNamespace(Tokenizer=Tokenizer)
tool = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tools", "needle-prompts")
sys.argv = [tool] + sys.argv[1:]
runpy.run_path(tool, run_name="__main__")
