"""Files of texts: which forms give the same labeled examples, and what each reader refuses, with its place."""

import gzip

import pytest

from paddle_rope.tasks.classification.data import class_names
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.run_config import read_run_config
from paddle_rope.tasks.common.texts.documents import read_documents, read_plain_texts
from paddle_rope.tasks.common.texts.tables import table_records
from paddle_rope.tasks.common.texts.text_files import read_text, split_lines
from paddle_rope.tasks.matching.data import task_of
from paddle_rope.tasks.ner.data.reading import read_examples
from paddle_rope.tasks.recipes import get_predictor
from paddle_rope.tasks.scaling.formats import parts_of
from tests.tasks.conftest import FILES
from tests.tasks.ner.conftest import read_texts

READ, REFUSED = FILES["read"], FILES["refused"]
READERS = {
    **{recipe: (get_predictor(recipe).labeled.read_file,) for recipe in ("matching", "classification")},
    "plain texts and documents": (read_plain_texts, lambda path: read_documents([path])),
    "table": (lambda path: list(table_records(split_lines(read_text(path)[0]), str(path))),),
    "many documents": (lambda path: parts_of([str(path)], (("text",),), 10),),
    "texts to predict": (read_texts,),
    "labeled text": (read_examples,),
    "configuration": (read_run_config,),
}
PAIRS = [(("天气好吗", "今天天气如何"), 1.0), (('a, "b"', " 空格 "), 0.0)]
TEXTS = [("[甲] 乙", "好"), ("丙", "坏")]
REAL = [  # counts as in the data's READMEs: examples, and classes, or pairs with label 1
    ("classification", "longtext/iflytek_fewclue/train_few_all.json", 3024, 119),
    ("matching", "matching/afqmc/dev.txt", 4316, 1338),
    ("matching", "matching/cail2019_scm/input.txt", 500, None),
]


@pytest.mark.parametrize("recipe, content", [(recipe, content) for recipe in READ for content in READ[recipe]])
def test_every_form_gives_the_same_examples(write, recipe, content):
    for data in (content, gzip.compress(content.encode())):
        examples = get_predictor(recipe).labeled.read_file(write(data))
        if recipe == "matching":
            assert [(example.texts, example.label) for example in examples] == PAIRS and task_of(examples) == "pairs"
        else:
            assert [(example.text, example.label) for example in examples] == TEXTS


@pytest.mark.parametrize("reader, content, line, word, name", [
    (reader, *row, *["data"][len(row) - 3 :]) for reader in REFUSED for row in REFUSED[reader]
])  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(write, reader, content, line, word, name):
    path = write(content, name)
    for read in READERS[reader]:
        with pytest.raises(InputError) as error:
            read(path)
        place = f"{path}: {line}: " if isinstance(line, str) else f"{path}:{line}: " if line else f"{path}: "
        assert str(error.value).startswith(place) and word in str(error.value)


@pytest.mark.parametrize("recipe, name, texts, count", REAL)
def test_published_file_has_the_counts_of_its_readme(shared_data, recipe, name, texts, count):
    if not (shared_data / name).is_file():
        pytest.skip(f"{name} is not there")
    examples = get_predictor(recipe).labeled.read_file(shared_data / name)
    assert len(examples) == texts
    if count is not None:
        found = len(class_names(examples)) if recipe == "classification" else [e.label for e in examples].count(1)
        assert found == count
