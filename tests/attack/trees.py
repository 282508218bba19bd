"""Mutants of JSON by its tree: keys repeated, values of other kinds, deep, wide and large ones; and snippets of YAML.

Objects are lists of pairs here, so that a key may stand twice.
"""

import json

from tests.attack.mutators import DEPTHS, NUMBERS

STRINGS = (
    *('""', '" "', r'"\u0000"', r'"\ud800"', r'"\udc00\ud83d"', r'"\u001b[31m"', r'"\n"', r'"\u2028"', r'"\ufeff"'),
    *(
        '"%"',
        '"😀"',
        '"a/b"',
        '"../../x"',
        '"B"',
        '"C"',
        '"D"',
        '"nan"',
        '"1e400"',
        '"<b>&"',
        r'"\""',
        r'"\r"',
        r'"\t"',
    ),
    *(
        '"__class__"',
        r'"\u0002"',
        '"label"',
        '"0"',
        '"float32"',
        '"softmax"',
        '"' + "9" * 5000 + '"',
        '"' + "长" * 50_000 + '"',
    ),
)
MANY = (10, 3000, 30_000)


class Raw(str):
    """JSON as it is written, whatever it is."""


class Pairs(list):
    """An object: [key, value] each."""


def parse(text):
    """The tree of JSON; raises ValueError or RecursionError."""
    return json.loads(text, object_pairs_hook=lambda pairs: Pairs(map(list, pairs)))


def dump(node):
    if isinstance(node, Raw):
        return str(node)
    if isinstance(node, Pairs):
        return "{" + ", ".join(f"{dump(key)}: {dump(value)}" for key, value in node) + "}"
    if isinstance(node, list):
        return "[" + ", ".join(map(dump, node)) + "]"
    return json.dumps(node, ensure_ascii=False)


def _places(node, found):
    """All (container, index) below ``node``."""
    for index, item in enumerate(node):
        value = item[1] if isinstance(node, Pairs) else item
        found.append((node, index))
        if isinstance(value, list):
            _places(value, found)
    return found


def _other_value(value, rng):
    """JSON in the place of ``value``."""
    text = dump(value)
    kind = rng.randrange(9)
    if kind == 0:
        return Raw(rng.choice(NUMBERS))
    if kind == 1:
        return Raw(rng.choice(STRINGS))
    if kind == 2:
        return Raw(f"[{text}]")
    if kind == 3:
        return Raw(f'{{"a": {text}}}')
    if kind == 4:
        opening, closing = rng.choice((("[", "]"), ('{"a":', "}")))
        depth = rng.choice(DEPTHS)
        return Raw(opening * depth + text + closing * depth)
    if kind == 5 and len(text) < 200:
        return Raw(f"[{', '.join([text] * rng.choice(MANY))}]")
    if kind == 6:
        count = rng.choice(MANY)
        keys = (f'"{index if rng.random() < 0.999 else 0}": {index}' for index in range(count))
        return Raw("{" + ", ".join(keys) + "}")
    if kind == 7:
        return Raw(json.dumps(text))
    return Raw(rng.choice(("null", "true", "false", "[]", "{}", "[[]]", "[{}]", "0", '""', "[null]", "1.0", "[1, 2]")))


def mutate_tree(root, rng):
    """JSON of a tree after one change."""
    places = _places(root, []) if isinstance(root, list) else []
    if not places:
        return dump(_other_value(root, rng))
    node, index = rng.choice(places)
    is_object = isinstance(node, Pairs)
    kind = rng.randrange(7)
    if kind == 0:
        node.pop(index)
    elif kind == 1:
        node.insert(index, node[index])
    elif kind == 2 and is_object:
        node[index] = [Raw(rng.choice(STRINGS)), node[index][1]]
    elif kind == 3 and is_object:  # the key once more, with another value
        node.append([node[index][0], _other_value(node[index][1], rng)])
    elif kind == 4:
        other, at = rng.choice(places)
        value = other[at][1] if isinstance(other, Pairs) else other[at]
        if not isinstance(value, list):
            node[index] = [node[index][0], value] if is_object else value
    elif is_object:
        node[index] = [node[index][0], _other_value(node[index][1], rng)]
    else:
        node[index] = _other_value(node[index], rng)
    return dump(root)


def change_json(content, rng):
    """One change in the tree of the content, or in that of one of its lines; broken JSON stays as it is."""
    text = content.decode("utf-8", errors="replace")
    try:
        return mutate_tree(parse(text), rng).encode("utf-8", errors="surrogatepass")
    except (ValueError, RecursionError):
        pass
    lines = text.split("\n")
    place = rng.randrange(len(lines))
    try:
        lines[place] = mutate_tree(parse(lines[place]), rng)
    except (ValueError, RecursionError):
        return content
    return "\n".join(lines).encode("utf-8", errors="surrogatepass")


YAML_VALUES = (
    *("!!int x", "!!float x", "!!timestamp 2020-02-31", "!!binary =", "!!set {a, a}", "!!omap [a]", "!!bool x", "!x y"),
    *("!!python/object/apply:os.system [id]", "!!python/name:os.system", "&a [*a]", "&a 1", "? a", "{a: {b: c}}"),
    *("{[1]: 2}", "{{a: 1}: 2}", "|\n    x", ">\n    x", "' '", "[1, a, null]", "- a", "a: b", "\t", "\x00", "\x85"),
    *(
        "2020-02-31",
        "2020-01-01",
        "*a",
        "[[[[[]]]]]",
        "'",
        '"',
        "''",
        "~",
        "yes",
        "0o17",
        "1:30",
        ".nan",
        ".inf",
        "-.inf",
    ),
    *("1e400", "-1", "0", "1.5", "null", "[]", "{}"),
    *('"\\ud800"', "😀", "\x1b[31m", "../x", "/", "true", "%", "@", "`"),
    *("9" * 5000, "2" * 30, "[" * 2000, "x" * 100_000),
)
_BOMB = "a{}: &a{} [{}]\n"


def change_yaml(content, rng):
    """A value, a key or a line of YAML replaced; or aliases of aliases put before it."""
    lines = content.decode("utf-8", errors="replace").split("\n")
    kind = rng.randrange(6)
    place = rng.randrange(len(lines))
    key, colon, _ = lines[place].partition(":")
    if kind <= 2 and colon:
        lines[place] = f"{key}: {rng.choice(YAML_VALUES)}"
    elif kind == 3:
        value = rng.choice(YAML_VALUES)
        lines.insert(place, rng.choice((f"? {value}", f"<<: {value}", "---", "...", "%YAML 9.9")))
    elif kind == 4 and colon:
        lines[place] = f"{rng.choice(YAML_VALUES)}: 1"
    elif kind == 5:
        bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
        bomb += "".join(_BOMB.format(n, n, ", ".join([f"*a{n - 1}"] * 9)) for n in range(1, rng.choice((3, 8))))
        lines.insert(0, bomb)
    return "\n".join(lines).encode("utf-8", errors="surrogatepass")
