"""Mutants of text: bytes, lines, numbers, encodings, nesting; JSON; YAML.

A mutator is a function (content, rng) -> bytes. All randomness comes from the ``random.Random`` that is given, so the
same one gives the same mutant.
"""

import json
import re

LARGEST = 400_000  # bytes of a mutant: larger ones take time and show little
words = str.split
NUMBERS = (
    *words("0 -0 1 -1 00 01 +1 1.0 1.5 -1.5 1e3 1e400 -1e400 1e-400 0x10 1_0 NaN Infinity -Infinity nan inf true"),
    *words("false null [] {} 1. .5 --1 ２ ٣ ² ௧ 2147483647 -2147483649 4294967296 9223372036854775807"),
    *("", '""', "9" * 19, "9" * 400, "9" * 5000, "-" + "9" * 5000, "1" + "0" * 400, "0." + "0" * 5000 + "1"),
)
PIECES = (
    *(b"\x00", b"\x01", b"\x02", b"\x07", b"\x1b[31m", b"\x1b]0;x\x07", b"\x7f", b"\x80", b"\xff", b"\xfe\xff"),
    *(b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xed\xb0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xe4\xb8", b"\xf0\x9f"),
    *(b"\r", b"\n", b"\r\n", b"\n\n", b"\t", b" ", b"\x0b", b"\x0c", b"\x1c", b"\x1d", b"\x1e", b"\x85", b"# "),
    *(piece.encode() for piece in "\u2028\u2029\u3000\u00a0\u0085\u202e\u200d\u0301😀𠮷ßﬁ"),
    *rb"""\ud800 \udc00\ud800 \u0000 \n \ " ' ` { } [ ] : , O B- I- B-X I-X E-X S-X M-X - %s {0} $(id) ../ /""".split(),
    *b"label labels text sentence entities data score A null NaN".split(),
    b"T1\t",
)
ENCODINGS = ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "gb18030", "big5", "latin-1", "utf-7", "cp500")
BRACKETS = ((b"[", b"]"), (b"{", b"}"), (b'{"a":', b"}"), (b"(", b")"), (b"- ", b""), (b"&a [", b"]"))
DEPTHS = (2, 50, 900, 1100, 20_000, 150_000)
SINGLE_BYTES = b'\x00\x01\t\n\r ",-09[\\{\x7f\xff'


def _nested(part, rng):
    opening, closing = rng.choice(BRACKETS)
    depth = rng.choice(DEPTHS)
    return opening * depth + rng.choice((part, b"1")) + rng.choice((closing, closing, b"")) * depth


def _of_part(change):
    """A mutator from a function of (what precedes a random part, the part, what follows it, rng)."""

    def mutate(content, rng):
        start = rng.randrange(len(content) + 1)
        end = start + rng.randint(1, rng.choice((1, 4, 16, 64, 1024)))
        return change(content[:start], content[start:end], content[end:], rng)

    return mutate


def _of_line(change):
    """A mutator from a function of (a random line, rng) to the lines in its place."""

    def mutate(content, rng):
        lines = content.split(b"\n")
        place = rng.randrange(len(lines))
        return b"\n".join([*lines[:place], *change(lines[place], rng), *lines[place + 1 :]])

    return mutate


def _of_match(pattern, change):
    """A mutator that replaces one match of a pattern by ``change(match, rng)``."""

    def mutate(content, rng):
        found = list(re.finditer(pattern, content))
        if not found:
            return content
        one = rng.choice(found)
        return content[: one.start()] + change(one[0], rng) + content[one.end() :]

    return mutate


def _columns(line, rng):
    """A column of the line, or what parts two, dropped, doubled, exchanged or replaced."""
    parts = re.split(rb"([ \t\x02])", line)
    place = rng.randrange(len(parts))
    parts[place] = rng.choice((b"", b" ", b"\t", b"\x02", parts[place] * 2, rng.choice(parts), rng.choice(PIECES)))
    return [b"".join(parts)]


def encode_otherwise(content, rng):
    return content.decode("utf-8", errors="ignore").encode(rng.choice(ENCODINGS), errors="ignore")


def line_ends(content, rng):
    return content.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b"\n\r", b"\xe2\x80\xa8", b"\x0b", b"")))


OF_BYTES = (
    _of_part(lambda a, b, c, rng: a + bytes([(b[0] if b else 0) ^ 1 << rng.randrange(8)]) + b[1:] + c),
    _of_part(lambda a, b, c, rng: a + bytes([rng.choice(SINGLE_BYTES)]) + b[1:] + c),
    _of_part(lambda a, b, c, rng: a + rng.choice(PIECES) * rng.choice((1, 1, 1, 2, 40)) + b + c),
    _of_part(lambda a, b, c, rng: a + rng.choice(PIECES) + c),
    _of_part(lambda a, b, c, rng: a + c),
    _of_part(lambda a, b, c, rng: a + b * rng.choice((2, 2, 3, 11, 301)) + c),
    _of_part(lambda a, b, c, rng: a + c + b),
    _of_part(lambda a, b, c, rng: a),
    _of_part(lambda a, b, c, rng: c),
)
OF_LINES = (
    _of_line(lambda line, rng: []),
    _of_line(lambda line, rng: [line] * rng.choice((2, 2, 3, 2000))),
    _of_line(lambda line, rng: [line, rng.choice((b"", b" ", b"\t", b"\r", b"\xef\xbb\xbf", *PIECES))]),
    _of_line(lambda line, rng: [line[: (cut := rng.randrange(9))] + line[cut : cut + 8] * 10 ** rng.randint(2, 4)]),
    _of_line(_columns),
    *[_of_match(rb"-?\d+(\.\d+)?", lambda number, rng: rng.choice(NUMBERS).encode())] * 2,
    *[_of_match(rb"\d{1,9}", lambda number, rng: b"%d" % (int(number) + rng.choice((-2, -1, 1, 2, 10, 100))))] * 2,
    _of_match(rb"\n", lambda end, rng: rng.choice((b"", b" ", b"\t", b"\r", b"\x02"))),
    *(line_ends, encode_otherwise),
    _of_part(lambda a, b, c, rng: a + _nested(b, rng) + c),
)


def mutate(content, rng, mutators):
    """``content`` after a few of the ``mutators``, mostly one."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
        content = rng.choice(mutators)(content, rng)[:LARGEST]
    return content


def mutator(*mutators):
    """A mutator of cases: of one file, by some of the ``mutators``."""

    def change(case, rng):
        name = rng.choice(sorted(case))
        return {**case, name: mutate(case[name], rng, mutators)}

    return change


# ---- JSON: values, members of objects and items of lists, found by what they look like

STRINGS = (
    *words(r'"" "\u0000" "\ud800" "\udc00\ud83d" "\u001b[31m" "\n" "\u2028" "\ufeff" "%" "😀" "a/b" "../../x" "B"'),
    *words(r'"nan" "1e400" "<b>&" "\"" "\r" "\t" "__class__" "\u0002" "label" "0" "float32" "softmax" "D"'),
    *('" "', '"' + "9" * 5000 + '"', '"' + "长" * 50_000 + '"'),
)
PLAIN = ("null", "true", "false", "[]", "{}", "[[]]", "[{}]", "[null]", "1.0", "[1, 2]")
STRING = rb'(?<!\\)"(?:[^"\\]|\\.)*"'
VALUE = STRING + rb"(?!\s*:)|(?<![\d.eE+-])-?\d[\d.eE+-]*|true|false|null|\[[^][{}]*\]|\{[^][{}]*\}"
ITEM = rb"(?:%s\s*:\s*)?(?:%s)\s*,\s*" % (STRING, VALUE)


def _other_value(value, rng):
    """JSON in the place of a value."""
    many, opening = rng.choice((10, 3000, 30_000)), rng.choice((b"[", b'{"a":'))
    closing, depth = {b"[": b"]", b'{"a":': b"}"}[opening], rng.choice((1, *DEPTHS))
    keys = (f'"{index if rng.random() < 0.999 else 0}": {index}' for index in range(many))
    kinds = (
        lambda: rng.choice((*NUMBERS, *STRINGS, *PLAIN)).encode(),
        lambda: rng.choice(NUMBERS).encode(),
        lambda: rng.choice(STRINGS).encode(),
        lambda: rng.choice(PLAIN).encode(),
        lambda: opening * depth + value + closing * depth,
        lambda: b"[" + b", ".join([value[:200]] * many) + b"]",
        lambda: f"{{{', '.join(keys)}}}".encode(),
        lambda: json.dumps(value.decode("utf-8", errors="replace")).encode(),
    )
    return rng.choice(kinds)()


OF_JSON = (
    *[_of_match(VALUE, _other_value)] * 3,
    _of_match(ITEM, lambda item, rng: b""),
    _of_match(ITEM, lambda item, rng: item * rng.choice((2, 2, 3000))),
    _of_match(ITEM, lambda item, rng: item + re.sub(VALUE, b"1", item, count=1)),  # the key with two values
    _of_match(STRING + rb"\s*:", lambda key, rng: rng.choice(STRINGS).encode() + b":"),
)


# ---- YAML

YAML_VALUES = (
    *("!!int x", "!!float x", "!!timestamp 2020-02-31", "!!binary =", "!!set {a, a}", "!!omap [a]", "!!bool x", "!x y"),
    *("!!python/object/apply:os.system [id]", "!!python/name:os.system", "&a [*a]", "&a 1", "? a", "{a: {b: c}}"),
    *("{[1]: 2}", "{{a: 1}: 2}", "|\n    x", ">\n    x", "' '", "[1, a, null]", "- a", "a: b", "\t", "\x00", "\x85"),
    *words("""2020-02-31 2020-01-01 *a [[[[[]]]]] ' " '' ~ yes 0o17 1:30 .nan .inf -.inf 1e400 -1 0 1.5 null [] {}"""),
    *('"\\ud800"', "😀", "\x1b[31m", "../x", "/", "true", "%", "@", "`"),
    *("9" * 5000, "2" * 30, "[" * 2000, "x" * 100_000),
)


def change_yaml(content, rng):
    """A value, a key or a line of YAML replaced; or aliases of aliases put before it."""
    lines = content.decode("utf-8", errors="replace").split("\n")
    kind, place, value = rng.randrange(6), rng.randrange(len(lines)), rng.choice(YAML_VALUES)
    key, colon, _ = lines[place].partition(":")
    if kind == 0:
        lines.insert(place, rng.choice((f"? {value}", f"<<: {value}", "---", "...", "%YAML 9.9")))
    elif kind == 1:
        for n in range(3, 0, -1):
            lines.insert(0, f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]")
        lines.insert(0, "a0: &a0 [x, x, x, x, x, x, x, x, x]")
    elif colon:
        lines[place] = f"{value}: 1" if kind == 2 else f"{key}: {value}"
    return "\n".join(lines).encode("utf-8", errors="surrogatepass")
