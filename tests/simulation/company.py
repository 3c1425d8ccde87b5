"""What must have been written together with an occurrence's row."""

from typing import Any

# In these the last attempt stands on the row; in those of the second kind it does if
# it was what ended the occurrence.
ON_ROW, MAY_BE_ON_ROW = {"RUNNING", "SUCCEEDED"}, {"DEAD", "CANCELED"}


class Company:
    """Judges what lies beside a row, once the port call that wrote it is over.

    Args:
        book: what is known of work.
    """

    def __init__(self, book: Any) -> None:
        self._book = book
        self._world = book.world

    def judge(self, row: Any) -> None:
        """Judge all that belongs to a row as it is."""
        name, state = row.occurrence_id, str(row.state)
        waits = row.waits and state in {"RETRY_WAIT", "WAITING_OVERLAP", "DEFERRED"}
        if waits and not self._has_dispatch(row, "release", row.waits):
            self._violate("what waits has its dispatch row", f"{name} is {state}")
        if state == "RUNNING":
            self._judge_running(row, name)
        self._judge_attempts(row, name, state)
        self._judge_letters(row, name, state)

    def _judge_running(self, row: Any, name: str) -> None:
        store = self._world.store
        if not self._has_dispatch(row, "watch", row.attempt):
            self._violate("a lease has its watch", f"{name}, attempt {row.attempt}")
        place = store.slots.get((row.tenant_id, row.slot))
        if row.slot is not None and (place is None or place.holder != name):
            text = f"{name} runs in {row.slot}, where {place} is"
            self._violate("a place is taken while its occurrence runs", text)
        lane = store.lanes.get(row.schedule_id)
        if self._book.overlap(row) == "ALLOW":
            return
        if lane is None or lane.holder != name:
            self._violate("who runs holds its lane", f"{name} runs, {lane}")

    def _judge_attempts(self, row: Any, name: str, state: str) -> None:
        """Every attempt that another one follows, or may, has its item."""
        # While the shard count changes they may lie in another shard than their row.
        place = row.key.bucket, row.key.sort
        kept = {
            each.number: each.lease_token
            for items in self._world.store.attempts.values()
            for each in items.values()
            if (each.key.bucket, each.key.sort) == place
        }
        granted = self._book.granted[name].items()
        wanted = {n: token for token, n in granted if n < row.attempt}
        last = {n: token for token, n in granted if n == row.attempt}
        if state not in ON_ROW | MAY_BE_ON_ROW:
            wanted |= last
        right = [wanted, wanted | last] if state in MAY_BE_ON_ROW else [wanted]
        if kept not in right:
            text = f"{name} is {state} in {row.attempt}: {kept}, not {wanted}"
            self._violate("what another attempt follows is kept", text)

    def _judge_letters(self, row: Any, name: str, state: str) -> None:
        letters = [
            each
            for each in self._world.store.letters.values()
            if each.occurrence_id == name
        ]
        if state == "DEAD" and row.reason != "SEND_REFUSED":
            told = [(each.attempt, str(each.reason)) for each in letters]
            if told != [(row.attempt, str(row.reason))]:
                self._violate("a death has its letter", f"{name}: {told}, {row.reason}")
            if not self._has_dispatch(row, "letter", row.waits):
                self._violate("a death has its letter", f"{name} has no dispatch row")
        elif letters:
            self._violate("a death has its letter", f"{name} is {state}, {letters}")

    def _has_dispatch(self, row: Any, kind: str, number: int) -> bool:
        return any(
            each.is_open
            and (each.kind, each.number) == (kind, number)
            and (each.schedule_id, each.version) == (row.schedule_id, row.version)
            and (each.scheduled_for, each.run) == (row.scheduled_for, row.run)
            for rows in self._world.store.dispatches.values()
            for each in rows.values()
        )

    def _violate(self, invariant: str, text: str) -> None:
        self._book.violate(invariant, text)
