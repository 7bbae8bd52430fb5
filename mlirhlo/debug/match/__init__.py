"""Matching of two versions of a module by structure: which instruction of one is which of the other.

`match(before, after)` takes two `Listing`s, made from text (`listing_of_text`) or from any graph
(`ListingBuilder`), and returns a `Match`. The graph's page and the text reports of `hlo-dump` share it.
"""

from mlirhlo.debug.match.engine import match
from mlirhlo.debug.match.listing import Listing, ListingBuilder, Row, opcode_of
from mlirhlo.debug.match.result import Difference, Kind, Match
from mlirhlo.debug.match.structure import Interner, Structure
from mlirhlo.debug.match.texts import label_of, listing_of_lines, listing_of_text

__all__ = [
    "Difference", "Interner", "Kind", "Listing", "ListingBuilder", "Match", "Row",
    "Structure", "label_of", "listing_of_lines", "listing_of_text", "match", "opcode_of",
]  # fmt: skip
