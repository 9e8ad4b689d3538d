"""byte_level_bpe_reference.json: token ids of GPT2TokenizerFast for hard strings, with GPT-2's vocabulary, which is not
recorded, and with a small one, which is; and the class that it gives to every code point."""
import json
import pathlib
import tempfile

from reference.files import digest, fingerprint, ranges, write_lines
from reference.texts import BROKEN, TEXTS

# The text on which the small byte-level vocabulary is trained. A changed letter changes all ids of the reference.
SMALL_TRAINING_TEXT = """\
The pipeline trains the model, and the model's layers converge: first those near the input, then the others.
It's what we've seen, isn't it? I'd say they're frozen, I'll show you, and you'll see that I'm right. We don't, \
they can't.
IT'S 2021, AND THE PIPELINE'S STAGES ARE 1, 2, 3 AND 4; IN 2022 THERE WERE 10 000 OF THEM, IN 1999 THERE WERE 1999.
    def freeze(self, layers):
        for layer in layers:
            layer.frozen = True  # never thawed ... ---- ==== !!!! ????

\tTabs\tand\ttabs.  Two  spaces.   Three   spaces.


Les élèves naïfs de l'été préféraient le café crème; les frères Müller wählen Straße, Größe, Füße, Ärger und Öl.
我喜欢机器学习，我喜欢学习。机器学习的机器。東京タワーと東京。 Привет, мир! Мир, привет! नमस्ते दुनिया नमस्ते مرحبا بالعالم مرحبا
😀😀 👍🏽👍🏽 👨\u200d👩\u200d👧 👨\u200d👩\u200d👧 🇩🇪🇩🇪 ²³ ½½ ⅷⅷ ١٢٣ १२३ e\u0301e\u0301 \
\u00a0\u00a0 \u3000\u3000 \u2028 \ufffd\ufffd
the the the then there these they them that this thing think with without within which while when where who whom \
whose what
""" * 2
SMALL_VOCABULARY_SIZE = 600

# Names and texts for the byte-level tokenizers, in addition to TEXTS.
BYTE_LEVEL_TEXTS = [
    ("contractions", "it's can't we're they've I'm we'll he'd o'clock 'twas y'all'd've"),
    ("contractions in upper case", "IT'S CAN'T WE'RE THEY'VE I'M WE'LL HE'D It'S Don'T"),
    ("contractions without a word", "'s 't 're 've 'm 'll 'd 'S ' s ''s '''re 'r 'v 'l 'lla 'sun 'dd"),
    ("contractions behind other characters", "2's !'s \u00e9's \u4e2d's \n's '\u017f 's'\u017f"),
    ("curly apostrophes are no contractions", "it\u2019s can\u2019t we\u2032re I\uff07m"),
    ("contractions with accents", "'se\u0301 's\u0301 't\u200dt 'l\u0142"),
    ("digits", "0 1 12 123 1234 12345 123456789012345678901234567890 3.14 1,000 1e-5 0x1F 7th"),
    ("digits beside letters", "a1b2c3 4d5 x86_64 R2D2 2x4 \u0663\u0661a\u0967"),
    ("numbers that are no digits", "\u00b2\u00bd\u2177 x\u00b2 10\u2075 \u2460\u3007\u4e00 \U00010107 \u0bf0"),
    ("one space", " "),
    ("two spaces", "  "),
    ("spaces at the end", "end   "),
    ("spaces at the beginning", "   begin"),
    ("spaces before words", "a b  c   d    e     f"),
    ("spaces before numbers and signs", "  1   2 !  !   ?    (  )"),
    ("spaces before a contraction", "it 's  's   's"),
    ("line ends", "\n"),
    ("line ends before words", "a\nb\n\nc\n\n\nd \ne\n f \n g\r\nh\r\n\r\ni\n"),
    ("line ends at the end", "end\n\n\n"),
    ("tabs and indentation", "\tif x:\n\t\treturn  1\n    pass\n\t \t y \t"),
    ("mixed spaces", " \u00a0 a\u00a0\u00a0b \u00a0c\u00a0 d\u3000 \u3000e \u2003f\u2003"),
    ("every space of Unicode", "".join(f"{c}x{c}{c}1{c} !" for c in
                                     map(chr, [9, 10, 11, 12, 13, 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B),
                                               0x2028, 0x2029,
                                               0x202F, 0x205F, 0x3000]))),
    ("what looks like a space but is none", "a\u180eb \u200b c\u200b \u2060d \ufeff e \u001c\u001f f\u2800g"),
    ("every ASCII character", "".join(map(chr, range(128)))),
    ("every ASCII character, doubled", "".join(chr(c) * 2 for c in range(128))),
    ("every Latin-1 character", "".join(map(chr, range(128, 256)))),
    ("all control characters with spaces", " ".join(map(chr, [*range(32), *range(127, 160)]))),
    ("the byte alphabet itself", "\u0120the \u010a\u0100\u0143 \u0120\u0120"),
    ("surrogate-like and last code points", "\ud7ff\ue000 \uffff\U00010000 \U0010ffff\U0010fffe"),
    ("replacement characters", "\ufffd \ufffd\ufffda\ufffd1 \ufffd"),
    ("letters of Unicode 15.1 and 16.0", "a\U0002ebf0b \u1c89\ua7cb \U000105c0 \U00010d40\U000116d0 1\U0001ccf0 "
                                         "\U0001e5f1"),
    ("letters of Unicode 17.0", "a\U000323b0b a\ua7ceb \U00010940"),
    ("end of text", "one<|endoftext|>two <|endoftext|> three\n<|endoftext|>"),
    ("end of text alone", "<|endoftext|>"),
    ("end of text in a row", "<|endoftext|><|endoftext|>  <|endoftext|>"),
    ("end of text takes the space's end", "word  <|endoftext|>  word \n<|endoftext|>\n\n"),
    ("nearly end of text", "<|endoftext|<|endoftext |> <|EndOfText|> <<|endoftext|>> <|endof\u200dtext|> <|endoftext|"),
    ("source code", "for (int i = 0; i < n; ++i) {\n    sum += a[i]*b[i];  // it's a dot product\n}\n"),
    ("dialogue", "First Citizen:\nBefore we proceed any further, hear me speak.\n\nAll:\nSpeak, speak.\n"),
    ("wikitext", " = Robert <unk> = \n \n In 2006 , he 's @-@ starred ; 1 @,@ 000 km ( 620 mi ) . \n"),
]
# Names, texts and repetitions of long texts, for which the number of ids and their fingerprint are recorded.
REPEATED = [
    ("a word of 10,000 characters", "abcde", 2000),
    ("a word of one letter", "a", 10000),
    ("a word of accented letters", "e\u0301\u00e9", 3334),
    ("a word of ideographs", "\u673a\u5668\u5b66\u4e60", 2500),
    ("spaces", " ", 10000),
    ("line ends and a word", "\n\n\nthe", 2500),
    ("digits", "1999", 2500),
    ("signs", "!?=-", 2500),
    ("contractions", "it's", 2500),
    ("a word of mixed letters", "thepipelineconvergesfrozenAND\u00dfla", 300),
]
# The strings like BROKEN for the byte-level tokenizers, which keep U+FFFD.
BYTE_LEVEL_BROKEN = [
    ("between spaces", b" \xff  \xff\xff \x80a"),
    ("cut off before each kind", b"a\xe4\xb8 b\xe4\xb81\xf0\x9f!\xf0\x9f\x98\n"),
    ("nearly end of text", b"<|endof\xfftext|> \xe4<|endoftext|>\xe4\xb8<|endoftext|>\xf0\x9f\x98"),
    ("all bytes", bytes(range(256))),
    ("all bytes from the last", bytes(reversed(range(256)))),
    ("lead bytes with each wrong second byte",
     b"".join(bytes([lead, second, 0x80, 0x80])
              for lead in (0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5)
              for second in (0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0))),
]


def byte_level_classes_of_code_points(pre_tokenizers):
    """Classes every code point. Its class is that of the character which forms one word with it, before and after
    it."""
    pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    neighbours = {"letter": "a", "number": "1", "other": "!", "space": "\n"}
    found = {name: [] for name in neighbours}
    for c in range(0x110000):
        if 0xD800 <= c < 0xE000:
            continue
        for name, neighbour in neighbours.items():
            if len(pre_tokenizer.pre_tokenize_str(neighbour + chr(c) + neighbour)) == 1:
                found[name].append(c)
    assert sum(map(len, found.values())) == 0x110000 - 0x800
    return {name: ranges(found[name]) for name in ("letter", "number", "space")}  # the rest is "other"


def small_byte_level_vocabulary():
    """Returns token -> id, and the merges "left right" by rank."""
    import tokenizers

    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=SMALL_VOCABULARY_SIZE, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator([SMALL_TRAINING_TEXT], trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [" ".join(merge) for merge in model["merges"]]


def small_byte_level_tokenizer():
    import transformers

    vocabulary, merges = small_byte_level_vocabulary()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
        (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]), encoding="utf-8")
        return transformers.GPT2TokenizerFast.from_pretrained(name)


def record_byte_level_bpe(gpt2_folder, texts, path):
    import tokenizers
    import transformers
    from tokenizers import pre_tokenizers

    vocabulary, merges = small_byte_level_vocabulary()
    small = small_byte_level_tokenizer()
    with tempfile.TemporaryDirectory() as name:
        small.save_pretrained(name)
        tokenizer_json = json.loads((pathlib.Path(name) / "tokenizer.json").read_text(encoding="utf-8"))
    gpt2 = transformers.GPT2TokenizerFast.from_pretrained(gpt2_folder)
    # The test inserts vocabulary and merges again, to restore the file as transformers writes it.
    del tokenizer_json["model"]["vocab"], tokenizer_json["model"]["merges"]

    def ids(text):
        return {"small": small(text)["input_ids"], "gpt2": gpt2(text)["input_ids"]}

    cases = [{"name": name, "text": text, **ids(text)} for name, text in TEXTS + BYTE_LEVEL_TEXTS]
    cases += [{"name": "broken UTF-8: " + name, "hex": raw.hex(), **ids(raw.decode("utf-8", "replace"))}
              for name, raw in BROKEN + BYTE_LEVEL_BROKEN]
    repeated = [{"name": name, "text": text, "times": times,
                 **{key: digest(value) for key, value in ids(text * times).items()}}
                for name, text, times in REPEATED]
    files = []
    for text in texts:
        content = text.read_bytes()
        files.append({"name": text.name, "bytes": len(content), "fingerprint": fingerprint(content),
                      "gpt2": digest(gpt2(content.decode("utf-8", "replace"))["input_ids"])})
    write_lines(path, {
        "source": f"scripts/record-reference: transformers {transformers.__version__}, "
                  f"tokenizers {tokenizers.__version__}; "
                  "a vocabulary trained on SMALL_TRAINING_TEXT, and that of openai-community/gpt2",
        "code_points": byte_level_classes_of_code_points(pre_tokenizers),
        "small_vocabulary": vocabulary,
        "small_merges": merges,
        "small_tokenizer_json": tokenizer_json,
    }, {"cases": cases, "repeated": repeated, "files": files})
