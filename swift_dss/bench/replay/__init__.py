"""Replay of traces: strategies compared in virtual time."""
