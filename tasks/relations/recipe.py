"""The recipe of relations: NER's, with the triples scored."""

from typing import Any

from paddle_rope.tasks.common.errors import InputError, visible
from paddle_rope.tasks.common.training.data import MemoryData
from paddle_rope.tasks.common.training.run import Run
from paddle_rope.tasks.common.training.settings import Settings
from paddle_rope.tasks.ner import calibration, monitoring
from paddle_rope.tasks.ner.batching import NerDataset
from paddle_rope.tasks.ner.examples import relation_types
from paddle_rope.tasks.ner.prediction.finding import find_in_windows
from paddle_rope.tasks.ner.recipe import Evaluation, NerData, NerRecipe, tune
from paddle_rope.tasks.relations.arguments import RelationsArguments
from paddle_rope.tasks.relations.decoding import RELATED, Related, between, related_record
from paddle_rope.tasks.relations.metrics import gold_of, match_triples, relation_scores
from paddle_rope.tasks.relations.prediction import print_scores


class RelationsRecipe(NerRecipe):
    """Entities and the triples between them: precision, recall and micro F1 over exact (head, tail, relation)."""

    arguments = RelationsArguments
    report = staticmethod(print_scores)

    def read(self, settings: Settings, memory: MemoryData) -> NerData:
        data = super().read(settings, memory)
        if not relation_types(data.examples["train"]):
            raise InputError(f"{settings.keys.train_file}: no relation is labeled in it; train the recipe ner")
        return data

    def model_options(self, run: Run) -> dict[str, Any]:
        own = {"relation_thresholds": 0.0, "relation_temperatures": 1.0}
        return {**super().model_options(run), "relations": relation_types(run.examples["train"]), **own}

    def describe(self, run: Run) -> None:
        super().describe(run)
        known, dataset = run.model.config.relations, run.datasets["train"]
        parted = f"; {dataset.parted:,} of them are in no window together and not learned" * bool(dataset.parted)
        print(f"{len(known)} relations: {visible(', '.join(known))}; {dataset.pairs:,} in train{parted}")
        unseen = sorted({*relation_types(one for some in run.examples.values() for one in some)} - {*known})
        if unseen:
            print(visible(f"not in train, so never found: {', '.join(unseen)}"))

    def score(self, run: Run, split: str) -> tuple[dict[str, Any], Any]:
        """The scores. Dev chooses thresholds and temperatures of entities and relations, and is shown by VisualDL."""
        config, dataset, monitor = run.model.config, run.datasets[split], run.trainer.monitor
        if split == "dev":
            tune(run)
            _, found, candidates = self._evaluate(run, dataset)
            given = gold_of(dataset.examples), candidates, config.relations, True
            if run.keys.tune_thresholds:
                config.relation_thresholds = calibration.thresholds_for(*given)
            config.relation_temperatures = calibration.temperatures_for(*given)
            candidates = calibration.with_probabilities(candidates, config.relation_temperatures, config.relations)
            found = _above_thresholds(config, found, candidates)
            with monitor.opened():
                step, relations = run.trainer.kept_step, config.relations
                monitoring.show_samples(monitor.writer, dataset.examples, found, step, match_triples)
                monitoring.show_curves(monitor.writer, gold_of(dataset.examples), candidates, relations, step)
        else:
            found = find_related(run.model, dataset, run.batch_size)
        records = (related_record(example.text, one) for example, one in zip(dataset.examples, found))
        return relation_scores(config, dataset.examples, found), records

    def score_ensemble(self, config: dict[str, Any], run_dirs: list[str]) -> None:
        """None: relation models compute alone."""

    def _evaluate(self, run: Run, dataset: NerDataset) -> Evaluation:
        """The scores with the one threshold of all relations that suits dev best, which the model keeps: a related pair
        is one of thousands, so a model that ranks the pairs rightly long scores them below 0."""
        config, examples = run.model.config, dataset.examples
        config.relation_thresholds = calibration.LOWEST_THRESHOLD
        found = find_related(run.model, dataset, run.batch_size)
        candidates = [one.triples for one in found]
        config.relation_thresholds = calibration.common_threshold(gold_of(examples), candidates, config.relations)
        found = _above_thresholds(config, found, candidates)
        return Evaluation(relation_scores(config, examples, found), found, candidates)

    def _show(self, run: Run, evaluation: Evaluation) -> None:
        writer, step = run.trainer.monitor.writer, run.trainer.state.global_step
        monitoring.show_samples(writer, run.datasets["dev"].examples, evaluation.found, step, match_triples)

    def _dataset(self, run: Run, examples: list, **options: Any) -> NerDataset:
        return super()._dataset(run, examples, relations=run.model.config.relations, **options)


def find_related(model: Any, dataset: NerDataset, batch_size: int) -> list[Related]:
    """The entities and triples of each text of a dataset, found by a
    :class:`~paddle_rope.tasks.relations.model.RelationsModel`, also during training."""
    config, found = model.config, find_in_windows(model, dataset.texts, batch_size, decoding=RELATED)
    entities = calibration.above_thresholds(
        [one.entities for one in found], config.thresholds, config.types, config.allow_overlap
    )
    return [between(of_text, one.triples) for of_text, one in zip(entities, found)]


def _above_thresholds(config: Any, found: list[Related], candidates: list) -> list[Related]:
    """What is found, with only those candidates as triples that score above the thresholds of relations."""
    above = calibration.above_thresholds(candidates, config.relation_thresholds, config.relations, True)
    return [one._replace(triples=triples) for one, triples in zip(found, above)]
