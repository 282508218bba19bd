"""paddle-rope benchmark: time, memory and scores."""

from tasks.commands.benchmark import encoders, models
from tasks.commands.options import choose
from tasks.common.language import Message


def benchmark(words):
    kinds = {
        "length": (encoders.benchmark_length, Message("time and memory against the length of the text")),
        "layers": (encoders.benchmark_layers, Message("our layers against Paddle's")),
        "native": (encoders.benchmark_native, Message("native operators against their plain forms")),
        "peers": (encoders.benchmark_peers, Message("our RoFormer beside PaddleNLP's and Hugging Face's")),
        "prediction": (models.benchmark_prediction, Message("a NER model in Paddle, ONNX, OpenVINO and PyTorch")),
        "entities": (models.benchmark_entities, Message("F1 of NER models against length and position")),
        "service": (models.benchmark_service, Message("a model served over HTTP, under load")),
        "long_document": (
            models.benchmark_long_document,
            Message("one long document: time and memory against its length"),
        ),
        "documents": (models.benchmark_documents, Message("many documents in several processes and on Ray")),
        "device": (encoders.benchmark_device, Message("every layer on a GPU or CPU: is it right, is it fast")),
    }
    kind, words = choose(
        "paddle-rope benchmark", Message("kind"), words, {name: line for name, (_, line) in kinds.items()}
    )
    return kinds[kind][0](words)
