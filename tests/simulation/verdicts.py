"""What must follow of an attempt that failed, by docs/policies.md alone."""

import hashlib
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from tests.simulation.log import Tries

SECOND = timedelta(seconds=1)
# Two clocks.
SKEW = 2 * SECOND
# How long before its write a call may have read its clock.
CALL = 27 * SECOND


def backoff(tries: Tries, occurrence_id: str, attempt: int, count: int) -> int:
    """Return the seconds that pass after an attempt, its `count`th since a replay."""
    longest: int = min(tries.cap, tries.base * 2 ** (count - 1))
    digest = hashlib.sha256(f"{occurrence_id}#{attempt}".encode()).hexdigest()[:16]
    return 1 + int(digest, 16) % longest


def certain_end(tries: Tries, kind: str, count: int) -> str | None:
    """Return why there is no other attempt, as far as no clock has a say."""
    if kind == "PERMANENT":
        return "PERMANENT_ERROR"
    if kind not in tries.classes:
        return "NOT_RETRYABLE"
    return "ATTEMPTS_USED_UP" if count >= tries.most else None


def floor(instant: datetime) -> datetime:
    """Return the minute that an instant lies in."""
    return instant.replace(second=0, microsecond=0)


BUDGET = "no more retries in a minute than the quota lets"
# What is counted of occurrences whose queue has let go of their message.
UNCLAIMED = "ended unclaimed"


class Verdicts:
    """Judges ends of attempts.

    Args:
        book: what is known of work.
    """

    def __init__(self, book: Any) -> None:
        self._book = book
        self._world = book.world
        self._retries: Counter[tuple[str, datetime]] = Counter()

    def judge(self, old: Any, new: Any, failure: Any, since: datetime) -> None:
        """Judge what a failed attempt led to.

        Args:
            old: the row in its attempt.
            new: the row after it.
            failure: what its worker said, or that its lease ran out.
            since: when that was, at the earliest.
        """
        name, tries = new.occurrence_id, self._book.spec(new).tries
        kind, count = str(failure.error_class), old.attempt - self._book.before[name]
        right = certain_end(tries, kind, count)
        text = f"{name}, attempt {count}, {kind}: {new.state} {new.reason or ''}"
        told = new.reason if new.state == "DEAD" else None
        if right is not None:
            if told != right:
                self._violate("a death has its reason", f"{text}, not {right}")
            return
        wait = backoff(tries, name, old.attempt, count)
        if kind == "THROTTLED":
            wait = max(wait, failure.retry_after_seconds or 0)
        if told == "DEADLINE_PASSED":
            self._judge_deadline(new, wait * SECOND)
        elif told is None:
            self._judge_wait(new, since, wait * SECOND, text)
        elif told != "RETRY_BUDGET_USED_UP" or self._budget(new) is None:
            self._violate("a death has its reason", text)

    def judge_unclaimed(self, old: Any, new: Any) -> None:
        """Judge a death without an attempt."""
        name = new.occurrence_id
        if new.reason == "DEADLINE_PASSED":
            self._judge_deadline(new, 0 * SECOND)
        elif new.reason != "NEVER_CLAIMED":
            self._violate("a death has its reason", f"{name} {old.state} {new.reason}")
        elif not self._is_given_up(name, old.sends):
            text = f"{name}: send {old.sends} was not received too often, and is kept"
            self._violate("no healthy wait ends DEAD", text)

    def _is_given_up(self, name: str, send: int) -> bool:
        """Whether a queue gave a message up, or let go of it."""
        messages = self._world.consumers.messages
        until = messages.kept_until.get((name, send))
        is_gone = until is not None and until <= self._world.now
        self._world.counts[UNCLAIMED] += is_gone
        return is_gone or (name, send) in messages.redriven

    def _budget(self, row: Any) -> int | None:
        quotas = self._world.tenants[row.tenant_id].quotas
        budget: int | None = quotas.retries_per_minute
        return budget

    def _judge_wait(
        self, new: Any, since: datetime, wait: timedelta, text: str
    ) -> None:
        """It waits as long as the policy says, or longer for the tenant's budget."""
        at, latest = new.available_at, self._world.now + SKEW + wait
        late = self._budget(new) is None and at > latest
        if late or at < since - SKEW + wait:
            text += f" again at {at}, failed at {since}, waits {wait}"
            self._violate("a retry waits as the policy says", text)
        self._judge_budget(new)

    def judge_takeover(self, new: Any) -> None:
        """Judge a retry that begins at once, with a worker that takes it over."""
        if self._budget(new) is not None:
            text = f"{new.occurrence_id} is taken over without a place"
            self._violate(BUDGET, text)

    def _judge_budget(self, new: Any) -> None:
        """Judge how many retries of a tenant may begin in the same minute."""
        budget, minute = self._budget(new), floor(new.available_at)
        self._retries[new.tenant_id, minute] += 1
        count = self._retries[new.tenant_id, minute]
        if budget is not None and count > budget:
            text = f"{new.occurrence_id} at {new.available_at}, as the {count}th"
            self._violate(BUDGET, text)

    def _judge_deadline(self, row: Any, wait: timedelta) -> None:
        """Judge a death by deadline: waits that are nobody's failure do not count."""
        book, name = self._book, row.occurrence_id
        deadline, begun = book.spec(row).tries.deadline, book.begun.get(name)
        text = f"{name} begun {begun}, waited {book.waited[name]}, {deadline} s"
        if deadline is None or begun is None:
            self._violate("a death has its reason", text)
            return
        used = self._world.now - begun - book.waited[name] + wait
        slack = CALL + 2 * SKEW + book.holds[name] * SKEW
        if used + slack <= deadline * SECOND:
            self._violate("no healthy wait ends DEAD", f"{text}, used {used}")

    def _violate(self, invariant: str, text: str) -> None:
        self._book.violate(invariant, text)
