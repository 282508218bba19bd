"""The language of messages: English as they stand in the code, or Chinese from the catalogue in ``tasks/locale``.

What programs read (logs, JSON, CSV, answers over HTTP) is English always: ``str`` of a message and of an error. Only what
a person reads goes through :func:`tr`: printed lines, ``--help``, the error that ends a command.
"""

import gettext
import os
from pathlib import Path

LANGUAGES = ("en", "zh")
DOMAIN = "paddle_rope"
LOCALE = Path(__file__).resolve().parents[1] / "locale"
VARIABLES = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")  # in the order in which gettext asks them

_catalogue = gettext.NullTranslations()


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


def tr(template: object, /, **values: object) -> str:
    """A message in the language in use, for people to read.

    Args:
        template: as for :class:`Message`; or a message, or an error that has one as its attribute ``message``.
        values: of its fields.
    """
    message = Message(template, **values) if values else getattr(template, "message", template)
    if not isinstance(message, Message):
        return _translated(str(message))
    if not message.values:
        return _translated(message.template)
    spoken = {name: tr(value) if _has_message(value) else value for name, value in message.values.items()}
    return _translated(message.template).format(**spoken)


def _has_message(value):
    return isinstance(getattr(value, "message", value), Message)


def _translated(text):
    return _catalogue.gettext(text) if text else text  # gettext's translation of nothing is the head of the catalogue


def use(language: str) -> None:
    """Speak one of ``LANGUAGES`` from here on in this process, argparse too."""
    global _catalogue
    if language == "zh":
        _catalogue = gettext.translation(DOMAIN, LOCALE, ["zh"])
        gettext.bindtextdomain(DOMAIN, LOCALE)
        gettext.textdomain(DOMAIN)
    else:
        _catalogue = gettext.NullTranslations()
        gettext.textdomain("messages")  # gettext's own default


def of_environment() -> str:
    """``zh`` where the locale is Chinese, else ``en``."""
    given = next(filter(None, map(os.environ.get, VARIABLES)), "")
    for name in given.split(":"):
        if name[:2].lower() == "zh":
            return "zh"
        if name[:2].lower() == "en" or name.partition(".")[0] in ("C", "POSIX"):
            break
    return "en"
