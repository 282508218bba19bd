"""paddle-rope benchmark: time, memory and scores."""

from tasks.commands.benchmark import encoders, models
from tasks.commands.options import choose


def benchmark(words):
    kinds = {
        "length": (encoders.benchmark_length, "time and memory against the length of the text"),
        "peers": (encoders.benchmark_peers, "our RoFormer beside PaddleNLP's and Hugging Face's"),
        "prediction": (models.benchmark_prediction, "a NER model in Paddle, ONNX, OpenVINO and PyTorch"),
        "entities": (models.benchmark_entities, "F1 of NER models against length and position"),
        "service": (models.benchmark_service, "a model served over HTTP, under load"),
        "long_document": (
            models.benchmark_long_document,
            "one long document: time and memory against its length",
        ),
        "documents": (models.benchmark_documents, "many documents in several processes and on Ray"),
        "device": (encoders.benchmark_device, "every layer on a GPU or CPU: is it right, is it fast"),
    }
    kind, words = choose("paddle-rope benchmark", "kind", words, {name: line for name, (_, line) in kinds.items()})
    return kinds[kind][0](words)
