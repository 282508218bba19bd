"""The recipe of masked-language-model pretraining: texts -> a folder that every recipe takes as ``pretrained``."""

import sys
from typing import Any

from paddle_rope.roformer import CharTokenizer, WordTokenizer
from paddle_rope.roformer.heads import IGNORED_LABEL
from paddle_rope.roformer.tokenization.tokenizer import Tokenizer
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.inference import evaluated
from paddle_rope.tasks.common.process import is_first_process
from paddle_rope.tasks.common.texts.documents import hold_out, read_documents
from paddle_rope.tasks.common.training.data import MemoryData
from paddle_rope.tasks.common.training.recipe import Recipe
from paddle_rope.tasks.common.training.run import Run, RunData
from paddle_rope.tasks.common.training.settings import Settings
from paddle_rope.tasks.common.word_vectors import WordVectors
from paddle_rope.tasks.pretraining.arguments import PretrainingArguments, parse_stages
from paddle_rope.tasks.pretraining.batches import DevBatches, StageBatches, WholeWordMasking, tokenize


class PretrainingRecipe(Recipe):
    """Loss and accuracy of hidden tokens, stage by stage."""

    arguments = PretrainingArguments

    def read(self, settings: Settings, memory: MemoryData) -> RunData:
        documents = read_documents(settings.keys.text_files)
        if settings.keys.dev_files is None:
            train, dev = hold_out(documents, settings.keys.dev_fraction)
        else:
            dev = read_documents(settings.keys.dev_files)
            held = set(dev)
            train = [document for document in documents if document not in held]
            if not train:
                raise InputError("text_files: all documents are in dev_files too; give others to train on")
        vectors = settings.keys.pretrained and WordVectors.from_pretrained(settings.keys.pretrained)
        return RunData({"train": train, "dev": dev}, saved=[vectors] if vectors else [])

    def new_tokenizer(self, run: Run) -> Tokenizer:
        if run.keys.vocab_file is None:
            return CharTokenizer.from_corpus(run.examples["train"], run.keys.vocab_min_count)
        kind = {"char": CharTokenizer, "word": WordTokenizer}[run.keys.tokenizer]
        return kind.from_vocab_file(run.keys.vocab_file)

    def model_options(self, run: Run) -> dict[str, Any]:
        tokenizer = run.tokenizer
        where = run.keys.vocab_file or run.keys.pretrained or "configuration"
        if tokenizer.mask_token_id is None:
            raise InputError(f"{where}: lacks [MASK], which pretraining needs; give another vocabulary")
        if not len(WholeWordMasking(tokenizer).random_ids):
            raise InputError(f"{where}: holds special tokens only; give a vocabulary with characters")
        return {} if run.keys.pretrained else {"pad_token_id": tokenizer.pad_token_id}

    def dataset(self, run: Run, split: str) -> Any:
        """All batches of the run, or for dev a list of the batches of each stage."""
        stages = parse_stages(run.keys.stages)
        shows = is_first_process() and sys.stderr.isatty()
        stream = tokenize(run.examples[split], run.tokenizer, f"words of {split}", shows)
        if not len(stream.ids):
            files = (split == "dev" and run.keys.dev_files) or run.keys.text_files
            raise InputError(f"{', '.join(files)}: the {split} documents have no token of the vocabulary")
        run.facts.setdefault("tokens", {})[split] = len(stream.ids)
        masking = WholeWordMasking(run.tokenizer)
        if split == "dev":
            return [DevBatches(stream, stage, run.tokenizer, masking) for stage in stages]
        drawn = run.training.seed, run.batches_per_step, run.keys.first_hidden_share
        return StageBatches(stream, stages, run.tokenizer, masking, *drawn)

    def longest(self, run: Run) -> int:
        return max(stage.max_tokens for stage in run.datasets["train"].stages)

    def describe(self, run: Run) -> None:
        for split, documents in run.examples.items():
            print(f"{split}: {len(documents):,} documents, {run.facts['tokens'][split]:,} tokens")
        print(f"{len(run.tokenizer):,} tokens known")

    def dev_scores(self, run: Run) -> dict[str, float]:
        """The dev scores with the row length of the stage that has just ended."""
        number = run.datasets["train"].ends.index(run.trainer.state.global_step)
        scores = evaluate_model(run.model, run.datasets["dev"][number])
        return {**scores, "seconds_per_step": run.trainer.monitor.seconds_per_step()}

    def score(self, run: Run, split: str) -> tuple[dict[str, Any], Any]:
        """The dev scores after the last stage; ``metrics.json`` gets the scores of each stage."""
        batches, history = run.datasets["train"], run.trainer.state.log_history
        run.facts["stages"] = stages = []
        for number, (stage, end) in enumerate(zip(batches.stages, batches.ends), 1):
            dev = next(entry for entry in reversed(history) if "eval_loss" in entry and entry["step"] == end)
            tokens = stage.max_tokens * stage.batch_size * stage.steps * batches.batches_per_step
            row = {"stage": number, **stage._asdict(), "million_tokens": tokens / 1e6}
            row["seconds_per_step"] = dev["eval_seconds_per_step"]
            stages.append({**row, **{f"dev_{name}": dev[f"eval_{name}"] for name in self.arguments.SCORES}})
        return {name: stages[-1][f"dev_{name}"] for name in self.arguments.SCORES}, None


def evaluate_model(model, batches):
    """dict with mean ``loss`` and ``accuracy`` of a :class:`RoFormerForMaskedLM` over all hidden tokens of
    ``DevBatches``."""
    total_loss = right = total = 0
    for batch in batches:
        wanted = batch["labels"][batch["labels"] != IGNORED_LABEL]
        if not wanted.size:
            continue
        loss, logits = evaluated(model, batch)
        total_loss += float(loss) * wanted.size
        right += int((logits.argmax(axis=-1).numpy() == wanted).sum())
        total += wanted.size
    return {"loss": total_loss / total, "accuracy": right / total}
