"""What a machine lacks is skipped, but where all is required."""

import pytest

from tests.consumers.required import VARIABLE, lacking


def test_what_is_lacking_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(pytest.skip.Exception, match="Ruby was not found"):
        lacking("Ruby")


def test_what_is_lacking_fails_where_it_is_required(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    with pytest.raises(pytest.fail.Exception, match="Ruby was not found"):
        lacking("Ruby")
