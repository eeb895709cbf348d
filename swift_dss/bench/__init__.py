"""Workloads and measurements; reports with tables and plots.

Holds what several benches share: figures, plots, CPU time.
In: a cluster, a device or a trace to measure.
Never: a figure without its bound and its loser, or a secret in a report.
"""
