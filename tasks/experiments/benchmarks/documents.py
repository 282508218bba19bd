"""Many documents in several processes and on Ray: a corpus drawn from real sentences, and the speed of each way."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tasks.common.errors import InputError
from tasks.common.files import atomic_folder, write_json_lines
from tasks.common.reports.tables import as_markdown
from tasks.common.runs.fingerprints import digest_of
from tasks.common.texts.plain_texts import SENTENCE_END, read_plain_texts
from tasks.experiments.benchmarks.measuring import timed
from tasks.scaling.run import SUMMARY_FILE, run_documents

SHORTEST_SENTENCE = 4  # characters
SECONDS_A_DAY = 24 * 60 * 60
LOAD = 0.7  # of the time, that a machine which is to keep up should be at work


def write_corpus(folder: Path, text_files: Sequence[str], records: int, files: int, seed: int) -> int:
    """Write sentences, drawn with replacement from those of real texts, as JSON lines in several files.

    Args:
        folder: new folder.
        text_files: paths of plain text or JSON lines with ``text``.
        records: number of sentences in all.
        files: number of files.
        seed: of the choice; the same seed gives the same corpus.

    Returns:
        Number of different sentences to draw from.

    Raises:
        InputError: a file cannot be read, has no sentences, or the folder cannot be made.
    """
    if files > records:
        raise InputError(f"--files {files}: must be from 1 to --records, {records}")
    texts = [text for path in text_files for text in read_plain_texts(path)]
    sentences = sorted({sentence for text in texts for sentence in _sentences(text)})
    if not sentences:
        raise InputError(f"{text_files[0]}: no sentence of {SHORTEST_SENTENCE} characters in it; give longer texts")
    draw = random.Random(seed)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with atomic_folder(folder) as made:
        for number in range(files):
            first, last = (records * place // files for place in (number, number + 1))
            drawn = ({"id": place, "text": draw.choice(sentences)} for place in range(first, last))
            write_json_lines(made / f"sentences-{number:03}.jsonl", drawn)
    return len(sentences)


def _sentences(text):
    ends = [0, *(match.end() for match in SENTENCE_END.finditer(text)), len(text)]
    parts = (text[start:end].strip() for start, end in itertools.pairwise(ends))
    return [part for part in parts if len(part) >= SHORTEST_SENTENCE]


def measure_ways(
    job_of: Callable[[str, int], Any], ways: dict[str, tuple[int, Callable]], output: str | Path, part_records: int
) -> str:
    """Predict the corpus ``output/input`` in several ways, each into a folder of its name in ``output``. What is finished
    is not computed again; its time is that of the call that finished it.

    Args:
        job_of: function of the folder of results and the number of processes: a :class:`tasks.scaling.worker.Job`.
        ways: name -> (number of processes, what does the parts).
        output: folder.
        part_records: records of a part.

    Returns:
        Markdown: documents per second, memory of the largest process in the first and in the last quarter, how many
        such processes a million documents a day need, and whether all gave the same results.
    """
    rows, digests = [], {}
    for name, (processes, run_parts) in ways.items():
        folder, statuses = Path(output) / name, []
        job, sources = job_of(str(folder), processes), [str(Path(output) / "input")]
        seconds = timed(lambda: statuses.append(run_documents(job, sources, part_records, run_parts)))["seconds"]
        if statuses[0]:
            raise SystemExit(statuses[0])
        call = json.loads((folder / SUMMARY_FILE).read_text(encoding="utf-8"))["last_call"]
        digests[name] = [digest_of(path) for path in sorted(folder.glob("part-*.jsonl"))]
        a_day = call["documents_per_second"] * SECONDS_A_DAY
        rows.append(
            {
                "way": name,
                "documents": f"{call['answered']:,}",
                "seconds": round(call["seconds"]),
                "with start": round(max(seconds, call["seconds"])),
                "documents/s": round(call["documents_per_second"], 1),
                "MB, first quarter": call["megabytes_first"],
                "MB, last quarter": call["megabytes_last"],
                "million/day": round(a_day / 1e6, 2),
                f"processes for 1 million/day at {LOAD:.0%} load": math.ceil(1e6 / (a_day / processes * LOAD)),
            }
        )
    different = [name for name in digests if digests[name] != next(iter(digests.values()))]
    note = f"The results of {', '.join(different)} differ from the first." if different else "All results are the same."
    return f"{as_markdown(rows, list(rows[0]))}\n{note}"
