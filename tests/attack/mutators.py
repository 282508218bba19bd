"""Mutants of files of text: bytes, lines, numbers, encodings, nesting. A mutator is a function (content, rng) -> bytes.

All randomness comes from the ``random.Random`` that is given: the same one gives the same mutant.
"""

import re

LARGEST = 400_000  # bytes of a mutant: larger ones take time and show little
NUMBERS = (
    *("0", "-0", "1", "-1", "00", "01", "+1", "1.0", "1.5", "-1.5", "1e3", "1e400", "-1e400", "1e-400", "0x10", "1_0"),
    *("NaN", "Infinity", "-Infinity", "nan", "inf", "true", "false", "null", '""', "[]", "{}", "1.", ".5", "--1", ""),
    *("２", "٣", "²", "௧", "2147483647", "-2147483649", "4294967296", "9223372036854775807", "-9223372036854775809"),
    *("9" * 19, "9" * 400, "9" * 5000, "-" + "9" * 5000, "1" + "0" * 400, "0." + "0" * 5000 + "1"),
)
PIECES = (
    *(b"\x00", b"\x01", b"\x02", b"\x07", b"\x1b[31m", b"\x1b]0;x\x07", b"\x7f", b"\x80", b"\xff", b"\xfe\xff"),
    *(b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xed\xb0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xe4\xb8", b"\xf0\x9f"),
    *(b"\r", b"\n", b"\r\n", b"\n\n", b"\t", b" ", b"\x0b", b"\x0c", b"\x1c", b"\x1d", b"\x1e", b"\x85", b"\xc2\x85"),
    *("\u2028".encode(), "\u2029".encode(), "\u3000".encode(), "\u00a0".encode(), "\u202e".encode(), "\u200d".encode()),
    *("\u0301".encode(), "😀".encode(), "👨\u200d👩\u200d👧".encode(), "𠮷".encode(), "ß".encode(), "ﬁ".encode()),
    *rb"""\ud800 \udc00\ud800 \u0000 \n \ " ' ` { } [ ] : , O B- I- B-X I-X E-X S-X M-X -""".split(),
    *b"% %s {0} $(id) ../ / label labels text sentence entities data score A null NaN".split(),
    *(b"# ", b"T1\t"),
)
ENCODINGS = ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "gb18030", "big5", "latin-1", "utf-7", "cp500")
BRACKETS = ((b"[", b"]"), (b"{", b"}"), (b'{"a":', b"}"), (b"(", b")"), (b"- ", b""), (b"&a [", b"]"))
DEPTHS = (2, 50, 900, 1100, 20_000, 150_000)


def _cut(content, rng, longest=None):
    """A random part of ``content`` as (start, end), often a short one."""
    start = rng.randrange(len(content) + 1)
    longest = longest or rng.choice((1, 4, 16, 64, 1024))
    return start, min(len(content), start + rng.randint(1, longest))


# ---- bytes


def flip_bit(content, rng):
    changed = bytearray(content or b"\x00")
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def replace_byte(content, rng):
    changed = bytearray(content or b"\xff")
    changed[rng.randrange(len(changed))] = rng.choice((0, 1, 9, 10, 13, 32, 34, 44, 45, 48, 57, 91, 92, 123, 127, 255))
    return bytes(changed)


def insert_piece(content, rng):
    start = rng.randrange(len(content) + 1)
    return content[:start] + rng.choice(PIECES) * rng.choice((1, 1, 1, 2, 40)) + content[start:]


def replace_by_piece(content, rng):
    start, end = _cut(content, rng)
    return content[:start] + rng.choice(PIECES) + content[end:]


def delete_part(content, rng):
    start, end = _cut(content, rng)
    return content[:start] + content[end:]


def repeat_part(content, rng):
    start, end = _cut(content, rng)
    return content[:end] + content[start:end] * rng.choice((1, 1, 2, 10, 300)) + content[end:]


def move_part(content, rng):
    start, end = _cut(content, rng)
    rest = content[:start] + content[end:]
    place = rng.randrange(len(rest) + 1)
    return rest[:place] + content[start:end] + rest[place:]


def truncate(content, rng):
    return content[: rng.randrange(len(content) + 1)]


def cut_head(content, rng):
    return content[rng.randrange(len(content) + 1) :]


# ---- lines


def _of_lines(change):
    def mutate(content, rng):
        lines = content.split(b"\n")
        return b"\n".join(change(lines, rng))

    mutate.__name__ = change.__name__
    return mutate


@_of_lines
def delete_line(lines, rng):
    lines.pop(rng.randrange(len(lines)))
    return lines or [b""]


@_of_lines
def repeat_line(lines, rng):
    place = rng.randrange(len(lines))
    return lines[:place] + [lines[place]] * rng.choice((2, 2, 3, 2000)) + lines[place + 1 :]


@_of_lines
def swap_lines(lines, rng):
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return lines


@_of_lines
def join_lines(lines, rng):
    place = rng.randrange(len(lines))
    lines[place : place + 2] = [rng.choice((b"", b" ", b"\t", b"\r", b"\x02")).join(lines[place : place + 2])]
    return lines


@_of_lines
def insert_line(lines, rng):
    lines.insert(rng.randrange(len(lines) + 1), rng.choice((b"", b" ", b"\t", b"\r", b"\xef\xbb\xbf", *PIECES)))
    return lines


@_of_lines
def lengthen_line(lines, rng):
    place = rng.randrange(len(lines))
    line = lines[place]
    start, end = _cut(line, rng, 8)
    lines[place] = line[:start] + line[start:end] * rng.choice((100, 3000, 30_000)) + line[end:]
    return lines


@_of_lines
def columns(lines, rng):
    """Columns of a line exchanged, dropped, doubled, or parted by something else."""
    place = rng.randrange(len(lines))
    parts = re.split(rb"([ \t\x02])", lines[place])
    chosen = rng.randrange(len(parts))
    others = (b"", b" ", b"\t", b"\x02", b"  ", parts[chosen] * 2, rng.choice(parts), rng.choice(PIECES))
    parts[chosen] = rng.choice(others)
    lines[place] = b"".join(parts)
    return lines


def line_ends(content, rng):
    return content.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b"\n\r", b"\xe2\x80\xa8", b"\x0b", b"")))


# ---- numbers, encodings, nesting


def _of_number(content, rng, pattern, other):
    found = list(re.finditer(pattern, content))
    if not found:
        return insert_piece(content, rng)
    one = rng.choice(found)
    return content[: one.start()] + other(one[0]).encode() + content[one.end() :]


def replace_number(content, rng):
    return _of_number(content, rng, rb"-?\d+(\.\d+)?", lambda _: rng.choice(NUMBERS))


def shift_number(content, rng):
    return _of_number(content, rng, rb"\d{1,9}", lambda number: str(int(number) + rng.choice((-2, -1, 1, 2, 10, 100))))


def encode_otherwise(content, rng):
    text = content.decode("utf-8", errors="ignore")
    return text.encode(rng.choice(ENCODINGS), errors="ignore")


def nest(content, rng):
    opening, closing = rng.choice(BRACKETS)
    depth = rng.choice(DEPTHS)
    start, end = _cut(content, rng)
    inner = content[start:end] if rng.random() < 0.5 else b"1"
    closed = closing * depth if rng.random() < 0.7 else b""
    return content[:start] + opening * depth + inner + closed + content[end:]


OF_BYTES = (
    *(flip_bit, replace_byte, insert_piece, replace_by_piece, delete_part, repeat_part, move_part, truncate, cut_head),
)
OF_LINES = (
    *(delete_line, repeat_line, swap_lines, join_lines, insert_line, lengthen_line, columns, line_ends),
    *(replace_number, replace_number, shift_number, shift_number, encode_otherwise, nest),
)


def mutator(*mutators):
    """A mutator of cases: of one file, by some of the ``mutators``."""

    def change(case, rng):
        name = rng.choice(sorted(case))
        return {**case, name: mutate(case[name], rng, mutators)}

    return change


def mutate(content, rng, mutators):
    """``content`` after a few of the ``mutators``, mostly one."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
        content = rng.choice(mutators)(content, rng)[:LARGEST]
    return content
