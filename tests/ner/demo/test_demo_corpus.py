"""The demo corpus: format, annotation, and what train and dev do not share."""

import hashlib
import json
import random
import re
from collections import Counter

import make_demo_corpus
import pytest

from tasks.ner.demo.corpus import (
    DISJOINT_TYPES,
    ENTITY_TYPES,
    SLOT,
    UNSEEN_SENTENCES,
    generate_demo_corpus,
    has_stray_word,
    to_example,
    write_demo_corpus,
)
from tasks.ner.demo.lexicon import LEXICON, OPEN_CLASSES, TEMPLATES
from tasks.ner.demo.names import NameMaker, Phrase, entity, join

ENTITY_LIKE = re.compile(
    r"[0-9０-９]|[今昨明前后][天年日晚]|去年|[上下]午|晚上|周[一二三四五六日]|星期|月|[春夏秋冬]|目前|近日|日前"
    r"|经理|老师|医生|教练|司机|记者|客服|老板|总裁|先生|女士|中国|北京|上海|广州|[省市县]|Windows"
)
GIVENS, STEMS, BRANDS = (
    OPEN_CLASSES["train"][name] + OPEN_CLASSES["dev"][name] for name in ("givens", "stems", "brands")
)


@pytest.fixture(scope="module")
def corpus():
    return generate_demo_corpus()


@pytest.fixture(scope="module")
def both(corpus):
    return corpus[0] + corpus[1]


def spans_of(example):
    """All ``(start, end, type)`` of an example, end inclusive."""
    return [
        (start, end, kind)
        for kind, surfaces in example["label"].items()
        for spans in surfaces.values()
        for start, end in spans
    ]


def surfaces_of(examples, kind):
    return {surface for example in examples for surface in example["label"].get(kind, ())}


def holds(outer, inner):
    return outer != inner and outer[0] <= inner[0] and inner[1] <= outer[1]


def nested_pairs(example):
    """The ``(outer type, inner type)`` pairs of nested entities."""
    spans = spans_of(example)
    return [(outer[2], inner[2]) for outer in spans for inner in spans if holds(outer, inner)]


def literal_parts(template):
    return SLOT.sub("\n", template).split("\n")


def occurrences(text, word):
    start = text.find(word)
    while start >= 0:
        yield start, start + len(word) - 1
        start = text.find(word, start + 1)


def find_unannotated(examples):
    """Occurrences of an annotated surface that are neither annotated nor inside a longer entity of the same type."""
    known = {kind: surfaces_of(examples, kind) for kind in ENTITY_TYPES}
    lengths = {kind: sorted(set(map(len, words))) for kind, words in known.items()}
    found = []
    for example in examples:
        text, spans = example["text"], spans_of(example)
        for kind, words in known.items():
            for length in lengths[kind]:
                for start in range(len(text) - length + 1):
                    if text[start : start + length] not in words:
                        continue
                    end = start + length - 1
                    if not any(s <= start and end <= e and k == kind for s, e, k in spans):
                        found.append((text, text[start : end + 1], kind))
    return found


def test_offsets_cut_the_surface_out_of_the_text_end_inclusive(both):
    for example in both:
        for surfaces in example["label"].values():
            for surface, spans in surfaces.items():
                assert spans and len(spans) == len(set(map(tuple, spans)))
                for start, end in spans:
                    assert 0 <= start <= end and example["text"][start : end + 1] == surface


def test_a_surface_that_occurs_twice_has_two_spans(corpus):
    for part in corpus:
        labels = [example["label"] for example in part]
        assert any(len(spans) > 1 for label in labels for words in label.values() for spans in words.values())


def test_to_example_gives_outer_and_inner_in_cluener_format():
    hospital = entity("organization", entity("place", "北京市"), "第三医院")
    assert to_example(join("他去了", hospital, "。")) == {
        "text": "他去了北京市第三医院。",
        "label": {"place": {"北京市": [[3, 5]]}, "organization": {"北京市第三医院": [[3, 9]]}},
    }


def test_same_seed_same_corpus_and_another_seed_another_corpus(corpus):
    assert generate_demo_corpus() == corpus
    small = generate_demo_corpus(seed=1, train_size=50, dev_size=20)
    assert small == generate_demo_corpus(seed=1, train_size=50, dev_size=20)
    assert small != generate_demo_corpus(seed=2, train_size=50, dev_size=20)


def test_the_corpus_stays_what_published_scores_were_measured_on(tmp_path):
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in write_demo_corpus(tmp_path)]
    assert digests == [
        "16b64f07fffe9756695ff13c9057e656f4ce8664108fadc6c32629b658a930e8",
        "12175789daf749927775dd62fb250fed28053d23d874d9e49c835c8728b6e5e5",
    ]


def test_sizes_are_as_asked_and_default_to_2400_and_400(corpus):
    assert [len(part) for part in corpus] == [2400, 400]
    assert [len(part) for part in generate_demo_corpus(train_size=30, dev_size=7)] == [30, 7]


def test_every_type_occurs_often_in_both_parts(corpus):
    assert len(ENTITY_TYPES) == 6
    for part, least in zip(corpus, (500, 80)):
        counts = Counter(kind for example in part for _, _, kind in spans_of(example))
        assert set(counts) == set(ENTITY_TYPES)
        assert min(counts.values()) >= least


def test_train_has_hundreds_of_different_names_of_each_open_type(corpus):
    for kind in DISJOINT_TYPES:
        assert len(surfaces_of(corpus[0], kind)) >= 500


def test_about_a_twentieth_of_the_sentences_has_no_entity(corpus):
    for part in corpus:
        assert 0.04 <= sum(not example["label"] for example in part) / len(part) <= 0.06


def test_sentences_have_10_to_60_characters(both):
    assert all(10 <= len(example["text"]) <= 60 for example in both)


def test_nested_entities_of_the_same_pairs_of_types_in_both_parts(corpus):
    train, dev = ({pair for example in part for pair in nested_pairs(example)} for part in corpus)
    assert train == dev
    assert {("organization", "place"), ("organization", "person"), ("organization", "product")} <= train
    assert {("organization", "organization"), ("product", "place"), ("place", "place")} <= train
    assert not any(outer in ("time", "position", "person") for outer, _ in train)
    for part in corpus:
        assert sum(bool(nested_pairs(example)) for example in part) / len(part) > 0.3


def test_entities_never_cross_and_no_two_types_share_a_span(both):
    for example in both:
        spans = spans_of(example)
        assert len({span[:2] for span in spans}) == len(spans)
        for a in spans:
            for b in spans:
                assert a == b or holds(a, b) or holds(b, a) or a[1] < b[0] or b[1] < a[0], example


def test_no_sentence_occurs_twice(both):
    assert len({example["text"] for example in both}) == len(both)


@pytest.mark.parametrize("kind", DISJOINT_TYPES)
def test_no_dev_name_occurs_anywhere_in_train(corpus, kind):
    train, dev = corpus
    assert not surfaces_of(train, kind) & surfaces_of(dev, kind)
    train_text = "\n".join(example["text"] for example in train)
    assert [surface for surface in surfaces_of(dev, kind) if surface in train_text] == []


@pytest.mark.parametrize("pool", ["givens", "stems", "brands"])
def test_dev_pairs_are_not_train_pairs_but_their_characters_are_in_train_names(pool):
    train, dev = (OPEN_CLASSES[part][pool] for part in ("train", "dev"))
    assert train and dev and not set(train) & set(dev)
    assert set("".join(dev)) <= set("".join(train))


def test_place_and_brand_stems_have_no_pair_in_common():
    assert not set(STEMS) & set(BRANDS)


def test_train_and_dev_templates_are_different_strings_and_enough():
    train = TEMPLATES["train"] + TEMPLATES["train_plain"]
    dev = TEMPLATES["dev"] + TEMPLATES["dev_plain"]
    assert len(set(train)) == len(train) >= 80 and len(set(dev)) == len(dev) >= 25
    frames = {"\n".join(literal_parts(template)) for template in train}
    assert not frames & {"\n".join(literal_parts(template)) for template in dev}


def test_text_outside_slots_and_fillers_holds_nothing_like_an_entity():
    literals = {part for templates in TEMPLATES.values() for template in templates for part in literal_parts(template)}
    words = {word for slot, fillers in LEXICON["fillers"].items() if slot not in ("price", "score") for word in fillers}
    assert [text for text in literals | words if ENTITY_LIKE.search(text) or has_stray_word(Phrase(text))] == []


def test_plain_templates_have_filler_slots_only():
    for template in TEMPLATES["train_plain"] + TEMPLATES["dev_plain"]:
        assert all(slot == "number" or slot in LEXICON["fillers"] for slot, _ in SLOT.findall(template))


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_no_entity_name_occurs_without_annotation(seed):
    train, dev = generate_demo_corpus(seed)
    assert find_unannotated(train + dev) == []


def test_the_annotation_check_sees_a_missing_inner_entity_and_a_missing_occurrence():
    place = {"text": "我在青川。", "label": {"place": {"青川": [[2, 3]]}}}
    hospital = {"text": "青川医院很大。", "label": {"organization": {"青川医院": [[0, 3]]}}}
    twice = {"text": "青川就是青川。", "label": {"place": {"青川": [[0, 1]]}}}
    assert find_unannotated([place]) == []
    assert [word for _, word, _ in find_unannotated([place, hospital])] == ["青川"]
    assert [word for _, word, _ in find_unannotated([twice])] == ["青川"]


def test_stems_and_titles_occur_only_inside_entities_of_their_types(both):
    allowed = dict.fromkeys(STEMS, {"place"})
    allowed.update(dict.fromkeys(BRANDS, {"organization", "product"}))
    allowed.update({title: {"position"} for titles in LEXICON["titles"].values() for title in titles})
    text = "\n".join(example["text"] for example in both)
    used = {word: kinds for word, kinds in allowed.items() if word in text}
    for example in both:
        for word, kinds in used.items():
            for start, end in occurrences(example["text"], word):
                inside = {k for s, e, k in spans_of(example) if s <= start and end <= e}
                assert inside & kinds, (example["text"], word)


def test_a_stray_title_or_person_across_a_border_is_rejected():
    hospital = entity("organization", entity("place", "青川市"), "人民医院")
    assert has_stray_word(join(hospital, "长期招人"))  # 院长
    assert has_stray_word(join("他任", entity("organization", "睿图集团"), "的职务"))  # 任睿
    assert not has_stray_word(join(hospital, entity("position", "院长"), "来了"))


def test_every_slot_of_every_template_can_be_filled():
    names = NameMaker("dev", random.Random(0))
    every = TEMPLATES["train"] + TEMPLATES["dev"]
    for slot in {slot for template in every for slot, _ in SLOT.findall(template)}:
        assert names.fill(slot).text


def test_three_unseen_sentences_with_names_of_neither_part(both):
    assert len(set(UNSEEN_SENTENCES)) == 3
    text = "\n".join(example["text"] for example in both)
    pools = GIVENS + STEMS + BRANDS
    for sentence in UNSEEN_SENTENCES:
        assert sentence not in text
        assert any(name in sentence for name in LEXICON["reserved"])
        assert [name for name in pools if len(name) > 1 and name in sentence] == []
    assert [name for name in LEXICON["reserved"] if name in text or name in pools] == []
    assert all(name in "".join(UNSEEN_SENTENCES) for name in LEXICON["reserved"])


def test_an_unseen_sentence_has_a_nested_entity():
    place, suffix = LEXICON["reserved"][0] + "市", LEXICON["lists"]["hospital_suffixes"][0]
    assert any(re.search(f"{place}第.{suffix}", sentence) for sentence in UNSEEN_SENTENCES)


def test_too_many_sentences_are_refused_instead_of_searched_for_ever(monkeypatch):
    monkeypatch.setitem(TEMPLATES, "dev_plain", ["请不要在这里大声说话，谢谢。"])
    with pytest.raises(ValueError, match="cannot make 100 different sentences"):
        generate_demo_corpus(train_size=10, dev_size=100)


def test_files_hold_the_generated_examples_as_readable_json_lines(tmp_path):
    folder = tmp_path / "new" / "folder"
    paths = write_demo_corpus(folder, seed=3, train_size=40, dev_size=20)
    assert paths == (folder / "train.jsonl", folder / "dev.jsonl")
    assert sorted(folder.iterdir()) == sorted(paths)  # no temporary file is left
    for path, part in zip(paths, generate_demo_corpus(seed=3, train_size=40, dev_size=20)):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert [json.loads(line) for line in lines] == part
        assert "\\u" not in "".join(lines)


def test_tool_prints_paths_and_counts(tmp_path, capsys):
    assert make_demo_corpus.main([str(tmp_path / "demo"), "--seed", "1"]) == 0
    printed = capsys.readouterr().out
    assert str(tmp_path / "demo" / "train.jsonl") + ": 2400 sentences" in printed
    assert all(kind in printed for kind in ENTITY_TYPES)


@pytest.mark.parametrize("name", ["train.jsonl", "dev.jsonl"])
def test_tool_does_not_overwrite_a_file(tmp_path, capsys, name):
    (tmp_path / name).write_text("mine", encoding="utf-8")
    assert make_demo_corpus.main([str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"


def test_tool_says_when_the_folder_is_a_file(tmp_path, capsys):
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert make_demo_corpus.main([str(tmp_path / "file")]) == 2
    assert "give another FOLDER" in capsys.readouterr().err
