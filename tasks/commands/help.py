"""The ``--help`` of a verb in the language in use."""

import argparse
from unicodedata import east_asian_width

from tasks.common.language import tr


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """argparse's formatter, whose help, titles and texts are messages; Chinese is wrapped by its columns."""

    def start_section(self, heading):
        super().start_section(tr(heading))

    def add_text(self, text):
        super().add_text(text if text in (None, argparse.SUPPRESS) else tr(text))

    def _get_help_string(self, action):
        return tr(action.help)

    def _split_lines(self, text, width):
        if text.isascii():
            return super()._split_lines(text, width)
        lines, columns = [""], 0
        for character in " ".join(text.split()):
            columns += 1 + (east_asian_width(character) in "WF")
            if columns > width and character not in "，。；：、）":  # which begin no line
                lines, columns = [*lines, ""], 1 + (east_asian_width(character) in "WF")
            lines[-1] += character
        return lines
