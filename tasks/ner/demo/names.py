"""Names and other slot fillings of the demo corpus, with the entities inside them."""

import random
from typing import NamedTuple

from tasks.ner.demo.lexicon import LEXICON, OPEN_CLASSES


class Phrase(NamedTuple):
    """A text with its entities: ``spans`` are ``(start, end, type)``, end inclusive."""

    text: str
    spans: tuple = ()


def join(*parts) -> Phrase:
    """Concatenate strings and phrases; the spans move along."""
    text, spans = "", []
    for part in parts:
        if isinstance(part, Phrase):
            spans += [(start + len(text), end + len(text), kind) for start, end, kind in part.spans]
            part = part.text
        text += part
    return Phrase(text, tuple(spans))


def entity(kind: str, *parts) -> Phrase:
    """Concatenate the parts into one entity of type ``kind`` that keeps the entities inside it."""
    text, spans = join(*parts)
    return Phrase(text, ((0, len(text) - 1, kind),) + spans)


class NameMaker:
    """Fills the slots of one part of the corpus, ``"train"`` or ``"dev"``.

    ``{x}`` is filled by what ``lexicon.yaml`` has under ``x``, or else by the method ``x``.
    """

    def __init__(self, part: str, rng: random.Random):
        self.rng = rng
        self.words = {**LEXICON["lists"], **LEXICON["times"], **OPEN_CLASSES[part]}

    def fill(self, slot: str) -> Phrase:
        if slot in LEXICON["fillers"]:
            return Phrase(self.rng.choice(LEXICON["fillers"][slot]))
        if slot in LEXICON["titles"]:
            return entity("position", self.rng.choice(LEXICON["titles"][slot]))
        if slot in LEXICON["names"]:
            return self.name(*LEXICON["names"][slot])
        if slot in LEXICON["groups"]:
            return self.any_of(*LEXICON["groups"][slot])
        if slot in LEXICON["dates"]:
            return self.date(*LEXICON["dates"][slot])
        if slot in LEXICON["job_links"]:
            return self._job(LEXICON["job_links"][slot])
        return getattr(self, slot)()

    def name(self, kind: str, *parts) -> Phrase:
        """An entity of parts as those in ``lexicon.yaml``."""
        return entity(kind, *map(self._part, parts))

    def _part(self, part):
        if isinstance(part, list) or part in self.words:
            return self.word(part)
        return self.fill(part) if part.isascii() else part

    def word(self, words) -> str:
        """One of the words, or of the list of this name."""
        return self.rng.choice(self.words[words] if isinstance(words, str) else words)

    def any_of(self, *slots: str) -> Phrase:
        return self.fill(self.rng.choice(slots))

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def number(self) -> Phrase:
        return Phrase(str(self.rng.randint(2, 999 if self.chance(0.4) else 60)))

    # person and position
    def person(self) -> Phrase:
        compound = self.chance(0.03)
        surname = self.rng.choice(LEXICON["compound_surnames" if compound else "surnames"])
        # About one given name in six has a single character.
        singles = self.chance(1 / 6)
        given = self.rng.choice([name for name in self.words["givens"] if (len(name) == 1) == singles])
        return entity("person", surname, given)

    def title(self) -> Phrase:
        return self.any_of(*LEXICON["titles"])

    def _job(self, link: str) -> Phrase:
        """An organization and a title that goes with it."""
        organization, title = self.rng.choice(LEXICON["jobs"])
        return join(self.fill(organization), link, self.fill(title))

    # place
    def scenic(self) -> Phrase:
        stem = self.word("stems")
        dry = [] if stem[1] in LEXICON["wet_endings"] else self.words["water_suffixes"]
        return entity("place", stem, self.word(self.words["scenic_suffixes"] + dry))

    def address(self) -> Phrase:
        chain = self.rng.choice((("province", "city"), ("city", "district"), ("city", "county"), ("county", "town")))
        return join(*map(self.fill, chain))

    def seat(self) -> Phrase:
        """The place of a public body."""
        if self.chance(0.2):
            return join(self.fill("city"), self.fill("district"))
        return self.any_of("city", "county", "district")

    # organization
    def company(self) -> Phrase:
        start = self.any_of("city", "city_name", "province") if self.chance(0.5) else ""
        return entity("organization", start, *map(self.word, ("brands", "industries", "company_suffixes")))

    def hospital(self) -> Phrase:
        suffixes = ("ordinals", "人民医院") if self.chance(0.4) else ("hospital_suffixes",)
        return self.name("organization", "seat", *suffixes)

    def school(self) -> Phrase:
        if self.chance(0.4):
            ordinal, suffix = self.word("ordinals"), self.word(("中学", "小学"))
            return entity("organization", self.seat(), ordinal, suffix)
        return self.name("organization", "seat", "school_suffixes")

    def government(self) -> Phrase:
        return self.name("organization", "province" if self.chance(0.15) else "seat", "bureaus")

    def branch(self) -> Phrase:
        ending = ("city_name", "分公司") if self.chance(0.5) else ("branches",)
        return self.name("organization", "firm", *ending)

    # product
    def code(self) -> str:
        ending = self.word("code_endings")
        return self.word("code_letters") + str(self.rng.choice((*range(1, 13), 20, 30, 50, 100))) + ending

    def device(self) -> Phrase:
        category = self.word("devices")
        name = self.rng.choice((category, self.code(), category + self.code()))
        return entity("product", self.word("brands"), name)

    def app(self) -> Phrase:
        version = self.rng.choice(("", "", f"{self.rng.randint(1, 9)}.{self.rng.randint(0, 9)}"))
        return entity("product", self.word("brands"), self.word("apps"), version)

    # time
    def _year(self, first: int = 2005, last: int = 2024) -> str:
        return f"{self.rng.randint(first, last)}年"

    def _month_day(self) -> str:
        return f"{self.rng.randint(1, 12)}月{self.rng.randint(1, 28)}日"

    def _hour(self) -> str:
        start, hours = self.rng.choice((("上午", range(8, 12)), ("下午", range(1, 6)), ("晚上", range(7, 10))))
        return f"{start}{self.rng.choice(hours)}点{self.word('hour_minutes')}"

    def date(self, first: int, last: int) -> Phrase:
        """An absolute date."""
        year, month_day = self._year(first, last), self._month_day()
        month = month_day.split("月")[0] + "月"
        return entity("time", self.rng.choice((year + month_day, year + month_day, year + month, year)))

    def coming(self) -> Phrase:
        """An absolute date to come."""
        return entity("time", self.rng.choice((self._year(2026, 2029), "")), self._month_day())

    def past(self) -> Phrase:
        """A day not after today."""
        day = self.word("past_days")
        last_year = self.word(self.words["past_years"][:2]) + f"{self.rng.randint(1, 12)}月"
        part = self.word("day_parts")
        return entity("time", self.rng.choice((day, day, day + part, self._month_day(), last_year)))

    def future(self) -> Phrase:
        """A day after today."""
        day = self.word("future_days")
        part = self.word(self.words["day_parts"][:3])
        date = self._month_day() + self.rng.choice(("", self._hour()))
        return entity("time", self.rng.choice((day, day, day + part, day + self._hour(), date)))

    def clock(self) -> Phrase:
        """A time of day."""
        weekday = "周" + self.rng.choice("一二三四五六日")
        digits = f"{self.rng.randint(8, 21)}:{self.rng.choice(('00', '15', '30', '45'))}"
        return entity("time", self.rng.choice((self._hour(), weekday + self._hour(), weekday + "上午", digits)))

    def period(self) -> Phrase:
        """A season, part of a year or holiday."""
        year = self.rng.choice((self._year(), *self.words["past_years"]))
        seasons = self.words["seasons"] + self.words["holidays"]
        return entity("time", self.rng.choice((year, "", year)), self.word(seasons))
