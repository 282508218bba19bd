"""Text files -> one stream of character ids -> random windows for training, fixed ones held out -> batches."""

import numpy as np
from paddle.io import Dataset

from paddle_rope.roformer.tokenization import CharTokenizer
from tasks.common.errors import InputError
from tasks.common.texts.documents import read_documents

# In place of files: generated text, which is not language, but has order in it
DEMO, ADDITIONS = "demo", "additions"
_PEOPLE = "张王李赵陈刘周吴"
_PLACES = ("学校", "公园", "车站", "医院", "书店", "市场")
_THINGS = ("苹果", "报纸", "电脑", "雨伞", "茶杯", "地图")
_TIMES = ("早上", "中午", "下午", "晚上")
_SENTENCES = (
    "{time}，小{who}从{place}去{other}，路上买了{thing}。",
    "小{who}{time}在{place}等小{friend}，手里拿着{thing}。",
    "{thing}是小{who}的，小{friend}{time}把{thing}送到{place}。",
    "小{friend}问小{who}：“{thing}在{place}还是在{other}？”小{who}说：“在{other}。”",
)


class Corpus:
    """One stream of ids, parts of which are held out.

    The documents follow each other, each ended by ``[SEP]``. Held out are stretches of ``held_out_length`` tokens (and
    one more to predict) at even distances, so that they are of all files; no window of training reaches into them.

    Args:
        documents: list of strings.
        vocab_min_count: rarer characters are ``[UNK]``. Held-out text counts too.
        length: tokens of a window of training.
        held_out_windows, held_out_length: how many stretches are held out, and their length.

    Attributes:
        tokenizer: :class:`~paddle_rope.CharTokenizer`.
        held_out: int64 ``[held_out_windows, held_out_length + 1]``.

    Raises:
        InputError: the text is too short for that.
    """

    def __init__(self, documents, vocab_min_count, length, held_out_windows, held_out_length):
        self.tokenizer = CharTokenizer.from_corpus(documents, vocab_min_count)
        self.length = length
        end = [self.tokenizer.sep_token_id]
        parts = [np.array(self.tokenizer.encode(text, add_special_tokens=False).ids + end) for text in documents]
        self._ids = np.concatenate(parts).astype("int64") if parts else np.zeros(0, "int64")
        size = held_out_length + 1
        if self._ids.size < 2 * held_out_windows * size:
            raise InputError(
                f"text_files: {self._ids.size} characters, of which {held_out_windows} x {size} are to be held out: "
                f"give {2 * held_out_windows * size} or more, or a smaller held_out_windows"
            )
        distance = self._ids.size // held_out_windows
        chosen = np.arange(held_out_windows)[:, None] * distance + np.arange(size)
        self.held_out = self._ids[chosen]
        is_held_out = np.zeros(self._ids.size + 1, dtype="int64")
        is_held_out[chosen.ravel() + 1] = 1
        before = is_held_out.cumsum()  # held-out ids before each
        self._starts = np.flatnonzero(before[length + 1 :] == before[: -(length + 1)])
        if not self._starts.size:
            raise InputError(f"text_files: between held-out stretches no {length + 1} characters are left; give more")

    def training_windows(self, count, seed, step):
        """int64 ``[count, length + 1]``, drawn anew for each step; the same for the same ``seed`` and ``step``."""
        starts = np.random.default_rng([seed, step]).choice(self._starts, count)
        return self._ids[starts[:, None] + np.arange(self.length + 1)]

    def facts(self):
        """dict of sizes in tokens (characters, runs of white space, ends of documents), for reports."""
        return {
            "tokens": self._ids.size,
            "training_tokens": self._ids.size - self.held_out.size,
            "held_out_tokens": self.held_out.size,
            "vocabulary": len(self.tokenizer),
            "unknown_share": float((self._ids == self.tokenizer.unk_token_id).mean()),
        }


class TrainingBatches(Dataset):
    """The batches of all steps, each known from the seed and its number: runs with the same seed see the same texts.

    ``batch_size`` windows of a :class:`Corpus` make a batch; ``batches_per_step`` are
    processes times accumulated gradients.
    """

    def __init__(self, corpus, batch_size, steps, seed, batches_per_step=1):
        super().__init__()
        self.corpus, self.batch_size, self.steps, self.seed = corpus, batch_size, steps, seed
        self.batches_per_step = batches_per_step

    def __len__(self):
        return self.steps * self.batches_per_step

    def __getitem__(self, index):
        windows = self.corpus.training_windows(self.batch_size, self.seed, index + 1)
        inputs, labels = windows[:, :-1], windows[:, 1:]
        everywhere = {"labeled": np.arange(inputs.size), "token_mask": np.ones(inputs.shape, dtype=bool)}
        return {"input_ids": inputs, "labels": labels, **everywhere}


def demo_documents(count=150, sentences=8, seed=0):
    """``count`` short documents, each about two people who keep their names throughout."""
    random = np.random.default_rng(seed)
    documents = []
    for _ in range(count):
        who, friend = random.choice(list(_PEOPLE), 2, replace=False)
        lines = []
        for _ in range(sentences):
            place, other = random.choice(_PLACES, 2, replace=False)
            thing, time = random.choice(_THINGS), random.choice(_TIMES)
            sentence = str(random.choice(_SENTENCES))
            lines.append(sentence.format(who=who, friend=friend, place=place, other=other, thing=thing, time=time))
        documents.append("".join(lines))
    return documents


def additions(count=40_000, digits=6, seed=0):
    """``count`` sums such as ``047731+900012=0947743``: what follows "=" can be known, and nothing before it."""
    terms = np.random.default_rng(seed).integers(10**digits, size=(count, 2))
    return [f"{a:0{digits}}+{b:0{digits}}={a + b:0{digits + 1}}" for a, b in terms.tolist()]


def load_corpus(keys):
    """The :class:`Corpus` of :class:`tasks.language_model.arguments.LanguageModelArguments`."""
    generators = {(DEMO,): demo_documents, (ADDITIONS,): additions}
    documents = generators.get(tuple(keys.text_files), lambda: read_documents(keys.text_files))()
    return Corpus(documents, keys.vocab_min_count, keys.length, keys.held_out_windows, keys.held_out_length)
