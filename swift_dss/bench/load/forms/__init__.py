"""The forms of a scenario: JSON of ssbench, YAML of warp, XML of COSBench.

Holds a reader of each form but ssbench's, and the choice between them.
In: the text of a file, and its name for errors.
Never: a field that changes the load and is passed over in silence.
"""
