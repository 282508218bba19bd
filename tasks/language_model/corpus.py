"""Text files -> one stream of character ids -> random windows for training, fixed ones held out -> batches."""

import numpy as np
from paddle.io import Dataset

from paddle_rope.roformer.tokenization import CharTokenizer
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.texts.documents import read_documents
from paddle_rope.tasks.common.texts.text_files import ADDITIONS
from paddle_rope.tasks.language_model.arguments import LONGEST_TIMES


class Corpus:
    """One stream of ids: the documents follow each other, each ended by ``[SEP]``.

    ``held_out``, int64 ``[held_out_windows, held_out_length + 1]``, are evenly spaced stretches, so that they come
    from all files; no training window of ``length`` tokens reaches into them. Raises InputError if the text is too
    short for that.
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
        """Random windows, int64 ``[count, length + 1]``, which depend only on ``seed`` and ``step``."""
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
    """The batches of all steps; after the steps ``ends`` the run is evaluated. Each batch depends only on the seed and
    its number, so runs with the same seed see the same texts. ``batches_per_step`` is the number of processes times
    accumulated gradients."""

    def __init__(self, corpus, batch_size, ends, seed, batches_per_step=1):
        self.corpus, self.batch_size, self.ends, self.seed = corpus, batch_size, ends, seed
        self.batches_per_step = batches_per_step

    def __len__(self):
        return self.ends[-1] * self.batches_per_step

    def __getitem__(self, index):
        windows = self.corpus.training_windows(self.batch_size, self.seed, index + 1)
        inputs, labels = windows[:, :-1], windows[:, 1:]
        everywhere = {"labeled": np.arange(inputs.size), "token_mask": np.ones(inputs.shape, dtype=bool)}
        return {"input_ids": inputs, "labels": labels, **everywhere}


def additions(count=40_000, digits=6, seed=0):
    """``count`` sums such as ``047731+900012=0947743``: what follows "=" is predictable, and nothing before it is."""
    terms = np.random.default_rng(seed).integers(10**digits, size=(count, 2))
    return [f"{a:0{digits}}+{b:0{digits}}={a + b:0{digits + 1}}" for a, b in terms.tolist()]


def load_corpus(keys):
    """The :class:`Corpus` of :class:`paddle_rope.tasks.language_model.arguments.LanguageModelArguments`."""
    documents = additions() if keys.text_files == [ADDITIONS] else read_documents(keys.text_files)
    return Corpus(documents, keys.vocab_min_count, keys.length, keys.held_out_windows, LONGEST_TIMES * keys.length)
