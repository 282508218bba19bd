"""Which cells of a grid are computed, by whom, and in which order."""

import json

import pytest
import yaml

from tasks.common.errors import InputError
from tasks.common.runs.locks import locked
from tasks.language_model import grid
from tasks.language_model.arguments import LanguageModelArguments, parse_run
from tasks.language_model.grid import Experiment, Row, report, run_grid
from tasks.language_model.training import CHECKPOINT_FILE, History

ROWS = (Row("a", "A", {}), Row("b", "B", {"position_embedding": "none"}))


@pytest.fixture
def trained(monkeypatch):
    """Cells as they are trained, by a training that does nothing."""
    trained = []

    class Model:
        def parameters(self):
            return []

    def train(config, corpus, run, seed, folder, theta_rate, scale_embeddings, title):
        trained.append(folder.name)
        (folder / CHECKPOINT_FILE).touch()
        return Model(), History([(1, 2.0)], [(1, 3.0)], 0.5)

    monkeypatch.setattr(grid, "train_language_model", train)
    return trained


@pytest.fixture
def reported():
    return []


@pytest.fixture
def experiment(reported):
    def write(folder, run, cells):
        reported[:] = [(cell["row"], cell["seed"], cell["measured"]) for cell in cells]

    return Experiment(ROWS, LanguageModelArguments, lambda model, corpus, run, row: {"measured": row.name}, write)


def test_every_row_has_the_first_seed_before_any_has_the_second(experiment, config, trained, reported):
    run_grid(experiment, config)
    assert trained == ["a_seed_1", "b_seed_1", "a_seed_2", "b_seed_2"]
    assert reported == [("a", 1, "a"), ("a", 2, "a"), ("b", 1, "b"), ("b", 2, "b")]


def test_finished_cells_are_not_computed_again(experiment, config, trained, reported, tmp_path):
    run_grid(experiment, {**config, "rows": "b", "seeds": "2"})
    run_grid(experiment, config)
    assert trained == ["b_seed_2", "a_seed_1", "b_seed_1", "a_seed_2"]
    assert len(reported) == 4
    assert not list(tmp_path.glob(f"grid/cells/*/{CHECKPOINT_FILE}"))


def test_cell_that_another_process_computes_is_left_to_it(experiment, config, trained, capsys, tmp_path):
    (tmp_path / "grid/cells/a_seed_1").mkdir(parents=True)
    with locked(tmp_path / "grid/cells/a_seed_1") as is_mine:
        assert is_mine
        (tmp_path / "grid/config.yaml").write_text(yaml.safe_dump(config))
        run_grid(experiment, config)
    assert trained == ["b_seed_1", "a_seed_2", "b_seed_2"]
    assert "a_seed_1: another process computes it" in capsys.readouterr().out
    run_grid(experiment, config)
    assert trained[3:] == ["a_seed_1"]


def test_result_holds_losses_and_setting(experiment, config, trained, tmp_path):
    run_grid(experiment, {**config, "rows": "a", "seeds": "7"})
    result = json.loads((tmp_path / "grid/cells/a_seed_7/result.json").read_text())
    assert (result["row"], result["seed"], result["measured"]) == ("a", 7, "a")
    assert (result["training"], result["held_out"], result["seconds"]) == ([[1, 2.0]], [[1, 3.0]], 0.5)
    assert result["text"]["held_out_tokens"] == 4 * 33
    assert "paddlepaddle" in result["machine"]


def test_folder_of_another_configuration_is_refused(experiment, config, trained):
    run_grid(experiment, {**config, "rows": "a"})
    with pytest.raises(InputError, match="holds cells with steps 6, not 7"):
        run_grid(experiment, {**config, "steps": 7})
    assert trained == ["a_seed_1", "a_seed_2"]


def test_folder_with_something_else_is_refused_and_left_alone(experiment, config, trained, tmp_path):
    (tmp_path / "grid").mkdir()
    (tmp_path / "grid/thesis.txt").touch()
    with pytest.raises(InputError, match="holds something else"):
        run_grid(experiment, config)
    assert [path.name for path in (tmp_path / "grid").iterdir()] == ["thesis.txt"]


def test_report_reads_what_is_finished(experiment, config, trained, reported, tmp_path):
    run_grid(experiment, {**config, "rows": "b", "seeds": "2"})
    reported.clear()
    report(experiment, tmp_path / "grid")
    assert reported == [("b", 2, "b")]
    with pytest.raises(InputError, match="grid of another tool"):
        report(experiment._replace(rows=ROWS[:1]), tmp_path / "grid")
    with pytest.raises(InputError, match="no config.yaml"):
        report(experiment, tmp_path)


@pytest.mark.parametrize(
    "change, said",
    [
        ({"rows": "a,c"}, "no row 'c'; the rows are a, b"),
        ({"seeds": "1,1"}, "a seed is given twice"),
        ({"steps": 0}, "steps must be greater than 0"),
        ({"text_files": None}, "no 'text_files'"),
        ({"text_files": "missing.txt"}, "missing.txt: no such file"),
        ({"hidden_size": 10, "num_attention_heads": 4}, "hidden_size 10 does not split into 4 heads"),
        ({"lenght": 3}, "unknown key 'lenght'; did you mean 'length'"),
    ],
)
def test_wrong_key_is_named_before_anything_is_written(experiment, config, trained, tmp_path, change, said):
    with pytest.raises(InputError, match=said):
        run_grid(experiment, {**config, **change})
    assert not (tmp_path / "grid").exists()


def test_lists_of_yaml_are_words_between_commas(config):
    run = parse_run(
        {**config, "seeds": [3, 4], "rows": ["a", "b"], "text_files": ["x.txt", "y.txt"]}, LanguageModelArguments
    )
    assert run.seed_numbers() == [3, 4] and run.row_names() == ["a", "b"] and run.files() == ["x.txt", "y.txt"]
