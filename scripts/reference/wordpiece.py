"""wordpiece_reference.json: token ids of BertTokenizerFast for hard strings, and how it classes every code point."""
from reference.files import ranges, write_lines
from reference.texts import BROKEN, TEXTS

# Names, texts and maximum numbers of tokens.
TRUNCATED = [
    ("to 2", "one two three", 2),
    ("to 3", "one two three", 3),
    ("exactly fitting", "one two three", 5),
    ("one too long", "one two three", 4),
    ("inside a word", "unbelievably tokenization", 4),
    ("in the middle of an unknown word", "hello 𒀀𒀀 world", 4),
    ("at a special token", "one [MASK] [MASK] two", 4),
    ("in a long text", "the cat sat on the mat " * 30, 128),
]
# lowercase, strip_accents, handle_chinese_characters
VARIANTS = [(False, None, True), (True, False, True), (False, True, True), (True, None, False)]
VARIED = ["Crème Brûlée İstanbul ΟΔΥΣΣΕΥΣ Straße", "e\u0301 E\u0301 Việt 안녕", "abc中国def 東京",
          "[MASK] HELLO hello [mask]"]


def classes_of_code_points(normalizers, pre_tokenizers):
    """Returns, as ranges, the code points that are dropped between "a" and "b", that separate them like a space, and
    that become words of their own. Marks are stripped, ideographs are separated, and case is kept."""
    normalizer = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=True,
                                            lowercase=False)
    pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    found = {"dropped": [], "space": [], "alone": []}
    for c in range(0x110000):
        if 0xD800 <= c < 0xE000:
            continue
        words = [word for word, _ in pre_tokenizer.pre_tokenize_str(normalizer.normalize_str("a" + chr(c) + "b"))]
        if words == ["ab"]:
            found["dropped"].append(c)
        elif words == ["a", "b"]:
            found["space"].append(c)
        elif len(words) > 1:
            found["alone"].append(c)
    return {name: ranges(code_points) for name, code_points in found.items()}


def record_wordpiece(folder, path):
    import tokenizers
    import transformers
    from tokenizers import normalizers, pre_tokenizers

    tokenizer = transformers.BertTokenizerFast.from_pretrained(folder)

    def ids(text, max_tokens=512):
        return tokenizer(text, truncation=True, max_length=max_tokens)["input_ids"]

    cases = [{"name": name, "text": text, "max_tokens": 512, "ids": ids(text)} for name, text in TEXTS]
    cases += [{"name": "truncated " + name, "text": text, "max_tokens": n, "ids": ids(text, n)}
              for name, text, n in TRUNCATED]
    cases += [{"name": "broken UTF-8: " + name, "hex": raw.hex(), "max_tokens": 512,
               "ids": ids(raw.decode("utf-8", "replace"))}
              for name, raw in BROKEN]
    variants = []
    for lowercase, strip_accents, chinese in VARIANTS:
        tokenizer.backend_tokenizer.normalizer = normalizers.BertNormalizer(
            clean_text=True, handle_chinese_chars=chinese, strip_accents=strip_accents, lowercase=lowercase)
        variants += [{"text": text, "lowercase": lowercase, "strip_accents": strip_accents,
                      "handle_chinese_characters": chinese,
                      "ids": ids(text)} for text in VARIED]
    write_lines(path, {
        "source": f"scripts/record-reference: transformers {transformers.__version__}, "
                  f"tokenizers {tokenizers.__version__}, "
                  "vocabulary of all-MiniLM-L6-v2",
        "code_points": classes_of_code_points(normalizers, pre_tokenizers),
    }, {"cases": cases, "variants": variants})
