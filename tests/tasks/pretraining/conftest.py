"""A small text and its tokens."""

from types import SimpleNamespace

import pytest

from paddle_rope.roformer import CharTokenizer
from paddle_rope.tasks.ner.demo import write_demo_corpus
from paddle_rope.tasks.pretraining.batches import WholeWordMasking, tokenize
from tests.helpers.runs import read_json_lines


@pytest.fixture(scope="session")
def corpus_file(tmp_path_factory):
    """JSON lines of 120 short sentences."""
    return write_demo_corpus(tmp_path_factory.mktemp("corpus"), train_size=120, dev_size=1)[0]


@pytest.fixture(scope="session")
def sample(corpus_file):
    """Documents of very different lengths, their tokenizer, tokens and masking."""
    texts = [record["text"] for record in read_json_lines(corpus_file)]
    documents = [*texts[:60], "".join(texts[60:]), texts[0][:1]]
    tokenizer = CharTokenizer.from_corpus(documents)
    stream = tokenize(documents, tokenizer, "", show_progress=False)
    return SimpleNamespace(documents=documents, tokenizer=tokenizer, stream=stream, masking=WholeWordMasking(tokenizer))
