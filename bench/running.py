"""What the scripts of this folder share that run programs. Needs Python alone."""


class Trouble(Exception):
    """Why something cannot be done or measured; its text is the sentence to show."""


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing"


def sentence_of(stderr):
    """Why frostpipe failed: the last line that begins with its name, which advice may follow; else the last line."""
    sentences = [line for line in stderr.splitlines() if line.startswith("frostpipe: ")]
    return sentences[-1] if sentences else last_line(stderr)
