"""Writes the reference files, and the short forms of values in them."""
import json


def ranges(code_points):
    """Returns ranges as text such as "41-5A 61": hexadecimal, inclusive."""
    parts = []
    for c in code_points:
        if parts and parts[-1][1] == c - 1:
            parts[-1][1] = c
        else:
            parts.append([c, c])
    return " ".join(f"{a:X}" if a == b else f"{a:X}-{b:X}" for a, b in parts)


def fingerprint(content):
    """Returns the 64-bit FNV-1a hash as 16 hexadecimal digits: fingerprint() of base/files.h."""
    value = 14695981039346656037
    for byte in content:
        value = (value ^ byte) * 1099511628211 % 2**64
    return f"{value:016x}"


def digest(ids):
    return {"count": len(ids), "ids_fingerprint": fingerprint(b"".join(i.to_bytes(4, "little") for i in ids))}


def write_lines(path, head, lists):
    """Writes JSON with one list item per line, so that a change of one case is a change of one line."""
    def dump(value):
        return json.dumps(value, ensure_ascii=True)
    parts = [f"{dump(key)}: {dump(value)}" for key, value in head.items()]
    parts += [f"{dump(key)}: [\n  " + ",\n  ".join(dump(item) for item in items) + "\n]"
              for key, items in lists.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="ascii")
    print(f"{path}: {path.stat().st_size} bytes")
