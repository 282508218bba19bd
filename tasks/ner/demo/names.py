"""Names and other slot fillings of the demo corpus, with the entities inside them."""

import random
from collections.abc import Sequence
from typing import NamedTuple

from tasks.ner.demo import lexicon as lexicon


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
    """Fills the slots of one part, ``"train"`` or ``"dev"``: the method (or filler list) ``x`` fills ``{x}``."""

    def __init__(self, part: str, rng: random.Random):
        self.rng = rng
        self.givens = lexicon.GIVEN_TRAIN if part == "train" else lexicon.GIVEN_DEV
        self.stems = lexicon.PLACE_TRAIN if part == "train" else lexicon.PLACE_DEV
        self.brands = lexicon.BRAND_TRAIN if part == "train" else lexicon.BRAND_DEV

    def fill(self, slot: str) -> Phrase:
        if slot in lexicon.FILLERS:
            return Phrase(self.rng.choice(lexicon.FILLERS[slot]))
        if slot in lexicon.TITLES:
            return entity("position", self.rng.choice(lexicon.TITLES[slot]))
        return getattr(self, slot)()

    def any_of(self, *slots: str) -> Phrase:
        return self.fill(self.rng.choice(slots))

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def number(self) -> Phrase:
        return Phrase(str(self.rng.randint(2, 999 if self.chance(0.4) else 60)))

    # person and position
    def person(self) -> Phrase:
        compound = self.chance(0.03)
        surname = self.rng.choice(lexicon.COMPOUND_SURNAMES if compound else lexicon.SURNAMES)
        # About one given name in six has a single character.
        singles = self.chance(1 / 6)
        given = self.rng.choice([name for name in self.givens if (len(name) == 1) == singles])
        return entity("person", surname, given)

    def title(self) -> Phrase:
        return self.any_of(*lexicon.TITLES)

    # place
    def _unit(self, suffixes: Sequence[str]) -> Phrase:
        return entity("place", self.rng.choice(self.stems), self.rng.choice(suffixes))

    def province(self) -> Phrase:
        return self._unit(["省"])

    def city(self) -> Phrase:
        return self._unit(["市"])

    def city_name(self) -> Phrase:
        return self._unit([""])

    def county(self) -> Phrase:
        return self._unit(["县"])

    def district(self) -> Phrase:
        return self._unit(["区"])

    def town(self) -> Phrase:
        return self._unit(["镇", "乡", "村"])

    def road(self) -> Phrase:
        return self._unit(lexicon.ROAD_SUFFIXES)

    def scenic(self) -> Phrase:
        stem = self.rng.choice(self.stems)
        wet = stem[1] in lexicon.WATER
        suffixes = lexicon.SCENIC_SUFFIXES if wet else lexicon.SCENIC_SUFFIXES + lexicon.WATER_SUFFIXES
        return entity("place", stem, self.rng.choice(suffixes))

    def facility(self) -> Phrase:
        town = self.any_of("city", "city_name", "city_name")
        return entity("place", town, self.rng.choice(lexicon.FACILITY_SUFFIXES))

    def address(self) -> Phrase:
        chain = self.rng.choice((("province", "city"), ("city", "district"), ("city", "county"), ("county", "town")))
        return join(*map(self.fill, chain))

    def place(self) -> Phrase:
        return self.any_of(
            "province", "city", "city_name", "county", "district", "town", "address", "scenic", "facility"
        )

    # organization
    def company(self) -> Phrase:
        start = self.any_of("city", "city_name", "province") if self.chance(0.5) else ""
        parts = map(self.rng.choice, (self.brands, lexicon.INDUSTRIES, lexicon.COMPANY_SUFFIXES))
        return entity("organization", start, *parts)

    def firm(self) -> Phrase:
        return entity("organization", self.rng.choice(self.brands), self.rng.choice(lexicon.FIRM_SUFFIXES))

    def maker(self) -> Phrase:
        return entity("organization", self.rng.choice(self.brands), self.rng.choice(lexicon.MAKER_SUFFIXES))

    def _seat(self) -> Phrase:
        return join(self.city(), self.district()) if self.chance(0.2) else self.any_of("city", "county", "district")

    def hospital(self) -> Phrase:
        if self.chance(0.4):
            return entity("organization", self._seat(), self.rng.choice(lexicon.ORDINALS), "人民医院")
        return entity("organization", self._seat(), self.rng.choice(lexicon.HOSPITAL_SUFFIXES))

    def university(self) -> Phrase:
        return entity("organization", self.city_name(), self.rng.choice(lexicon.UNIVERSITY_SUFFIXES))

    def school(self) -> Phrase:
        if self.chance(0.4):
            ordinal, suffix = self.rng.choice(lexicon.ORDINALS), self.rng.choice(("中学", "小学"))
            return entity("organization", self._seat(), ordinal, suffix)
        return entity("organization", self._seat(), self.rng.choice(lexicon.SCHOOL_SUFFIXES))

    def government(self) -> Phrase:
        seat = self.province() if self.chance(0.15) else self._seat()
        return entity("organization", seat, self.rng.choice(lexicon.BUREAUS))

    def police(self) -> Phrase:
        return entity("organization", self._seat(), "公安局")

    def court(self) -> Phrase:
        return entity("organization", self._seat(), self.rng.choice(lexicon.COURTS))

    def club(self) -> Phrase:
        parts = map(self.rng.choice, (self.brands, lexicon.CLUB_SUFFIXES))
        return entity("organization", self.city_name(), *parts)

    def studio(self) -> Phrase:
        return entity("organization", self.person(), self.rng.choice(lexicon.STUDIO_SUFFIXES))

    def user_group(self) -> Phrase:
        product = entity("product", self.rng.choice(self.brands), self._code())
        return entity("organization", product, self.rng.choice(lexicon.USER_GROUP_SUFFIXES))

    def faculty(self) -> Phrase:
        return entity("organization", self.university(), self.rng.choice(lexicon.FACULTIES))

    def ward(self) -> Phrase:
        return entity("organization", self.hospital(), self.rng.choice(lexicon.WARDS))

    def branch(self) -> Phrase:
        if self.chance(0.5):
            return entity("organization", self.firm(), self.city_name(), "分公司")
        return entity("organization", self.firm(), self.rng.choice(lexicon.BRANCHES))

    def department(self) -> Phrase:
        return self.any_of("ward", "faculty", "branch")

    def organization(self) -> Phrase:
        return self.any_of(
            "company", "firm", "hospital", "university", "school", "government", "club", "studio", "user_group",
            "faculty", "branch",
        )

    def _job(self, link: str) -> Phrase:
        """An organisation and a title that goes with it."""
        organization, title = self.rng.choice(lexicon.JOBS)
        return join(self.fill(organization), link, self.fill(title))

    def job(self) -> Phrase:
        return self._job("")

    def job_of(self) -> Phrase:
        return self._job("的")

    def job_as(self) -> Phrase:
        return self._job("当")

    # product
    def _code(self) -> str:
        ending = self.rng.choice(lexicon.CODE_ENDINGS)
        return self.rng.choice(lexicon.CODE_LETTERS) + str(self.rng.choice((*range(1, 13), 20, 30, 50, 100))) + ending

    def device(self) -> Phrase:
        category = self.rng.choice(lexicon.DEVICES)
        name = self.rng.choice((category, self._code(), category + self._code()))
        return entity("product", self.rng.choice(self.brands), name)

    def goods(self) -> Phrase:
        return entity("product", self.rng.choice(self.brands), self.rng.choice(lexicon.GOODS))

    def medicine(self) -> Phrase:
        return entity("product", self.rng.choice(self.brands), self.rng.choice(lexicon.MEDICINES))

    def specialty(self) -> Phrase:
        return entity("product", self.city_name(), self.rng.choice(lexicon.SPECIALTIES))

    def app(self) -> Phrase:
        version = self.rng.choice(("", "", f"{self.rng.randint(1, 9)}.{self.rng.randint(0, 9)}"))
        return entity("product", self.rng.choice(self.brands), self.rng.choice(lexicon.APPS), version)

    def product(self) -> Phrase:
        return self.any_of("device", "device", "goods", "specialty")

    # time
    def _year(self, first: int = 2005, last: int = 2024) -> str:
        return f"{self.rng.randint(first, last)}年"

    def _month_day(self) -> str:
        return f"{self.rng.randint(1, 12)}月{self.rng.randint(1, 28)}日"

    def _hour(self) -> str:
        start, hours = self.rng.choice((("上午", range(8, 12)), ("下午", range(1, 6)), ("晚上", range(7, 10))))
        return f"{start}{self.rng.choice(hours)}点{self.rng.choice(lexicon.HOUR_MINUTES)}"

    def date(self, first: int = 2005, last: int = 2024) -> Phrase:
        """An absolute date."""
        year, month_day = self._year(first, last), self._month_day()
        month = month_day.split("月")[0] + "月"
        return entity("time", self.rng.choice((year + month_day, year + month_day, year + month, year)))

    def birth(self) -> Phrase:
        return self.date(1950, 1999)

    def earlier(self) -> Phrase:
        return self.date(1995, 2009)

    def later(self) -> Phrase:
        return self.date(2010, 2024)

    def coming(self) -> Phrase:
        """An absolute date to come."""
        return entity("time", self.rng.choice((self._year(2026, 2029), "")), self._month_day())

    def past(self) -> Phrase:
        """A day not after today."""
        day = self.rng.choice(lexicon.PAST_DAYS)
        last_year = self.rng.choice(lexicon.PAST_YEARS[:2]) + f"{self.rng.randint(1, 12)}月"
        part = self.rng.choice(lexicon.DAY_PARTS)
        return entity("time", self.rng.choice((day, day, day + part, self._month_day(), last_year)))

    def future(self) -> Phrase:
        """A day after today."""
        day = self.rng.choice(lexicon.FUTURE_DAYS)
        part = self.rng.choice(lexicon.DAY_PARTS[:3])
        date = self._month_day() + self.rng.choice(("", self._hour()))
        return entity("time", self.rng.choice((day, day, day + part, day + self._hour(), date)))

    def clock(self) -> Phrase:
        """A time of day."""
        weekday = "周" + self.rng.choice("一二三四五六日")
        digits = f"{self.rng.randint(8, 21)}:{self.rng.choice(('00', '15', '30', '45'))}"
        return entity("time", self.rng.choice((self._hour(), weekday + self._hour(), weekday + "上午", digits)))

    def period(self) -> Phrase:
        """A season, part of a year or holiday."""
        year = self.rng.choice((self._year(), *lexicon.PAST_YEARS))
        return entity("time", self.rng.choice((year, "", year)), self.rng.choice(lexicon.SEASONS + lexicon.HOLIDAYS))
