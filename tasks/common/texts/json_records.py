"""Records of JSON lines and of JSON lists with their positions, and checks that every recipe needs."""

import json
import re
from collections import Counter
from collections.abc import Iterator

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.texts.text_files import BLANKS, place, shown

TEXT_KEYS = ("text", "sentence")  # keys of a text without a label, or with a class
_LINES = 'every line of this file has to be one JSON object such as {"text": "...", "label": ...}'
_LIST = "the file has to be one JSON list of objects, [{...}, {...}]"
# the begin of an object that has a list of records under "data", after other keys, and no text before it
UNDER_DATA = re.compile(
    r'\s*\{(?:\s*"(?!text")[^"\\\n]*"\s*:\s*(?:"(?:[^"\\\n]|\\.)*"|[-+.\w]+|\{[^{}]*\}|\[[^\[\]]*\])\s*,)*'
    r'\s*"data"\s*:\s*(?=\[\s*[\[{])'
)
_BEGIN = re.compile(r"[ \t\r\n]*\[[ \t\r\n]*(\]?)[ \t\r\n]*")  # of a list
_NEXT = re.compile(r"[ \t\r\n]*([,\]]?)[ \t\r\n]*")  # after an item


def line_records(lines: list[str], name: str) -> Iterator[tuple[str, dict]]:
    """Pairs ("path:line", JSON object) of the lines that are not blank."""
    for number, line in enumerate(lines, 1):
        if line.strip(BLANKS):
            where = place(name, number)
            yield where, parse_line(line, where)


def parse_line(line: str, where: str) -> dict:
    """The JSON object of a line."""
    try:
        record = json.loads(line, object_pairs_hook=lambda pairs: distinct_keys(pairs, where))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: {_fault(error)}; {_LINES}") from None
    if not isinstance(record, dict):
        raise InputError(f"{where}: JSON {shown(record)} is not an object; {_LINES}")
    return record


def _fault(error):
    if isinstance(error, json.JSONDecodeError):
        return f"broken JSON at column {error.colno} ({error.msg})"
    return f"JSON that cannot be read ({error})"


def list_records(content: str, name: str) -> Iterator[tuple[str, dict]]:
    """Pairs (place, JSON object) of a JSON list, or of the list under "data" of an object. A place is "path:line", or
    "path: record 7" if all of the list is one line. The items are decoded one by one, because ``json.loads`` of the
    whole list has no positions. A string item becomes an object with this ``text``; an item [text, object], as spaCy
    writes it, becomes the object with the text added."""

    def error(message: str, position: int) -> InputError:
        place = where if is_one_line else f"{name}:{content.count(chr(10), 0, position) + 1}"
        return InputError(f"{place}: {message}; {_LIST}")

    is_one_line, where = "\n" not in content.strip(), f"{name}:1"
    outer = UNDER_DATA.match(content)
    found = _BEGIN.match(content, outer.end() if outer else 0)
    number, line, counted = 0, 1, 0
    while found[1] != "]":
        number, line, counted = number + 1, line + content.count("\n", counted, found.end()), found.end()
        where = f"{name}: record {number}" if is_one_line else f"{name}:{line}"
        decoder = json.JSONDecoder(object_pairs_hook=lambda pairs, where=where: distinct_keys(pairs, where))
        try:
            record, end = decoder.raw_decode(content, found.end())
        except (ValueError, RecursionError) as broken:
            raise error(_fault(broken), getattr(broken, "pos", found.end())) from None
        yield where, _as_object(record, where)
        found = _NEXT.match(content, end)
        if not found[1]:
            raise error("neither ',' nor ']' after an object", found.end())
    rest = content[found.end() :]
    if outer:
        parse_line(f"{outer[0]}[]{rest}", f"{name}:1")
    elif rest:
        raise error("more text after the list", found.end())


def _as_object(record, where):
    if isinstance(record, str):
        return {"text": record}
    if isinstance(record, list) and list(map(type, record)) == [str, dict] and "text" not in record[1]:
        return {"text": record[0], **record[1]}
    if not isinstance(record, dict):
        raise InputError(f"{where}: JSON {shown(record)} is not an object; {_LIST}")
    return record


def distinct_keys(pairs: list[tuple[str, object]], where: str) -> dict:
    """A JSON object; raises InputError for a repeated key, whose first value would be lost."""
    record = dict(pairs)
    if len(record) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise InputError(f"{where}: key {shown(twice)} is repeated in a JSON object; merge its values into one")
    return record


def json_text(record: dict, where: str, keys: tuple[str, ...] = ("text",)) -> str:
    """The text of a record, under the first of ``keys`` that it has; it may be empty."""
    key = next((key for key in keys if key in record), keys[0])
    text = record.get(key)
    if not isinstance(text, str):
        found = f'"{key}" is {shown(text)}, not a string' if key in record else f'there is no "{key}"'
        raise InputError(f'{where}: {found}; give each line its text as in {{"{key}": "..."}}')
    check_encodable(text, f'"{key}"', where)
    return text


def check_encodable(text: str, what: str, where: str) -> None:
    """Raise InputError if a text holds half of a surrogate pair, which no file can hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        half = f"half of a surrogate pair ({text[error.start]!r} at character {error.start})"
        raise InputError(f"{where}: {what} holds {half}; write the character itself or both halves") from None
