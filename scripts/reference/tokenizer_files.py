"""tokenizers_reference.json: tokenizer.json files of all kinds, with small vocabularies trained for them, and the
results of the `tokenizers` library for hard strings with each: ids, positions of the tokens, and decoded text."""
import json
import pathlib
import tempfile

from reference.byte_level_bpe import BYTE_LEVEL_TEXTS, SMALL_TRAINING_TEXT
from reference.files import write_lines
from reference.protobuf import fields_of
from reference.texts import TEXTS

OWN_TEXTS = [
    ("added tokens", "a <mask> b<mask>c  <s>x</s> foo food (foo) <|end|>\n<|end|>  Bar  bar"),
    ("compositions", "e\u0301 \u00e9 \u1e9b\u0323 \u212b \ufb01 \u2460 \u2167 \u00bd \uff21\uff9e \uac00 \u1100\u1161"),
    ("marks in disorder", "a\u0301\u0323 q\u0323\u0307 \u0344\u0316 \u05b0\u05bc"),
    ("letters and marks that are young", "\u1c89\ua7cb \U00010d50\U00010d69 \u0897a \U00011de0 \U0001e5f1 1\U0001ccf0"),
    ("spaces of SentencePiece", "\u2581a \u2581\u2581b\u2581 \u2581 c\u2581d"),
    ("digits", "0 12 345 6789 1\u0662\u00b2\u2167 a1b22"),
    ("bytes written out", "<0x41> <0xE4><0xB8><0xAD> <0x4>"),
    ("unknown in a row", "\U0001f9ff\U0001f9ff a\U0001f9ff \u4e00\U0001f9ffb"),
    ("controls", "a\x01b\x7fc\x8f\u200bd\ufeffe\ufffdf \x0bg\x85h\u2028i"),
]
NAMES = {"plain", "empty", "only spaces", "contractions", "contractions in upper case", "digits beside letters",
         "spaces before words", "line ends before words", "mixed spaces", "every space of Unicode",
         "every Latin-1 character", "replacement characters", "source code", "wikitext", "dialogue"}
REPLACEMENTS = "0041\t0061\n00E9\t0065\n0065 0301\t0065\nFB01\t0066 0069\n2460\t0031\n3000\t0020\n0009\t0020\n200B\t\n"


def small_table():
    """Returns a normalizer of SentencePiece with a few rules."""
    import sentencepiece

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "rules.tsv").write_text(REPLACEMENTS, encoding="utf-8")
        (folder / "text").write_text(SMALL_TRAINING_TEXT, encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(
            input=str(folder / "text"), model_prefix=str(folder / "model"), vocab_size=250, minloglevel=2,
            normalization_rule_tsv=str(folder / "rules.tsv"), num_threads=1, hard_vocab_limit=False)
        return charsmap_of((folder / "model.model").read_bytes())


def charsmap_of(model):
    """Returns the table of replacements of SentencePiece's model: field 2 of its normalizer, field 3."""
    return bytes(dict(fields_of(dict(fields_of(model))[3]))[2])


def byte_pairs(pre_tokenizer, **options):
    import tokenizers
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(**options))
    tokenizer.pre_tokenizer = pre_tokenizer
    return tokenizer


def pipelines():
    """Returns name -> trained tokenizer."""
    import tokenizers
    from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = {}

    def train(name, tokenizer, trainer, **options):
        tokenizer.train_from_iterator([line for line in SMALL_TRAINING_TEXT.split("\n")],
                                      trainer(show_progress=False, **options))
        made[name] = tokenizer

    def split_by(expression):
        return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(expression), "isolated"),
                                        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])

    llama3 = byte_pairs(split_by(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
        r"\s+(?!\S)|\s+"), ignore_merges=True)
    llama3.decoder = decoders.ByteLevel()
    train("llama 3", llama3, trainers.BpeTrainer, vocab_size=400, special_tokens=["<s>", "<|end|>"],
          initial_alphabet=alphabet)
    llama3.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template("<s>", None)])

    roberta = byte_pairs(pre_tokenizers.ByteLevel(add_prefix_space=True))
    roberta.decoder = decoders.ByteLevel()
    train("roberta", roberta, trainers.BpeTrainer, vocab_size=350, special_tokens=["<s>", "</s>"],
          initial_alphabet=alphabet)
    roberta.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    roberta.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))

    smollm = byte_pairs(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                 pre_tokenizers.ByteLevel(add_prefix_space=False)]))
    smollm.normalizer, smollm.decoder = normalizers.NFC(), decoders.ByteLevel()
    train("smollm2", smollm, trainers.BpeTrainer, vocab_size=300, special_tokens=["<|end|>"], initial_alphabet=alphabet)

    llama2 = byte_pairs(pre_tokenizers.Split("\u2581", "merged_with_next"), unk_token="<unk>", fuse_unk=True,
                        byte_fallback=True)
    llama2.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    llama2.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                        decoders.Strip(" ", 1, 0)])
    train("llama 2", llama2, trainers.BpeTrainer, vocab_size=500, limit_alphabet=60,
          special_tokens=["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))])
    llama2.pre_tokenizer = None
    llama2.post_processor = template("<s>", None)

    characters = byte_pairs(pre_tokenizers.WhitespaceSplit(), unk_token="[UNK]")
    train("characters", characters, trainers.BpeTrainer, vocab_size=150, limit_alphabet=40, special_tokens=["[UNK]"])

    unigrams(made, train)
    word_pieces(made, train)
    return made


def template(before, after):
    from tokenizers import processors
    ids = {"<s>": 0, "</s>": 2} if after else {"<s>": 0}
    around = [before, "$A", *([after] if after else [])]
    return processors.TemplateProcessing(single=" ".join(around), pair=" ".join([*around, "$B"]),
                                         special_tokens=list(ids.items()))


def unigrams(made, train):
    import tokenizers
    from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers

    table = small_table()
    for name, normalizer, pre_tokenizer, scheme in [
        ("xlm-roberta",
         normalizers.Sequence([normalizers.Precompiled(table), normalizers.Replace(Regex(" {2,}"), " ")]),
         pre_tokenizers.Metaspace(prepend_scheme="always"), "always"),
        ("camembert", normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Strip()]),
         pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="first")]),
         "first"),
        ("unigram of decompositions", normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(),
                                                            normalizers.Lowercase()]),
         pre_tokenizers.Metaspace(prepend_scheme="never", split=False), "never"),
    ]:
        tokenizer = tokenizers.Tokenizer(models.Unigram())
        tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
        tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
        train(name, tokenizer, trainers.UnigramTrainer, vocab_size=250, unk_token="<unk>",
              special_tokens=["<s>", "<unk>", "</s>"])
        tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=True)])
        tokenizer.post_processor = template("<s>", "</s>")
    model = json.loads(made["camembert"].to_str())
    model["model"]["vocab"] += [[f"<0x{byte:02X}>", -20.0] for byte in range(256)]
    model["model"]["byte_fallback"] = True
    model["added_tokens"] = [token for token in model["added_tokens"] if token["content"] != "<mask>"]
    model["decoder"] = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, model["decoder"]]}
    made["unigram with bytes"] = tokenizers.Tokenizer.from_str(json.dumps(model))


def word_pieces(made, train):
    import tokenizers
    from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

    for name, normalizer, pre_tokenizer in [
        ("bert", normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()),
        ("bert with case", normalizers.BertNormalizer(lowercase=False, handle_chinese_chars=False),
         pre_tokenizers.BertPreTokenizer()),
        ("words", normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase()]), pre_tokenizers.Whitespace()),
        ("punctuation", normalizers.Strip(left=True, right=False),
         pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_previous"),
                                  pre_tokenizers.Digits(individual_digits=False)])),
        ("inverted", normalizers.Replace(Regex("[aeiou]+"), "*"),
         pre_tokenizers.Split(Regex(r"\w+|[^\w\s]+"), "removed", invert=True)),
        ("contiguous", normalizers.NFKC(),
         pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"\s"), "removed"),
                                  pre_tokenizers.Split(Regex(r"[.,!?'-]|\d"), "contiguous"),
                                  pre_tokenizers.Split("e", "merged_with_next")])),
    ]:
        tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
        tokenizer.decoder = decoders.WordPiece(cleanup=name != "words")
        train(name, tokenizer, trainers.WordPieceTrainer, vocab_size=250, special_tokens=["[UNK]", "[CLS]", "[SEP]"])
        tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
        tokenizer.add_tokens([AddedToken("foo", single_word=True), AddedToken("Bar", rstrip=True, normalized=True)])


def record_tokenizer_files(path):
    import tokenizers

    texts = [(name, text) for name, text in TEXTS + BYTE_LEVEL_TEXTS if name in NAMES] + OWN_TEXTS
    recorded = []
    for name, tokenizer in pipelines().items():
        with_spans = [tokenizer.encode(text, add_special_tokens=False) for _, text in texts]
        pair = tokenizer.encode("The pipeline's model", "freezes 12 layers")
        recorded.append({
            "name": name, "tokenizer": json.loads(tokenizer.to_str()), "single": tokenizer.encode("The model").ids,
            "pair": pair.ids, "ids": [one.ids for one in with_spans],
            "spans": [[x for span in one.offsets for x in span] for one in with_spans],
            "decoded": [tokenizer.decode(one.ids, skip_special_tokens=False) for one in with_spans]})
    write_lines(path, {"source": f"scripts/record-reference --tokenizers: tokenizers {tokenizers.__version__}",
                       "texts": [text for _, text in texts]}, {"tokenizers": recorded})
