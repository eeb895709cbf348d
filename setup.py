"""Packaging entry point; all but what is compiled is in setup.cfg."""

import setuptools

setuptools.setup(ext_modules=[
    # Where it cannot be compiled the object server hashes with hashlib.
    setuptools.Extension(
        'swift_dss.io.md5_lanes', ['swift_dss/io/md5_lanes.c'],
        depends=['swift_dss/io/md5_steps.h'],
        extra_compile_args=['-std=gnu11', '-O2', '-Wall', '-Wextra'],
        optional=True)])
