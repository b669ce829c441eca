"""Chat templates of a model's folder, as transformers fills them."""

import importlib.util
import json
import unittest
from unittest import mock

from e2e_support import Folder, Model, knows, lines, run
from spiked import errors
from spiked.e2e import chat

SAID = 'A "quoted" <text> & caf\u00e9\n{{ not a tag }}'
TEMPLATES = {
    "turns": "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m['content'] | trim }}{{ eos_token }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}",
    "tags of training": "{%- for m in messages -%}\n  {% generation %}\n{{ m.content }}\n  {%- endgeneration -%}\n {% endfor %}.",
    "no tools": "{% if tools is not none %}{{ tools | length }} tools{% endif %}{% if documents is none %}-{% endif %}"
    "{{ messages[0].content }}",
    "JSON": "{{ messages | tojson }}{{ messages[-1] | tojson(indent=2) }}{{ pad_token }}{{ unk_token }}",
    "loop": "{% for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}{{ m.content }}{% break %}{% endfor %}",
}


@unittest.skipIf(importlib.util.find_spec("jinja2") is None, "jinja2 is not installed")
class Templates(Folder):
    def write(self, **entries):
        words = {"bos_token": {"content": "<s>"}, "eos_token": "</s>", "pad_token": "<pad>", **entries}
        (self.model / "tokenizer_config.json").write_text(json.dumps(words))

    def prompt(self, source, system=None):
        return chat.rendered(source, self.model, system)(SAID)

    def test_by_hand(self):
        self.write()
        self.assertEqual(self.prompt(TEMPLATES["turns"]), f"<s>[user] {SAID}</s>\n[assistant]")
        self.assertEqual(self.prompt(TEMPLATES["no tools"]), "-" + SAID)
        self.assertEqual(self.prompt(TEMPLATES["loop"], "Be kind."), SAID)
        self.assertEqual(self.prompt("{%- generation -%} {{ messages[0].content }} {%- endgeneration -%} "), SAID)

    def test_today_is_the_same_date_every_day(self):
        self.write()
        template = "{% if strftime_now is defined %}{{ strftime_now('%d %b %Y') }}{% endif %}"
        self.assertEqual(self.prompt(template), "26 Jul 2024")

    def test_of_several_templates_the_default_one_is_taken(self):
        several = [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "<{{ messages[0].content }}>"}]
        self.write(chat_template=several)
        self.assertEqual(self.prompt(chat.source_of(self.model)), f"<{SAID}>")
        self.write(chat_template=several[:1])
        self.assertIsNone(chat.source_of(self.model))
        (self.model / "chat_template.jinja").write_text("of a file of its own")
        self.assertEqual(chat.source_of(self.model), "of a file of its own")

    def test_results_of_another_template_are_not_added_to(self):
        self.write(chat_template="<{{ messages[0].content }}>")
        given = ("--method", "exact", "--tasks", "qasper")
        code, _, err = self.longbench(*given, template=None)
        self.assertEqual(code, 0, err)
        self.assertEqual(lines(self.results / "longbench.jsonl")[0]["choices"]["template"], "of the folder")
        self.write(chat_template="[{{ messages[0].content }}]")
        self.fails(self.longbench(*given, template=None), 2, "template_sha256", "--output")
        with mock.patch.dict(chat.TEMPLATES, {"none": " {user}"}):
            self.assertNotEqual(self.sum_of("none"), self.sum_of("mistral"))
            changed = self.sum_of("none")
        self.assertNotEqual(changed, self.sum_of("none"))

    def sum_of(self, template):
        model, folder = Model(knows), self.root / "other"
        words = ["longbench", "--model", self.model, "--data", folder, "--output", folder, "--template", template]
        folder.mkdir(exist_ok=True)
        (folder / "lcc.jsonl").write_text('{"context": "", "input": "", "answers": ["x"]}\n')
        code, _, err = run([*words, "--tasks", "lcc", "--method", "exact"], model=model)
        self.assertEqual(code, 0, err)
        found = lines(folder / "longbench.jsonl")[0]["choices"]["template_sha256"]
        (folder / "longbench.jsonl").unlink()
        return found

    def test_a_template_that_rejects_the_messages_is_named(self):
        self.write()
        for template in ("{{ raise_exception('no system') }}", "{% if %}", "{{ none_such.role }}"):
            with self.assertRaisesRegex(errors.InputError, "its chat template fails .*--template"):
                self.prompt(template)

    def test_texts_are_those_of_transformers(self):
        try:
            import jinja2
            import tokenizers
            import transformers
        except ImportError as problem:
            self.skipTest(f"{problem.name} is not installed")
        self.write(unk_token="<unk>")
        words = {name: f"<{name[:3]}>" for name in ("unk_token", "pad_token")}
        plain = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, unk_token="a"))
        words.update(bos_token="<s>", eos_token="</s>")
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=plain, **words)
        for name, template in TEMPLATES.items():
            for system in (None, "Be kind."):
                with self.subTest(name, system=system):
                    messages = [{"role": "system", "content": system}] if system else []
                    messages.append({"role": "user", "content": SAID})
                    try:
                        expected = tokenizer.apply_chat_template(
                            messages, chat_template=template, tokenize=False, add_generation_prompt=True
                        )
                    except jinja2.TemplateSyntaxError as problem:  # "continue", before transformers 4.45
                        self.skipTest(f"transformers {transformers.__version__}: {problem.message}")
                    self.assertEqual(self.prompt(template, system), expected)


if __name__ == "__main__":
    unittest.main()
