"""Packaging entry point; all but what is compiled is in setup.cfg."""

import setuptools

FLAGS = ['-std=gnu11', '-O2', '-Wall', '-Wextra']
ORDERS = 'swift_dss/strategy/eviction/objects/fast'

setuptools.setup(ext_modules=[
    # Where it cannot be compiled the object server hashes with hashlib.
    setuptools.Extension(
        'swift_dss.io.md5_lanes', ['swift_dss/io/md5_lanes.c'],
        depends=['swift_dss/io/md5_steps.h'],
        extra_compile_args=FLAGS, optional=True),
    # And there a replay decides in Python. GDSF rounds as Python does: no
    # product is added before it is rounded.
    setuptools.Extension(
        ORDERS.replace('/', '.'), [ORDERS + '.c'],
        depends=['%s_%s.h' % (ORDERS, part) for part in (
            'cache', 'nodes', 'orders', 'verbs')],
        extra_compile_args=[*FLAGS, '-ffp-contract=off'], optional=True),
    # And reads all of a trace before it takes a sample.
    setuptools.Extension(
        'swift_dss.replay.traces.lines', ['swift_dss/replay/traces/lines.c'],
        extra_compile_args=FLAGS, optional=True)])
