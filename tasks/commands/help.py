"""The ``--help`` of a verb in the language in use."""

import argparse

from tasks.common.language import tr, wrapped


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """argparse's formatter, whose help, titles and texts are messages; Chinese is wrapped by its columns."""

    def start_section(self, heading):
        super().start_section(tr(heading))

    def add_text(self, text):
        super().add_text(text if text in (None, argparse.SUPPRESS) else tr(text))

    def _get_help_string(self, action):
        return tr(action.help)

    def _split_lines(self, text, width):
        return super()._split_lines(text, width) if text.isascii() else wrapped(text, width)
