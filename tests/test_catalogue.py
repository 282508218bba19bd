"""Every message of the code has a Chinese translation, every translation a message, and both the same values."""

import re

import pytest
from babel.messages.mofile import read_mo

from tests import catalogue

PLURAL = re.compile(r"(\w+_)?s")  # values that are the English plural's s


@pytest.fixture(scope="module")
def translations():
    return {message.id: message.string for message in catalogue.read() if message.id}


def fields(text):
    """The fields of a template, with their conversions and formats left out."""
    return set(re.findall(r"\{(\w+)[^{}]*\}|%\((\w+)\)", re.sub(r"\{\{|\}\}", "", text)))


def test_each_message_has_a_translation_and_each_translation_a_message(translations):
    found, lost = catalogue.messages()
    assert lost == [], "f-strings cannot be translated: write a template and its values"
    hint = "python -m tests.catalogue gives each an empty entry in paddle_rope.po; fill it, and run it again"
    assert sorted(set(found) - set(translations)) == [], hint
    assert sorted(set(translations) - set(found)) == []
    assert [text for text, translation in translations.items() if not translation] == [], hint


def test_templates_and_translations_have_the_same_values(translations):
    for text, translation in translations.items():
        english = {found for found in fields(text) if not PLURAL.fullmatch(found[0])}
        assert fields(translation) == english, text
        assert text.count("%s") == translation.count("%s"), text


def test_templates_have_the_fields_whose_values_are_given():
    calls = list(catalogue.template_calls())
    assert len(calls) > 300
    for place, text, names in calls:
        assert {name for name, _ in fields(text)} == names, place


def test_translations_can_be_formatted(translations):
    templates = {text: names for _, text, names in catalogue.template_calls()}
    for text in templates:
        if text in translations:
            values = {name: Anything() for name, _ in fields(text)}
            assert translations[text].format(**values), text


class Anything:
    """A value of any format."""

    def __format__(self, specification):
        return "x"


def test_translations_are_written_as_chinese_is(translations):
    chinese = "[\u4e00-\u9fff]"
    for text, translation in translations.items():
        assert not re.search(f"{chinese}[,;!?]|{chinese}:(?! )|{chinese}\\(", translation), translation
        breaks = [re.findall(r"^\n+|\n+$", one) for one in (text, translation)]
        assert breaks[0] == breaks[1], translation


def test_places_and_options_are_kept(translations):
    for text, translation in translations.items():
        place = re.match(r"\{\w+\}(:\{\w+\}|:1)?: |--\{?\w+\}? \{\w+\}: ", text)
        if place and not text.startswith(("{name}: {", "{title}: ", "{split}: ", "{folder}: {records")):
            assert translation.startswith((place[0], place[0].rstrip(": ") + "：")), translation
        for option in re.findall(r"--[a-z_]+", text):
            assert option in translation, (option, translation)


def test_compiled_catalogue_is_that_of_the_text(translations):
    with open(catalogue.MO, "rb") as file:
        compiled = {message.id: message.string for message in read_mo(file) if message.id}
    assert compiled == translations
