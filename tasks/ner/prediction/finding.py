"""From texts to entities: texts -> parts -> windows -> batches -> scores -> spans -> the entities of each text.

Neighboring windows share ``overlap`` + 1 tokens. A span that several windows contain is decided by only one of them:
the one with the most characters around the span, counted on the side that has fewer (an end of the text counts as
unlimited), the first among equals. A span at a cut is not trusted, since it may continue beyond the cut.

So each entity of at most ``overlap`` tokens is decided by a window that contains it whole with at least one token, or
the end of the text, on either side. (Take the last window that begins before the entity, or the first window. The next
one begins at the entity or later, so this one extends at least ``overlap`` + 1 tokens past the entity's start.)

Long texts are read one part at a time, so the tokens and word features of a text of a million characters are never all
in memory. A text is cut where no token or word can continue, if there is such a place: between lines, else sentences,
else words separated by punctuation or a space. Some characters on either side of a part are also read, for words and
entities of the training data that reach into it, so tokens and features are as in the whole text. Only if
``PART_CHARACTERS`` or more characters have no such place, the cut is elsewhere; a few words near it may then differ.
"""

import bisect
import functools
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import Any, NamedTuple

from paddle_rope.tasks.common.inference import batched_outputs
from paddle_rope.tasks.ner.arguments import of_types, probability
from paddle_rope.tasks.ner.batching import pad_spans
from paddle_rope.tasks.ner.examples import Entity, TokenizedText
from paddle_rope.tasks.ner.features import TokenFeatures
from paddle_rope.tasks.ner.lengths import window_settings

Bounds = tuple[float, float]
Thresholds = float | list[float] | None
# Most scores of one batch held at once, which bounds memory for long texts.
MAX_BATCH_SCORES = 1 << 25
# Windows of about this many tokens are held, sorted by length and computed together.
TOKENS_AT_ONCE = 1 << 17


class Window(NamedTuple):
    """Tokens of a part of a text; offsets count characters of the whole text."""

    text: TokenizedText
    bounds: Bounds  # characters of the text; -inf and inf where the text is not cut
    characters: int  # how many it adds to the windows before it


def windows_of(parts: Iterable[TokenizedText], length: int, overlap: int) -> Iterator[Window]:
    """Windows of at most ``length`` tokens, cut between tokens, each between special tokens; a short text has one. The
    ``parts`` of a text are read as windows need them; each is between special tokens, which do not count, and its
    offsets count characters of the whole text. ``overlap`` is at most ``length`` - 2."""
    step = max(1, length - overlap - 1)
    held: TokenizedText | None = None  # the tokens that windows may still need
    last = first = 0  # indices in held: where the last window began, and where the next one begins
    reached = 0  # characters in windows so far
    for part in parts:
        held = held.part(last, held.size).joined(part) if held else part
        first, last = first - last, 0
        while held.size > first + length:
            window = _window(held.part(first, first + length), reached, begins=first == 0, ends=False)
            yield window
            reached = window.text.offsets[-2][1]
            last, first = first, first + step
    assert held is not None, "a text has at least one part"
    first = max(0, held.size - length)
    yield _window(held.part(first, held.size), reached, begins=first == 0, ends=True)


def _window(text, reached, begins, ends):
    """A window; ``begins`` and ``ends`` say whether it includes the start and the end of its text."""
    start, end = -inf if begins else text.offsets[1][0], text.offsets[-2][1]
    return Window(text, (start, inf if ends else end), end - reached)


def merge_windows(bounds: Sequence[Bounds], found: Sequence[Sequence[Entity]]) -> list[Entity]:
    """The entities of a text, ordered, from the entities of each of its windows, or other findings with a ``start`` and
    an ``end``; ``bounds`` are :attr:`Window.bounds` of the windows in their order."""
    starts, ends = zip(*bounds)
    entities = []
    for number, of_window in enumerate(found):
        for entity in of_window:
            # the windows that hold the entity with text on either side
            holding = range(bisect.bisect_right(ends, entity.end), bisect.bisect_left(starts, entity.start))
            around = [min(entity.start - starts[window], ends[window] - entity.end) for window in holding]
            if number in holding and holding[around.index(max(around))] == number:
                entities.append(entity)
    return sorted(entities)


def decoded(config: Any, offsets: list, spans: Any, max_entity_tokens: int | None) -> list[Entity]:
    """The entities of a window, ordered, from the spans that a model with this ``config`` finds in its tokens."""
    temperatures = of_types(config.temperatures, len(config.types))
    return sorted(
        Entity(
            offsets[start][0], offsets[end - 1][1], config.types[kind], score, probability(score, temperatures[kind])
        )
        for start, end, kind, score in spans
        if max_entity_tokens is None or end - start <= max_entity_tokens
    )


class Decoding(NamedTuple):
    """How what a model finds in tokens becomes the result of a window, and these the result of a text."""

    decode: Callable[[Any, list, Any, int | None], Any]
    merge: Callable[[Sequence[Bounds], Sequence[Any]], Any]


ENTITIES = Decoding(decoded, merge_windows)


def find_in_windows(
    model: Any,
    texts: Iterable[TokenizedText],
    batch_size: int,
    thresholds: Thresholds = None,
    decoding: Decoding = ENTITIES,
) -> list:
    """The entities of each tokenized text, read in windows of the length that the model was trained on."""
    settings = window_settings(model.config)
    windows = (window for text in texts for window in windows_of([text], settings.max_tokens, settings.overlap))
    longest = settings.max_entity_tokens
    return list(entities_of_texts(model, windows, batch_size, thresholds, longest, decoding=decoding))


def entities_of_texts(
    model: Any,
    windows: Iterable[Window],
    batch_size: int,
    thresholds: Thresholds = None,
    max_entity_tokens: int | None = None,
    progress: Callable[[int], Any] = lambda characters: None,
    decoding: Decoding = ENTITIES,
) -> Iterator[Any]:
    """The entities of each text, ordered. ``windows`` has all windows of one text after the other and is read lazily:
    only the windows of ``TOKENS_AT_ONCE`` tokens and one text's entities are held. ``progress`` is called after each
    batch with the number of characters that it adds; other arguments as in :func:`predict_entities`."""
    of_text: list[tuple[Bounds, Any]] = []  # bounds and entities of the windows of one text
    for chunk in _chunks(windows):

        def report(rows, chunk=chunk):
            progress(sum(chunk[row].characters for row in rows))

        texts = [window.text for window in chunk]
        found = predict_entities(model, texts, batch_size, thresholds, max_entity_tokens, report, decoding)
        for window, entities in zip(chunk, found):
            of_text.append((window.bounds, entities))
            if window.bounds[1] == inf:
                yield decoding.merge(*zip(*of_text))
                of_text = []


def _chunks(windows: Iterable[Window]) -> Iterator[list[Window]]:
    chunk, tokens = [], 0
    for window in windows:
        chunk.append(window)
        tokens += len(window.text.ids)
        if tokens >= TOKENS_AT_ONCE:
            yield chunk
            chunk, tokens = [], 0
    yield chunk


def predict_entities(
    model: Any,
    texts: list[TokenizedText],
    batch_size: int,
    thresholds: Thresholds = None,
    max_entity_tokens: int | None = None,
    report: Callable[[list[int]], Any] = lambda rows: None,
    decoding: Decoding = ENTITIES,
) -> list:
    """The entities of each tokenized text, ordered. Texts are read whole, in batches of similar length, by a
    ``NerModel``, also while it is trained, or a model with the same methods. Spans of more than ``max_entity_tokens``
    are ignored; ``thresholds`` are the model's by default. ``report`` is called after each batch with the indices of
    its texts."""
    entities: list = [[] for _ in texts]
    collate = functools.partial(pad_spans, pad_token_id=model.config.pad_token_id, with_labels=False)
    bounds = model.config.thresholds if thresholds is None else thresholds

    def find(batch):
        return model.find_spans(batch, bounds)

    of_text = model.config.scores_of_text
    for rows, found in batched_outputs(find, texts, collate, batch_size, of_text, MAX_BATCH_SCORES):
        for row, spans in zip(rows, found):
            entities[row] = decoding.decode(model.config, texts[row].offsets, spans, max_entity_tokens)
        report(rows)
    return entities


# ---- parts

PART_CHARACTERS = 8192
# Also read on either side of a part. The longest word of jieba's dictionary has 16 characters, the longest entity of a
# gazetteer 20.
CONTEXT_CHARACTERS = 64
# Characters not separated from the one before: white space after white space, a mark after its character.
_JOINED = "\\s\u0300-\u036f\u200d\u20d0-\u20ff\ufe00-\ufe0f\U0001f3fb-\U0001f3ff\U000e0100-\U000e01ef"
# Patterns after which a text may be cut, best first. The third matches a character that is in no word, even as jieba or
# a tokenizer sees words; the last cuts within words, but not between letters and digits. If the group is not empty, it
# belongs to the match, and there is no cut; it is not a condition, so that white space is searched only once.
_CUTS = tuple(
    map(
        re.compile,
        (
            f"[\\r\\n]\\s*(?=([{_JOINED}]?))",
            f'[。！？；!?;…]+[”’」』）)"]*\\s*(?![{_JOINED}])()',
            f"[^\\w+#&.\u200d]\\s*(?=([{_JOINED}]?))",
            f"[^A-Za-z0-9\u200d](?=([{_JOINED}]?))",
        ),
    )
)


def part_bounds(text: str, characters: int) -> Iterator[tuple[int, int]]:
    """Half-open bounds of the parts of a text: each has at most ``characters`` characters, and at least half as many,
    except the last."""
    start, size = 0, len(text)
    while size - start > characters:
        first, last = start + characters // 2, start + characters
        end = next((end for cut in _CUTS if (end := _last_end(cut, text, first, last))), last)
        yield start, end
        start = end
    yield start, size


def _last_end(cut, text, first, last):
    """The last place from ``first`` to ``last`` after a match, or 0 if there is none."""
    # a match cut off by the bound may continue after it, or be followed by a character that belongs to it
    ends = [match.end() for match in cut.finditer(text, first, last + 1) if not match[1]]
    return next((end for end in reversed(ends) if first <= end <= last), 0)


def read_parts(
    text: str,
    tokenizer: Any,
    features: Callable[..., TokenFeatures] | None,
    characters: int | None = None,
    hinted: Iterable[tuple[int, int, str]] = (),
) -> Iterator[TokenizedText]:
    """The tokens of each part of a text, between special tokens, with their features if a model takes them. A part has
    at most ``characters`` characters; offsets, and the (start, end, type) that are ``hinted`` at, count characters of
    the whole text."""
    ahead, near = deque(sorted(hinted)), []  # hints after the part, and around it
    for start, end in part_bounds(text, characters or PART_CHARACTERS):
        ids, offsets, _ = tokenizer.encode(text[start:end])
        of_tokens = None
        if features is not None:
            first, last = max(0, start - CONTEXT_CHARACTERS), min(len(text), end + CONTEXT_CHARACTERS)
            while ahead and ahead[0][0] < last:
                near.append(ahead.popleft())
            near = [hint for hint in near if hint[1] > first]
            inside = [(max(begin, first) - first, min(until, last) - first, kind) for begin, until, kind in near]
            of_tokens = features(text[first:last], _moved(offsets, start - first), hinted=inside)
        yield TokenizedText(ids, _moved(offsets, start), [], of_tokens)


def _moved(offsets, by):
    """Offsets shifted by ``by`` characters, except for the special tokens at both ends."""
    if not by:
        return offsets
    return [offsets[0], *((start + by, end + by) for start, end in offsets[1:-1]), offsets[-1]]
