"""Consumers of TRACKED occurrences: they claim, work, report, die, and come late."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from hourbell.domain.errors import (
    Conflict,
    Forbidden,
    HourbellError,
    NotFound,
    Transient,
)
from hourbell.domain.retry import ErrorClass, Failure
from hourbell.usecases.claim import claim
from hourbell.usecases.finish import complete_work, fail_work
from hourbell.usecases.heartbeat import heartbeat
from hourbell.usecases.occurrences import cancel_occurrence, replay_occurrence
from hourbell.usecases.redrive import GivenUp, redrive
from hourbell.usecases.work_values import ClaimOrder, Failed, Held

from tests.simulation.faults import SUSPENDED
from tests.simulation.messages import Message, Messages

SECOND = timedelta(seconds=1)
LEASES = (10, 30, 60, 300)
TRIES = 5
OVER = {"SUCCEEDED", "CANCELED", "MISSED", "SKIPPED_OVERLAP"}


@dataclass(eq=False)
class Work:
    """What a worker has of an occurrence.

    Attributes:
        lease: how many seconds it asks for each time.
        ends_at: when it will be through.
        failure: how it will fail; None when it will not.
        beats: whether it extends its lease.
        dies_at: when it dies; None when it does not.
        message: what brought it, while it is not deleted.
    """

    occurrence_id: str
    tenant: str
    token: str
    lease: int
    ends_at: datetime
    message: Message | None
    failure: Failure | None = None
    beats: bool = True
    dies_at: datetime | None = None
    is_over: bool = False

    @property
    def held(self) -> Held:
        return Held(self.occurrence_id, self.token)


class Consumers:
    """All consumers, and what they did.

    Attributes:
        are_there: whether there are any.
        works: by occurrence and token.
        effects: by occurrence_id, the token under which its effect was made; in the
            consumer's own database, where an id has one at most.
        is_settling: whether what they begin shall end soon.
    """

    are_there = True

    def __init__(self, world: Any) -> None:
        self.world = world
        self.rng = world.rng
        self.messages = Messages(world, self._claim, self._redrive)
        self.works: dict[tuple[str, str], Work] = {}
        self.effects: dict[str, str] = {}
        self.is_settling = False
        world.at(world.now + 60 * SECOND, "consumer", self._meddle)

    @property
    def book(self) -> Any:
        """The model's record of what is said."""
        return self.world.workbook

    def settle_down(self) -> None:
        """Let what takes long end soon: the world is about to end."""
        self.is_settling = True
        end = self.world.now + 300 * SECOND
        for work in self.works.values():
            if not work.is_over and work.ends_at > end:
                work.ends_at = end
                self._later(self.rng.uniform(200, 300), partial(self._end, work))

    # --- calls ------------------------------------------------------------------

    def _later(self, seconds: float, what: Callable[[], None]) -> None:
        self.world.at(self.world.now + seconds * SECOND, "consumer", what)

    def _ask(
        self, label: str, tenant: str, ask: Callable[[Any], Any]
    ) -> tuple[Any, bool]:
        """Make one call.

        Returns:
            the answer, None for none; and whether a refusal is the answer.
        """
        world, answers, refused = self.world, [], False

        def task(process: Any, attempt: str) -> None:
            world.callers.identity(process, tenant)
            answers.append(ask(process.workplace))
            world.note(f"[{attempt}] answers {answers[-1]}")

        if world.is_down("caller"):
            return None, False
        try:
            world.task("api", label, task)
        except (NotFound, Conflict) as error:
            world.note(f"{label}: {error.code}")
            refused = True
        except (Transient, Forbidden) as error:
            world.note(f"{label}: no answer, {error}")
            world.counts[SUSPENDED] += isinstance(error, Forbidden)
        except HourbellError as error:
            world.log.violate("no error of its own", world.steps, f"{label}: {error!r}")
        if answers and world.strikes("lost acknowledgement"):
            return None, False
        return (answers[0] if answers else None), refused

    # --- claims -----------------------------------------------------------------

    def _claim(self, batch: list[Message]) -> None:
        """Claim what was received, as a consumer that may lose the answer."""
        by_name = {each.occurrence_id: each for each in batch}
        tokens = {
            name: f"{self.rng.getrandbits(128):032x}"
            if self.rng.random() < 0.7
            else None
            for name in by_name
        }
        self._try_claim(by_name, tokens, self.rng.choice(LEASES), TRIES)

    def _try_claim(
        self,
        batch: dict[str, Message],
        tokens: dict[str, str | None],
        lease: int,
        tries: int,
    ) -> None:
        tenant = next(iter(batch.values())).tenant
        orders = [
            ClaimOrder(name, tokens[name], each.number) for name, each in batch.items()
        ]

        def ask(place: Any) -> Any:
            told = claim(place, tenant, orders, worker="w", lease_seconds=lease)
            self.book.on_claimed(told)
            return told

        answers, _ = self._ask(f"claim of {len(orders)}", tenant, ask)
        if answers is None:
            if tries and self.rng.random() < 0.6:
                again = self.rng.uniform(1, 5)
                self._later(
                    again, lambda: self._try_claim(batch, tokens, lease, tries - 1)
                )
            return
        for answer in answers:
            message = batch[answer.occurrence_id]
            if answer.answer == "RUN":
                self._work(answer, message, lease)
            elif answer.answer != "ERROR":
                self.messages.delete(message)

    # --- work -------------------------------------------------------------------

    def _work(self, answer: Any, message: Message, lease: int) -> None:
        place = (answer.occurrence_id, answer.lease_token)
        if place in self.works:
            return
        work = self._drawn(answer, message, lease)
        self.works[place] = work
        if (work.ends_at - self.world.now) > 60 * SECOND:
            self.messages.delete(message)
            work.message = None
        if work.dies_at is not None:
            self.world.at(work.dies_at, "consumer", lambda: self._die(work))
        if work.beats:
            self._later(lease * self.rng.uniform(0.3, 0.8), lambda: self._beat(work))
        self.world.at(work.ends_at, "consumer", lambda: self._end(work))

    def _drawn(self, answer: Any, message: Message, lease: int) -> Work:
        """Return what a worker will make of an occurrence."""
        world, rng = self.world, self.rng
        kinds = ((1, 8), (5, 60), (60, 500), (600, 4000))
        low, high = rng.choices(kinds, (10, 5, 2, 0.5))[0]
        if self.is_settling:
            low, high = 1, 5
        seconds, beats = rng.uniform(low, high), True
        # Who knows that it takes long asks for more.
        lease = max(lease, int(seconds) // 6)
        if world.strikes("worker not heard of"):
            seconds, beats = lease * rng.uniform(1.1, 4), False
        work = Work(
            answer.occurrence_id,
            message.tenant,
            answer.lease_token,
            lease,
            world.now + seconds * SECOND,
            message,
            self._failure(),
            beats,
        )
        if world.strikes("worker dies"):
            work.dies_at = world.now + rng.uniform(0, seconds) * SECOND
        return work

    def _failure(self) -> Failure | None:
        chance = 0.2 if self.is_settling else 0.45
        if self.rng.random() >= chance:
            return None
        kind = self.rng.choice(
            (*(ErrorClass.RETRYABLE,) * 4, ErrorClass.THROTTLED, ErrorClass.PERMANENT)
        )
        patience = None
        if kind is ErrorClass.THROTTLED:
            patience = self.rng.choice((None, 5, 60))
        return Failure(kind, "Broken", "of the simulation", patience)

    def _die(self, work: Work) -> None:
        if not work.is_over:
            self.world.note(f"the worker of {work.occurrence_id} dies")
            work.is_over = True

    def _beat(self, work: Work) -> None:
        """Extend a lease, with others of the same tenant now and then."""
        world, rng = self.world, self.rng
        if work.is_over:
            return
        batch = [work]
        if rng.random() < 0.3:
            others = [
                each
                for each in self.works.values()
                if each is not work and each.beats and not each.is_over
                if each.tenant == work.tenant
                if each.occurrence_id != work.occurrence_id
            ]
            names = {each.occurrence_id: each for each in others}
            batch += list(names.values())[:9]
        began, missed = world.now, world.counts["no answer to a read"]

        def ask(place: Any) -> Any:
            held = [each.held for each in batch]
            told = heartbeat(place, work.tenant, held, lease_seconds=work.lease)
            sure = world.counts["no answer to a read"] == missed
            self.book.on_beats(held, told, began, sure=sure)
            return told

        answers, _ = self._ask("heartbeat", work.tenant, ask)
        self._later(work.lease * rng.uniform(0.2, 0.7), lambda: self._beat(work))
        for each, answer in zip(batch, answers or (), strict=False):
            self._heed(each, answer)

    def _heed(self, work: Work, answer: Any) -> None:
        """Do what a heartbeat says, mostly."""
        if answer.outcome in {"LEASE_LOST", "NOT_FOUND"} and self.rng.random() < 0.6:
            work.is_over = True
        if answer.cancel_requested and self.rng.random() < 0.7:
            work.failure = Failure(ErrorClass.RETRYABLE, "Stopped")
            self._end(work)

    def _end(self, work: Work) -> None:
        if work.is_over or work.ends_at > self.world.now + 20 * SECOND:
            return
        work.is_over = True
        batch = [work]
        if work.failure is None:
            near = self.world.now + 3 * SECOND
            names = {
                each.occurrence_id: each
                for each in self.works.values()
                if not each.is_over and each.tenant == work.tenant
                if each.failure is None and each.ends_at <= near
                if each.occurrence_id != work.occurrence_id
            }
            batch += list(names.values())[:9]
        for each in batch:
            each.is_over = True
            if work.failure is None:
                self._make_effect(each)
        self._say(batch, TRIES)

    def _make_effect(self, work: Work) -> None:
        """Make the effect, once for an id, in the consumer's own transaction."""
        self.effects.setdefault(work.occurrence_id, work.token)
        self.book.on_effect(work.occurrence_id)

    def _say(self, batch: list[Work], tries: int) -> None:
        """Complete or fail; say it again when there is no answer."""
        tenant, failure = batch[0].tenant, batch[0].failure
        held = [each.held for each in batch]
        self.book.on_said(held, failure)

        def ask(place: Any) -> Any:
            if failure is None:
                told = complete_work(place, tenant, held)
            else:
                failed = [Failed(h.occurrence_id, h.lease_token, failure) for h in held]
                told = fail_work(place, tenant, failed)
            self.book.on_finished(held, told, failure)
            return told

        label = "complete" if failure is None else f"fail {failure.error_class}"
        answers, _ = self._ask(f"{label} of {len(held)}", tenant, ask)
        told = {each.occurrence_id: each for each in answers or ()}
        again = []
        for work in batch:
            answer = told.get(work.occurrence_id)
            if answer is None or answer.outcome == "UNAVAILABLE":
                again.append(work)
            elif work.message is not None:
                self.messages.delete(work.message)
        if again and tries:
            self._later(self.rng.uniform(1, 8), lambda: self._say(again, tries - 1))

    # --- what others do ---------------------------------------------------------

    def _redrive(self, message: Message) -> None:
        """Let the reader of the redrive queue have a message."""
        given_up = GivenUp(message.tenant, message.occurrence_id, message.number)
        told: list[Any] = []

        def task(process: Any, attempt: str) -> None:
            told.append(redrive(process.workplace, given_up))
            self.world.note(f"[{attempt}] redriven {message.occurrence_id}: {told[-1]}")

        try:
            self.world.task("api", f"redrive of {message.occurrence_id}", task)
        except Transient as error:
            self.world.note(f"redrive: {error}")
        if not told:
            self._later(self.rng.uniform(20, 60), lambda: self._redrive(message))

    def _meddle(self) -> None:
        """Cancel or replay an occurrence."""
        world = self.world
        if self.is_settling:
            return
        self._later(self.rng.uniform(10, 150), self._meddle)
        if world.is_down("caller"):
            return
        rows = [
            row
            for rows in world.store.by_schedule.values()
            for row in rows.values()
            if str(row.state) not in OVER and row.decision is None
        ]
        dead = [row for row in rows if row.state == "DEAD"]
        alive = [row for row in rows if row.state != "DEAD" and row.attempt]
        if dead and self.rng.random() < 0.6:
            self.replay(self.rng.choice(dead))
        elif alive and self.rng.random() < 0.7:
            self.cancel(self.rng.choice(alive))
        elif rows and rows != dead:
            self.cancel(self.rng.choice([row for row in rows if row not in dead]))

    def _is_answered(self, label: str, tenant: str, ask: Callable[[Any], Any]) -> bool:
        answer, refused = self._ask(label, tenant, ask)
        return refused or answer is not None

    def replay(self, row: Any) -> bool:
        """Ask for a replay; return whether there is an answer."""
        name, tenant = row.occurrence_id, row.tenant_id
        self.world.count("call: replay")

        def ask(place: Any) -> Any:
            told = replay_occurrence(place, tenant, name)
            return told.state

        self.book.replays[name] += 1
        return self._is_answered(f"replay {name}", tenant, ask)

    def cancel(self, row: Any) -> bool:
        """Ask for a cancel; return whether there is an answer."""
        name, tenant = row.occurrence_id, row.tenant_id
        self.world.count("call: cancel occurrence")
        self.book.cancels.add(name)

        def ask(place: Any) -> Any:
            told = cancel_occurrence(place, tenant, name)
            self.book.on_canceled(told)
            return told.state

        return self._is_answered(f"cancel {name}", tenant, ask)


class Scripted(Consumers):
    """Consumers that do what a life says, in each attempt."""

    def __init__(
        self,
        world: Any,
        script: tuple[str, ...],
        others: tuple[str, ...] | None,
    ) -> None:
        super().__init__(world)
        self._script, self._others = script, others
        self.is_settling = True
        self.are_there = bool(script)
        self.messages.never_claimed = script == ("never",)

    def _drawn(self, answer: Any, message: Message, lease: int) -> Work:
        now, name = self.world.now, answer.occurrence_id
        tokens = self.book.granted[name]
        count = tokens[answer.lease_token] - self.book.before[name]
        script = self._script
        if self._others is not None and name != self._first(name):
            script = self._others
        part = script[:count][-1]
        if name in self.book.replays:
            part = script[1:][:count][-1]
        seconds = 130 if "long" in part else 5
        kinds = {"fail": ErrorClass.RETRYABLE, "permanent": ErrorClass.PERMANENT}
        kind = kinds.get(part)
        return Work(
            name,
            message.tenant,
            answer.lease_token,
            60,
            now + seconds * SECOND,
            message,
            None if kind is None else Failure(kind, "Broken"),
            dies_at=now + 2 * SECOND if "die" in part else None,
        )

    def _first(self, name: str) -> str:
        """Return the first occurrence of its schedule."""
        schedule_id, _, _ = name.partition(".")
        first: str = min(self.world.store.by_schedule[schedule_id])
        return first
