"""From texts to labels with a trained model."""

from pathlib import Path

import numpy as np
import paddle
import paddle.nn.functional as F
from tqdm import tqdm

from tasks.classification.batching import TextCollator, TokenizedText, tokenize
from tasks.classification.model import ClassificationModel
from tasks.common import model_folder
from tasks.common.errors import InputError
from tasks.common.model_folder import MODEL_FILES, refuse_incomplete
from tasks.common.tool.device import choose_device
from tasks.common.tool.quiet import quiet_paddlenlp

# Numbers of the largest tensor of one batch: bounds memory for long texts.
MAX_BATCH_NUMBERS = 1 << 26


class Classifier:
    """Finds the class of texts.

    Args:
        model_dir: folder that training wrote as ``OUTPUT_DIR/model``.
        device: ``"cpu"``, ``"gpu"`` ...; None takes a GPU where there is one.
        batch_size: texts a batch at most.
        max_length: characters of a text that are read, from its beginning; None takes what the model was trained with.
        show_progress: show a progress bar.

    Raises:
        InputError: the folder does not hold a model, the device cannot be used, or a size is out of range.
    """

    def __init__(self, model_dir, device=None, batch_size=32, max_length=None, show_progress=False):
        for name, size in (("batch_size", batch_size), ("max_length", max_length)):
            if size is not None and size < 1:
                raise InputError(f"--{name} {size}: must be 1 or more")
        refuse_incomplete(model_dir, [name for name in MODEL_FILES if not (Path(model_dir) / name).is_file()])
        choose_device(device)
        quiet_paddlenlp()
        self.tokenizer, self.model = load_model(model_dir)
        self.classes = self.model.config.classes
        self.batch_size = batch_size
        self.max_length = max_length or self.model.config.max_length
        self.show_progress = show_progress

    def __call__(self, texts):
        """For each text, in order, ``{"text": ..., "label": ..., "probability": ...}``: the most probable class.

        Raises:
            InputError: ``texts`` is not a list of strings.
        """
        return [as_record(text, self.classes, of_text) for text, of_text in zip(texts, self.probabilities(texts))]

    def probabilities(self, texts):
        """Probabilities of all classes: float32 array ``[texts, classes]``."""
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise InputError("texts must be a list of strings; write [text]")
        tokenized = [TokenizedText(tokenize(text, self.tokenizer, self.max_length)) for text in texts]
        return predict_probabilities(self.model, tokenized, self.batch_size, self.show_progress)


def as_record(text, classes, probabilities):
    """The form in which predictions are written."""
    best = int(np.argmax(probabilities))
    return {"text": text, "label": classes[best], "probability": round(float(probabilities[best]), 4)}


def predict_probabilities(model, texts, batch_size, show_progress=False):
    """Probabilities of tokenized texts, computed in batches of like length.

    Args:
        model: :class:`tasks.classification.model.ClassificationModel`.
        texts: list of :class:`tasks.classification.batching.TokenizedText`.
        batch_size: texts a batch at most.
        show_progress: show a progress bar.

    Returns:
        float32 array ``[texts, classes]``.
    """
    collate = TextCollator(model.config.pad_token_id, with_labels=False)
    found = np.zeros([len(texts), len(model.config.classes)], dtype=np.float32)
    was_training = model.training
    model.eval()
    # it stays where it is the only bar, and goes where it is one chunk's of a stream
    progress = tqdm(total=len(texts), unit="text", disable=not show_progress, leave=None, delay=1)
    with paddle.no_grad(), progress:
        for rows in _batches_of_like_length([len(text.ids) for text in texts], batch_size, model.numbers_of_text):
            batch = {name: paddle.to_tensor(array) for name, array in collate([texts[row] for row in rows]).items()}
            found[rows] = F.softmax(model(**batch).astype("float32"), axis=-1).numpy()
            progress.update(len(rows))
    if was_training:
        model.train()
    return found


def _batches_of_like_length(lengths, batch_size, numbers_of_text):
    """Lists of indices, longest texts first, each list small enough for memory."""
    order = np.argsort(lengths, kind="stable")[::-1].tolist()
    while order:
        size = max(1, min(batch_size, MAX_BATCH_NUMBERS // numbers_of_text(lengths[order[0]])))
        yield order[:size]
        order = order[size:]


def load_model(model_dir):
    """The tokenizer and the model of a folder; raises InputError if its files are damaged or do not fit together."""
    return model_folder.load_model(model_dir, ClassificationModel, _check_config)


def _check_config(config):
    model_folder.check_named("classes", config.classes, least=2)
    model_folder.check_max_length(config.max_length)
