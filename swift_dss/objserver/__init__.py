"""The object server: tags, and the diskfile plug-ins.

Holds writer and reader of versions, POSTs, and events to the tier daemon.
In: requests of proxies and of Swift's daemons.
Never: a byte that was not proven, or a wait for the daemon.
"""
