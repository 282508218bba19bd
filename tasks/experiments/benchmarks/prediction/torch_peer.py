"""Our NER model in PyTorch: Hugging Face's RoFormer with word features and GlobalPointer. Without paddle."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from transformers import RoFormerModel

from tasks.experiments.benchmarks.prediction.peer_files import SETTINGS_FILE, WEIGHTS_FILE


class TorchPeer:
    """The model that :func:`tasks.experiments.benchmarks.prediction.peer_files.write_peer` wrote, called as the graph
    of an exported folder."""

    outputs = ("logits",)

    def __init__(self, folder: str | os.PathLike):
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        self.encoder = RoFormerModel.from_pretrained(folder).eval()
        self.settings = json.loads((Path(folder) / SETTINGS_FILE).read_text(encoding="utf-8"))
        self.weights = load_file(Path(folder) / WEIGHTS_FILE)

    @torch.inference_mode()
    def run(self, batch: dict[str, np.ndarray], outputs: Sequence[str] | None = None) -> list[np.ndarray]:
        """[logits ``[batch, types, seq, seq]``] of a batch as :meth:`tasks.ner.model.NerModel.forward` takes it."""
        tensors = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in batch.items()}
        embedded = self.encoder.embeddings.word_embeddings(tensors["input_ids"])
        if self.settings["columns"] or self.settings["has_flags"]:
            embedded = embedded + self._features(tensors)
        hidden = self.encoder(inputs_embeds=embedded, attention_mask=tensors["attention_mask"].long())[0]
        head = self._efficient if self.settings["span_head"] == "efficient" else self._dense
        logits = head(hidden)
        of_text = tensors["token_mask"]
        is_span = (of_text[:, :, None] & of_text[:, None, :]).triu()[:, None]
        return [logits.masked_fill_(~is_span, self.settings["masked_logit"]).numpy()]

    def _linear(self, name, x):
        return F.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _features(self, tensors):
        parts = [
            F.embedding(tensors["columns"][:, :, column], self.weights[f"feature_embedding.tables.{kind}.weight"])
            for column, kind in enumerate(self.settings["columns"])
        ]
        if self.settings["has_flags"]:
            parts.append(tensors["flags"].float() @ self.weights["feature_embedding.flags.weight"])
        return self._linear("feature_embedding.projection", torch.cat(parts, dim=-1))

    def _efficient(self, hidden):
        qk = self._linear("head.dense", hidden)
        q, k = self._rotated(qk.unflatten(-1, (2, -1)).transpose(1, 2)).unbind(1)  # [batch, seq, head_size]
        starts, ends = (self._linear("head.type_scores", qk) / 2).transpose(1, 2).chunk(2, dim=1)
        return _products(q, k)[:, None] + starts[:, :, :, None] + ends[:, :, None, :]

    def _dense(self, hidden):
        qk = self._linear("head.dense", hidden).unflatten(-1, (self.settings["types"], 2, -1))
        return _products(*self._rotated(qk.permute(0, 3, 2, 1, 4)).unbind(1))

    def _rotated(self, x):
        """RoPE over the last two axes, seq and head_size."""
        if not self.settings["span_rope"]:
            return x
        seq, size = x.shape[-2:]
        theta = 10000.0 ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
        phases = torch.arange(seq)[:, None] * theta
        cosine, sine = phases.cos().float(), phases.sin().float()
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * cosine - b * sine, a * sine + b * cosine], dim=-1).flatten(-2)


def _products(q, k):
    return (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
