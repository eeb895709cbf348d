"""What a package of a distribution has besides code, made of the commands.

Holds man pages and shell completion; both by libraries, of argparse's parsers.
In: the parser of every command.
Never: a text of its own about an option; ``--help`` has it.
"""
