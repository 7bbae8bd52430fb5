"""Metadata as XLA prints it is read in one step, any other token by token: both give the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.drawn import examples

from mlirhlo.dialects.hlo.attributes.annotations import Metadata, read_metadata
from mlirhlo.dialects.hlo.syntax import Cursor, SyntaxProblem

TEXTS = st.one_of(
    st.sampled_from(["", "a/b", "}", " ", 'say "hi"', "/* no */", "{x=1}", "\n", "é"]), st.text()
)
NUMBERS = st.one_of(st.just(0), st.integers(0, 40), st.integers(-(1 << 63), (1 << 63) - 1))
METADATA = st.builds(
    Metadata,
    op_type=TEXTS,
    op_name=TEXTS,
    source_file=TEXTS,
    source_line=NUMBERS,
    source_end_line=NUMBERS,
    profile_type=st.lists(st.integers(0, 9), max_size=2).map(tuple),
    scheduling_name=TEXTS,
    stack_frame_id=NUMBERS,
)


@given(METADATA)
@examples(200)
def test_what_is_printed_is_read(metadata: Metadata) -> None:
    text = str(metadata)
    cursor = Cursor(f"  {text} rest", 1)
    assert read_metadata(cursor) == metadata
    assert cursor.text[cursor.position :] == " rest"


def test_as_xla_prints_it_is_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = Metadata(op_type="add", op_name="jit(f)/add", source_file="a.py", source_line=3)
    plain = str(metadata)
    monkeypatch.setattr(Cursor, "word", lambda *_: pytest.fail("a token"))
    assert read_metadata(Cursor(plain)) == metadata
    assert read_metadata(Cursor("{}")) == Metadata()
    assert read_metadata(Cursor("{stack_frame_id=2}")) == Metadata(stack_frame_id=2)


@pytest.mark.parametrize(
    "text",
    [
        '{op_name="a", op_type="b"}',
        '{op_name="a" /* why */ op_type="b"}',
        "{ op_name = \"a\" op_type='b' }",
        '{op_type="b"op_name="a"}',
        '{op_name="a" preserve_layout=true op_type="b"}',
    ],
)
def test_others_are_read_token_by_token(text: str) -> None:
    assert read_metadata(Cursor(text)) == Metadata(op_type="b", op_name="a")


@pytest.mark.parametrize(
    "text",
    [
        '{op_name="a" op_name="a"}',
        '{source_line="a"}',
        "{op_name=3}",
        '{op_name="a"',
        "{source_line=99999999999999999999}",
        '{op_kind="a"}',
        '{op_name="\\q"}',
    ],
)
def test_what_is_wrong_is_refused(text: str) -> None:
    with pytest.raises(SyntaxProblem):
        read_metadata(Cursor(text))
