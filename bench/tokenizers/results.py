"""The files of texts and of results that token_results.cpp describes, and their comparison. It needs only Python."""
import array
import sys

# The arrays of each text, with the type and the bytes of their elements.
POSITIONS = "positions"
PARTS = (("ids with added tokens", "i", 4), ("ids", "i", 4), (POSITIONS, "i", 8), ("decoded text", "B", 1))


def write_texts(path, texts):
    """Writes texts, which are bytes."""
    with open(path, "wb") as file:
        for text in texts:
            file.write(len(text).to_bytes(4, sys.byteorder))
            file.write(text)


def records(path):
    """Yields the four arrays of each text as bytes."""
    with open(path, "rb") as file:
        while size := file.read(4):
            arrays = []
            for number, (_, _, width) in enumerate(PARTS):
                size = file.read(4) if number else size
                arrays.append(file.read(int.from_bytes(size, sys.byteorder) * width))
            yield arrays


def differences(ours, library):
    """Compares two files of results. Returns what -> number of texts that differ in it, and the first of these as
    (number, what, our values, the library's), or None."""
    counts, first = {what: 0 for what, _, _ in PARTS}, None
    for number, (mine, theirs) in enumerate(zip(records(ours), records(library), strict=True)):
        if mine == theirs:
            continue
        for (what, kind, _), a, b in zip(PARTS, mine, theirs):
            if a != b:
                counts[what] += 1
                first = first or (number, what, readable(kind, a), readable(kind, b))
    return counts, first


def readable(kind, values):
    return repr(values.decode(errors="backslashreplace")) if kind == "B" else array.array(kind, values).tolist()
