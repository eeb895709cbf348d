"""Workloads and measurements; reports with tables and plots."""
