"""The recipe of masked-language-model pretraining: texts -> a folder that every recipe takes as ``pretrained``."""

from __future__ import annotations

import sys
from typing import Any

from paddle_rope.roformer import CharTokenizer, RoFormerForMaskedLM, WordTokenizer
from paddle_rope.roformer.tokenization.tokenizer import Tokenizer
from tasks.common.errors import InputError
from tasks.common.process import is_first_process
from tasks.common.recipe import Recipe
from tasks.common.run import Run
from tasks.common.runs import run_folder
from tasks.common.texts.documents import hold_out, read_documents
from tasks.pretraining.arguments import PretrainingArguments
from tasks.pretraining.batches import DevBatches, StageBatches
from tasks.pretraining.masking import WholeWordMasking
from tasks.pretraining.report import stage_rows, write_report
from tasks.pretraining.stages import parse_stages
from tasks.pretraining.tokens import tokenize
from tasks.pretraining.trainer import PretrainingMonitor, PretrainingTrainer


class PretrainingRecipe(Recipe):
    """Loss and accuracy of hidden tokens, stage by stage."""

    arguments = PretrainingArguments
    model_class = RoFormerForMaskedLM
    monitor_class = PretrainingMonitor
    scores = ("loss", "accuracy")
    next_step = "use it:   {command} train CONFIG.yaml --pretrained {model}"

    def read(self, run: Run) -> None:
        documents = read_documents(run.keys.text_files)
        run.examples = dict(zip(("train", "dev"), hold_out(documents, run.keys.dev_fraction)))

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
        """All batches of the run, or for dev a list of those of each stage."""
        stages = parse_stages(run.keys.stages)
        shows = is_first_process() and sys.stderr.isatty()
        stream = tokenize(run.examples[split], run.tokenizer, f"words of {split}", shows)
        if not len(stream.ids):
            raise InputError(f"{', '.join(run.keys.text_files)}: the {split} documents have no token of the vocabulary")
        run.facts.setdefault("tokens", {})[split] = len(stream.ids)
        masking = WholeWordMasking(run.tokenizer)
        if split == "dev":
            return [DevBatches(stream, stage, run.tokenizer, masking) for stage in stages]
        run.training.max_steps = sum(stage.steps for stage in stages)
        return StageBatches(stream, stages, run.tokenizer, masking, run.training.seed, run.batches_per_step)

    def describe(self, run: Run) -> None:
        for split, documents in run.examples.items():
            print(f"{split}: {len(documents):,} documents, {run.facts['tokens'][split]:,} tokens")
        print(f"{len(run.tokenizer):,} tokens known")

    def make_trainer(self, run: Run) -> PretrainingTrainer:
        monitor, datasets = self.monitor(run, self.scores), run.datasets
        return PretrainingTrainer(
            monitor,
            datasets["dev"],
            checkpoint_minutes=run.keys.checkpoint_minutes,
            model=run.model,
            args=run.training,
            train_dataset=datasets["train"],
        )

    def score_and_save(self, run: Run) -> dict[str, Any]:
        batches, history = run.datasets["train"], run.trainer.state.log_history
        rows = stage_rows(batches.stages, batches.ends, history, batches.batches_per_step)
        run_folder.save_model(run.output_dir, run.model, run.tokenizer)
        print(write_report(run.output_dir, rows, history), end="")
        return {"stages": rows, "dev": {name: rows[-1][f"dev_{name}"] for name in self.scores}}
