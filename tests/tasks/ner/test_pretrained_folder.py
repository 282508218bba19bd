"""A folder of weights that is not there is told before the data are read."""

import train_ner


def test_missing_pretrained_folder_is_told_before_the_data_are_read(fails, tmp_path):
    (tmp_path / "no_data.jsonl").write_text("this is no labeled text")
    words = ("--train_file", "no_data.jsonl", "--dev_file=", "--output_dir", "run", "--pretrained", "nope")
    message = fails(train_ner, "configs/ner/own_data.yaml", *words)
    assert message.startswith("configuration: pretrained: nope: no such folder.")
    assert not (tmp_path / "run").exists()
