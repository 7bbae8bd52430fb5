"""Help lines that guess what a misspelt word was meant to be."""

from __future__ import annotations

from collections.abc import Collection


def did_you_mean(word: str, known: Collection[str]) -> str | None:
    """`did you mean 'x'?` with the nearest of the known words; None when none is near."""
    if len(word) > 200 or len(known) > 5000:
        return None
    from difflib import get_close_matches

    found = get_close_matches(word, known, n=1, cutoff=0.75)
    return f"did you mean '{found[0]}'?" if found else None
