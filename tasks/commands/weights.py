"""paddle-rope convert-weights: checkpoints of other libraries."""

import os
from pathlib import Path

from tasks.commands.options import new_parser
from tasks.common.errors import InputError
from tasks.common.process import prepare

CONVERT_WEIGHTS = """\
Convert a RoFormer checkpoint to a folder of this library or of Hugging Face.

SOURCE is a folder of this library, of Hugging Face's RoFormer, of PaddleNLP's RoFormer or RoFormerV2, or an original
TensorFlow checkpoint of ZhuiyiTechnology (bert_config.json, bert_model.ckpt.*; needs tensorflow). The tokenizer is
converted with the model. Weights are not changed: there and back they are bit-equal."""
TARGETS = ("paddle_rope", "huggingface")
LONGEST_TEXT = 1536  # Hugging Face's table of positions, where the source has no limit


def convert_weights(argv):
    parser = new_parser("convert-weights", CONVERT_WEIGHTS)
    parser.add_argument("source", metavar="SOURCE", type=Path, help="folder of a checkpoint")
    parser.add_argument("target", metavar="TARGET", type=Path, help="folder to make; must not exist or be empty")
    parser.add_argument("--to", required=True, choices=TARGETS, help="format of TARGET")
    options = parser.parse_args(argv)
    prepare()
    from tasks.common.files import atomic_folder

    try:
        with atomic_folder(options.target) as folder:
            model = read_model(options.source)
            write(model, folder, options)
    except (ValueError, OSError) as error:
        raise InputError(" ".join(str(error).split())) from error
    print(f"{options.target}: {type(model).__name__} as {options.to}")
    return 0


def read_model(source):
    """The model of a folder, of the class that fits what the folder holds."""
    import paddle_rope.roformer as roformer
    from paddle_rope.roformer.checkpoints.huggingface import KNOWN
    from paddle_rope.roformer.checkpoints.reading import (
        TENSORFLOW_CONFIG,
        is_ours,
        read_checkpoint,
        read_settings,
        read_tensorflow,
    )

    if (source / TENSORFLOW_CONFIG).is_file() and not (source / "config.json").is_file():
        return build(read_tensorflow(source, tensorflow_reader()), source)
    settings = read_settings(source)
    if not is_ours(settings):
        return build(read_checkpoint(source), source)
    saved = (settings.get("architectures") or [""])[0]
    return getattr(roformer, saved if saved in KNOWN else "RoFormerModel").from_pretrained(source)


def build(checkpoint, source):
    """The model of a :class:`paddle_rope.roformer.checkpoints.reading.Checkpoint`."""
    import paddle_rope.roformer as roformer
    from paddle_rope.roformer.pretrained import build_model

    is_causal = checkpoint.config.get("causal", False)
    language_model = roformer.RoFormerForCausalLM if is_causal else roformer.RoFormerForMaskedLM
    heads = {"lm": language_model, "classifier": roformer.RoFormerForSequenceClassification}
    return build_model(heads.get(checkpoint.head, roformer.RoFormerModel), checkpoint, source)


def tensorflow_reader():
    """``tensorflow.train.load_checkpoint``."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        import tensorflow
    except ImportError:
        raise InputError(
            "SOURCE is a TensorFlow checkpoint, and tensorflow is not installed; pip install 'tensorflow-cpu<2.20' "
            "(newer ones need a protobuf that VisualDL does not work with)"
        ) from None
    return tensorflow.train.load_checkpoint


def write(model, folder, options):
    """Write the model, and the tokenizer where the source has one."""
    from paddle_rope.roformer.checkpoints.huggingface import write_huggingface
    from paddle_rope.roformer.tokenization import load_tokenizer
    from paddle_rope.roformer.tokenization.tokenizer import VOCAB_FILE

    if options.to == "huggingface":
        write_huggingface(model, folder, longest_text(options.source))
    else:
        model.save_pretrained(folder)
    if (options.source / VOCAB_FILE).is_file():
        tokenizer = load_tokenizer(options.source)
        theirs = {"CharTokenizer": "BertTokenizer", "WordTokenizer": "RoFormerTokenizer"}[type(tokenizer).__name__]
        tokenizer.save_pretrained(folder, theirs if options.to == "huggingface" else None)


def longest_text(source):
    """The longest text in the source's configuration, or Hugging Face's usual one."""
    from paddle_rope.options import read_json_object
    from paddle_rope.roformer.checkpoints.reading import CONFIG_FILES, TENSORFLOW_CONFIG

    path = next(source / name for name in (*CONFIG_FILES, TENSORFLOW_CONFIG) if (source / name).is_file())
    longest = read_json_object(path).get("max_position_embeddings")
    return longest if isinstance(longest, int) and longest > 0 else LONGEST_TEXT
