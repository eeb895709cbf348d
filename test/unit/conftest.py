"""What all unit tests share."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from support.waiting_forms import form, green, pytest_pyfunc_call

__all__ = ['form', 'green', 'pytest_pyfunc_call']

# Time limits of single examples say more about the machine than about us.
settings.register_profile(
    'unit', deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile('unit')
