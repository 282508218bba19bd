"""Prediction in Python and by the tool; folders that are no model, or a damaged one."""

import json
import random
import shutil
from types import SimpleNamespace

import evaluate_ner
import numpy as np
import paddle
import predict_ner
import pytest
from safetensors.numpy import load_file, save_file

from paddle_rope import CharTokenizer, decode_spans
from tasks.common.errors import InputError
from tasks.ner import NerPredictor
from tasks.ner.model import NerModel


@pytest.fixture(scope="module")
def predictor(trained):
    return NerPredictor(trained.model, "cpu")


@pytest.fixture(scope="module")
def dev_texts(corpus):
    return [record["text"] for record in corpus.dev_records]


def test_predictions_have_the_promised_form(predictor, dev_texts):
    records = predictor(dev_texts)
    assert [record["text"] for record in records] == dev_texts
    entities = [(record["text"], entity) for record in records for entity in record["entities"]]
    assert len(entities) > 20
    for text, entity in entities:
        assert list(entity) == ["start", "end", "type", "text", "score", "probability"]
        assert 0 <= entity["start"] < entity["end"] <= len(text)
        assert text[entity["start"] : entity["end"]] == entity["text"]
        assert entity["type"] in predictor.types and entity["score"] > 0
    for record in records:
        keys = [(entity["start"], entity["end"], entity["type"]) for entity in record["entities"]]
        assert keys == sorted(set(keys))


def test_python_tool_and_predictions_of_the_training_run_agree(predictor, predict, dev_texts, trained):
    records = predictor(dev_texts)
    assert predict("\n".join(dev_texts) + "\n") == records
    lines = (trained.folder / "predictions_dev.jsonl").read_text(encoding="utf-8").splitlines()
    for record, line in zip(records, lines, strict=True):
        expected = json.loads(line)["entities"]
        assert [(e["start"], e["end"], e["type"]) for e in record["entities"]] == [
            (e["start"], e["end"], e["type"]) for e in expected
        ]
        assert [e["score"] for e in record["entities"]] == pytest.approx([e["score"] for e in expected], abs=2e-4)


def test_json_lines_give_the_same_as_plain_text(predict, dev_texts):
    plain = predict("".join(text + "\n" for text in dev_texts[:5]))
    assert predict("".join(json.dumps({"text": text, "id": 1}) + "\n" for text in dev_texts[:5])) == plain


def test_batch_of_very_different_lengths_gives_the_same_as_one_text_at_a_time(trained, dev_texts):
    texts = ["", "我", dev_texts[0], "".join(dev_texts), dev_texts[1][:3], "".join(dev_texts[:9]), " \t"]
    predictor = NerPredictor(trained.model, "cpu", batch_size=len(texts), max_tokens=5000)
    together = predictor(texts)
    assert sum(len(record["entities"]) for record in together) > 20
    for record, text in zip(together, texts):
        (alone,) = predictor([text])
        assert [(e["start"], e["end"], e["type"]) for e in record["entities"]] == [
            (e["start"], e["end"], e["type"]) for e in alone["entities"]
        ]
        scores = [[entity["score"] for entity in r["entities"]] for r in (record, alone)]
        assert scores[0] == pytest.approx(scores[1], abs=2e-4)  # 1e-4, and as much again by rounding to 4 digits


def test_order_of_the_texts_is_kept_whatever_their_lengths(predictor, dev_texts):
    shuffled = random.Random(1).sample(dev_texts, len(dev_texts))
    of_text = {record["text"]: record["entities"] for record in predictor(dev_texts)}
    for record, text in zip(predictor(shuffled), shuffled, strict=True):
        assert record["text"] == text
        assert [(e["start"], e["type"]) for e in record["entities"]] == [(e["start"], e["type"]) for e in of_text[text]]


def test_empty_lines_stay_in_line(predict, dev_texts):
    records = predict(f"\n{dev_texts[0]}\n\n\n{dev_texts[1]}\n\n")
    assert [record["text"] for record in records] == ["", dev_texts[0], "", "", dev_texts[1], ""]
    assert [bool(record["entities"]) for record in records] == [False, True, False, False, True, False]


def test_offsets_count_characters_also_behind_white_space_and_joined_marks(predictor, dev_texts):
    text = next(r for r in predictor(dev_texts) if r["entities"])["text"]
    (record,) = predictor(["\U0001f44d\U0001f3fb \u3000e\u0301 " + text])
    assert record["entities"]
    assert all(record["text"][e["start"] : e["end"]] == e["text"] for e in record["entities"])


def test_no_text_gives_no_record(predictor):
    assert predictor([]) == []


def test_evaluation_tool_equals_the_metrics_of_the_run(evaluate, trained, corpus):
    scores = evaluate(corpus.dev)
    assert len(scores.pop("worst_examples")) == 5
    assert scores == trained.metrics["dev"]


# ---- texts longer than max_tokens, thresholds, band


class BracketModel:
    """Finds what stands between brackets, wherever it sees both, in place of a trained model."""

    config = SimpleNamespace(
        **dict.fromkeys(("window_tokens", "longest_text", "longest_entity")),
        **{"types": ["round"], "max_tokens": 16, "pad_token_id": 0, "allow_overlap": True, "temperatures": 1.0},
    )

    def __init__(self, tokenizer):
        self.open, self.close = tokenizer.encode("()").ids[1:3]

    def scores_of_text(self, length):
        return length

    def find_spans(self, batch, thresholds=None):
        input_ids = batch["input_ids"]
        logits = np.full((len(input_ids), 1, input_ids.shape[1], input_ids.shape[1]), -1.0)
        for row, ids in enumerate(input_ids.tolist()):
            opened = []
            for index, token in enumerate(ids):
                if token == self.open:
                    opened.append(index)
                elif token == self.close and opened:
                    logits[row, 0, opened.pop(), index] = 1.0
        return decode_spans(logits, thresholds or 0.0)


def brackets(text):
    """(start, end) of all pairs, by counting."""
    opened, found = [], []
    for index, character in enumerate(text):
        if character == "(":
            opened.append(index)
        elif character == ")":
            found.append((opened.pop(), index + 1))
    return sorted(found)


def random_brackets(seed, size, longest):
    """A text of nested and adjacent pairs of at most ``longest`` characters, between other characters."""
    random_ = random.Random(seed)

    def pair(room):
        inner = ""
        while room - 2 - len(inner) >= 2 and random_.random() < 0.5:
            inner += pair(room - 2 - len(inner)) if random_.random() < 0.7 else "a"
        return f"({inner}{'a' * random_.choice([0, 0, room - 2 - len(inner)])})"

    text = ""
    while len(text) < size:
        text += pair(random_.randint(2, longest)) if random_.random() < 0.5 else "a" * random_.randint(0, 5)
    return text


@pytest.mark.equation("6.23")
@pytest.mark.parametrize("max_tokens, overlap", [(16, None), (16, 14), (9, 2), (7, 5), (40, 12), (16, 4)])
def test_no_entity_up_to_the_overlap_is_lost_or_found_twice_in_texts_of_any_length(monkeypatch, max_tokens, overlap):
    tokenizer = CharTokenizer.from_corpus(["(a)"])
    monkeypatch.setattr(NerPredictor, "_open", lambda *_: (tokenizer, BracketModel(tokenizer)))
    monkeypatch.setattr(NerPredictor, "features", None, raising=False)
    predictor = NerPredictor("fake", "cpu", max_tokens=max_tokens, overlap=overlap)
    assert predictor.overlap == (max_tokens // 4 if overlap is None else overlap)
    texts = [random_brackets(seed, 3 * seed, predictor.overlap) for seed in range(60)]
    assert sum(len(text) > max_tokens for text in texts) > 30
    for text, entities in zip(texts, predictor.find(texts)):
        assert [(start, end) for start, end, *_ in entities] == brackets(text)


@pytest.mark.parametrize(
    "longest, given, bound", [(20, None, 40), (20, 7, 7), (20, 0, 99), (3, None, 32), (None, None, 99)]
)
def test_no_entity_is_longer_than_the_bound(monkeypatch, longest, given, bound):
    tokenizer = CharTokenizer.from_corpus(["(a)"])
    model = BracketModel(tokenizer)
    model.config = SimpleNamespace(**{**vars(model.config), "longest_entity": longest})
    monkeypatch.setattr(NerPredictor, "_open", lambda *_: (tokenizer, model))
    monkeypatch.setattr(NerPredictor, "features", None, raising=False)
    predictor = NerPredictor("fake", "cpu", max_tokens=200, max_entity_tokens=given)
    text = "".join(f"({'a' * (size - 2)})" for size in (2, 7, 8, 32, 33, 40, 41))
    assert [end - start for start, end, *_ in predictor.find([text])[0]] == [
        size for size in (2, 7, 8, 32, 33, 40, 41) if size <= bound
    ]


def test_long_text_is_predicted_in_windows_with_offsets_of_the_whole(predictor, dev_texts):
    text = "".join(dev_texts)
    assert len(text) > 10 * predictor.max_tokens
    (record,) = predictor([text])
    assert len(record["entities"]) > 50
    assert all(text[e["start"] : e["end"]] == e["text"] for e in record["entities"])
    assert record["entities"][-1]["start"] > len(text) - 2 * predictor.max_tokens
    keys = [(e["start"], e["end"], e["type"]) for e in record["entities"]]
    assert keys == sorted(set(keys))


def test_text_of_max_tokens_is_one_window(predictor, trained, dev_texts):
    text = "".join(dev_texts)[: predictor.max_tokens]
    alone = NerPredictor(trained.model, "cpu", max_tokens=1000)
    assert predictor([text]) == alone([text]) != [{"text": text, "entities": []}]


def test_thresholds_of_the_configuration_decide(predictor, trained, dev_texts, tmp_path, predict):
    shutil.copytree(trained.model, tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text(encoding="utf-8"))
    thresholds = [-1.0, 3.0, 0.0, 1e9, 0.5, 2.0]
    config["thresholds"] = thresholds
    (tmp_path / "model" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    bound = dict(zip(predictor.types, thresholds))
    expected = [
        [entity for entity in entities if entity[3] > bound[entity[2]]]
        for entities in predictor.find(dev_texts, thresholds=-1.0)
    ]
    found = NerPredictor(tmp_path / "model", "cpu").find(dev_texts)
    assert found == expected != predictor.find(dev_texts)


def test_banded_head_trains_and_finds_what_the_full_one_finds_of_short_entities(
    train, predict, tmp_path, corpus, capsys
):
    run = train(tmp_path / "run", max_span_length=6, attention="linear", num_train_epochs=6)
    assert run.model_config["max_span_length"] == 6
    assert run.metrics["dev"]["f1"] > 0.2
    labels = [pair for record in corpus.dev_records for kind in record["label"].values() for pair in kind.values()]
    longer = sum(last - first >= 6 for pairs in labels for first, last in pairs)
    message = f"  {longer} of them have more than max_span_length 6 tokens and cannot be found by the model"
    assert longer and message in capsys.readouterr().out
    records = predict("".join(record["text"] for record in corpus.dev_records), run.model)
    lengths = [entity["end"] - entity["start"] for entity in records[0]["entities"]]
    assert len(lengths) > 20 and max(lengths) <= 6

    full = NerModel.from_pretrained(str(run.model), max_span_length=None)
    full.eval()
    text = CharTokenizer.from_pretrained(run.model).encode(corpus.dev_records[0]["text"])
    inputs = [paddle.to_tensor([text.ids]), paddle.ones([1, len(text.ids)], dtype="bool")]
    spans = full.decode(full(*inputs, inputs[1]), -1.0)[0]
    banded = NerModel.from_pretrained(str(run.model))
    banded.eval()
    short = banded.decode(banded(*inputs, inputs[1]), -1.0)[0]
    assert [span[:3] for span in short] == [span[:3] for span in spans if span.end - span.start <= 6] != []


# ---- what a user can get wrong


@pytest.mark.parametrize("texts, message", [("一个字符串", r"write \[text\]"), ([1], "text 1: texts must be strings")])
def test_texts_that_are_no_list_of_strings_are_an_error(predictor, texts, message):
    with pytest.raises(InputError, match=message):
        predictor(texts)


@pytest.mark.parametrize("sizes", [{"batch_size": 0}, {"max_tokens": 0}, {"max_tokens": -1}, {"max_entity_tokens": -1}])
def test_sizes_below_one_are_an_error(trained, sizes):
    with pytest.raises(InputError, match="must be [01] or more"):
        NerPredictor(trained.model, **sizes)


@pytest.mark.parametrize("overlap", [-1, 63, 64])
def test_overlap_that_leaves_no_window_is_an_error(trained, overlap):
    with pytest.raises(InputError, match=rf"--overlap {overlap}: must be from 0 to max_tokens - 2, 62"):
        NerPredictor(trained.model, "cpu", max_tokens=64, overlap=overlap)
    assert NerPredictor(trained.model, "cpu", max_tokens=64, overlap=62).overlap == 62


def test_training_folder_instead_of_its_model_names_the_model(fails, trained, corpus):
    for words in ((predict_ner, trained.folder), (evaluate_ner, trained.folder, corpus.dev)):
        if words[0] is predict_ner:
            words += ("--input", corpus.dev)
        assert fails(*words) == f"{trained.folder}: is a training run, not a model; give {trained.model}"


def test_folder_without_a_model_and_missing_folder_are_errors(fails, tmp_path, corpus):
    assert fails(predict_ner, "nope", "--input", corpus.dev).startswith("nope: no such folder; give ")
    assert "no model here (config.json missing)" in fails(evaluate_ner, tmp_path, corpus.dev)


def replace_in(name, old, new):
    def damage(folder):
        content = (folder / name).read_text(encoding="utf-8")
        assert old in content
        (folder / name).write_text(content.replace(old, new), encoding="utf-8")

    return damage


def cut(name, size):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:size])


def drop_a_weight(folder):
    arrays = load_file(folder / "model.safetensors")
    del arrays["head.dense.bias"]
    save_file(arrays, folder / "model.safetensors", metadata={"format": "np"})


DAMAGES = {
    "empty config": ("config.json", cut("config.json", 0)),
    "broken config": ("config.json", cut("config.json", 40)),
    "config is a list": ("config.json", lambda folder: (folder / "config.json").write_text("[]")),
    "config without types": ("no option 'typos'", replace_in("config.json", '"types"', '"typos"')),
    "config of other size": ("model.safetensors", replace_in("config.json", '"hidden_size": 32', '"hidden_size": 64')),
    "config of more layers": ("16 missing", replace_in("config.json", '_layers": 1', '_layers": 2')),
    "config of unknown attention": ("attention must be one of", replace_in("config.json", '"softmax"', '"hard"')),
    "config of odd head": ("even", replace_in("config.json", '"head_size": 16', '"head_size": 15')),
    "config of empty band": (
        "max_span_length must be",
        replace_in("config.json", '"types"', '"max_span_length": 0, "types"'),
    ),
    "config of few thresholds": (
        "one for each of 6",
        replace_in("config.json", '"types"', '"thresholds": [1], "types"'),
    ),
    "config of no max_tokens": ("max_tokens must be", replace_in("config.json", 'max_tokens": 64', 'max_tokens": "a"')),
    "empty weights": ("model.safetensors", cut("model.safetensors", 0)),
    "weights cut in the header": ("model.safetensors", cut("model.safetensors", 100)),
    "weights cut short": ("model.safetensors", cut("model.safetensors", -1000)),
    "a weight is missing": ("1 missing, 0 unknown, such as head.dense.bias", drop_a_weight),
    "git-lfs pointer": (
        "model.safetensors",
        lambda folder: (folder / "model.safetensors").write_text("version https://"),
    ),
    "empty vocabulary": ("lacks [PAD]", cut("vocab.txt", 0)),
    "vocabulary without [SEP]": ("lacks [SEP]", replace_in("vocab.txt", "[SEP]\n", "")),
    "shorter vocabulary": ("vocab.txt has ", replace_in("vocab.txt", "[SPACE]\n", "")),
    "vocabulary not UTF-8": ("is not UTF-8", lambda folder: (folder / "vocab.txt").write_bytes(b"\xd6\xd0")),
    "broken tokenizer settings": ("tokenizer_config.json", cut("tokenizer_config.json", 3)),
    "tokenizer settings without case": ("do_lower_case", replace_in("tokenizer_config.json", "do_lower", "do_upper")),
}


@pytest.mark.parametrize("part, damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_model_file_is_one_line_with_the_folder_and_the_remedy(fails, trained, tmp_path, corpus, part, damage):
    folder = tmp_path / "model"
    shutil.copytree(trained.model, folder)
    damage(folder)
    message = fails(predict_ner, folder, "--input", corpus.dev, "--output", "found.jsonl")
    assert message.startswith(f"{folder}: ") and part in message
    assert "OUTPUT_DIR/model" in message
    assert len(message) < len(str(folder)) + 450


def copy_with(trained, folder, **options):
    """The trained model in another folder, with further options in its config.json."""
    shutil.copytree(trained.model, folder)
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**settings, **options}), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "option, value", [("position_gaps", 1024), ("feature_map", "hedgehog"), ("convolutions", ["input", "value"])]
)
def test_model_that_uses_a_removed_option_is_one_line_that_names_it(fails, trained, tmp_path, corpus, option, value):
    folder = copy_with(trained, tmp_path / "model", **{option: value})
    message = fails(predict_ner, folder, "--input", corpus.dev, "--output", "found.jsonl")
    assert message.startswith(f"{folder}: config.json: {option} {value!r} was removed") and "e394b37" in message


def test_model_of_before_finds_what_it_found(trained, predictor, tmp_path, dev_texts):
    unused = {"score_scaling_length": None, "convolutions": [], "convolution_size": 3, "position_gaps": None}
    assert NerPredictor(copy_with(trained, tmp_path / "model", **unused), "cpu")(dev_texts) == predictor(dev_texts)


def test_missing_model_file_is_named(fails, trained, tmp_path, corpus):
    folder = tmp_path / "model"
    shutil.copytree(trained.model, folder)
    (folder / "vocab.txt").unlink()
    assert "no model here (vocab.txt missing)" in fails(predict_ner, folder, "--input", corpus.dev)
