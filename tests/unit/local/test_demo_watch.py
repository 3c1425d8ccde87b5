from datetime import UTC, datetime, timedelta

import pytest
from hourbell.local.demo_watch import PlainWatch, Standing

NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)


def standing(second: float, delivered: int, *pending: tuple[float, str]) -> Standing:
    left = tuple((NOON + timedelta(seconds=at), name) for at, name in pending)
    now = NOON + timedelta(seconds=second)
    return Standing(now, delivered, delivered + len(left), left)


@pytest.mark.parametrize(
    ("where", "text"),
    [
        (standing(0, 3), "all have arrived"),
        (standing(0, 1, (7, "once")), "next: once in 7 s"),
        (standing(0, 0, (7, "a"), (7, "b"), (9, "c")), "next: 2 at once in 7 s"),
        (standing(9, 0, (7, "once")), "once: due since 2 s"),
    ],
)
def test_it_says_what_comes_next(where: Standing, text: str) -> None:
    assert where.describe() == text


def test_plain_lines_come_with_news_and_every_ten_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    watch = PlainWatch()
    for where in (
        standing(0, 0, (5, "once"), (30, "a"), (30, "b")),
        standing(1, 0, (5, "once"), (30, "a"), (30, "b")),
        standing(6, 1, (30, "a"), (30, "b")),
        standing(12, 1, (30, "a"), (30, "b")),
        standing(16, 1, (30, "a"), (30, "b")),
    ):
        watch.show(where)

    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "received 0 of 3, next: once in 5 s",
        "received 1 of 3, next: 2 at once in 24 s",
        "received 1 of 3, next: 2 at once in 14 s",
    ]


def test_a_burst_is_one_line_when_it_is_through(
    capsys: pytest.CaptureFixture[str],
) -> None:
    watch = PlainWatch()
    for where in (
        standing(29, 0, (30, "a"), (30, "b")),
        standing(30.1, 1, (30, "b")),
        standing(30.2, 2),
    ):
        watch.show(where)

    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "received 0 of 2, next: 2 at once in 1 s",
        "received 2 of 2, all have arrived",
    ]
