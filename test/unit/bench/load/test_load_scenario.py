"""Scenarios: ssbench's as they are, and what is wrong with others."""

from __future__ import annotations

import json

import pytest

from swift_dss.bench.load.scenario import BadScenario, parse

#: The example of ssbench's manual.
SMALL = '''{
  "name": "Small test scenario",
  "sizes": [{
    "name": "tiny",
    "size_min": 4096,
    "size_max": 65536
  }, {
    "name": "small",
    "size_min": 100000,
    "size_max": 200000
  }],
  "initial_files": {
    "tiny": 100,
    "small": 10
  },
  "operation_count": 500,
  "crud_profile": [3, 4, 2, 2],
  "user_count": 7
}
'''


def with_(**fields):
    data = json.loads(SMALL)
    data.update(fields)
    return json.dumps(data)


def sized(**fields):
    return with_(sizes=[dict({'name': 'tiny', 'size_min': 1, 'size_max': 9},
                             **fields)], initial_files={'tiny': 1})


def test_the_manuals_example():
    scenario = parse(SMALL, 'small')
    assert (scenario.name, scenario.users, scenario.operations,
            scenario.seconds) == ('Small test scenario', 7, 500, None)
    assert [(size.name, size.size_min, size.size_max, size.weights,
             size.initial) for size in scenario.sizes] == [
        ('tiny', 4096, 65536, (3, 4, 2, 2, 0), 100),
        ('small', 100000, 200000, (3, 4, 2, 2, 0), 10)]
    assert len(scenario.containers) == 100
    assert scenario.containers[7] == 'ssbench_000007_default_policy'
    assert scenario.ignored == ()


def test_every_other_field():
    scenario = parse(sized(crud_profile=[0, 1, 0, 0], **{
        'class': 'gold', 'ranges': ['0-4k-silver']}), 'x')
    assert scenario.sizes[0].weights == (0, 1, 0, 0, 0)
    assert scenario.sizes[0].class_name == 'gold'
    assert scenario.sizes[0].ranges == ('0-4k-silver',)
    scenario = parse(with_(
        run_seconds=30, container_base='b', container_count=2,
        container_concurrency=1, policy='ec', delete_after=60,
        nonsense=1), 'x')
    # ssbench: run_seconds goes first.
    assert (scenario.seconds, scenario.operations) == (30, None)
    assert scenario.containers == ['b_000000_ec', 'b_000001_ec']
    assert (scenario.policy, scenario.delete_after) == ('ec', 60)
    assert scenario.ignored == ('nonsense',)
    assert parse(sized(clas='gold'), 'x').ignored == ('sizes[0].clas',)
    assert parse(sized(**{'class': 25}), 'x').sizes[0].class_name == '25'


@pytest.mark.parametrize('text, field, reason', [
    (with_(name=''), 'name', 'text'),
    (with_(sizes=[]), 'sizes', 'list'),
    (with_(sizes=[3]), 'sizes[0]', 'object of JSON'),
    (with_(user_count=0), 'user_count', '0 is not in 1 to 10000'),
    (with_(user_count='7'), 'user_count', 'whole number'),
    (with_(user_count=True), 'user_count', 'whole number'),
    (with_(operation_count=None), '', 'neither'),
    (with_(crud_profile=[0, 0, 0, 0]), 'crud_profile', 'four weights'),
    (with_(crud_profile=[1, 2, 3]), 'crud_profile', 'four weights'),
    (with_(initial_files={'huge': 1}), 'initial_files.huge', 'no size'),
    (with_(initial_files=None), 'initial_files', 'object of JSON'),
    (with_(container_base='a/b'), 'container_base', '/'),
    (with_(policy=3), 'policy', 'text'),
    (sized(size_min=-1), 'sizes[0].size_min', '-1'),
    (sized(size_max=0), 'sizes[0].size_max', '0 is not in 1 to'),
    (sized(size_max=None), 'sizes[0].size_max', 'missing'),
    (sized(crud_profile=[1, -1, 0, 0]), 'sizes[0].crud_profile', 'weights'),
    (sized(ranges='0-1-a'), 'sizes[0].ranges', 'OFFSET-LENGTH-CLASS'),
    (sized(segment_size='5m'), 'sizes[0].segment_size', 'whole number'),
    (sized(size_max=10 ** 9, segment_size=99_999), 'sizes[0].segment_size',
     '99999 is not in 100000 to'),
    (sized(**{'class': ['a']}), 'sizes[0].class', 'name nor an id'),
    ('[]', '', 'object of JSON'), ('{"name": 1,}', '', 'no JSON'),
    ('[' * 200_000, '', 'no JSON')])
def test_errors_name_field_and_reason(text, field, reason):
    with pytest.raises(BadScenario) as caught:
        parse(text, 'x.json')
    assert caught.value.field == field
    assert reason in caught.value.reason
    assert str(caught.value).startswith('x.json, line ')


def test_errors_name_the_place():
    with pytest.raises(BadScenario) as caught:
        parse(SMALL.replace('100000', '300000'), 'x')
    assert (caught.value.line, caught.value.column) == (10, 17)
    with pytest.raises(BadScenario) as caught:
        parse(SMALL.replace('"user_count": 7', '"user_count": 7,'), 'x')
    assert caught.value.line >= 18
    # A name that is there twice: the last one counts, and is shown.
    with pytest.raises(BadScenario) as caught:
        parse(SMALL.replace('"user_count": 7',
                            '"user_count": 7,\n  "user_count": 0'), 'x')
    assert (caught.value.line, caught.value.column) == (19, 17)


def test_a_size_that_is_there_twice():
    with pytest.raises(BadScenario) as caught:
        parse(SMALL.replace('"small"', '"tiny"', 1), 'x')
    assert caught.value.field == 'sizes[1].name'
