"""What a job is called, and how its progress counts."""

import pytest
from hourbell.domain.job import (
    Outcome,
    Progress,
    Result,
    derived_job_id,
    is_job_id,
    is_job_place,
)


def test_an_id_follows_from_tenant_and_key() -> None:
    # By sha256sum of "acme\njob\nkey"; its first 128 bits in base 32.
    assert derived_job_id("acme", "key") == "job08ryhcg0yq4hwnz9fcnr5spdfy"
    assert derived_job_id("acme", "key2") != derived_job_id("acme2", "key")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("job08ryhcg0yq4hwnz9fcnr5spdfy", True),
        ("job08ryhcg0yq4hwnz9fcnr5spdf", False),
        ("job08ryhcg0yq4hwnz9fcnr5spdfyy", False),
        ("sch08ryhcg0yq4hwnz9fcnr5spdfy", False),
        ("job08RYHCG0YQ4HWNZ9FCNR5SPDFY", False),
        ("job08ryhcg0yq4hwnz9fcnr5spdf\n", False),
        ("", False),
    ],
)
def test_the_form_of_an_id(text: str, *, expected: bool) -> None:
    assert is_job_id(text) is expected
    assert is_job_place(f"20260309T120000000000Z.{text}") is expected


def test_what_would_be_done_counts_as_what_is_done() -> None:
    counted = {
        outcome: Progress(9).with_results([Result(0, outcome)]) for outcome in Outcome
    }
    changed, unchanged, refused = (
        Progress(9, 1),
        Progress(9, 0, 1),
        Progress(9, 0, 0, 1),
    )
    assert counted == {
        Outcome.CREATED: changed,
        Outcome.CHANGED: changed,
        Outcome.WOULD_CREATE: changed,
        Outcome.WOULD_CHANGE: changed,
        Outcome.UNCHANGED: unchanged,
        Outcome.WOULD_NOT_CHANGE: unchanged,
        Outcome.REFUSED: refused,
        Outcome.WOULD_REFUSE: refused,
    }
    assert Progress(9, 1, 2, 3).done == 6
