"""Plots of many strategies can be told apart, and none is covered."""

import pytest

from swift_dss.bench import plots
from swift_dss.core.classes import ClassTable
from swift_dss.replay import drawing

pytest.importorskip('matplotlib')


def report(curves):
    return {'trace': 't', 'requests': 1, 'classes': [0], 'runs': [
        {'strategy': 's%d' % at, 'prefetch': 'none', 'cache_share': share,
         'hit_ratio': 0.5, 'byte_hit_ratio': 0.5, 'cdf_ms': [[0.5, 1.0]]}
        for at in range(curves) for share in (0.01, 0.1)]}


@pytest.fixture
def drawn(monkeypatch):
    def draw(curves):
        kept = []
        monkeypatch.setattr(plots, 'save',
                            lambda figure, path: kept.append(figure))
        drawing.draw(report(curves), 'x.png', ClassTable())
        return kept[0]
    return draw


@pytest.mark.parametrize('curves', [3, 8, 15, 20])
def test_each_curve_has_a_colour_of_its_own(drawn, curves):
    from matplotlib.colors import to_hex
    for axis in drawn(curves).axes:
        assert len({to_hex(line.get_color()) for line in axis.lines}) == curves


@pytest.mark.parametrize('curves', [3, 15])
def test_the_legend_is_beside_the_curves(drawn, curves):
    figure = drawn(curves)
    legend, = figure.legends
    assert len(legend.get_texts()) == curves
    assert all(axis.get_legend() is None for axis in figure.axes)
    figure.canvas.draw()
    box = legend.get_window_extent()
    assert not any(box.overlaps(axis.get_window_extent())
                   for axis in figure.axes)


def test_the_limit_of_hits_is_drawn_above_the_orders(monkeypatch):
    kept = []
    monkeypatch.setattr(plots, 'save',
                        lambda figure, path: kept.append(figure))
    drawing.draw(dict(report(2), limits=[
        {'cache_share': share, 'hit_ratio_at_most': 0.75}
        for share in (0.01, 0.1)]), 'x.png', ClassTable())
    hits = kept[0].axes[0].lines
    assert [line.get_label() for line in hits][-1] == 'limit of any order'
    assert list(hits[-1].get_ydata()) == [0.75, 0.75]
