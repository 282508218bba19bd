"""Makes the encoder `small` that comes with the package.

    python tools/dev/shipped_encoder.py texts data/text/open        train.jsonl, dev.jsonl, test.jsonl, vocab.txt there
    paddle-rope train configs/pretraining/small.yaml
    python tools/dev/shipped_encoder.py vectors data/text/open                  word vectors; needs pip install gensim
    python tools/dev/shipped_encoder.py ship runs/pretraining_small data/text/open
    python tools/dev/shipped_encoder.py split data/ner/cluener/train.json runs      held.json, rest.json: to try recipes
    python tools/dev/shipped_encoder.py few data/ner/cluener/train.json runs 42 300     few.json, unlabeled.txt

``texts`` expects the .txt files of openly licensed Chinese that configs/pretraining/small.yaml describes. ``ship``
writes paddle_rope/roformer/encoders/small: weights in float16, and the model card, with the loss on test.jsonl, which
no run has read.
"""

import json
import random
import sys
import unicodedata
from collections import defaultdict
from pathlib import Path

from safetensors.numpy import load_file, save_file

from paddle_rope.roformer import CharTokenizer, RoFormerForMaskedLM, load_tokenizer
from paddle_rope.roformer.config import ENCODERS
from paddle_rope.tasks.common.reports.tables import as_markdown
from paddle_rope.tasks.common.texts.documents import read_documents
from paddle_rope.tasks.common.word_vectors import SIZE, WordVectors
from paddle_rope.tasks.ner.data.splits import draw
from paddle_rope.tasks.ner.features.jieba_dictionary import installed_words

NAME = "small"
KEPT = {"laws_national": 1 / 3, "opensource_com_translations": 2 / 3, "court_documents": 2 / 3}  # of the documents
HELD_OUT = 0.02  # of the documents of each file, for dev and once more for test
MIN_COUNT = 3  # of a character of the vocabulary
MEASURED = 1500  # labeled texts
SPECIAL = 6  # tokens at the beginning of a vocabulary
TABLE = "table.json"
CARD = """\
# small: a Chinese RoFormer to start from

{layers} layers of {size}, softmax attention with RoPE, {parameters:,} parameters, {characters:,} characters in its
vocabulary; {bytes:.1f} MB in float16. Write `pretrained: {name}` in a configuration, or
`RoFormerModel.from_pretrained("{name}")`.

- **Training**: {million:.0f} million tokens, {epochs:.1f} passes through the texts below; masked language modeling of
  whole words, of which 30 % are hidden at first and 15 % at last; rows of 256 and at last 512 tokens; products in
  bfloat16; seed {seed}; one core. `tools/dev/shipped_encoder.py texts FOLDER` prepares the texts, and `paddle-rope
  train configs/pretraining/small.yaml` trains.
- **Word vectors** of {words:,} words, from which NER models with word features start: skip-gram, 8 passes through the
  same texts in 14 minutes of one core (`tools/dev/shipped_encoder.py vectors FOLDER`).
- **Test**, on {documents} documents that no run has read: {loss:.3f} nats a hidden token; {accuracy:.1%} of them filled
  in.
- **Use it for** tasks on simplified Chinese with few labels, on a CPU. **Do not use it for** facts, generation, or
  traditional Chinese. There is little news in its texts, and much law and literature from before 1960, whose biases it
  repeats.
- **License**: the texts are in the public domain, official documents, or under CC BY-SA and Apache-2.0. The weights are
  under CC BY-SA 4.0 (`LICENSE` names the sources); the code of the package is under Apache-2.0.

Loss and accuracy on other held-out documents after each stage of the training:

{stages}
Texts to train on:

{texts}"""


def prepare_texts(folder):
    """Split the .txt files of a folder by documents, and write the vocabulary of the part to train on."""
    parts, seen, table = defaultdict(list), set(), []
    for path in sorted(folder.glob("*.txt")):
        if path.name == "vocab.txt":
            continue
        documents = [document for document in read_documents([path]) if document not in seen]
        seen.update(documents)
        random.Random(f"pretraining {path.stem}").shuffle(documents)
        documents = documents[: round(len(documents) * KEPT.get(path.stem, 1))]
        count = max(1, round(HELD_OUT * len(documents)))
        parts["dev"] += documents[:count]
        parts["test"] += documents[count : 2 * count]
        parts["train"] += documents[2 * count :]
        table.append((path.stem, len(documents) - 2 * count, sum(map(len, documents[2 * count :]))))
    for split, documents in parts.items():
        lines = (json.dumps({"text": document}, ensure_ascii=False) + "\n" for document in documents)
        (folder / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
    vocab = CharTokenizer.from_corpus(parts["train"], MIN_COUNT).vocab
    kept = [unit for unit in vocab[SPECIAL:] if unit.isprintable() and not is_full_width(unit)]
    (folder / "vocab.txt").write_text("\n".join([*vocab[:SPECIAL], *kept]) + "\n", encoding="utf-8")
    rows = [dict(zip(("file", "documents", "characters"), row)) for row in table]
    (folder / TABLE).write_text(json.dumps(rows), encoding="utf-8")
    print(as_markdown(rows), end="")


def is_full_width(unit):
    """Whether a unit is a full-width letter or digit, which is looked up in its NFKC form."""
    return len(unit) == 1 and "\uff10" <= unit <= "\uff5a" and unicodedata.normalize("NFKC", unit).isalnum()


def ship(run, texts):
    """Write the folder of the encoder from a finished run."""
    from paddle_rope.tasks.pretraining.arguments import Stage
    from paddle_rope.tasks.pretraining.batches import DevBatches, WholeWordMasking, tokenize
    from paddle_rope.tasks.pretraining.recipe import evaluate_model

    target = ENCODERS / NAME
    tokenizer = load_tokenizer(run / "model")
    RoFormerForMaskedLM.from_pretrained(run / "model").save_pretrained(target)
    tokenizer.save_pretrained(target)
    weights = target / "model.safetensors"
    half = {name: array.astype("float16") for name, array in load_file(weights).items()}
    save_file(half, weights, metadata={"format": "np"})

    model = RoFormerForMaskedLM.from_pretrained(target)
    documents = read_documents([texts / "test.jsonl"])
    stream = tokenize(documents, tokenizer, "words of test", False)
    scores = evaluate_model(model, DevBatches(stream, Stage(512, 8, 1), tokenizer, WholeWordMasking(tokenizer)))
    metrics = json.loads((run / "metrics.json").read_text())
    stages = metrics["stages"]
    tokens = sum(stage["million_tokens"] for stage in stages)
    columns = ("max_tokens", "steps", "million_tokens", "dev_loss", "dev_accuracy")
    shown = [{name: round(stage[name], 3) for name in columns} for stage in stages]
    rows = json.loads((texts / TABLE).read_text())
    card = CARD.format(
        **{"name": NAME, "layers": model.config.num_hidden_layers, "size": model.config.hidden_size},
        **{"parameters": sum(array.size for array in half.values()), "characters": len(tokenizer) - SPECIAL},
        **{
            "bytes": weights.stat().st_size / 1e6,
            "million": tokens,
            "epochs": 1e6 * tokens / metrics["tokens"]["train"],
        },
        **{"seed": metrics["seed"], "documents": len(documents), **scores},
        words=len(WordVectors.from_pretrained(target).words),
        stages=as_markdown(shown, list(columns)),
        texts=as_markdown(rows),
    )
    (target / "README.md").write_text(card, encoding="utf-8")
    print(card)


def learn_word_vectors(texts):
    """Write the vectors of the words of train.jsonl: skip-gram (arXiv 1310.4546), in int8."""
    from gensim.models import Word2Vec

    skip_gram = {"sg": 1, "negative": 10, "window": 5, "sample": 1e-4, "epochs": 8, "workers": 1, "seed": 1}
    found = Word2Vec(sentences_of(texts), vector_size=SIZE, min_count=5, **skip_gram).wv
    step = 4 * found.vectors.std() / 127
    vectors = (found.vectors / step).round().clip(-127, 127).astype("int8")
    WordVectors(found.index_to_key, vectors).save_pretrained(ENCODERS / NAME)
    print(f"{len(vectors):,} words")


def sentences_of(texts):
    """The words of each line of train.jsonl that has five characters or more."""
    find_words = installed_words()
    spaces = str.maketrans("", "", " \t\u3000")
    documents = read_documents([texts / "train.jsonl"])
    lines = (line.translate(spaces) for document in documents for line in document.splitlines())
    found = [find_words(line) for line in lines if len(line) >= 5]
    return [[words.text[start:end] for start, end, _ in words.segmentation] for words in found]


def split(file, folder):
    """Write 1,500 lines of a labeled file to measure recipes on, and the others, to learn from."""
    lines = file.read_text(encoding="utf-8").splitlines()
    random.Random("cluener").shuffle(lines)
    _write_lines(folder, {"held.json": lines[:MEASURED], "rest.json": lines[MEASURED:]})


def few(file, folder, seed, count):
    """Write the lines of a labeled file that ``--train_texts COUNT --seed SEED`` draws, and the other texts."""
    lines = file.read_text(encoding="utf-8").splitlines()
    labeled = draw(lines, int(str(count)), int(str(seed)))
    texts = [json.loads(line)["text"] for line in lines if line not in labeled]
    _write_lines(folder, {"few.json": labeled, "unlabeled.txt": texts})


def _write_lines(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    verb, *arguments = sys.argv[1:]
    verbs = {"texts": prepare_texts, "ship": ship, "vectors": learn_word_vectors, "split": split, "few": few}
    verbs[verb](*map(Path, arguments))
