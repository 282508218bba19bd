"""The two experiments from the command line, on generated text."""

import csv
import dataclasses
from pathlib import Path

import ablate_positions
import compare_performer
import numpy as np
import pytest
import yaml
from PIL import Image

from tasks.common.tool.run_config import read_run_config
from tasks.experiments.positions.report import PUBLISHED, rank_correlation
from tasks.language_model.arguments import parse_run
from tasks.language_model.reporting import spread
from tests.language_model.conftest import TINY

CONFIGS = Path(__file__).resolve().parents[2] / "configs/language_model"
ROWS = "qk,none,v,learned,theta"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("experiments")
    for tool, options in ((ablate_positions, {"rows": ROWS}), (compare_performer, {})):
        name = tool.__name__
        config = {**TINY, "steps": 2, "seeds": [1, 2], "device": "cpu", "output_dir": str(folder / name), **options}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(config))
        assert tool.main([str(folder / f"{name}.yaml")]) == 0
    return folder


def read(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def is_drawn(path):
    """A picture that is not of one colour."""
    return np.asarray(Image.open(path).convert("L")).std() > 1


def test_ablation_writes_every_loss(folder):
    losses = read(folder / "ablate_positions/losses.csv")
    assert [(line["row"], line["seed"]) for line in losses] == [
        (row, seed) for row in ("qk", "none", "v", "learned", "theta") for seed in "12"
    ]
    assert [line["published"] for line in losses[::2]] == ["2.712", "2.795", "2.856", "", ""]
    lengths = read(folder / "ablate_positions/lengths.csv")
    measured = {(line["row"], line["scaling"], line["length"]) for line in lengths}
    scalings = ("none", "NTK x2", "YaRN x2", "NTK x4", "YaRN x4")
    plain = {(row, "none", length) for row in ("qk", "none", "v", "theta") for length in ("8", "16", "32")}
    scaled = {("qk", scaling, length) for scaling in scalings for length in ("8", "16", "32")}
    assert measured == plain | scaled | {("learned", "none", "8")}


def test_loss_at_the_length_of_training_is_the_held_out_loss(folder):
    lengths = {
        (line["row"], line["seed"]): line["held_out_loss"]
        for line in read(folder / "ablate_positions/lengths.csv")
        if line["length"] == "8" and line["scaling"] == "none"
    }
    for line in read(folder / "ablate_positions/losses.csv"):
        assert float(lengths[line["row"], line["seed"]]) == pytest.approx(float(line["held_out_loss"]))


def test_frequencies_start_where_rope_has_them(folder):
    thetas = read(folder / "ablate_positions/theta.csv")
    starts = [float(line["theta_start"]) for line in thetas if line["seed"] == "1"]
    np.testing.assert_allclose(starts, 10000.0 ** (-np.arange(0, 8, 2) / 8), rtol=1e-6)
    assert all(line["theta_start"] != line["theta_end"] for line in thetas)


def test_report_of_the_ablation_sets_ours_beside_the_published(folder):
    text = (folder / "ablate_positions/results.md").read_text(encoding="utf-8")
    assert "| NoPE | 2.795 | " in text and "| QK, YaRN x4 | " in text and "3 placements" in text
    assert "steps of 4 texts of 8 characters" in text
    for name in ("losses.png", "lengths.png", "theta.png"):
        assert is_drawn(folder / "ablate_positions" / name)


def test_rows_are_reported_without_the_one_that_they_are_compared_with(tmp_path):
    config = {**TINY, "steps": 2, "seeds": [1], "device": "cpu", "output_dir": str(tmp_path / "run")}
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({**config, "rows": "alibi,v"}))
    assert ablate_positions.main([str(tmp_path / "a.yaml")]) == 0
    losses = read(tmp_path / "run/losses.csv")
    assert [line["row"] for line in losses] == ["v", "alibi"]
    text = (tmp_path / "run/results.md").read_text(encoding="utf-8")
    assert f"| ALiBi | {float(losses[1]['held_out_loss']):.4f} |  |" in text


def test_performers_have_curves_of_every_seed(folder):
    points = read(folder / "compare_performer/curves.csv")
    assert {(line["row"], line["seed"], line["text"]) for line in points} == {
        (row, seed, text) for row in ("rope", "none", "learned") for seed in "12" for text in ("training", "held_out")
    }
    text = (folder / "compare_performer/results.md").read_text(encoding="utf-8")
    assert "| Performer with RoPE | " in text and "64 positive orthogonal random features" in text
    assert is_drawn(folder / "compare_performer/curves.png")


def test_performer_has_linear_attention_with_random_features(folder):
    run = parse_run(read_run_config(folder / "compare_performer.yaml"), compare_performer.PerformerArguments)
    config = dataclasses.replace(run, num_random_features=32).model_config(50, {"position_embedding": "qk"})
    assert (config.attention, config.feature_map, config.num_random_features) == ("linear", "favor", 32)
    assert config.causal and config.normalizer == "unrotated"


@pytest.mark.parametrize("tool", [ablate_positions, compare_performer], ids=lambda tool: tool.__name__)
def test_report_is_written_again_without_training(folder, tool, capsys):
    output = folder / tool.__name__
    before = (output / "results.md").read_bytes()
    (output / "results.md").unlink()
    assert tool.main(["--report", str(output)]) == 0
    assert (output / "results.md").read_bytes() == before
    assert before.decode("utf-8") in capsys.readouterr().out + "\n"


def test_bad_command_lines_end_with_status_2_and_one_line(folder, capsys, tmp_path):
    config = str(folder / "ablate_positions.yaml")
    free = str(tmp_path / "free")
    for words, said in (
        ([], "no configuration file"),
        (["--report"], "--report OUTPUT_DIR"),
        (["missing.yaml"], "missing.yaml: no such configuration file"),
        ([config, "--rows", "qk,w", "--output_dir", free], "no row 'w'"),
        ([config, "--hidden_size", "4", "--output_dir", free], "NTK scaling needs 4 or more"),
        ([config, "--learning_rate", "0.5"], "holds cells with learning_rate 0.002, not 0.5"),
    ):
        assert ablate_positions.main(words) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert said in line
    performer = [str(folder / "compare_performer.yaml"), "--num_random_features", "5", "--output_dir", free]
    assert compare_performer.main(performer) == 2
    assert "num_random_features must be a positive even number" in capsys.readouterr().err


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_configurations_of_the_project_are_understood(path):
    tool = ablate_positions if path.stem.startswith("positions") else compare_performer
    assert parse_run(read_run_config(path), tool.EXPERIMENT.arguments_class).files()


def test_every_published_placement_is_a_row():
    names = [row.name for row in ablate_positions.ROWS]
    assert len(set(names)) == len(names) and set(PUBLISHED) < set(names)


def test_rank_correlation_looks_at_order_alone():
    assert rank_correlation({name: 10 * loss**3 for name, loss in PUBLISHED.items()})[0] == pytest.approx(1)
    assert rank_correlation({name: -loss for name, loss in PUBLISHED.items()})[0] == pytest.approx(-1)
    swapped = {**PUBLISHED, "qk": PUBLISHED["qkvo"], "qkvo": PUBLISHED["qk"], "alibi": 1.0}
    assert rank_correlation(swapped)[0] == pytest.approx(1 - 6 * 2 / (9 * 80))
    assert rank_correlation({"qk": 1.0, "none": 2.0, "alibi": 3.0}) is None


def test_running_mean_takes_what_there_is_at_the_start():
    losses = np.array([[4.0, 2.0, 6.0, 0.0]])
    np.testing.assert_allclose(compare_performer.smoothed(losses, 2), [[4, 3, 4, 3]])


def test_step_of_a_bound_lies_on_the_line_between_two_evaluations():
    assert compare_performer.first_step_below([10, 20, 30], [5.0, 4.0, 3.0], 3.5) == 25
    assert compare_performer.first_step_below([10, 20, 30], [5.0, 4.0, 3.0], 2.0) is None
    assert compare_performer.first_step_below([10, 20, 30], [5.0, 4.0, 3.0], 5.5) == 10
    assert compare_performer.first_step_below([10], [5.0], 5.0) == 10


def test_spread_of_one_value_is_the_value():
    assert spread([1.23456]) == "1.2346"
    assert spread([1.0, 2.0, 3.0], 1) == "2.0 ± 1.0"
