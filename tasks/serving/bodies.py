"""What requests send besides texts: which entities are wanted."""

from __future__ import annotations

from typing import Annotated, Literal, Optional, Union

from pydantic import BaseModel, ConfigDict, Field

from tasks.ner.prediction.listed import Listed
from tasks.ner.prediction.wanted import Wanted

MOST_TERMS = 10_000
Name = Annotated[str, Field(min_length=1, max_length=1000, strict=True)]


class Body(BaseModel):
    """The JSON of a request, whose keys are all known."""

    model_config = ConfigDict(extra="forbid")


class Term(Body):
    """A term of a request's dictionary."""

    term: Name
    type: Name
    mode: Literal["force", "hint"] = "force"


class Wishes(Body):
    """What to find, see :class:`~tasks.ner.prediction.wanted.Wanted`; all keys may be left out."""

    types: Optional[list[Name]] = Field(None, description="find these types only")
    min_probability: Union[float, dict[Name, float], None] = Field(
        None, description="find what is at least so probable: a number, or one for each type"
    )
    top_k: Optional[int] = Field(None, ge=1, description="find the most probable entities of each text, so many")
    consistent: bool = Field(False, description="a string is an entity at all of its places in a text, or at none")
    dictionary: list[Term] = Field([], max_length=MOST_TERMS, description="terms that are entities, or may be")

    def wanted(self) -> Wanted | None:
        """The wishes of the request; None if it has none."""
        if not self.model_fields_set & Wishes.model_fields.keys():
            return None
        terms = [(one.term, one.type, one.mode) for one in self.dictionary]
        types = None if self.types is None else tuple(self.types)
        return Wanted(types, self.min_probability, self.top_k, self.consistent, Listed(terms) if terms else None)
