"""The ladder of broader forms."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citeflow.search.broaden import broader_forms


@pytest.mark.parametrize(
    ("count", "ladder"),
    [
        (0, []),
        (1, []),
        (3, []),
        (4, [3]),
        (5, [3]),
        (6, [3]),
        (7, [3]),
        (12, [6, 3]),
        (13, [6, 3]),
        (20, [10, 5, 3]),
    ],
)
def test_word_counts_of_the_ladder(count: int, ladder: list[int]) -> None:
    """Half each time, never below three words."""
    query = " ".join(f"w{i}" for i in range(count))
    assert [len(form.split()) for form in broader_forms(query)] == ladder


@given(st.lists(st.text(alphabet="abc", min_size=1, max_size=5), max_size=100))
def test_each_form_is_the_beginning_of_the_one_before(words: list[str]) -> None:
    """What the query begins with stays whole, and each form is shorter."""
    forms = [" ".join(words), *broader_forms(" ".join(words))]
    for longer, shorter in itertools.pairwise(forms):
        assert longer.startswith(f"{shorter} ")
