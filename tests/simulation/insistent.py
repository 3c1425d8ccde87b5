"""A ledger on which what was done is tried again, part by part."""

from dataclasses import replace
from typing import Any

from hourbell.usecases.ports import Write
from hourbell.usecases.work_ports import Deed


class Insistent:
    """A ledger on which every part of what was done is tried once more, by itself.

    Each part has a condition of its own, which what was done breaks: another process
    that decided the same must be refused wherever it has only that part to stop it.
    """

    PARTS = ("changes", "dispatches", "attempts", "lane", "takes")

    def __init__(self, ledger: Any, world: Any) -> None:
        self._ledger, self._world = ledger, world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def do(self, deed: Deed) -> Write:
        answer: Write = self._ledger.do(deed)
        parts = [part for part in self.PARTS if getattr(deed, part)]
        for part in parts if answer is Write.APPLIED else ():
            alone = replace(Deed(()), **{part: getattr(deed, part)})
            if self._ledger.do(alone) is not Write.LOST:
                log, steps = self._world.log, self._world.steps
                log.violate("what is done is not done again", steps, f"{alone}")
        return answer
