"""Tokenizes many texts with the `tokenizers` library. token_results.cpp describes the files.

  library.py results FILE TEXTS OUTPUT | library.py time FILE TEXTS
"""
import array
import itertools
import os
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one thread


def texts_in(path):
    """Returns the texts of a file as strings."""
    with open(path, "rb") as file:
        content = memoryview(file.read())
    texts, begin = [], 0
    while begin < len(content):
        end = begin + 4 + int.from_bytes(content[begin:begin + 4], sys.byteorder)
        texts.append(str(content[begin + 4:end], "utf-8"))
        begin = end
    return texts


def write_array(file, values, size):
    file.write(size.to_bytes(4, sys.byteorder))
    file.write(values)


def write_results(tokenizer, texts, path):
    with open(path, "wb") as file:
        for text in texts:
            for tokens in (tokenizer.encode(text), tokenizer.encode(text, add_special_tokens=False)):
                write_array(file, array.array("i", tokens.ids), len(tokens))
            write_array(file, array.array("i", itertools.chain.from_iterable(tokens.offsets)), len(tokens))
            decoded = tokenizer.decode(tokens.ids, skip_special_tokens=False).encode()
            write_array(file, decoded, len(decoded))


def seconds_of(tokenizer, texts):
    begin = time.process_time()
    tokenizer.encode_batch_fast(texts)
    return time.process_time() - begin


def main():
    import tokenizers
    task, tokenizer = sys.argv[1], tokenizers.Tokenizer.from_file(sys.argv[2])
    tokenizer.no_truncation()
    tokenizer.no_padding()
    texts = texts_in(sys.argv[3])
    if task == "results":
        write_results(tokenizer, texts, sys.argv[4])
    else:
        print(f"{seconds_of(tokenizer, texts):.6f}")


if __name__ == "__main__":
    main()
