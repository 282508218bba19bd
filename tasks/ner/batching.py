"""Examples -> tokens -> padded batches."""

import functools
from collections import defaultdict

import numpy as np

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.inference import pad, pad_tokens
from paddle_rope.tasks.common.texts.documents import SENTENCE_END
from paddle_rope.tasks.ner.examples import Entity, TokenizedText, align_entities, entity_types


def refuse_longer(examples, max_characters):
    """Raise InputError if texts of ``examples`` have more than ``max_characters`` characters."""
    longer = [example for example in examples if len(example.text) > max_characters]
    if longer:
        longest = max(longer, key=lambda example: len(example.text))
        raise InputError(
            f"{longest.where}: {len(longer)} of {len(examples)} training texts have more characters than "
            f"max_characters {max_characters}, this one the most, {len(longest.text)}; give --cut_long_texts true to "
            f"cut them into windows, or with RoPE, which has no longest position, --max_characters {len(longest.text)}"
        )


INSIDE_A_TOKEN, LONGER_THAN_A_WINDOW = "start or end inside a token", "are longer than a window"


class NerDataset:
    """Tokenized examples. Types are numbered in the order of ``types``; an entity of another type raises InputError.

    Texts longer than ``max_characters`` are cut into windows of at most that many tokens (:func:`cut_labeled`); None:
    no cut. ``own`` has, by text, the examples from which the ``features`` were built, as in training: the features of
    such a text leave out its labels. ``texts`` are the tokenized examples or windows, ``collate`` makes a batch of
    them, ``cut`` is (number of windows, number of texts cut into them), and ``faults`` lists (example, entity) that
    cannot be learned, by kind.

    With ``relations``, in whose order they are numbered, texts also have the pairs of entities that one of them
    relates, if each of the two is a sequence of tokens. Of these ``pairs``, so many are ``parted``: no window holds
    both entities.
    """

    def __init__(
        self, examples, tokenizer, types, max_characters=None, max_span_length=None, features=None, own=None,
        relations=(),
    ):  # fmt: skip
        self.examples, self.types, self.texts, self.cut = examples, types, [], (0, 0)
        self.pairs = self.parted = 0
        self.collate = functools.partial(pad_spans, pad_token_id=tokenizer.pad_token_id, with_pairs=bool(relations))
        self.faults = defaultdict(list)
        number = {name: index for index, name in enumerate(types)}
        for example in examples:
            check_types(example, number)
            ids, offsets, _ = tokenizer.encode(example.text)
            aligned, unaligned = align_entities(example.entities, offsets)
            if unaligned:
                self.faults[INSIDE_A_TOKEN] += [(example, entity) for entity in unaligned]
            spans = []
            for entity, first, last in aligned:
                if max_span_length is not None and last - first >= max_span_length:
                    self.faults[f"have more than max_span_length {max_span_length} tokens"].append((example, entity))
                else:
                    is_labeled = entity.probability is None
                    spans.append((number[entity.type], first, last, 1.0 if is_labeled else entity.probability))
            of_tokens = features and features(example.text, offsets, (own or {}).get(example.text))
            text = TokenizedText(ids, offsets, spans, of_tokens, _pairs(example, aligned, relations))
            self.pairs += len(text.pairs)
            if max_characters is None or len(example.text) <= max_characters:
                self.texts.append(text)
                continue
            pieces, lost, parted = cut_labeled(text, max_characters, example.text)
            self.texts += pieces
            self.parted += len(parted)
            self.cut = (self.cut[0] + len(pieces), self.cut[1] + 1)
            for kind, first, last, _ in lost:
                entity = Entity(offsets[first][0], offsets[last][1], types[kind])
                self.faults[LONGER_THAN_A_WINDOW].append((example, entity))

    @property
    def lengths(self):
        """Number of tokens of each text, including special tokens."""
        return [len(text.ids) for text in self.texts]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return self.texts[index]


def _pairs(example, aligned, relations):
    """The ``pairs`` of a :class:`TokenizedText`; ``aligned`` is from :func:`align_entities`."""
    number = {name: index for index, name in enumerate(relations)}
    tokens = {entity: bounds for entity, *bounds in aligned}
    ends = ((one.type, example.entities[one.head], example.entities[one.tail]) for one in example.relations)
    return tuple(
        (number[kind], *tokens[head], *tokens[tail])
        for kind, head, tail in ends
        if kind in number and head in tokens and tail in tokens
    )


def with_unseen(types, examples):
    """The types of a model, followed by the other types of examples on which it is scored."""
    return [*types, *sorted({*entity_types(examples)} - {*types})]


def check_types(example, types):
    """Raise InputError if an entity of ``example`` has a type that is not in ``types``."""
    for entity in example.entities:
        if entity.type not in types:
            raise InputError(
                f"{example.where}: entity type {entity.type!r} is unknown to the model, which knows "
                f"{', '.join(types)}; correct the label, or train a model on data that has this type"
            )


def pad_spans(texts, pad_token_id, with_labels=True, with_pairs=False):
    """The inputs of ``NerModel`` from a list of :class:`TokenizedText`, a dict of arrays: ``input_ids`` int64,
    ``attention_mask`` and ``token_mask`` bool, all ``[batch, seq]``; with labels, ``labels`` int64 ``[batch, entities,
    3]``, (type, first token, last token), padded with -1, and ``probabilities`` float32 ``[batch, entities]`` if any is
    below 1; with pairs, ``pairs`` int64 ``[batch, relations, 5]``, padded with -1; and, if the model has such features,
    ``columns`` int64 ``[batch, seq, columns]`` and ``flags`` bool ``[batch, seq, flags]``."""
    batch = pad_tokens([text.ids for text in texts], pad_token_id)
    batch["token_mask"] = pad([[end > start for start, end in text.offsets] for text in texts], bool)
    if texts[0].features is not None:
        for name, dtype in (("columns", np.int64), ("flags", bool)):
            of_texts = [getattr(text.features, name) for text in texts]
            if of_texts[0].shape[1]:
                batch[name] = pad(of_texts, dtype)
    if with_labels:
        # at least one row, because empty tensors cause problems in a data loader
        spans = [np.reshape(text.spans, (-1, 4)) for text in texts]
        batch["labels"] = pad([of_text[:, :3] for of_text in spans], np.int64, -1, least=1)
        if any((of_text[:, 3] < 1).any() for of_text in spans):
            batch["probabilities"] = pad([of_text[:, 3] for of_text in spans], np.float32, least=1)
    if with_pairs:
        batch["pairs"] = pad([np.reshape(text.pairs, (-1, 5)) for text in texts], np.int64, -1, least=1)
    return batch


# ---- texts that are too long to train on as a whole

Span = tuple[int, int, int, float]


def cut_labeled(
    text: TokenizedText, length: int, characters: str
) -> tuple[list[TokenizedText], list[Span], set[tuple[int, ...]]]:
    """Pieces of at most ``length`` tokens, such that every entity of at most ``length`` tokens is whole in some piece;
    the longer spans; and the pairs that are together in no piece. The special tokens at both ends do not count;
    ``characters`` is the text itself.

    A cut lies in the second half of a piece: after the last sentence end there that is outside all entities, else at
    the last place outside all entities. If there is no such place, as in long chains of overlapping entities, the next
    piece begins with the first entity that the cut breaks. A piece has labels only for its whole entities, and for the
    relations between them.
    """
    tokens = text.size
    spans = [(first - 1, last) for _, first, last, _ in text.spans]  # half-open, without the special token
    is_free = np.ones(tokens + 1, dtype=bool)  # [place]: whether a cut before that token breaks no entity
    for begin, end in spans:
        is_free[begin + 1 : end] = False
    ends = {match.end() for match in SENTENCE_END.finditer(characters)}
    is_end = np.array([False, *(end in ends or characters[end - 1] == "\n" for _, end in text.offsets[1:-1])])
    pieces, begin, parted = [], 0, set(text.pairs)
    while True:
        end = tokens if tokens - begin <= length else _last_place(is_free, is_end, begin, length)
        within = [span for span, (first, behind) in zip(text.spans, spans) if begin <= first and behind <= end]
        moved = [(kind, first - begin, last - begin, probability) for kind, first, last, probability in within]
        related = [pair for pair in text.pairs if begin < min(pair[1::2]) and max(pair[2::2]) <= end]
        parted.difference_update(related)
        pairs = tuple((kind, *(token - begin for token in tokens)) for kind, *tokens in related)
        pieces.append(text.part(begin, end)._replace(spans=moved, pairs=pairs))
        if end == tokens:
            longer = [span for span, (first, behind) in zip(text.spans, spans) if behind - first > length]
            return pieces, longer, parted
        begin = min((first for first, behind in spans if begin < first < end < behind), default=end)


def _last_place(is_free, is_end, begin, length):
    """End, exclusive, of the piece that begins at token ``begin``."""
    places = np.arange(begin + length // 2 + 1, begin + length + 1)
    for fits in (is_free & is_end, is_free):
        fitting = places[fits[places]]
        if len(fitting):
            return int(fitting[-1])
    return begin + length
