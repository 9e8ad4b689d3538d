"""What scripts/bench-tokenizers makes of published files, lines and results. Oracle: files made by hand."""
import base64
import json
import pathlib
import struct
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("bench", "bench/tokenizers", "scripts")]
import convert  # noqa: E402
import lines  # noqa: E402
import results  # noqa: E402


def field(number, content):
    """A field of a protobuf message, with less than 128 bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


def piece(text, score, kind):
    return field(1, field(1, text.encode()) + b"\x15" + struct.pack("<f", score) + bytes([3 << 3, kind]))


class ConvertTest(unittest.TestCase):
    def test_a_tiktoken_file_has_a_merge_for_every_two_tokens_that_make_one(self):
        tokens = [b"a", b"b", b" ", b"ab", b"ba", b"aba"]
        model = b"\n".join(base64.b64encode(token) + b" %d" % rank for rank, token in enumerate(tokens))
        made = convert.llama3(model)
        self.assertEqual(made["model"]["vocab"], {"a": 0, "b": 1, "\u0120": 2, "ab": 3, "ba": 4, "aba": 5})
        self.assertEqual(made["model"]["merges"], [["a", "b"], ["b", "a"], ["a", "ba"], ["ab", "a"]])
        self.assertTrue(made["model"]["ignore_merges"])
        named = {token["content"]: token["id"] for token in made["added_tokens"]}
        self.assertEqual((len(named), named["<|begin_of_text|>"], named["<|image|>"]), (256, 6, 17))
        self.assertEqual(named["<|reserved_special_token_245|>"], 261)

    def test_special_tokens_of_a_tekken_file_come_first_and_its_last_tokens_are_left_out(self):
        tokens = [{"token_bytes": base64.b64encode(token).decode()} for token in (b"a", b"b", b"ab", b"ba")]
        made = convert.tekken(json.dumps({"config": {"pattern": "a", "default_vocab_size": 25,
                                                     "default_num_special_tokens": 22}, "vocab": tokens}))
        vocab = made["model"]["vocab"]
        self.assertEqual(vocab, {**{name: i for i, name in enumerate(convert.TEKKEN_NAMED)}, "<SPECIAL_20>": 20,
                                 "<SPECIAL_21>": 21, "a": 22, "b": 23, "ab": 24})
        self.assertEqual(made["model"]["merges"], [["a", "b"]])
        self.assertEqual(len(made["added_tokens"]), 22)

    def test_sentencepieces_merges_are_in_the_order_of_scores(self):
        model = b"".join([piece("<unk>", 0, 2), piece("<s>", 0, 3), piece("</s>", 0, 3), piece("[X]", 0, 4),
                          piece("ab", -1, 1), piece("aab", -0.5, 1), piece("a", -2, 1), piece("b", -3, 1)])
        made = convert.sentencepiece(model, splits_off_spaces=False)
        self.assertEqual(made["model"]["merges"], [["a", "ab"], ["a", "b"]])
        self.assertEqual([(token["content"], token["special"]) for token in made["added_tokens"]],
                         [("<unk>", True), ("<s>", True), ("</s>", True), ("[X]", False)])
        self.assertIsNone(made["pre_tokenizer"])
        self.assertIsNone(convert.sentencepiece(model, splits_off_spaces=True)["normalizer"])


class LinesTest(unittest.TestCase):
    def test_messages_of_a_catalogue(self):
        messages = ["Content-Type: text/plain; charset=iso-8859-1\n".encode(), "\u00e4\0\u00f6".encode("latin-1"), b"x"]
        first = 28 + 16 * 3  # after the header and both tables
        table = b""
        for message in messages:
            table += struct.pack("<II", len(message), first)
            first += len(message)
        content = struct.pack("<IIIIIII", 0x950412de, 0, 3, 28, 28 + 24, 0, 0) + bytes(24) + table + b"".join(messages)
        self.assertEqual(lines.catalogue(content), ["\u00e4", "\u00f6", "x"])

    def test_as_many_lines_as_wanted_all_different_and_the_same_again(self):
        made, counts = lines.lines(2_000)
        self.assertEqual((len(made), len(set(made)), sum(count for _, count in counts)), (2_000, 2_000, 2_000))
        self.assertEqual(lines.lines(2_000)[0], made)


class ResultsTest(unittest.TestCase):
    def test_differences_are_counted_by_what_differs(self):
        def record(ids, decoded):
            return b"".join(struct.pack("=I", count) + content for count, content in [
                (1, struct.pack("=i", 7)), (len(ids), struct.pack(f"={len(ids)}i", *ids)),
                (1, struct.pack("=ii", 0, 1)), (len(decoded), decoded)])
        with tempfile.TemporaryDirectory() as folder:
            ours, library = pathlib.Path(folder) / "ours", pathlib.Path(folder) / "library"
            ours.write_bytes(record([1, 2], b"x") + record([3], b"y") + record([4], b"z"))
            library.write_bytes(record([1, 2], b"x") + record([3, 5], b"y") + record([4], b"zz"))
            counts, first = results.differences(ours, library)
            self.assertEqual(counts, {"ids with added tokens": 0, "ids": 1, "positions": 0, "decoded text": 1})
            self.assertEqual(first, (1, "ids", [3], [3, 5]))
            library.write_bytes(record([1, 2], b"x"))
            with self.assertRaises(ValueError):
                results.differences(ours, library)


if __name__ == "__main__":
    unittest.main()
