"""Class maps of fragment archives, as the tier daemon sees them."""

from __future__ import annotations

import pytest
from swift.common.storage_policy import ECStoragePolicy

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.errors import DamagedRecord
from swift_dss.core.spans import ClassMap, Span
from swift_dss.tier.local.metadata import VersionMetadata

MIB = 1 << 20
TABLE = ClassTable.of([ClassSpec(0, 'plain', 0), ClassSpec(5, 'low', 5),
                       ClassSpec(9, 'high', 9)])
MAP = ClassMap.from_spans([Span(0, MIB, 9), Span(MIB, MIB, 5)], 9)


def _metadata(class_map, **headers):
    return VersionMetadata(
        {name.replace('_', '-'): value for name, value in headers.items()},
        3 * MIB, '', class_map)


@pytest.mark.parametrize('data, parity', [(2, 1), (4, 2), (10, 4)])
def test_a_segment_s_class_lies_where_its_fragment_lies(data, parity):
    storage_policy = ECStoragePolicy(
        1, 'ec', ec_type='liberasurecode_rs_vand', ec_ndata=data,
        ec_nparity=parity, ec_segment_size=MIB)
    file_map = _metadata(
        MAP, X_Object_Sysmeta_Ec_Segment_Size=str(MIB),
        X_Object_Sysmeta_Ec_Scheme=storage_policy.ec_scheme_description
    ).file_map(TABLE)
    fragment = storage_policy.fragment_size
    assert [file_map.class_at(offset) for offset in (
        0, fragment - 1, fragment, 2 * fragment - 1, 2 * fragment)] == [
            9, 9, 5, 5, 9]


def test_a_replicated_object_has_one_map():
    assert _metadata(MAP).file_map(TABLE) == MAP


@pytest.mark.parametrize('scheme', ['', 'nonsense', 'unknown_ec 2+1',
                                    'liberasurecode_rs_vand 2+x'])
def test_an_unknown_scheme_moves_nothing(scheme):
    with pytest.raises(DamagedRecord):
        _metadata(MAP, X_Object_Sysmeta_Ec_Segment_Size=str(MIB),
                  X_Object_Sysmeta_Ec_Scheme=scheme).file_map(TABLE)


def test_an_unclassified_archive_needs_no_scheme():
    uniform = ClassMap.uniform(5)
    assert _metadata(uniform, X_Object_Sysmeta_Ec_Segment_Size='1'
                     ).file_map(TABLE) == uniform
