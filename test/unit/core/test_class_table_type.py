"""The class table as strategies see it."""

from __future__ import annotations

from swift_dss.core.classes import ClassSpec, ClassTable

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
