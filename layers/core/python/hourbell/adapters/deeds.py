"""What implementations of the `Ledger` port have in common."""

from hourbell.adapters.letters import letter_key
from hourbell.usecases.work_ports import Deed


def reject_repeats(deed: Deed) -> None:
    """Refuse a deed that names a row or an item twice.

    Raises:
        ValueError: it does.
    """
    rows = [change.row.key for change in deed.changes]
    rows += [check.key for check in deed.checks]
    rows += [dispatch.key for dispatch in deed.dispatches]
    items = [(each.key, each.number) for each in deed.attempts]
    letters = [*deed.letters, *deed.forgets]
    deaths = [(each.tenant_id, letter_key(each)) for each in letters]
    for keys in (rows, items, deaths):
        if len(set(keys)) != len(keys):
            raise ValueError("a deed names a key twice")
