"""The alphabet of GPT-2's vocabularies. It needs only Python."""


def symbols_of_bytes():
    """Returns the visible character of each byte in GPT-2's vocabularies: its own, or one from U+0100 on."""
    seen = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = iter(range(0x100, 0x200))
    return [chr(byte if byte in seen else next(hidden)) for byte in range(256)]
