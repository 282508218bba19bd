"""Files of data: every format of labeled text, pairs, classes, plain text, and streams to predict."""

import contextlib
import csv
import gzip
import io
import json
from pathlib import Path

from paddle_rope.tasks.classification import data as classification
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.texts.documents import read_documents, read_plain_texts
from paddle_rope.tasks.common.texts.forms import Form
from paddle_rope.tasks.common.texts.tables import header_of
from paddle_rope.tasks.matching import data as matching
from paddle_rope.tasks.ner.data.reading import EntityTextStream, read_labeled, write_examples
from paddle_rope.tasks.ner.examples import Entity, Example
from paddle_rope.tasks.ner.formats import TEXT_FORMATS, brat
from tests.attack import mutators, second_readings
from tests.attack.mutators import OF_BYTES, OF_LINES, mutator
from tests.attack.watchdog import SilentLossError, Target, json_bytes
from tests.tasks.test_readers import READ

EXAMPLES = [
    ("浙商银行企业信贷部叶老桂博士在杭州。", (0, 4, "company"), (9, 12, "name"), (15, 17, "占比%")),
    ("今天 no entity 😀",),
    ("𠮷野家在北京大学", (0, 3, "company"), (4, 8, "地/点")),
    ("北京大学附属中学", (0, 2, "address"), (0, 4, "school"), (0, 8, "school")),
]
EXAMPLES = [Example(text, tuple(Entity(*one) for one in entities), "") for text, *entities in EXAMPLES]
FLAT = EXAMPLES[:3]
NAME = "mutant"
LARGEST_AGAIN = 10**7  # characters
OF_TEXT = mutator(*OF_BYTES, *OF_LINES, *OF_LINES)
OF_JSON = mutator(*OF_BYTES, *OF_LINES, *mutators.OF_JSON * 4)


def _text(path, unpack=bytes):
    return unpack(path.read_bytes()).decode("utf-8").removeprefix("\ufeff")


def _compare(found, expected, how):
    """Raise SilentLossError unless two lists are equal; the message has the first difference."""
    for number, (one, other) in enumerate(zip(found, expected), 1):
        if one != other:
            raise SilentLossError(f"{how}: number {number} is {str(one)[:200]}, not {str(other)[:200]}")
    if len(found) != len(expected):
        raise SilentLossError(f"{how}: {len(found)}, not {len(expected)}")


def _spans(examples):
    return [(one.text, set(one.spans)) for one in examples]


# ---- labeled text
def read_entities(folder: Path) -> None:
    """A file of labeled text: read, read plainly, written in its own format and read again."""
    path = folder / NAME
    examples, format = read_labeled(path)
    unpack = gzip.decompress if path.read_bytes()[:2] == b"\x1f\x8b" else bytes
    if second := second_readings.OF_FORMAT.get(format):
        try:
            _compare(_spans(examples), second(_text(path, unpack)), f"{format} read plainly")
        except second_readings.NotPlain:
            pass
        except (ValueError, LookupError, TypeError, second_readings.RepeatedKey) as error:  # should have been refused
            raise SilentLossError(f"{format}: read, but {type(error).__name__}: {error}") from error
    repeated = sum((one.end - one.start) * len(one.type) for example in examples for one in example.entities)
    if repeated > LARGEST_AGAIN:  # tags repeat a type at each character
        return
    try:
        write_examples(examples, folder / "again", format)
    except InputError:  # a format cannot hold everything
        return
    _compare(_spans(read_labeled(folder / "again", format)[0]), _spans(examples), f"{format} written")


def read_brat(folder: Path) -> None:
    texts = sorted(folder.glob("*.txt"))
    found = _spans(brat.read(folder))
    _compare(found, [second_readings.brat(_text(path), _text(path.with_suffix(".ann"))) for path in texts], "brat")


def _written(format, examples=EXAMPLES):
    return "".join(TEXT_FORMATS[format].write(examples))


def _as_list(format, examples):
    """The records of a format of JSON lines as one list."""
    return "[" + ",\n".join(_written(format, examples).splitlines()) + "]\n"


def _table(separator, *rows):
    stream = io.StringIO()
    csv.writer(stream, delimiter=separator, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def _tables():
    """Labels as JSON in cells, tokens in rows, and tags in cells."""
    labels = [["id", "text", "label"]]
    tokens = [["Sentence #", "Word", "POS", "Tag"]]
    for number, one in enumerate(FLAT):
        spans = [[entity.start, entity.end, entity.type] for entity in one.entities]
        labels.append([number, one.text, json.dumps(spans, ensure_ascii=False)])
        of_example = _written("bio", [one]).splitlines()[:-1]
        tokens += [["" if place else f"S{number}", line[0], "n", line[2:]] for place, line in enumerate(of_example)]
    tags = [["tokens", "ner_tags"], ['["王", "明"]', '["B-P", "I-P"]'], ["在 京", "O B-LOC"]]
    return [_table(separator, *rows) for separator in ",\t" for rows in (labels, tokens, tags)]


CONLL = "-DOCSTART- -X- -X- O\n\n# id 1\nEU NNP B-NP B-ORG\n在 P O O\n京 NR B-NP B-LOC\n\n的 DEG O O\n"
WEIBO = "科0\tO\n技1\tO\n\n北0\tB-GPE.NAM\n京1\tI-GPE.NAM\n20\tO\n"
_SENTENCES = [("王", "B-PER"), ("明", "L-PER")], [("在", "O"), ("北京", "U-LOC")]
_TOKENS = [{"tokens": [{"orth": orth, "ner": ner} for orth, ner in sentence]} for sentence in _SENTENCES]
SPACY = [{"paragraphs": [{"raw": "王明 在北京", "sentences": _TOKENS}, {"raw": "北京", "entities": [[0, 2, "LOC"]]}]}]


def _brat_samples():
    ann = "T1\tcompany 0 4\t浙商银行\nT2\tname 9 12\t叶老桂\nR1\tworks Arg1:T2 Arg2:T1\n#1\tnote T1\tx\n"
    one = {"1.txt": EXAMPLES[0].text.encode(), "1.ann": ann.encode()}
    pieces = "T1\tx 2 5\t行 第\nT2\tx 0 3;4 6\t第一行 第二\nT3\tx 0 1;2 3\t第 行\n"
    return [one, {**one, "2.txt": "第一行\n第二行".encode(), "2.ann": pieces.encode()}]


# ---- pairs, classes, streams, plain text
def _records(text):
    """The objects of a JSON list or of JSON lines, or None; an object with two equal keys is none that one may read."""
    try:
        return second_readings.records(text)
    except (ValueError, second_readings.RepeatedKey):
        return None


def _texts_of_pair(record):
    record = {key.lower() if key.lower().startswith("sentence") else key: value for key, value in record.items()}
    return tuple(record[key] for key in ("ABC" if "A" in record else ("sentence1", "sentence2")))


def read_matching(folder: Path) -> None:
    """Pairs or triples, with labels and to predict."""
    path = folder / NAME
    streamed = [texts for chunk in matching.ExampleStream(path) for texts, _ in chunk]
    lines = [line for line in second_readings.lines_of(_text(path)) if line.strip(" \t")]
    plain = streamed  # of a table
    if (found := _records(_text(path))) is not None:
        plain = list(map(_texts_of_pair, found))
    elif {line.count("\t") for line in lines} <= {1, 2}:
        has_header = lines[0].split("\t")[-1].strip().lower() in matching.HEADERS
        plain = [tuple(line.split("\t")[:2]) for line in lines[has_header:]]
    _compare(streamed, plain, "texts read plainly")
    labeled = [set(one.texts) for one in matching.LABELED.read_file(path)]
    _compare(list(map(set, streamed)), labeled, "texts without labels")


def read_classes(folder: Path) -> None:
    examples = classification.LABELED.read_file(folder / NAME)
    lines = [line for line in second_readings.lines_of(_text(folder / NAME)) if line.strip(" \t")]
    plain = texts = [one.text for one in examples]
    if (found := _records(_text(folder / NAME))) is not None:
        plain = [one["text"] if "text" in one else one["sentence"] for one in found]
    elif header_of(lines[0]) is None:
        plain = [line.split("\t")[0] for line in lines]
    _compare(texts, plain, "texts read plainly")
    classification.class_names(examples)


def read_stream(folder: Path) -> None:
    """Texts to predict, in chunks as they come, or in a list, a table or labeled data."""
    path = folder / NAME
    stream = EntityTextStream(path)
    texts, content = [text for chunk in stream for text, _ in chunk], _text(path)
    plain = lines = second_readings.lines_of(content)
    if lines[-1] == "" and not content.endswith("\r"):
        del lines[-1]
    with contextlib.suppress(ValueError, LookupError, TypeError, second_readings.RepeatedKey):
        if stream.form is Form.JSON_LIST or texts != lines:
            plain = [one["text"] for one in second_readings.records(content)]
    if stream.form not in (Form.TABLE, Form.TAGGED) and list not in map(type, plain):  # a list of tokens
        _compare(texts, plain, "texts read plainly")


def read_plain(folder: Path) -> None:
    """Texts to learn from: one a line, and documents parted by blank lines."""
    path = folder / NAME
    texts, whole, content = read_plain_texts(path), read_documents([path]), _text(path)
    begin = content.lstrip()
    if begin.startswith(("[", '{"')) or begin.split("\n")[0].strip().lower() in ("text", "sentence"):
        return  # other targets read lists and tables
    if "".join("".join(texts).split()) != "".join(content.split()):
        raise SilentLossError("characters of lines are lost")
    if not set("".join(whole)) >= set("".join(content.split())):
        raise SilentLossError("characters of documents are lost")


def _lines(*records):
    return b"".join(json_bytes(record) + b"\n" for record in records)


def _target(name, mutate, read, *contents):
    samples = [{NAME: content if isinstance(content, bytes) else content.encode()} for content in contents]
    return Target(name, lambda: samples, mutate, read, (InputError,))


OF_TAGS = ("bio", "bioes", "bmes", "bio_sentences", "bmes_sentences")
OF_RECORDS = ("cluener", "doccano", "doccano_entities", "jsonl")
TRIPLES = [{"A": "原告", "B": "被告", "C": "第三人"}, {"A": "甲", "B": "乙", "C": "丙"}]
SHAPES = [
    [
        {"content": "王明在京", "annotations": [{"begin": 0, "end": 2, "label": "P", "text": "王明"}]},
        {"text": "丙", "spans": []},
    ],
    [{"tokenized_text": ["王明", "在", "京"], "ner": [[0, 0, "P"], [1, 2, "L"]]}],
    [
        {"content": "王明在京", "result_list": [{"start": 0, "end": 2, "text": "王明"}], "prompt": one}
        for one in ("人", "王明的友")
    ],
    [{"tokens": ["王", "明"], "ner_tags": [1, 2], "names": ["O", "B-P", "L-P"]}],
]
IN_LIST = [{"text": "甲", "spans": [{"start": 0, "end": 1, "label": "t"}], "answer": "accept"}]
SAMPLES = {  # of targets of JSON
    **{name: [_written(name)] for name in (*OF_RECORDS, "cmeee", "labelstudio", "labelstudio_min")},
    "tokens": [_written("tokens", FLAT)],
    "lists": [*(_as_list(name, EXAMPLES) for name in OF_RECORDS), _as_list("tokens", FLAT)],
    "shapes": [*(_lines(*records) for records in SHAPES), json_bytes({"version": 1, "data": IN_LIST})],
    "tables": _tables(),
    "spacy": [_written("spacy"), json_bytes(SPACY)],
    "matching": [
        *READ["matching"],
        *(_lines(*TRIPLES), json_bytes(TRIPLES), _lines(*({**one, "label": "C"} for one in TRIPLES))),
    ],
    "classification": READ["classification"],
    "stream": [
        *("第一行\n\n第三行\n", "甲 O\n乙 B-X\n\n丙 O\n"),
        _lines({"text": "甲", "id": 1}, {"text": ""}, {"text": "丙\n丁"}),
        json_bytes([{"text": "甲", "entities": []}, {"text": "乙"}, "丙"]),
        'id,text\n1,"甲,\n乙"\n2,[丙]\n',
    ],
}
READERS = {"matching": read_matching, "classification": read_classes, "stream": read_stream}
TARGETS = [
    *(_target(name, OF_TEXT, read_entities, _written(name, FLAT)) for name in OF_TAGS),
    *(_target(name, OF_JSON, READERS.get(name, read_entities), *samples) for name, samples in SAMPLES.items()),
    _target("columns", OF_TEXT, read_entities, CONLL, CONLL.replace(" ", "\t").replace("#\tid", "# id"), WEIBO),
    _target("gzip", OF_TEXT, read_entities, gzip.compress(_written("jsonl", FLAT).encode(), mtime=0)),
    Target("brat", _brat_samples, OF_TEXT, read_brat, (InputError,)),
    _target("plain", OF_TEXT, read_plain, "第一行\n第二行\n", "一篇\n文章\n\n另一篇\n \n第三篇"),
]
