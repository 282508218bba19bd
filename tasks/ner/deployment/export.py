"""From the folder of a trained model to one for use elsewhere."""

import os
import shutil
from pathlib import Path

import paddle

from tasks.common.errors import InputError
from tasks.common.files import atomic_folder, check_new_folder
from tasks.ner.prediction.ensemble import SAME_FILES
from tasks.ner.prediction.exported import is_exported, write_graph
from tasks.ner.prediction.predictor import NerPredictor, batch_logits

TOLERANCE = 1e-3  # of a score; rounding in another order makes some 1e-5
CHECKED_SENTENCES = (
    "去年10月，雁潭市第二人民医院的护士长陆雨桐在碧洲县举办了健康讲座。",
    "我买了一台平板电脑S9 Pro。",
    "好",
)


def export(model_dirs: list[str | os.PathLike], output_dir: str | os.PathLike) -> float:
    """Write a trained model, or an ensemble of several, with all that prediction needs.

    Args:
        model_dirs: folders OUTPUT_DIR/model of training runs.
        output_dir: folder to make, which :class:`~tasks.ner.prediction.predictor.NerPredictor` reads.

    Returns:
        The largest difference between a score of the exported model and of the given ones on three sentences.

    Raises:
        InputError: a folder does not hold a trained model, several do not fit together, or ``output_dir`` cannot be
            made.
    """
    check_new_folder(output_dir)
    for folder in model_dirs:
        if is_exported(folder):
            raise InputError(f"{folder}: is exported already; give the folder OUTPUT_DIR/model of the training run")
    predictor = NerPredictor(model_dirs, "cpu")
    expected = sample_logits(predictor)
    with atomic_folder(output_dir) as folder:
        write_graph(predictor.model, folder)
        predictor.model.config.save_pretrained(str(folder))
        for name in SAME_FILES:
            if (Path(model_dirs[0]) / name).is_file():
                shutil.copyfile(Path(model_dirs[0]) / name, folder / name)
        difference = float((sample_logits(NerPredictor(folder, "cpu")) - expected).abs().max())
        if not difference <= TOLERANCE:
            raise InputError(
                f"{output_dir}: not written, as the exported model's scores differ from the trained one's by "
                f"{difference:.2g}; please report this, with config.json of the model"
            )
    return difference


def sample_logits(predictor: NerPredictor) -> paddle.Tensor:
    """Logits of some sentences."""
    return batch_logits(predictor.model, [predictor.tokenize(text) for text in CHECKED_SENTENCES])
