"""The board renders what has changed, and knows what a page lacks."""

import asyncio

import pytest

from app import pause as pause_module
from app.web import board as board_module
from app.web.board import Board, id_of
from app.web.notifier import Notifier
from app.web.parts import Gone, Part


class World:
    """Rows of a list that can be changed, and how often each was rendered."""

    def __init__(self, **rows):
        self.rows = rows
        self.rendered, self.notifier = [], Notifier()
        self.board = Board(self.parts, self.render, self.notifier)

    def parts(self):
        yield None
        for row in self.board.rows("list"):
            if row.part.key[1] not in self.rows:
                yield Gone(row.part.key)
        for name, text in sorted(self.rows.items()):
            yield Part(("row", name), "row", text, row_of="list")

    def render(self, template, variables):
        self.rendered.append(variables["part"])
        return f"<li id={variables['id']}>{variables['part']}</li>"

    async def look(self):
        """As the next look after a while, which finds everything old."""
        self.board._again_at = float("-inf")
        await self.board.refresh()
        return self.board.version

    def changed_since(self, version):
        return [change.html.partition(">")[2].removesuffix("</li>") for change in self.board.changes(version).changed]


def run(story):
    asyncio.run(story())


def test_only_what_has_changed_is_rendered_again_and_sent():
    async def story():
        world = World(a="1", b="2")
        before = await world.look()
        world.rows["b"] = "3"
        await world.look()
        assert world.rendered == ["1", "2", "3"]
        assert world.changed_since(before) == ["3"]
        assert world.changed_since(world.board.version) == []

    run(story)


def test_who_was_away_for_some_versions_is_told_all_of_them_once():
    async def story():
        world = World(a="1", b="2", c="3")
        before = await world.look()
        for text in ("4", "5"):
            world.rows["a"] = text
            await world.look()
        world.rows["c"] = "6"
        await world.look()
        assert world.changed_since(before) == ["5", "6"]

    run(story)


def test_a_new_row_says_behind_which_it_belongs_and_one_that_is_gone_is_named():
    async def story():
        world = World(a="1", c="3")
        before = await world.look()
        world.rows = {"a": "1", "b": "2"}
        await world.look()
        changes = world.board.changes(before)
        assert [(change.row_of, change.after) for change in changes.changed] == [("list", id_of(("row", "a")))]
        assert changes.removed == (id_of(("row", "c")),)
        world.rows["c"] = "3"
        await world.look()
        assert world.board.changes(before).removed == ()

    run(story)


@pytest.mark.parametrize("since", ["", "x", "x-1", "-1", "{}-", "{}-9", "{}-" + "9" * 5000, "{}-²"])
def test_a_version_that_is_not_of_this_board_means_to_reload(since):
    async def story():
        world = World(a="1")
        process = (await world.look()).partition("-")[0]
        assert world.board.changes(since.replace("{}", process)).reload

    run(story)


def test_who_was_away_for_more_than_is_remembered_has_to_reload(monkeypatch):
    monkeypatch.setattr(board_module, "REMEMBERED", 2)

    async def story():
        world = World(a="1", b="2", c="3", d="4")
        versions = [await world.look()]
        for gone in "abc":
            del world.rows[gone]
            versions.append(await world.look())
        assert world.board.changes(versions[0]).reload
        assert set(world.board.changes(versions[1]).removed) == {id_of(("row", "b")), id_of(("row", "c"))}

    run(story)


def test_many_who_look_at_once_cost_one_look():
    async def story():
        world = World(a="1")
        looks = []
        world.board._look = lambda: looks.append(1) or world.parts()
        await asyncio.gather(*(world.board.refresh() for _ in range(20)))
        assert len(looks) == 1

    run(story)


def test_who_waits_is_woken_by_a_change_also_by_one_that_came_during_the_look(monkeypatch):
    monkeypatch.setattr(board_module, "INTERVAL", 0.0)
    monkeypatch.setattr(board_module, "RESTRAINT", 0)
    monkeypatch.setattr(board_module, "HEARTBEAT", 3600)

    async def story():
        world = World(a="1")
        await world.look()
        waits = [asyncio.create_task(world.board.wait()) for _ in range(3)]
        await asyncio.sleep(0)
        assert not any(each.done() for each in waits)
        world.notifier.notify()
        await asyncio.wait_for(asyncio.gather(*waits), 10)

        def with_a_change_meanwhile():
            world.notifier.notify()
            yield from world.parts()

        world.board._look = with_a_change_meanwhile
        await world.look()
        await asyncio.wait_for(world.board.wait(), 10)

    run(story)


def test_a_look_that_is_broken_off_loses_no_change():
    async def story():
        world = World(a="1", b="2")
        before = await world.look()
        world.rows = {"a": "3", "b": "4"}

        def broken_off():
            yield from list(world.parts())[:2]
            raise asyncio.CancelledError

        world.board._look = broken_off
        with pytest.raises(asyncio.CancelledError):
            await world.look()
        world.board._look = world.parts
        await world.look()
        assert world.changed_since(before) == ["3", "4"]

    run(story)


def test_the_loop_gets_its_turn_during_a_long_look(monkeypatch):
    monkeypatch.setattr(pause_module, "SLICE", 0.0)

    async def story():
        world = World(**{f"row{number}": "1" for number in range(50)})
        turns = 0

        async def scheduler():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.create_task(scheduler())
        await world.look()
        other.cancel()
        assert turns >= 50

    run(story)
