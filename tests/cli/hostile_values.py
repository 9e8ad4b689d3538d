"""JSON documents in which any field has a value that frostpipe would not write.

Values that Python would not write - numbers beyond doubles, text that is not JSON, duplicate keys - are Raw values,
which are written to the file unchanged."""

import json
import re


class Raw(str):
    pass


WORDS = [None, True, False, "", "x", "1", "NaN", "-Infinity", "Infinity", "../../../etc/passwd", "a\u0000b",
         "\u202e\U0001f600", "%s%n{}", "x" * 100_000]
NUMBERS = [0, 1, -1, 2, 3, 0.5, -0.5, 1e-300, 5e-324, 1e15, 1e18, 1e300, 2**10, 2**15, 2**20, 2**24, 10**15, 2**31 - 1,
           2**31, -2**31, 2**44, 2**50, 2**53 + 1, 2**62, 2**63 - 1, 2**63, -2**63, 2**64 - 1, 2**64]
RAW = [Raw(text) for text in (
    "1e400", "-1e999", "-0", "-0.0", "0.1e-999", "1" * 400, "1" * 50_000, "NaN", "Infinity", "01", "0x10", "1.", "+1",
    "'x'", '"\\ud800"', '"\\u12"', '"\t"', "", "tru", "[" * 90 + "]" * 90, "[" * 200 + "]" * 200, "[" * 100_000,
    '{"a":' * 80 + "1" + "}" * 80, '{"a":1,"a":2}', "[1,]", "{,}", "/* 1 */ 1")]
CONTAINERS = [[], {}, [[]], [{}], [None], [0], [-1], [1, 2], ["x"], [1.5], {"": 0}, {"x": {}}, [1] * 100_000,
              [{}] * 1000, [[]] * 1000, {f"key{i}": i for i in range(5000)}]


def places_of(value, path=()):
    """Every path in the document, including that of the document itself."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, element in items:
        yield from places_of(element, (*path, key))


def kinds_of_places(document):
    """Groups of paths that differ only in indices of lists."""
    kinds = {}
    for path in places_of(document):
        kinds.setdefault(tuple("*" if isinstance(key, int) else key for key in path), []).append(path)
    return list(kinds.values())


def change(document, path, random):
    """Changes the value at a path in a random way and returns the document. An earlier change may have removed the
    path."""
    value = random.choice(random.choice((WORDS, NUMBERS, NUMBERS, RAW, CONTAINERS)))
    if not path:
        return value
    parent = document
    for key in path[:-1]:
        try:
            parent = parent[key]
        except (KeyError, IndexError, TypeError):
            return document
    key = path[-1]
    if not (isinstance(parent, dict) and key in parent or
            isinstance(parent, list) and isinstance(key, int) and key < len(parent)):
        return document
    way = random.random()
    if way < 0.5 and type(parent[key]) in (int, float):  # a reader may accept this
        parent[key] = type(parent[key])(parent[key] * random.choice((0, 0.001, 0.1, 2, 3, 10, 100, 1000, 10**6, 10**9)))
    elif way < 0.8:
        parent[key] = value
    elif way < 0.85:
        del parent[key]
    elif way < 0.9:
        parent[key] = random.choice(([parent[key]], [parent[key]] * 3, {"x": parent[key]}))
    elif isinstance(parent, list):
        parent.extend(parent[key] for _ in range(random.choice((1, 100, 20_000))))
    elif way < 0.95:
        parent[random.choice((key + "s", key + "\u0000", "", "0", "-1", "7", "2000000000"))] = parent.pop(key)
    else:  # a duplicate key, which JSON readers treat differently
        parent[key] = Raw(text_of(value) + f", {json.dumps(key)}: " + text_of(parent[key]))
    return document


def text_of(document):
    raws = []

    def marked(value):
        if isinstance(value, Raw):
            raws.append(value)
            return f"\u0001{len(raws) - 1}"
        if isinstance(value, dict):
            return {key: marked(element) for key, element in value.items()}
        if isinstance(value, list):
            return [marked(element) for element in value] if len(value) < 10_000 else value
        return value
    return re.sub(r'"\\u0001(\d+)"', lambda match: raws[int(match[1])], json.dumps(marked(document)))


def mutant(text, random):
    """The document with one to three changes, each at one path or at all paths of its group at once."""
    document = json.loads(text)
    kinds = kinds_of_places(document)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        places = random.choice(kinds)
        if random.random() < 0.5:
            places = [random.choice(places)]
        seed = random.random()
        for place in places:
            document = change(document, place, type(random)(seed))
    return text_of(document)
