"""The way of outbox records to the relay: the stream, the sweep queue, faults."""

from datetime import datetime, timedelta
from typing import Any

from hourbell.domain.errors import HourbellError
from hourbell.domain.occurrence import Occurrence, RowKey
from hourbell.usecases.relay import relay_keys, relay_rows

from tests.simulation.log import Send

SECOND = timedelta(seconds=1)
TRIES = 3
RECEIVES = 5

Record = tuple[datetime, int, Occurrence]


class OutboxRecords:
    """Records on their way, each with the time at which it comes."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self._records: list[Record] = []
        self._count = 0

    def on_row(self, old: Occurrence | None, new: Occurrence) -> None:
        """Take a write's image to the stream; the relay sees outbox records only."""
        world = self.world
        world.note(_told_row(world.short(new.schedule_id), old, new))
        if new.state in {"DEFERRED", "RETRY_WAIT", "WAITING_OVERLAP"}:
            world.released.add(new.key)
        untold = new.state == "DEAD" and new.told_at is None
        if new.state != "SCHEDULED" and not untold:
            return
        if world.strikes("stream record lost"):
            return
        for _ in range(2 if world.strikes("stream record repeated") else 1):
            late = world.strikes("stream record late")
            delay = world.rng.uniform(20, 900) if late else world.rng.uniform(0.2, 2)
            self._count += 1
            self._records.append((world.now + delay * SECOND, self._count, new))
            world.at(world.now + delay * SECOND, "stream", TRIES)

    def relay_stream(self, tries: int) -> None:
        """Let a relay have some of the records that have come, in any order."""
        world = self.world
        if world.is_down("relay"):
            world.at(world.down["relay"] + SECOND, "stream", tries)
            return
        ready = sorted(each for each in self._records if each[0] <= world.now)
        batch = ready[: world.rng.choice((1, 3, 12, 25))]
        if not batch:
            return
        self._records = [each for each in self._records if each not in batch]
        began, settled = self._relay(batch)
        again = world.now + world.rng.uniform(0.5, 2) * SECOND
        if not settled and (tries or not began):
            self._records.extend((again, order, row) for _, order, row in batch)
            world.at(again, "stream", tries - 1 if began else tries)
        elif len(ready) > len(batch):
            world.at(again, "stream", TRIES)

    def _relay(self, batch: list[Record]) -> tuple[bool, bool]:
        """Return whether a relay was free, and whether it is done with the batch."""
        world, rows = self.world, [row for _, _, row in batch]
        settled = False

        def relay(process: Any, attempt: str) -> None:
            nonlocal settled
            part = rows
            if len(rows) > 1 and world.strikes("partial batch"):
                part = rows[: world.rng.randrange(1, len(rows))]
            report = relay_rows(process.outbox, part)
            world.note(f"[{attempt}] {_told(report)}")
            if report.unsettled:
                process.sweep_queue.put(report.unsettled)
            settled = len(part) == len(rows)

        try:
            began = world.task("relay", f"{len(rows)} stream records", relay)
        except HourbellError as error:
            world.note(f"relay failed: {error}")
            return True, False
        return began, settled

    def take_sweep(self) -> None:
        """Let what was put on the sweep queue be received."""
        for keys in self.world.sweep_queue.take():
            self._put_sweep(keys, 0)

    def _put_sweep(self, keys: tuple[RowKey, ...], receives: int) -> None:
        world = self.world
        if receives > RECEIVES or world.strikes("sweep message lost"):
            return
        wait = world.rng.uniform(0.1, 2) if receives == 0 else 30
        world.at(world.now + wait * SECOND, "sweep", (keys, receives))

    def relay_sweep(self, what: tuple[tuple[RowKey, ...], int]) -> None:
        """Let a relay have a message of the sweep queue."""
        world, (keys, receives) = self.world, what
        settled = False

        def relay(process: Any, attempt: str) -> None:
            nonlocal settled
            report = relay_keys(process.outbox, keys)
            world.note(f"[{attempt}] {_told(report)}")
            settled = not report.unsettled

        if world.is_down("relay"):
            world.at(world.down["relay"] + SECOND, "sweep", what)
            return
        try:
            if not world.task("relay", f"sweep of {len(keys)}", relay):
                world.at(world.now + SECOND, "sweep", what)
                return
        except HourbellError as error:
            world.note(f"sweep failed: {error}")
        if not settled:
            self._put_sweep(keys, receives + 1)

    def on_send(self, send: Send) -> None:
        """Note an accepted message, and judge it."""
        world = self.world
        world.log.sends.append(send)
        world.note(
            f">> {world.short(send.schedule_id)} v{send.version} "
            f"{send.time:%d %H:%M:%S} to {send.queue}, delay {send.delay} s"
        )
        world.callers.judge_send(send)
        if world.consumers.are_there and world.is_tracked(send.schedule_id):
            world.consumers.messages.on_send(send)


def _told_row(name: str, old: Occurrence | None, new: Occurrence) -> str:
    available = f"available {new.available_at:%H:%M:%S}" if new.available_at else ""
    gap = f"GAP to {new.decision.last:%d %H:%M}" if new.decision else ""
    return (
        f"row {name} v{new.version} {new.scheduled_for:%d %H:%M:%S} {new.run or ''} "
        f"{old.state if old else ''} -> {new.state} {new.reason or ''} "
        f"{available} {gap}"
    ).rstrip()


def _told(report: Any) -> str:
    return (
        f"delivered {len(report.deliveries)}, unsettled {len(report.unsettled)}, "
        f"deferred {report.deferred}, canceled {report.canceled}, "
        f"refused {report.refused}, repeated {report.repeated}"
    )
