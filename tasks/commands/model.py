"""paddle-rope evaluate, export, tune and convert-weights: work with trained weights."""

import argparse
import os
from pathlib import Path

from paddle_rope.machine import prepare_process
from paddle_rope.roformer.config import folder_of
from paddle_rope.tasks.commands.options import (
    LABELED,
    add_model_dirs,
    add_prediction,
    add_reading,
    new_parser,
    open_model,
    prediction_options,
    reading,
    recipe_of,
    whole,
)
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.files import atomic_folder, check_new_folder, check_output_file, write_json
from paddle_rope.tasks.common.model_folder import FORMATS, ONNX, refuse_changed
from paddle_rope.tasks.common.process import own_command, prepare, quoted
from paddle_rope.tasks.recipes import get_part, get_predictor, recipes_with

EVALUATE = """\
Score a model on labeled data.

ner             precision, recall and F1 of each type, the kinds of errors, which types are taken for each other, scores
                by length and nesting, and the texts with the most errors
matching        accuracy, F1 of label 1 and Spearman correlation of pairs, accuracy of triples; a bi-encoder says 1 from
                the threshold that its dev data gave
classification  accuracy, macro F1, the scores of each class, and which classes are taken for each other"""
DATA = f"""\
{LABELED}; for matching two texts and a label between tabs, or JSON lines; for classification JSON lines or
text<TAB>label"""
EXPORT = """\
Export a trained model to use it elsewhere.

The folder it makes goes wherever a model's folder does: to paddle-rope predict, evaluate and serve, and to the
predictors in Python. An ONNX model needs neither Paddle nor PaddleNLP there. Several NER models become one with their
mean scores. Export compares the scores of the trained and the exported model."""
TUNE = """\
Tune a trained NER model on labeled data: for each entity type a threshold, for the micro F1, and a temperature, so that
the probabilities of entities say how often they are right.

Writes them into the config.json of the model, where prediction and evaluation find them. Tune on dev data, not on the
data that you report. Tuning again starts anew. Temperatures change no score and no entity."""

CONVERT_WEIGHTS = """\
Convert an encoder to a folder of this library or of Hugging Face.

SOURCE is a folder of this library, a RoFormer, BERT, ELECTRA or ERNIE of Hugging Face or PaddleNLP, PaddleNLP's
RoFormerV2, or an original TensorFlow checkpoint of BERT or of ZhuiyiTechnology's RoFormer (bert_config.json,
bert_model.ckpt.*; needs tensorflow). In Hugging Face's form, a model with learned positions becomes BERT, or ELECTRA if
it projects its embeddings, and any other a RoFormer. The tokenizer is converted with the model. Weights are not
changed: there and back they are bit-equal."""
TARGETS = ("paddle_rope", "huggingface")
LONGEST_TEXT = 1536  # rows of Hugging Face's position table if the source has no limit


def evaluate(argv):
    parser = new_parser("evaluate", EVALUATE)
    add_model_dirs(parser)
    parser.add_argument("data", metavar="DATA", help=DATA)
    parser.add_argument("--output", metavar="FILE", help="write all of it to FILE as JSON")
    parser.add_argument("--examples", type=whole(0), metavar="N", help="NER: texts with errors shown (default: 5)")
    add_reading(parser)
    add_prediction(parser)
    options = parser.parse_args(argv)
    models, recipe = options.model_dirs, recipe_of(options.model_dirs, options)
    shown = {} if options.examples is None else {"num_examples": options.examples}
    if options.output:
        check_output_file(options.output, [options.data, *models])
    prepare_process()
    try:
        examples = get_predictor(recipe).labeled.read_file(options.data, **reading(options))
    except InputError as error:
        raise InputError(f"{error}; {models[0]} is a model of {recipe}") from None
    scores = open_model(models, options).evaluate(examples, str(options.data), **shown)
    if options.output:
        write_json(options.output, scores)


def export(argv):
    parser = new_parser("export", EXPORT)
    add_model_dirs(parser)
    parser.add_argument("--output", required=True, metavar="FOLDER", help="folder to make; must not exist or be empty")
    of_engine = "onnx, or paddle for Paddle Inference (default: onnx)"
    parser.add_argument("--format", default=ONNX, choices=FORMATS, help=of_engine)
    parser.add_argument("--quantize", choices=["int8"], help="int8 weights: smaller and faster, nearly as good")
    parser.add_argument("--check", metavar="FILE", help="labeled file on which to score the trained and exported model")
    add_reading(parser)
    options = parser.parse_args(argv)
    models, output, read = options.model_dirs, options.output, reading(options)
    recipe = recipe_of(models, argparse.Namespace(**read))
    check_new_folder(output, "folder")
    prepare()
    from paddle_rope.tasks.common.export.exporter import export

    exporter = get_part(recipe, "exporter")()
    found = export(exporter, models, output, options.format, options.quantize, options.check, **read)
    if found.scores:
        print("| score | trained | exported |\n|---|---|---|")
        for name, score in found.scores["trained"].items():
            print(f"| {name} | {score:.4f} | {found.scores['exported'][name]:.4f} |")
    print(f"{output}: exported; scores differ from the trained model's by at most {found.difference:.1g}")
    for limit in found.limits:
        print(f"note: {limit}")
    print(f"predict:  {own_command()} predict {quoted(output)} --input FILE")


def tune(argv):
    parser = new_parser("tune", TUNE)
    parser.add_argument("model_dir", metavar="MODEL_DIR", help="folder OUTPUT_DIR/model of a training run")
    parser.add_argument("data", metavar="DEV_FILE", help=LABELED)
    parser.add_argument("--only", choices=("thresholds", "temperatures"), help="leave the other as they are")
    add_reading(parser)
    add_prediction(parser, recipes_with("tune"))
    options = parser.parse_args(argv)
    recipe = recipe_of([options.model_dir], options, recipes_with("tune"))
    prepare()
    tune_model = get_part(recipe, "tune")
    tune_model(options.model_dir, options.data, options.only, **reading(options), **prediction_options(options))


def convert_weights(argv):
    parser = new_parser("convert-weights", CONVERT_WEIGHTS)
    parser.add_argument("source", metavar="SOURCE", type=Path, help="folder of a checkpoint")
    parser.add_argument("target", metavar="TARGET", type=Path, help="folder to make; must not exist or be empty")
    parser.add_argument("--to", required=True, choices=TARGETS, help="format of TARGET")
    options = parser.parse_args(argv)
    prepare()
    options.source = Path(folder_of(options.source))
    refuse_changed(options.source)
    try:
        with atomic_folder(options.target) as folder:
            model = read_model(options.source)
            write(model, folder, options)
    except (ValueError, OSError) as error:
        raise InputError(" ".join(str(error).split())) from error
    print(f"{options.target}: {type(model).__name__} as {options.to}")


def read_model(source):
    """The model in a folder, of the class that fits its checkpoint."""
    from paddle_rope.roformer.checkpoints.reading import read_checkpoint, read_tensorflow

    is_tensorflow = _is_tensorflow(source)
    return build(read_tensorflow(source, tensorflow_reader()) if is_tensorflow else read_checkpoint(source), source)


def _is_tensorflow(source):
    from paddle_rope.roformer.checkpoints.reading import TENSORFLOW_CONFIG

    return (source / TENSORFLOW_CONFIG).is_file() and not (source / "config.json").is_file()


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
    """Write the model, and the tokenizer and the word vectors if the source has them."""
    from paddle_rope.files import read_json_object
    from paddle_rope.roformer.checkpoints.huggingface import write_huggingface
    from paddle_rope.roformer.checkpoints.reading import TENSORFLOW_CONFIG, read_settings
    from paddle_rope.roformer.tokenization import load_tokenizer
    from paddle_rope.roformer.tokenization.tokenizer import VOCAB_FILE
    from paddle_rope.tasks.common.word_vectors import WordVectors

    if options.to == "huggingface":
        of_tensorflow = options.source / TENSORFLOW_CONFIG
        settings = read_json_object(of_tensorflow) if _is_tensorflow(options.source) else read_settings(options.source)
        longest = settings.get("max_position_embeddings")
        has_limit = isinstance(longest, int) and longest > 0
        write_huggingface(model, folder, longest if has_limit else LONGEST_TEXT)
    else:
        model.save_pretrained(folder)
    if (options.source / VOCAB_FILE).is_file():
        tokenizer = load_tokenizer(options.source)
        theirs = "RoFormerTokenizer" if type(tokenizer).__name__ == "WordTokenizer" else "BertTokenizer"
        tokenizer.save_pretrained(folder, theirs if options.to == "huggingface" else None)
    vectors = WordVectors.from_pretrained(options.source)
    if vectors is not None:
        vectors.save_pretrained(folder)
