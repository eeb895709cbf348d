"""S01 in little: the whole matrix is ``spoof_matrix.py`` as a script."""

from __future__ import annotations

import pytest
import spoof_matrix

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

#: Spellings that WSGI servers may take for the real one.
_NEAR = ('plain', 'underscores', 'twice', 'space before colon',
         'folded into another', 'bare CR', 'bare LF')


def _chosen(way, header, spelling):
    return spelling == 'plain' or (
        header == spoof_matrix.names.BACKEND_MAP and spelling in _NEAR)


@pytest.fixture(scope='module')
def spied(cluster):
    spied_cluster = spoof_matrix.SpiedCluster(cluster)
    yield spied_cluster
    spied_cluster.close()


def test_nothing_forged_arrives(cluster, spied):
    _url, token = cluster.connection().get_auth()
    result = spoof_matrix.run(spied, cluster.conf.proxy_port, token,
                              _chosen)
    assert result.combinations > 500
    assert result.served > result.combinations // 2, result.statuses
    assert result.spied > result.combinations
    assert result.arrived == []


def test_our_filter_alone_keeps_everything_out(cluster, spied):
    _url, token = cluster.connection().get_auth()
    result = spoof_matrix.run(spied, spied.blind_proxy(), token,
                              spoof_matrix.only_plain)
    assert result.arrived == []


def test_the_harness_sees_what_a_bare_proxy_lets_through(cluster, spied):
    _url, token = cluster.connection().get_auth()
    result = spoof_matrix.run(spied, spied.bare_proxy(), token,
                              spoof_matrix.only_plain)
    arrived = {arrival[0] for arrival in result.arrived}
    assert {'PUT', 'POST', 'COPY', 'SLO manifest', 'symlink', 'versioned',
            'tempurl header', 's3 PUT', 'container POST'} <= arrived
