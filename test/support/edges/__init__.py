"""What stands at the edge of a node in tests: S3 servers, links and clients.

Real servers, the faults in front of them, and fakes that keep the contract of
``test/contract``. Nothing here knows a node.
"""
