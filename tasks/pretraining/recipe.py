"""Masked-language-model pretraining: files of text -> a folder that every recipe takes as ``pretrained``."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from paddle_rope.roformer import (
    CharTokenizer,
    RoFormerConfig,
    RoFormerForMaskedLM,
    WordTokenizer,
    load_tokenizer,
)
from tasks.common.errors import InputError
from tasks.common.model_folder import check_vocabulary
from tasks.common.runs import life as runs
from tasks.common.texts.documents import hold_out, read_documents
from tasks.common.tool.device import is_first_process
from tasks.pretraining.arguments import resolve_config
from tasks.pretraining.batches import DevBatches, StageBatches
from tasks.pretraining.masking import WholeWordMasking
from tasks.pretraining.report import stage_rows, write_report
from tasks.pretraining.stages import parse_stages
from tasks.pretraining.tokens import tokenize
from tasks.pretraining.trainer import PretrainingMonitor, PretrainingTrainer

FIGURES = ("loss", "accuracy")


def _train(checkpoint, config, run, arguments):
    started = time.perf_counter()
    stages = parse_stages(run.stages)
    arguments.max_steps = sum(stage.steps for stage in stages)
    documents = read_documents([path.strip() for path in run.text_files.split(",")])
    train_documents, dev_documents = hold_out(documents, run.dev_fraction)
    tokenizer, model = build_model(config, run, train_documents)
    streams = {
        name: tokenize(texts, tokenizer, f"words of {name}", is_first_process())
        for name, texts in (("train", train_documents), ("dev", dev_documents))
    }
    for name, stream in streams.items():
        if not len(stream.ids):
            raise InputError(f"{run.text_files}: the {name} documents have no token of the vocabulary")
    masking = WholeWordMasking(tokenizer)
    batches_per_step = arguments.gradient_accumulation_steps * arguments.dataset_world_size
    batches = StageBatches(streams["train"], stages, tokenizer, masking, arguments.seed, batches_per_step)
    parameters = sum(int(p.size) for p in model.parameters())

    output_dir = Path(config["output_dir"])
    if is_first_process():
        for name, texts in (("train", train_documents), ("dev", dev_documents)):
            print(f"{name}: {len(texts):,} documents, {len(streams[name].ids):,} tokens")
        print(f"model: {model.config.attention} attention, {parameters:,} parameters, {len(tokenizer):,} tokens known")
        runs.claim(config, checkpoint)
    trainer = PretrainingTrainer(
        PretrainingMonitor(arguments.logging_dir, config, FIGURES, run.log_histograms),
        [DevBatches(streams["dev"], stage, tokenizer, masking) for stage in stages],
        model=model,
        args=arguments,
        train_dataset=batches,
    )
    training_started = time.perf_counter()
    trainer.train(checkpoint)
    train_seconds = time.perf_counter() - training_started
    if not is_first_process():
        return None

    history = trainer.state.log_history
    rows = stage_rows(stages, batches.ends, history, batches_per_step)
    runs.save_model(output_dir, model, tokenizer)
    print(write_report(output_dir, rows, history), end="")
    metrics = {
        "train_seconds": round(train_seconds, 1),
        "parameters": parameters,
        "seed": arguments.seed,
        "tokens": {name: len(stream.ids) for name, stream in streams.items()},
        "stages": rows,
        "dev": {name: rows[-1][f"dev_{name}"] for name in FIGURES},
    }
    runs.finish(output_dir, metrics, started, "go on:    python tools/train_ner.py CONFIG.yaml --pretrained {model}")
    return metrics


train = partial(runs.start, resolve_config, _train)
resume = partial(runs.resume, resolve_config, _train)


def build_model(config, run, documents):
    """The tokenizer and the :class:`RoFormerForMaskedLM`: new ones, or those of the folder ``pretrained``."""
    where = "configuration" if run.pretrained is None else run.pretrained
    try:
        if run.pretrained is not None:
            tokenizer = load_tokenizer(run.pretrained)
            model = RoFormerForMaskedLM.from_pretrained(run.pretrained, **run.encoder_options(config))
        else:
            tokenizer = build_tokenizer(run, documents)
            options = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
            model = RoFormerForMaskedLM(RoFormerConfig(**options, **run.encoder_options()))
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None
    if tokenizer.mask_token_id is None:
        raise InputError(f"{run.vocab_file or where}: lacks [MASK], which pretraining needs; give another vocabulary")
    if not len(WholeWordMasking(tokenizer).random_ids):
        raise InputError(f"{run.vocab_file or where}: holds special tokens only; give a vocabulary with characters")
    check_vocabulary(run.pretrained, tokenizer, model)
    return tokenizer, model


def build_tokenizer(run, documents):
    """A tokenizer of ``vocab_file``, or of the characters of ``documents``."""
    if run.vocab_file is None:
        return CharTokenizer.from_corpus(documents, run.vocab_min_count)
    kind = {"char": CharTokenizer, "word": WordTokenizer}[run.tokenizer]
    return kind.from_vocab_file(run.vocab_file)
