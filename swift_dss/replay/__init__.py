"""The replay: strategies on a trace, in virtual time.

Holds traces, the simulator of a cache, latencies, dollars, recommendations.
In: files of requests, class tables, the strategies that a server uses.
Out: tables and JSON.
Never: a server, a clock of this machine, or the network.
"""
