"""chats_reference.json: chats as transformers renders them by the templates of models, as text and as tokens, and the
parts of the assistant, which {% generation %} marks in the template."""
from unittest import mock

from reference.byte_level_bpe import small_byte_level_tokenizer
from reference.chat_templates import TEMPLATES
from reference.files import write_lines

# Names, roles and contents.
CHATS = [
    ("one turn", [("user", "What is 2 + 2?"), ("assistant", "4.")]),
    ("a system message", [("system", "Be brief."), ("user", "Hi"), ("assistant", "Hello.")]),
    ("three turns", [("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d"), ("user", "e"),
                     ("assistant", "f")]),
    ("three turns and a system message", [("system", "s"), ("user", "a"), ("assistant", "b"), ("user", "c"),
                                          ("assistant", "d")]),
    ("spaces and line ends around", [("system", " s\n"), ("user", "\n a \n"), ("assistant", " \n b\tc \n\n")]),
    ("Unicode's spaces around", [("user", "\u3000a\u00a0"), ("assistant", "\u2003b\u2028\u3000")]),
    ("other scripts", [("user", "Wie heißt 東京?"), ("assistant", "Tōkyō 🗼 — „Hauptstadt im Osten“.")]),
    ("the last word is the user's", [("user", "a"), ("assistant", "b"), ("user", "c")]),
    ("two users", [("user", "a"), ("user", "b"), ("assistant", "c")]),
    ("two assistants", [("user", "a"), ("assistant", "b"), ("assistant", "c")]),
    ("the assistant begins", [("assistant", "Welcome."), ("user", "Hi"), ("assistant", "Yes?")]),
    ("a system message in between", [("user", "a"), ("assistant", "b"), ("system", "s"), ("user", "c"),
                                     ("assistant", "d")]),
    ("thoughts", [("user", "a"), ("assistant", "<think>\nhm\n</think>\n\nb"), ("user", "c"),
                  ("assistant", "<think>\nah\n\nso\n</think>\n\nd\n")]),
    ("tags in the text", [("user", "<|im_start|> {{ x }} {% if %}"), ("assistant", "<b>bold</b> {# c #}")]),
]

# Templates for the language itself, rendered with the messages of "three turns".
LANGUAGE = [
    "  {% if true %}\n a \n  {% endif %}  \n b {#- c #}\n{# d #}\n e\n",
    "{%- for m in messages -%}\n  {{ m.role }} \n{%- endfor %}\n\n",
    "{% for m in messages %}  {% if loop.first %} x {% endif %}\n  {{ loop.index }}/{{ loop.length }}\n{% "
    "endfor %}\n",
    "  {%+ if true %} a {% endif +%}\n b {{- ' c ' -}}  d",
    "{{ messages[0].content ~ 1 ~ true ~ none }}{{ nobody }}|{{ messages | length }}",
    "{{ 'a' + ' b ' | trim + 'c' }}{{ ('a' + ' b ') | trim }}{{ 'x' 'y' }}",
    "{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 + 3 * 4 - 1 }} {{ - 2 }} {{ (2 + 3) * 4 }}",
    "{{ 1 < 2 and 2 >= 2 and not 3 == 4 or false }} {{ 'a' < 'b' }} {{ 1 != 2 }} {{ 'b' in 'abc' }} {{ 5 not in "
    "[1, 2] }}",
    "{{ 'a' if messages[1].role == 'user' else 'b' }}{{ 'c' if false }}{{ none or 'd' }}{{ '' and 'e' }}",
    "{% for m in messages[1:] %}{{ m.content }}{% endfor %} {% for m in messages[::-1] %}{{ m.content }}{% endfor %}",
    "{% for m in messages[-2:] %}{{ m.content }}{% endfor %} {{ messages[-1]['content'] }} {{ 'abcdef'[1:-1:2] }}"
    " {{ 'äöü'[1:] }} {{ 'äöü'[1] }}",
    "{% for m in messages if m.role == 'user' %}{{ loop.index0 }}{{ m.content }}{{ loop.last }}{% else %}none{% "
    "endfor %}",
    "{% for m in [] %}x{% else %}none{% endfor %}{% for a, b in [[1, 2], (3, 4)] %}{{ a }}-{{ b }};{% endfor %}",
    "{% set ns = namespace(n=0, s='') %}{% for m in messages %}{% set ns.n = ns.n + loop.index %}{% set ns.s = "
    "m.content + ns.s %}{% endfor %}{{ ns.n }}{{ ns.s }}",
    "{% set x = 1 %}{% for m in messages %}{% set x = 2 %}{% endfor %}{{ x }}{% if true %}{% set x = 3 %}{% "
    "endif %}{{ x }}",
    "{% set x %} a {{ messages[0].role }}{% endset %}[{{ x }}]",
    "{{ 'a-b-c'.split('-')[1] }}{{ 'a-b-c'.split('-', 1)[1] }}{{ 'xxaxx'.strip('x') }}{{ ' a '.lstrip() }}|"
    "{{ ' a '.rstrip() }}|{{ 'abc'.startswith('ab') }}{{ 'abc'.endswith('bc') }}{{ 'aXbX'.replace('X', '--') }}",
    "{{ 'Ab'.upper() }}{{ 'Ab' | lower }}{{ ['a', 'b'] | join(', ') }}{{ messages | first == messages[0] }}"
    "{{ (messages | last).content }}{{ nobody | default('d') }}{{ '' | default('e', true) }}",
    "{{ nobody is defined }}{{ messages is string }}{{ 'a' is string }}{{ none is none }}{{ messages[0] is mapping }}"
    "{{ messages is iterable }}{{ messages is not mapping }}{{ 3 is odd }}{{ true is true }}{{ nobody is not "
    "defined }}",
    "{{ messages[0].get('content') }}{{ messages[0].get('x') }}{{ messages[0].get('x', 'y') }}{{ 'role' in "
    "messages[0] }}"
    "{% for k, v in messages[0].items() %}{{ k }}={{ v }};{% endfor %}{{ {'a': 1, 'b': 2}['b'] }}",
    "{% macro twice(text, sign='-') %}{{ text }}{{ sign }}{{ text }}{% endmacro %}{{ twice('a') }} {{ "
    "twice('b', sign='+') }}",
    "{% for m in messages | selectattr('role', 'equalto', 'user') | list %}{{ m.content }}{% endfor %}"
    "{{ messages | rejectattr('role', 'equalto', 'user') | list | length }}{{ messages | selectattr('x') | list "
    "| length }}",
    "{% for i in range(3) %}{{ i }}{% endfor %}{% for i in range(1, 3) %}{{ i }}{% endfor %}{{ loop is defined }}",
    "{% for m in messages %}{{ loop.previtem.content if loop.previtem is defined else '^' }}{{ loop.revindex }}"
    "{{ loop.nextitem.content if not loop.last else '$' }} {% endfor %}",
    "{{ 'a\\n\\t\\'b' }}{{ \"'\\\"\" }}{{ '{{ x }} %}' }}{{ {'a': {'b': 'c'}}.a.b }}",
    "{% if false %}a{% elif messages[0].role == 'user' %}b{% elif true %}c{% else %}d{% endif %}{{ 1 == true }}",
    "{{ raise_exception('No ' + 'way.') }}",
    "{% set today = strftime_now('%d %B %Y') %}{{ today }}|{{ strftime_now('%A, %j %H:%M') }}|"
    "{{ strftime_now is defined }}",
    # As in SmolLM3's template: names that are set only if there is a system message
    "{%- if messages[0].role == 'system' -%}{%- set system = messages[0].content -%}{%- endif -%}"
    "{%- if '/no_think' in system -%}a{%- elif instructions -%}b{%- else -%}{{- 'c\n' -}}{%- endif -%}"
    "{%- if xml_tools or python_tools or tools -%}d{%- endif -%}{{ 'e' if nobody is not defined }}",
]


def frozen_clock():
    """Replaces the clock of transformers' strftime_now by the one of frostpipe, which stands."""
    import datetime
    import transformers.utils.chat_template_utils as utils

    class Frozen(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2024, 7, 26)

    return mock.patch.object(utils, "datetime", Frozen)


def with_marks(template, begin, end):
    return (template.replace("{%- GENERATION -%}", begin and "{%- generation -%}")
            .replace("{%- END -%}", end and "{%- endgeneration -%}")
            .replace("{%- GENERATION %}", begin and "{%- generation %}").replace("{%- END %}", end and
                                                                                 "{%- endgeneration %}")
            .replace("GENERATION", begin).replace("END", end))


def rendered(template, messages, tokens):
    """Returns the text and the ranges of the assistant's parts in its UTF-8, or the message if the template raises an
    exception."""
    import jinja2
    from transformers.utils.chat_template_utils import render_jinja_template

    try:
        texts, ranges = render_jinja_template([messages], chat_template=template, return_assistant_tokens_mask=True,
                                              **tokens)
    except jinja2.exceptions.TemplateError as error:
        return {"refused": str(error)}
    text = texts[0]

    def byte(index):
        return len(text[:index].encode())

    return {"text": text, "said": [[byte(begin), byte(end)] for begin, end in ranges[0]]}


def tokens_of_chats(tokenizer):
    """Returns ids with the small byte-level vocabulary, and for each token 1 if transformers counts it to the
    assistant."""
    found = []
    templates = {name: template for name, template, _ in TEMPLATES}
    for name in ("Zephyr", "Mistral v3"):
        for chat, turns in CHATS:
            messages = [{"role": role, "content": content} for role, content in turns]
            marked = with_marks(templates[name], "{% generation %}", "{% endgeneration %}")
            if "refused" in rendered(marked, messages, tokenizer.special_tokens_map):
                continue
            one = tokenizer.apply_chat_template(messages, chat_template=marked, tokenize=True, return_dict=True,
                                                return_assistant_tokens_mask=True)
            found.append({"template": name, "chat": chat, "ids": one["input_ids"], "said": one["assistant_masks"]})
    return found


def record_chats(path):
    import transformers

    templates, cases = [], []
    for name, template, tokens in TEMPLATES:
        templates.append({"name": name, "template": with_marks(template, "", ""), "special_tokens": tokens})
        for chat, turns in CHATS:
            messages = [{"role": role, "content": content} for role, content in turns]
            marked = rendered(with_marks(template, "{% generation %}", "{% endgeneration %}"), messages, tokens)
            plain = rendered(with_marks(template, "", ""), messages, tokens)
            assert plain.get("text") == marked.get("text"), (name, chat)
            cases.append({"template": name, "chat": chat, **marked})
    tokens = tokens_of_chats(small_byte_level_tokenizer())
    three_turns = [{"role": role, "content": content} for role, content in dict(CHATS)["three turns"]]
    with frozen_clock():
        language = [{"template": template, **rendered(template, three_turns, {})} for template in LANGUAGE]
    chats = [{"name": name, "messages": [{"role": role, "content": content} for role, content in turns]}
             for name, turns in CHATS]
    write_lines(path, {"transformers": transformers.__version__},
                {"templates": templates, "chats": chats, "cases": cases, "language": language, "tokens": tokens})
