"""The class table as strategies see it."""

from __future__ import annotations

from swift_dss.core.classes import Allocate, ClassSpec, ClassTable, Direct

TABLE = ClassTable.of([ClassSpec(0, 'unclassified', 0),
                       ClassSpec(25, 'gold', 900),
                       ClassSpec(3, 'tie', 900)])


def test_an_id_without_a_row_is_treated_like_class_0():
    assert TABLE.spec(7).name == 'unclassified'
    assert ClassTable().spec(7).rank == 0
    assert TABLE.name_of(7) == '7'


def test_names_are_found_in_any_case():
    assert TABLE.by_name('GOLD').class_id == 25
    assert TABLE.by_name('silver') is None


def test_lowest_rank_leaves_first_and_ties_go_by_id():
    assert [spec.class_id for spec in TABLE.in_eviction_order()] == [
        0, 3, 25]


def test_cold_copies_have_the_lowest_class_that_may_come_and_go():
    table = ClassTable.of([
        ClassSpec(0, 'unclassified', 0), ClassSpec(1, 'top', 900),
        ClassSpec(2, 'never', 1, allocate=Allocate.NEVER),
        ClassSpec(3, 'past', 2, direct=Direct.HDD),
        ClassSpec(4, 'pinned', 3, pin=True),
        ClassSpec(5, 'scan', 4, no_allocate=True),
        ClassSpec(6, 'low', 5)])
    assert table.cold_class.class_id == 6
    assert ClassTable.of([ClassSpec(0, 'unclassified', 0)]).cold_class is None
