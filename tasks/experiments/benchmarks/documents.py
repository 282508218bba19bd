"""Many documents: a large corpus drawn from real sentences, and the speed of the ways to predict it."""

import json
import math
import random
import time
from pathlib import Path

from tasks.common.errors import InputError
from tasks.common.files import atomic_folder, write_json_lines
from tasks.common.reports.tables import as_markdown
from tasks.common.runs.fingerprints import digest_of
from tasks.common.texts.documents import SENTENCE_END, read_plain_texts
from tasks.scaling.run import SUMMARY_FILE, run_documents

SHORTEST_SENTENCE = 4  # characters
SECONDS_A_DAY = 24 * 60 * 60
LOAD = 0.7  # of the time, that a machine which is to keep up should be at work


def write_corpus(folder, text_files, records, files, seed):
    """Write sentences, drawn with replacement from those of real texts, as JSON lines in several files.

    Args:
        folder: new or empty folder.
        text_files: paths of plain text or JSON lines with ``text``.
        records: number of sentences in all.
        files: number of files.
        seed: of the choice; the same seed gives the same corpus.

    Returns:
        Number of different sentences to draw from.

    Raises:
        InputError: a file cannot be read, has no sentences, or the folder cannot be made.
    """
    if not 1 <= files <= records:
        raise InputError(f"--files {files}: must be from 1 to --records, {records}")
    texts = [text for path in text_files for text in read_plain_texts(path)]
    sentences = sorted({sentence for text in texts for sentence in _sentences(text)})
    if not sentences:
        raise InputError(f"{text_files[0]}: no sentence of {SHORTEST_SENTENCE} characters in it; give longer texts")
    draw = random.Random(seed)
    Path(folder).parent.mkdir(parents=True, exist_ok=True)
    with atomic_folder(folder) as made:
        for number in range(files):
            first, last = (records * place // files for place in (number, number + 1))
            drawn = ({"id": place, "text": draw.choice(sentences)} for place in range(first, last))
            write_json_lines(made / f"sentences-{number:03}.jsonl", drawn)
    return len(sentences)


def _sentences(text):
    start = 0
    for match in [*SENTENCE_END.finditer(text), None]:
        end = match.end() if match else len(text)
        sentence = text[start:end].strip()
        if len(sentence) >= SHORTEST_SENTENCE:
            yield sentence
        start = end


def measure_ways(job_of, ways, output, part_records):
    """Predict the corpus ``output/input`` in several ways, and say how fast each is.

    Args:
        job_of: function of the folder of results and the number of processes: a :class:`tasks.scaling.worker.Job`.
        ways: dict from a name to (number of processes, what does the parts).
        output: folder, with the corpus in it; the results of each way get a folder of its name there. Those that are
            finished are not computed again, and the time is that of the call that finished them.
        part_records: records of a part.

    Returns:
        str, Markdown: documents per second, memory of the largest process in the first and in the last quarter, and how
        many such processes a million documents a day need.

    Raises:
        InputError: as :func:`tasks.scaling.run.run_documents`, or the ways gave different results.
    """
    rows, digests = [], {}
    for name, (processes, run_parts) in ways.items():
        folder = Path(output) / name
        began = time.perf_counter()
        status = run_documents(job_of(str(folder), processes), [str(Path(output) / "input")], part_records, run_parts)
        if status:
            raise SystemExit(status)
        seconds = time.perf_counter() - began
        summary = json.loads((folder / SUMMARY_FILE).read_text(encoding="utf-8"))
        digests[name] = [digest_of(path) for path in sorted(folder.glob("part-*.jsonl"))]
        rows.append(_row(name, processes, summary, seconds))
    different = [name for name in digests if digests[name] != next(iter(digests.values()))]
    note = f"The results of {', '.join(different)} differ from the first." if different else "All results are the same."
    return f"{as_markdown(rows, list(rows[0]))}\n{note}"


def _row(name, processes, summary, seconds):
    call = summary["last_call"]
    speed = call["documents_per_second"]
    needed = 1e6 / SECONDS_A_DAY / (speed / processes) / LOAD
    return {
        "way": name,
        "documents": f"{call['answered']:,}",
        "seconds": round(call["seconds"]),
        "with start": round(max(seconds, call["seconds"])),
        "documents/s": round(speed, 1),
        "MB, first quarter": call["megabytes_first"],
        "MB, last quarter": call["megabytes_last"],
        "million/day": round(speed * SECONDS_A_DAY / 1e6, 2),
        f"processes for 1 million/day at {LOAD:.0%} load": max(1, math.ceil(needed)),
    }
