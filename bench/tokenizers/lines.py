"""The lines with which tokenizers are compared: texts of this machine in many scripts, and made-up ones. It needs only
Python."""
import collections
import pathlib
import random
import re
import struct
import sysconfig
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRANSLATIONS = pathlib.Path("/usr/share/locale")  # .mo files: compiled .po files
LICENCES = [(pathlib.Path("/usr/share/common-licenses"), "*"), (pathlib.Path("/usr/share/doc"), "*/copyright")]
CODE = [(ROOT / "executor", "**/*.cpp"), (ROOT / "docs", "**/*.md"), (pathlib.Path("/usr/include"), "*.h"),
        (pathlib.Path(sysconfig.get_path("stdlib")), "*.py")]
SHARES = {"translations": 0.45, "licences": 0.1, "code": 0.15}  # of all lines; the others are made up
LONGEST = 4_000  # characters of a line
WHOLE_MESSAGES = 20  # one message in so many keeps its line ends

EMOJI = ["\U0001f600", "\U0001f44d\U0001f3fd", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",
         "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "\U0001f1e9\U0001f1ea",
         "1\ufe0f\u20e3", "\u2764\ufe0f", "\u2764", "\U0001f9d1\U0001f3ff\u200d\U0001f680", "\U0001fae8",
         "\U0001f6dc", "\u263a\ufe0e"]
WRITTEN_OUT = ["<s>", "</s>", "<unk>", "<pad>", "[INST]", "[/INST]", "[TOOL_CALLS]", "<|begin_of_text|>", "<|eot_id|>",
               "<|reserved_special_token_7|>", "<|endoftext|>", "<|im_start|>", "[CLS]", "[SEP]", "[MASK]", "<mask>",
               "<SPECIAL_20>", "<0x41>", "<0xE4><0xB8><0xAD>", "<|eot_id", "\u2581", "\u2581\u2581a"]
WORDS = ["don't", "WE'LL", "it\u2019s", "I'M", "'S", "n't", "na\u00efve", "nai\u0308ve", "stra\u00dfe", "\ufb01ne",
         "\uff21\uff22", "caf\u00e9.", "\u00bd", "\u2167", "\u0130stanbul", "\u01c5", "3.14", "1,234,567", "0x1F",
         "--", "...", "?!", "://", "\u4e2d\u6587", "\u65e5\u672c\u8a9e", "\ud55c\uad6d\uc5b4", "\u1112\u1161\u11ab",
         "\u0627\u0644\u0639", "\u05e9\u05c1", "\u0915\u094d\u0937", "\u0e01\u0e33", "\u1797\u17b6", "\U0001d4d0",
         "\u212b", "a_b"]
SPACES = [" ", " ", " ", "  ", "   ", "\t", "\n", "\r\n", "\r", "\u00a0", "\u3000", "\u2009", "\u2028", "\x0b", "\x85",
          "\u200b", "", "", " \n ", "\n\n\n"]


def lines(count):
    """Returns `count` different texts, most of them lines, and (kind, how many) of each kind. Machines with the same
    files have the same texts."""
    texts, counts = {}, []
    for kind, read in (("translations", translations), ("licences", licences), ("code", code)):
        before = len(texts)
        for text in read():
            if len(texts) - before == int(count * SHARES[kind]):
                break
            texts[text] = None
        counts.append((kind, len(texts) - before))
    before, random_numbers = len(texts), random.Random(1)
    while len(texts) < count:
        texts[made_up(random_numbers)] = None
    return list(texts), [*counts, ("made up", len(texts) - before)]


def translations():
    """Yields messages of all languages in turn."""
    return in_turn(messages_in(folder) for folder in sorted(TRANSLATIONS.glob("*/LC_MESSAGES")))


def in_turn(sources):
    """Yields from each of several iterators in turn until all have ended."""
    waiting = collections.deque(sources)
    while waiting:
        source = waiting.popleft()
        for value in source:
            yield value
            waiting.append(source)
            break


def messages_in(folder):
    number = 0
    for path in sorted(folder.glob("*.mo")):
        try:
            messages = catalogue(path.read_bytes())
        except (OSError, LookupError, ValueError, struct.error):
            continue  # a broken link, or a character set that Python does not know
        for text in messages:
            number += 1
            if number % WHOLE_MESSAGES == 0 and text:
                yield text[:LONGEST]
            else:
                yield from parts_of(text)


def catalogue(content):
    """Returns the translated messages of a .mo file; plural forms are messages of their own."""
    order = "<" if content[:4] == b"\xde\x12\x04\x95" else ">"
    count, _, begin = struct.unpack_from(order + "III", content, 8)
    messages = []
    for i in range(count):
        size, at = struct.unpack_from(order + "II", content, begin + 8 * i)
        messages.append(content[at:at + size])
    charset = re.search(rb"charset=([\w-]+)", messages[0]) if messages else None  # the first message is the header
    encoding = charset.group(1).decode() if charset else "utf-8"
    return [form for message in messages[1:] for form in message.decode(encoding).split("\0")]


def licences():
    return in_turn(lines_in(*place) for place in LICENCES)


def code():
    return in_turn(lines_in(*place) for place in CODE)


def lines_in(folder, pattern):
    for path in sorted(folder.glob(pattern)):
        try:
            text = path.read_bytes().decode()
        except (OSError, UnicodeError):
            continue
        yield from parts_of(text)


def parts_of(text):
    return (line[:LONGEST] for line in text.split("\n") if line)


def made_up(numbers):
    """Returns emoji, marks, controls, words and any code points in a random order, with any spaces."""
    makers = [lambda: numbers.choice(EMOJI), lambda: numbers.choice(WORDS), lambda: numbers.choice(WORDS),
              lambda: numbers.choice(WRITTEN_OUT), lambda: any_of(numbers, 0x20, 0x7f),
              lambda: any_of(numbers, 0, 0x20), lambda: any_of(numbers, 0x7f, 0x530),
              lambda: marked(numbers), lambda: any_of(numbers, 0x530, 0x3000),
              lambda: any_of(numbers, 0x3000, 0xffff), lambda: any_of(numbers, 0x10000, 0x10ffff),
              lambda: numbers.choice("a 0-\n\u2581\u4e00") * numbers.choice([2, 3, 7, 20, 200])]
    return "".join(part for _ in range(numbers.randint(1, 24))
                   for part in (numbers.choice(makers)(), numbers.choice(SPACES)))


def any_of(numbers, begin, end):
    """Returns up to four code points of a range, without surrogates."""
    return "".join(chr(c) for c in (numbers.randrange(begin, end) for _ in range(numbers.randint(1, 4)))
                   if not 0xd800 <= c < 0xe000)


def marked(numbers):
    """Returns a letter with marks, composed or decomposed."""
    text = numbers.choice("aeiouncAE\u03b1\u0438") + any_of(numbers, 0x300, 0x370)
    return unicodedata.normalize(numbers.choice(["NFC", "NFD"]), text)
