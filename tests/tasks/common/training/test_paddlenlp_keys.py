"""Keys of PaddleNLP: what is said of them is true of the installed one."""

import logging
from typing import get_args, get_origin, get_type_hints

import pytest
from paddlenlp.trainer import SchedulerType, TrainingArguments
from paddlenlp.utils.log import logger

from tasks.common.errors import InputError
from tasks.common.training.arguments import SCHEDULERS
from tasks.common.training.paddlenlp_keys import KEYS, TrainingKeys, check_keys, usable_keys
from tasks.common.training.settings import resolve_config
from tasks.matching.arguments import MatchingArguments
from tasks.ner.arguments import NerArguments
from tasks.pretraining.arguments import PretrainingArguments

FIELDS = TrainingArguments.__dataclass_fields__


def test_defaults_are_those_of_paddlenlp():
    known = {name: key.default for name, key in KEYS.items() if name not in ("output_dir", "device")}
    assert known == {name: FIELDS[name].default for name in known}


def test_schedules_and_types_are_those_of_paddlenlp():
    assert list(SCHEDULERS) == [kind.value for kind in SchedulerType]
    theirs, ours = get_type_hints(TrainingArguments), get_type_hints(TrainingKeys)
    assert ours.pop("lr_scheduler_type") is str
    for name, kind in ours.items():
        (is_of,) = [one for one in get_args(theirs[name]) if one is not type(None)] or [theirs[name]]
        assert (get_origin(is_of) or is_of, get_args(is_of)) == (get_origin(kind) or kind, get_args(kind)), name


@pytest.mark.parametrize("arguments", [NerArguments, PretrainingArguments])
def test_a_configuration_is_resolved_without_notes_of_paddlenlp(arguments):
    config = {"output_dir": "run", "device": "cpu", arguments.REQUIRED[0]: "data"}
    notes = logging.Handler()
    notes.emit = lambda record: told.append(record.getMessage())
    told = []
    logger.logger.addHandler(notes)
    try:
        resolve_config({**config, **({"stages": "8x2x2"} if arguments is PretrainingArguments else {})}, arguments)
    finally:
        logger.logger.removeHandler(notes)
    assert [line for line in told if "report_to" in line] == []


def test_recipes_have_defaults_and_keys_of_their_own():
    assert usable_keys(MatchingArguments)["num_train_epochs"].default == 5
    assert usable_keys(NerArguments)["num_train_epochs"].default == 14
    assert "save_steps" in usable_keys(PretrainingArguments) and "save_steps" not in usable_keys(NerArguments)
    assert "max_steps" not in usable_keys(PretrainingArguments)


@pytest.mark.parametrize("key", sorted({*FIELDS} - {*KEYS}))
def test_every_other_key_is_refused_by_name(key):
    with pytest.raises(InputError, match=key):
        check_keys([key], NerArguments)


def test_keys_that_do_something_pass():
    check_keys([*usable_keys(NerArguments), "max_characters", "dev_fraction"], NerArguments)
    with pytest.raises(InputError, match="key 'max_length' is called 'max_characters' now"):
        check_keys(["max_length"], NerArguments)
