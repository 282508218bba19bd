"""What a text passes from a labeled JSON line to one trained step: files and functions of the project, and calls that
lead from one folder to another. The operators are the plain ones. What a run does once for all texts is not on the way:
its configuration, its model, its folder.

    python tools/dev/trace_step.py            # counts
    python tools/dev/trace_step.py --calls    # also each file with its functions, and the moves between folders
"""

import argparse
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
LINE = '{"text": "浙商银行企业信贷部叶老桂博士", "entities": [{"start": 9, "end": 12, "type": "name"}]}\n'
KEYS = {
    **{"dev_fraction": 0, "max_steps": 1, "masked_lm_epochs": 0, "device": "cpu"},
    **{"bf16": False, "tune_thresholds": False, "threshold_for_f1": False},
}


class Trace:
    """Counts calls within the project until a step is trained; generators that go on count as calls."""

    def __init__(self):
        self.functions, self.moves = Counter(), Counter()  # (file, function); (folder of the caller, of the callee)
        self.aside = 0  # how many of the functions ASIDE it is in
        self._files = {}  # path in a frame -> path in the project, None outside

    def __call__(self, frame, event, argument):
        file, name = self.file_of(frame), frame.f_code.co_qualname
        if (file, name) in ASIDE:
            self.aside += {"call": 1, "return": -1}.get(event, 0)
        if event == "call" and file is not None and not self.aside:
            self.functions[file, name] += 1
            caller = frame.f_back
            while caller is not None and self.file_of(caller) is None:
                caller = caller.f_back
            folders = [os.path.dirname(one) for one in (file if caller is None else self.file_of(caller), file)]
            if folders[0] != folders[1]:
                self.moves[tuple(folders)] += 1
        if event == "return" and (file, name) == STEP:
            sys.setprofile(None)

    def file_of(self, frame):
        """The file of a frame within the project, None outside."""
        path = frame.f_code.co_filename
        if path not in self._files:
            inside = Path(path).resolve().is_relative_to(REPOSITORY) and path.endswith(".py") and path != __file__
            inside = inside and ".venv" not in path
            self._files[path] = str(Path(path).resolve().relative_to(REPOSITORY)) if inside else None
        return self._files[path]


TRAINING = "tasks/common/training"
STEP = (f"{TRAINING}/callbacks.py", "TrainingProgress.on_step_end")  # the last one to see a step
ASIDE = {
    *((f"{TRAINING}/settings.py", name) for name in ("check_config", "filled", "finished")),
    *((f"{TRAINING}/loop.py", name) for name in ("_build", "_new_trainer")),
    (f"{TRAINING}/run.py", "Run.claim"),
    ("tasks/common/process.py", "choose_device"),
    (f"{TRAINING}/trainer.py", "RecipeTrainer.create_optimizer"),
    (f"{TRAINING}/monitor.py", "VisualDLMonitor.on_train_begin"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", action="store_true", help="also list what is passed")
    options = parser.parse_args()
    os.environ["PADDLE_ROPE_NATIVE"] = "0"
    from paddle_rope.tasks import recipes

    trace = Trace()
    with tempfile.TemporaryDirectory() as folder:
        train = Path(folder) / "train.jsonl"
        train.write_text(LINE, encoding="utf-8")
        config = {**recipes.config_for_data("ner"), **KEYS, "train_file": str(train), "output_dir": f"{folder}/run"}
        recipes.get_recipe("ner")  # imports
        from paddle_rope.tasks.common.training import loop

        sys.setprofile(trace)
        loop.train(recipes.get_recipe("ner"), config)
    files = {file for file, _ in trace.functions}
    if options.calls:
        for file in sorted(files):
            of_file = {name: count for (one, name), count in trace.functions.items() if one == file}
            print(f"{file}: {', '.join(f'{name} {count}' for name, count in of_file.items())}")
        for (caller, callee), count in trace.moves.most_common():
            print(f"{count:5}  {caller} -> {callee}")
    print(f"{len(files)} files, {len(trace.functions)} functions, {sum(trace.moves.values())} moves between folders")


if __name__ == "__main__":
    main()
