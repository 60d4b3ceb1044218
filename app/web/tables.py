"""Tables with a next page: each has at most ``ROWS`` rows."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import nsmallest

from app.pause import Pause
from app.web.asked import Asked
from app.web.cells import Cell

ROWS = 50
"""Maximum number of rows of a table; the next page has more."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows, the first cell of which names the row. ``following``: what ``param`` has to be for the next page.

    ``sortable``: all rows are there, so that a browser can sort them. Else ``orders`` has by column the order that the
    server knows, and ``order`` is the present one.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: int
    param: str
    nobody: str
    following: str = ""
    sortable: bool = False
    orders: tuple[tuple[str, str], ...] = ()
    order: str = ""


async def table_of(
    asked: Asked,
    title: str,
    columns: tuple[str, ...],
    param: str,
    keys: Iterable[str],
    cells: Callable[[str], tuple[Cell, ...]],
    nobody: str = "There are none.",
) -> Table:
    """Makes the page of a table that is asked for; rows stand in the order of their keys."""
    everything, after = list(keys), asked.after(param)
    first = nsmallest(ROWS + 1, (key for key in everything if key > after))
    page = first[:ROWS]
    following = page[-1] if len(first) > len(page) else ""
    rows, pause = list[tuple[Cell, ...]](), Pause()
    for key in page:
        rows.append(cells(key))
        await pause.if_due()
    sortable = not after and not following
    return Table(title, columns, tuple(rows), len(everything), param, nobody, following, sortable=sortable)
