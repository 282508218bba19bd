"""A thousand types from end to end."""

import json


def test_a_thousand_types_train_predict_and_are_scored(train, evaluate, predict, tmp_path, capsys):
    types = [f"type {number:03}" for number in range(1000)]
    lines = []
    for number in range(100):
        label = {kind: {"乙丙": [[1, 2]]} for kind in types[10 * number : 10 * number + 10]}
        lines.append({"text": f"甲乙丙丁戊{number}己庚", "label": {**label, types[number // 2]: {"甲": [[0, 0]]}}})
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    few = tmp_path / "few.jsonl"
    few.write_text("".join(json.dumps(line) + "\n" for line in lines[::5]), encoding="utf-8")
    run = train(tmp_path / "run", train_file=path, dev_file=few, num_train_epochs=1, per_device_train_batch_size=50)
    assert run.model_config["types"] == types
    assert len(predict("甲乙丙\n", run.model)) == 1
    capsys.readouterr()
    scores = evaluate(few, run.model)
    assert len(scores["per_type"]) == 1000 and scores["support"] > 30
    assert len(capsys.readouterr().out.splitlines()) < 300
