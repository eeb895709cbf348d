"""``swift-dss check``: a node's real files and devices, judged.

Holds one file a group of checks, the findings, and what was read of the node.
In: the configuration of Swift and of ours, devices, the kernel and S3.
Out: findings, each with its file, option, value and a way to mend it.
Never: a change of the node, but for trials that remove themselves.
"""
