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
    """Counts calls within the project until the function ``last`` returns, but not within the functions ``aside``.
    A generator that goes on is called again."""

    def __init__(self, last, aside):
        self.functions, self.moves = Counter(), Counter()  # code of a function; (folder of the caller, of the callee)
        self._last, self._aside = last.__code__, {function.__code__ for function in aside}
        self._depth = 0  # how many of the functions ``aside`` it is in
        self._files = {}  # path in a frame -> path in the project, None outside

    def __call__(self, frame, event, argument):
        if frame.f_code in self._aside:
            self._depth += {"call": 1, "return": -1}.get(event, 0)
        file = self.file_of(frame.f_code)
        if event == "call" and file is not None and not self._depth:
            self.functions[frame.f_code] += 1
            caller = frame.f_back
            while caller is not None and self.file_of(caller.f_code) is None:
                caller = caller.f_back
            folders = [os.path.dirname(one) for one in (file if caller is None else self.file_of(caller.f_code), file)]
            if folders[0] != folders[1]:
                self.moves[tuple(folders)] += 1
        if event == "return" and frame.f_code is self._last:
            sys.setprofile(None)

    def file_of(self, code):
        """The file of a function within the project, None outside."""
        path = code.co_filename
        if path not in self._files:
            whole = Path(path).resolve()
            inside = path.endswith(".py") and path != __file__ and ".venv" not in path
            inside = inside and whole.is_relative_to(REPOSITORY)
            self._files[path] = str(whole.relative_to(REPOSITORY)) if inside else None
        return self._files[path]


def traced():
    """The :class:`Trace` of a run on one text."""
    os.environ["PADDLE_ROPE_NATIVE"] = "0"
    from paddle_rope.tasks import recipes
    from paddle_rope.tasks.common.training import callbacks, loop, monitor, run, trainer

    once = [loop.check_config, loop.filled, loop.finished, loop.choose_device, loop._build, loop._new_trainer]
    once += [run.Run.claim, trainer.RecipeTrainer.create_optimizer, monitor.VisualDLMonitor.on_train_begin]
    trace = Trace(callbacks.TrainingProgress.on_step_end, once)  # the last one to see a step
    with tempfile.TemporaryDirectory() as folder:
        train = Path(folder) / "train.jsonl"
        train.write_text(LINE, encoding="utf-8")
        config = {**recipes.config_for_data("ner"), **KEYS, "train_file": str(train), "output_dir": f"{folder}/run"}
        recipe = recipes.get_recipe("ner")
        sys.setprofile(trace)
        loop.train(recipe, config)
    return trace


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", action="store_true", help="also list what is passed")
    options = parser.parse_args()
    trace = traced()
    of_files = {}
    for code, count in trace.functions.items():
        of_files.setdefault(trace.file_of(code), []).append(f"{code.co_name} {count}")
    if options.calls:
        for file in sorted(of_files):
            print(f"{file}: {', '.join(of_files[file])}")
        for (caller, callee), count in trace.moves.most_common():
            print(f"{count:5}  {caller} -> {callee}")
    operators = sum(
        count for folders, count in trace.moves.items() if not any(one.startswith("tasks") for one in folders)
    )
    moves = f"{trace.moves.total()} moves between folders, {operators} of them within paddle_rope"
    print(f"{len(of_files)} files, {len(trace.functions)} functions, {moves}")


if __name__ == "__main__":
    main()
