"""The language of messages: English as they stand in the code, or Chinese from the catalogue in ``tasks/locale``.

What programs read (logs, JSON, CSV, answers over HTTP) is English always: ``str`` of a message and of an error. Only
what a person reads goes through :func:`tr`: printed lines, ``--help``, the error that ends a command.
"""

import gettext
import os
from pathlib import Path
from unicodedata import east_asian_width

LANGUAGES = ("en", "zh")
DOMAIN = "paddle_rope"
LOCALE = Path(__file__).resolve().parents[1] / "locale"
VARIABLES = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")  # in the order in which gettext asks them

_catalogue = gettext.NullTranslations()
_language = "en"


class Message(str):
    """English text that :func:`tr` can say in another language; elsewhere it is the English string.

    Args:
        template: English text, the key of its translation; a format for ``values``. Without them it stands as it is,
            with its braces.
        values: of the fields of ``template``; those that are messages themselves are translated with it.
    """

    def __new__(cls, template: str, /, **values: object) -> "Message":
        message = super().__new__(cls, template.format(**values) if values else template)
        message.template, message.values = template, values
        return message

    def __reduce__(self):
        """For other processes: errors and other objects among the values may not travel, so their texts do."""
        simple = (str, int, float, type(None), os.PathLike, list, tuple, dict)
        values = {
            name: value if isinstance(value, simple) or isinstance(_message_of(value), Message) else str(value)
            for name, value in self.values.items()
        }
        return _restored, (str(self), self.template, values)


def _restored(text, template, values):
    message = str.__new__(Message, text)
    message.template, message.values = template, values
    return message


def tr(template: object, /, **values: object) -> str:
    """A message in the language in use, for people to read.

    Args:
        template: as for :class:`Message`; or a message, or an error that has one as its attribute ``message``.
        values: of its fields.
    """
    message = Message(template, **values) if values else _message_of(template)
    if not isinstance(message, Message):
        return _translated(str(message))
    if not message.values:
        return _translated(message.template)
    values = {name: (value, _message_of(value)) for name, value in message.values.items()}
    spoken = {name: tr(told) if isinstance(told, Message) else value for name, (value, told) in values.items()}
    return _translated(message.template).format(**spoken)


def _message_of(value):
    """The message of an error, or the value itself."""
    message = getattr(value, "message", None)
    return message if isinstance(message, Message) else value


def _translated(text):
    return _catalogue.gettext(text) if text else text  # gettext's translation of nothing is the head of the catalogue


def use(language: str) -> None:
    """Speak one of ``LANGUAGES`` from here on in this process, argparse too."""
    global _catalogue, _language
    _language = language
    if language == "zh":
        _catalogue = gettext.translation(DOMAIN, LOCALE, ["zh"])
        gettext.bindtextdomain(DOMAIN, LOCALE)
        gettext.textdomain(DOMAIN)
    else:
        _catalogue = gettext.NullTranslations()
        gettext.textdomain("messages")  # gettext's own default


def language_in_use() -> str:
    """``en``, or what :func:`use` was given last."""
    return _language


def of_environment() -> str:
    """``zh`` where the locale is Chinese, else ``en``."""
    given = next(filter(None, map(os.environ.get, VARIABLES)), "")
    for name in given.split(":"):
        if name[:2].lower() == "zh":
            return "zh"
        if name[:2].lower() == "en" or name.partition(".")[0] in ("C", "POSIX"):
            break
    return "en"


def wrapped(text: str, width: int) -> list[str]:
    """Lines of Chinese of at most ``width`` columns, of which its characters take two."""
    lines, columns = [""], 0
    for character in " ".join(text.split()):
        size = 1 + (east_asian_width(character) in "WF")
        columns += size
        if columns > width and character not in "，。；：、）":  # which begin no line
            lines, columns = [*lines, ""], size
        lines[-1] += character
    return lines


def option_of(words: list[str]) -> tuple[str | None, list[str]]:
    """(what ``--language`` says among the words of a command, or None; the other words). It may stand anywhere before
    ``--``."""
    end = words.index("--") if "--" in words else len(words)
    for place, word in enumerate(words[:end]):
        option, equals, name = word.partition("=")
        if option == "--language":
            name, behind = (name, place + 1) if equals else ("".join(words[place + 1 : end][:1]), place + 2)
            return name, words[:place] + words[behind:]
    return None, words
