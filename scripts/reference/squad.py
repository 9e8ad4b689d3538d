"""squad_reference.json: spans of BertTokenizerFast and GPT2TokenizerFast (with the small vocabulary) for hard strings;
their windows of question and context; scores of answers."""
import sys

from reference.byte_level_bpe import BYTE_LEVEL_BROKEN, BYTE_LEVEL_TEXTS, small_byte_level_tokenizer
from reference.files import write_lines
from reference.texts import BROKEN, TEXTS

# Contexts with [(question, answers)]: each answer is used at its first position in the context.
ARTICLES = [
    ("In deep networks the layers near the input settle first. A controller watches how far the gradients of each "
     "layer move (their norm, summed over an interval of 50 iterations), and freezes the layers whose change is the "
     "smallest: they need no backward pass any more. In January 2021 a group in Zürich, led by José Müller-Łukasik, "
     "measured a speed-up of 2.83x on eight devices; by then 70% of the network was frozen, and \"nobody had "
     "noticed\".",
     [("Which layers settle first?", ["the layers near the input", "layers near the input", "near the input"]),
      ("How many iterations has an interval?", ["50", "50 iterations"]),
      ("Who led the group in Zürich?", ["José Müller-Łukasik", "Müller-Łukasik"]),
      ("How much faster was it?", ["2.83x", "a speed-up of 2.83x"]),
      ("What had nobody done?", ["\"nobody had noticed\"", "noticed"]),
      ("Where does the text begin?", ["In"]),
      ("And where does it end?", [".", "noticed\"."])]),
    ("Cafe\u0301 Ku\u0308hn \u200b 東京タワー(Tōkyō Tawā)は1958年に完成した。 서울은 \ufeff수도이다 😀 İzmir Straße x\u00adray \u001c [SEP] "
     "E=mc² ﬁn",
     [("Which tower?", ["東京タワー", "Tōkyō Tawā"]), ("When?", ["1958年", "1958"]),
      ("Which café?", ["Ku\u0308hn", "Cafe\u0301"]),
      ("And the capital?", ["서울", "서울은"]), ("A city by the sea?", ["İzmir"]), ("Which rays?", ["x\u00adray"]),
      ("Energy?", ["E=mc²"])]),
    ("Short.", [("How long is it?", ["Short"]), ("", ["Short."])]),
]
# Maximum numbers of tokens and strides; every question leaves room for its context.
WINDOW_SIZES = [(384, 128), (48, 16), (28, 6), (24, 0)]
BYTE_LEVEL_WINDOW_SIZES = [(96, 30), (34, 6)]  # the small vocabulary cuts questions into up to 26 tokens
# Predictions and answers.
SCORED = [
    ("the layers near the input", ["layers near the input", "near the input"]),
    ("Layers Near The Input.", ["the layers near the input"]), ("input", ["the layers near the input"]),
    ("near input of the", ["near the input"]), ("", ["the"]), ("", ["a."]), ("a", ["the"]), ("", ["word"]),
    ("the", ["The end"]),
    ("U.S.", ["us", "the US"]), ("U S", ["U.S."]), ("10,000", ["10000"]), ("3-4", ["34"]), ("don't", ["dont"]),
    ("don’t", ["don't"]),
    ("a-b", ["ab", "b"]), ("a b", ["b"]), ("théorie", ["theorie"]), ("a\u0301b", ["\u0301b"]),
    ("the\u0301", ["\u0301"]),
    ("§a§", ["§ §"]), ("a_b an_ _the", ["ab"]), ("a1 1a", ["a1 1a"]), ("²a²", ["² ²"]), ("a²", ["²"]), ("ⅷa", ["ⅷ"]),
    ("中a 中", ["中"]), ("é a é", ["É É"]), ("a\u00a0b\u2003c\u3000d", ["b c d"]), ("a\u001cb\u001fc\u0085d", ["b c d"]),
    ("a\u200bb", ["ab", "\u200bb"]), ("ΟΔΥΣΣΕΥΣ", ["οδυσσευς"]), ("ΟΔΥΣΣΕΥΣ", ["οδυσσευσ"]),
    ("Σ ΑΣ. ΑΣ.Β", ["σ ας. ασ.β"]),
    ("İZMİR", ["izmir", "i\u0307zmi\u0307r"]), ("STRASSE", ["straße"]), ("STRAẞE", ["straße"]), ("ǅ", ["ǆ"]),
    ("one two two three", ["two two", "two three two"]), ("two", ["two two two"]), ("one two", ["two one", "one"]),
    ("x y z", ["y", "x y", "x q"]), ("“quoted”", ["quoted"]), ("$5 + €3 = 8", ["5 €3 8"]), ("😀 the 😀", ["😀 😀"]),
]


def answer_positions(spans, first, start, end):
    """Returns the positions of run_qa: the last token that begins at or before `start` and the first that ends at or
    after `end`, or [CLS]."""
    if not spans or spans[0][0] > start or spans[-1][1] < end:
        return [0, 0]
    return [first + max(i for i, span in enumerate(spans) if span[0] <= start),
            first + min(i for i, span in enumerate(spans) if span[1] >= end)]


def answer_scores(prediction, answers):
    """Returns exact match and F1 by the definition of SQuAD 1.1."""
    import collections
    import re
    import string

    def words(text):
        text = "".join(c for c in text.lower() if c not in string.punctuation)
        return re.sub(r"\b(a|an|the)\b", " ", text).split()

    def f1(left, right):
        shared = sum((collections.Counter(left) & collections.Counter(right)).values())
        if shared == 0:
            return 0.0
        precision, recall = shared / len(left), shared / len(right)
        return 2 * precision * recall / (precision + recall)

    return {"exact_match": float(any(words(prediction) == words(answer) for answer in answers)),
            "f1": max(f1(words(prediction), words(answer)) for answer in answers)}


def record_squad(folder, path):
    """Writes the file, which has the form of SQuAD 1.1 with further members."""
    import tokenizers
    import transformers

    tokenizer = transformers.BertTokenizerFast.from_pretrained(folder)
    data, questions = [], []
    for context, asked in ARTICLES:
        first = len(questions)
        for question, answers in asked:
            found = [{"text": answer, "answer_start": context.index(answer)} for answer in answers]
            questions.append((context, {"id": f"q{len(questions)}", "question": question, "answers": found}))
        data.append({"paragraphs": [{"context": context, "qas": [question for _, question in questions[first:]]}]})

    def spans_of(tokenizer, texts, broken):
        def spans(text):
            encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
            return {"ids": encoded["input_ids"], "spans": encoded["offset_mapping"]}
        return ([{"name": name, "text": text, **spans(text)} for name, text in texts]
                + [{"name": "broken UTF-8: " + name, "hex": raw.hex(), **spans(raw.decode("utf-8", "replace"))}
                   for name, raw in broken])

    def windows_of(tokenizer, sizes):
        windows = []
        for max_tokens, stride in sizes:
            encoded = tokenizer([question["question"] for _, question in questions],
                                [context for context, _ in questions],
                                truncation="only_second", max_length=max_tokens, stride=stride,
                                return_overflowing_tokens=True,
                                return_offsets_mapping=True)
            for i, ids in enumerate(encoded["input_ids"]):
                number = encoded["overflow_to_sample_mapping"][i]
                answer = questions[number][1]["answers"][0]
                sequences = encoded.sequence_ids(i)
                of_context = [span for span, sequence in zip(encoded["offset_mapping"][i], sequences) if sequence == 1]
                positions = answer_positions(of_context, sequences.index(1), answer["answer_start"],
                                             answer["answer_start"] + len(answer["text"]))
                windows.append({"max_tokens": max_tokens, "stride": stride, "question": number, "ids": ids,
                                "num_question_tokens": sequences.index(1),
                                "span": [of_context[0][0], of_context[-1][1]],
                                "positions": positions})
        return windows

    byte_level = small_byte_level_tokenizer()
    write_lines(path, {
        "source": f"scripts/record-reference: transformers {transformers.__version__}, "
                  f"tokenizers {tokenizers.__version__}, vocabulary of all-MiniLM-L6-v2; "
                  f"Python {sys.version.split()[0]}",
    }, {
        "data": data,
        "spans": spans_of(tokenizer, TEXTS, BROKEN),
        "windows": windows_of(tokenizer, WINDOW_SIZES),
        "byte_level_spans": spans_of(byte_level, TEXTS + BYTE_LEVEL_TEXTS, BROKEN + BYTE_LEVEL_BROKEN),
        "byte_level_windows": windows_of(byte_level, BYTE_LEVEL_WINDOW_SIZES),
        "scores": [{"prediction": prediction, "answers": answers, **answer_scores(prediction, answers)}
                   for prediction, answers in SCORED],
    })
