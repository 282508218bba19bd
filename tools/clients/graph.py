"""The entities that the ONNX graph of an exported NER model finds, with numpy and onnxruntime alone, to be rewritten in
another language. The model has no word features.

    python tools/clients/graph.py mine_exported 叶老桂在浙商银行工作。 好
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime

folder, texts = Path(sys.argv[1]), sys.argv[2:]
vocab = {token: number for number, token in enumerate((folder / "vocab.txt").read_text("utf-8").split("\n"))}
types = json.loads((folder / "config.json").read_text("utf-8"))["types"]
session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])

ids = np.full([len(texts), max(map(len, texts)) + 2], vocab["[PAD]"], dtype=np.int64)
for row, text in zip(ids, texts):
    row[: len(text) + 2] = [vocab.get(token, vocab["[UNK]"]) for token in ("[CLS]", *text, "[SEP]")]
lengths, places = np.array([[len(text)] for text in texts]), np.arange(ids.shape[1])
masks = {"attention_mask": places < lengths + 2, "token_mask": (places > 0) & (places <= lengths)}

spans, probabilities = session.run(["spans", "probabilities"], {"input_ids": ids, **masks})
for (text, kind, first, end), probability in zip(spans, probabilities):
    print(texts[text][first - 1 : end - 1], types[kind], round(float(probability), 2))
