"""Reads messages of protobuf, such as SentencePiece's models, without their descriptions."""


def fields_of(message):
    """Yields number and value of each field of a message of protobuf: bytes, or an int if it is a varint."""
    message, i = memoryview(message), 0

    def varint():
        nonlocal i
        value = shift = 0
        while True:
            value, shift, i = value | (message[i] & 127) << shift, shift + 7, i + 1
            if message[i - 1] < 128:
                return value
    while i < len(message):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            yield number, varint()
        else:
            size = {1: 8, 5: 4}[kind] if kind != 2 else varint()
            yield number, message[i:i + size]
            i += size
