"""Tables and lists of facts on a terminal."""

from collections.abc import Iterable, Sequence


def print_facts(*facts: tuple[str, object]) -> None:
    """Print labels and values in two columns; a value is folded, never cut."""
    from rich.console import Console  # noqa: PLC0415 - not needed by programs
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    # An id is there to be copied, so no part of it may be lost.
    grid.add_column(overflow="fold")
    for label, value in facts:
        grid.add_row(Text(label, style="dim"), Text(str(value)))
    Console().print(grid)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under their columns; nothing of a value is markup."""
    from rich.console import Console  # noqa: PLC0415 - not needed by programs
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(*columns)
    for row in rows:
        table.add_row(*(Text("" if value is None else str(value)) for value in row))
    Console().print(table)
