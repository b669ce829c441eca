"""Forms of a model's messages: its chat template, which is a program of Jinja, or one of a few by name."""

from __future__ import annotations

import datetime
import json
import pathlib
import re
from typing import Any, Callable, Dict, List, Optional

from ..errors import InputError

# Forms of messages for models whose folder has no chat template: {system} and {user} become texts.
TEMPLATES = {
    "chatml": "<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n",
    "llama3": "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n{system}<|eot_id|><|start_header_id|>user"
    "<|end_header_id|>\n\n{user}<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
    "mistral": "<s>[INST] {user} [/INST]",
    "none": "{user}",
}
# What templates that ask for today's date are told, so that prompts do not depend on the day: the date that the templates of
# Llama 3.1 and 3.2 have where they are told none.
TEMPLATE_DATE = datetime.date(2024, 7, 26)
# Tags of transformers that mark the answer for training and print nothing themselves.
GENERATION = re.compile(r"(\{%[-+]?\s*)(end)?generation(\s*[-+]?%\})")


def values_of(folder: pathlib.Path, name: str, key: str) -> List[Any]:
    """The values of a key in a JSON file of a folder, none where either is missing."""
    path = folder / name
    found = json.loads(path.read_text(encoding="utf-8")).get(key) if path.exists() else None
    return [] if found is None else found if isinstance(found, list) else [found]


def source_of(folder: pathlib.Path) -> Optional[str]:
    """The chat template in a model's folder: of several with names, the one that is called default."""
    path = folder / "chat_template.jinja"
    if path.exists():
        return path.read_text(encoding="utf-8")
    for found in values_of(folder, "tokenizer_config.json", "chat_template"):
        if isinstance(found, dict) and found.get("name") == "default":
            found = found.get("template")
        if isinstance(found, str):
            return found
    return None


def rendered(source: str, folder: pathlib.Path, system: Optional[str]) -> Callable[[str], str]:
    """The function of a chat template from a user's text to the whole prompt, with what transformers gives to a template."""
    from jinja2 import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def rejected(message: str) -> None:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    environment.globals.update(raise_exception=rejected, strftime_now=TEMPLATE_DATE.strftime)
    names: Dict[str, Any] = {"tools": None, "documents": None, "add_generation_prompt": True}
    for key in ("bos_token", "eos_token", "unk_token", "pad_token"):
        for name in ("special_tokens_map.json", "tokenizer_config.json"):
            for word in values_of(folder, name, key):
                names[key] = word["content"] if isinstance(word, dict) else word
    messages = [] if system is None else [{"role": "system", "content": system}]
    plain = GENERATION.sub(lambda tag: f"{tag[1]}{'endif' if tag[2] else 'if true'}{tag[3]}", source)

    def whole(user: str) -> str:
        try:
            template = environment.from_string(plain)
            return template.render(messages=[*messages, {"role": "user", "content": user}], **names)
        except TemplateError as error:
            raise InputError(
                f"{folder}: its chat template fails ({error}): give --template {', '.join(TEMPLATES)}, or another --system"
            ) from None

    return whole
