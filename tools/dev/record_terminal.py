"""Records a command and draws the recording as an animated SVG, which GitHub plays in a README.

    python tools/dev/record_terminal.py record quickstart.cast bash tools/quickstart.sh
    python tools/dev/record_terminal.py draw quickstart.cast docs/figures/quickstart.svg

The recording is an asciicast, version 2 (https://docs.asciinema.org/manual/asciicast/v2/): what the command printed and
when. The drawing shows every line of it, wrapped, with pauses shortened, and a record of ``paddle-rope predict`` as its
text with the entities in boxes, as ``--html`` does. A viewer without animation shows its end.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import unicodedata
from html import escape
from pathlib import Path

COLUMNS, ROWS = 100, 26
WIDE = ' class="w"'  # Chinese characters, in a larger font
WIDTH, HEIGHT = 8.4, 18  # pixels of a column and of a row
SECONDS = 22  # of the animation, without the pause at its end
PAUSE = 6  # seconds at the end
COLORS = ["#e5a84b", "#61afef", "#98c379", "#c678dd", "#e06c75", "#56b6c2"]  # of the types of entities, as they come
LONGEST_WAIT = 0.9  # seconds that a wait between two lines takes at most, before all is scaled to SECONDS


def record(path, command):
    """Run ``command``, show what it prints, and write it with its times to ``path``."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    began = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", env=environment
    )
    with open(path, "w", encoding="utf-8") as file:
        header = {"version": 2, "width": COLUMNS, "height": ROWS, "title": " ".join(command)}
        print(json.dumps(header), file=file)
        for line in process.stdout:
            line = line.replace(str(Path.home()), "~")
            print(line, end="", flush=True)
            event = [round(time.monotonic() - began, 3), "o", line]
            print(json.dumps(event, ensure_ascii=False), file=file, flush=True)
    return process.wait()


def columns(character):
    """How many columns of a terminal a character takes."""
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def wrapped(line):
    """The rows of at most COLUMNS columns that a line takes."""
    rows, row, used = [], "", 0
    for character in line.rstrip("\n").split("\r")[-1]:
        if used + columns(character) > COLUMNS:
            rows.append(row)
            row, used = "", 0
        row += character
        used += columns(character)
    return [*rows, row]


def runs_of(row):
    """(first column, columns, text) of each run of characters of one width: fonts do not keep 2 : 1 by themselves."""
    found, at = [], 0
    for character in row:
        width = columns(character)
        if found and found[-1][1] // len(found[-1][2]) == width:
            first, taken, text = found[-1]
            found[-1] = (first, taken + width, text + character)
        else:
            found.append((at, width, character))
        at += width
    return [run for run in found if run[2].strip()]


def entities_of(line):
    """(text, entities) of a record of ``predict``, else None."""
    if not line.startswith('{"text":'):
        return None
    record = json.loads(line)
    return record["text"], record["entities"]


def boxes(text, entities, y, colors):
    """The boxes of a text's entities, the outer ones first, with their types below."""
    places = [0]
    for character in text:
        places.append(places[-1] + columns(character))
    found = []
    for entity in sorted(entities, key=lambda entity: entity["start"] - entity["end"]):
        start, end = entity["start"], entity["end"]
        inside = [other for other in entities if start <= other["start"] and other["end"] <= end and other != entity]
        level = len(inside)  # 0 for the innermost box
        color = colors.setdefault(entity["type"], COLORS[len(colors) % len(COLORS)])
        pad = 2 * level
        left, width = places[start] * WIDTH - 1, (places[end] - places[start]) * WIDTH + 2
        found += [
            f'<rect x="{left:.1f}" y="{y - 13 - pad}" width="{width:.1f}" height="{17 + 2 * pad}" rx="3" '
            f'fill="{color}" fill-opacity="0.2" stroke="{color}"/>',
            f'<text class="l" x="{left:.1f}" y="{y + 17 + 11 * level}" style="fill:{color}">{entity["type"]}</text>',
        ]
    return "".join(found)


def draw(source, target):
    """Write the recording ``source`` as an SVG."""
    with open(source, encoding="utf-8") as file:
        header, *events = map(json.loads, file)
    times, rows, now, before = [0.0], [f"$ {header['title']}"], 0.8, 0.0
    for at, _, text in events:
        now += min(at - before, LONGEST_WAIT)
        before = at
        for row in [text] if entities_of(text) else wrapped(text):
            rows.append(row)
            times.append(now)
            if entities_of(text):  # room for the boxes
                rows += [""] * 2
                times += [now] * 2
    scale = SECONDS / now
    total = SECONDS + PAUSE
    hidden = max(0, len(rows) - ROWS)
    width, height = COLUMNS * WIDTH + 24, ROWS * HEIGHT + 48

    scrolled = {}  # share of the time -> rows above the window
    for number, at in enumerate(times):
        scrolled[round(100 * at * scale / total, 2)] = max(0, number + 1 - ROWS)
    steps = "".join(f"{share}%{{transform:translateY({-HEIGHT * up}px)}}" for share, up in scrolled.items())
    lines, colors = [], {}
    for number, (row, at) in enumerate(zip(rows, times)):
        y = number * HEIGHT + 14
        share = round(100 * at * scale / total, 2)
        drawn = ""
        if record := entities_of(row):
            y += 4
            row, drawn = record[0], boxes(*record, y, colors)
        kind = "p" if number == 0 else "e" if row.startswith("epoch") else "t"
        parts = "".join(
            f'<tspan x="{first * WIDTH:.1f}" textLength="{taken * WIDTH:.1f}"'
            f"{WIDE if taken > len(text) else ''}>{escape(text)}</tspan>"
            for first, taken, text in runs_of(row)
        )
        if parts:
            name = "" if not share else f"@keyframes r{number}{{0%{{opacity:0}}{share}%{{opacity:1}}}}"
            play = f"animation:r{number} {total}s step-end infinite" if share else "animation:none"
            lines.append((name, f'<g style="{play}">{drawn}<text class="{kind}" y="{y}">{parts}</text></g>'))
    frames = "".join(name for name, _ in lines)
    body = "\n".join(text for _, text in lines)
    font = "'DejaVu Sans Mono', Menlo, Consolas, 'Noto Sans Mono CJK SC', 'Microsoft YaHei', 'PingFang SC', monospace"
    with open(target, "w", encoding="utf-8") as file:
        file.write(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img">\n'
            f"<title>{escape(header['title'])}</title>\n"
            f"<style>text{{font:13px {font};white-space:pre;fill:#d8dee9}}"
            f".w{{font-size:16px}}.l{{font-size:10px}}.p{{fill:#8fd18f}}.e{{fill:#f2c86b}}"
            f"@keyframes up{{{steps}}}#s{{transform:translateY({-HEIGHT * hidden}px);"
            f"animation:up {total}s step-end infinite}}{frames}</style>\n"
            f'<rect width="100%" height="100%" rx="8" fill="#1f2430"/>\n'
            '<circle cx="18" cy="16" r="5" fill="#e06c75"/><circle cx="36" cy="16" r="5" fill="#e5c07b"/>'
            '<circle cx="54" cy="16" r="5" fill="#98c379"/>\n'
            f'<svg x="12" y="34" width="{COLUMNS * WIDTH:.0f}" height="{ROWS * HEIGHT}"><g id="s">\n'
            f"{body}\n</g></svg>\n"
            "</svg>\n"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    recording = verbs.add_parser("record")
    recording.add_argument("cast")
    recording.add_argument("command", nargs=argparse.REMAINDER)
    drawing = verbs.add_parser("draw")
    drawing.add_argument("cast")
    drawing.add_argument("svg")
    given = parser.parse_args()
    if given.verb == "draw":
        draw(given.cast, given.svg)
        return 0
    return record(given.cast, given.command)


if __name__ == "__main__":
    sys.exit(main())
