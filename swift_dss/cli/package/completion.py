"""``swift-dss completion``: a script with which a shell completes words."""

from __future__ import annotations

import argparse

from swift_dss.core.errors import BadConfig

HELP = 'print the completion of a shell'
SHELLS = ('bash', 'zsh', 'fish', 'tcsh')
_EPILOG = '''for this shell alone:  eval "$(swift-dss completion bash)"
for all users:         swift-dss completion bash \\
                         > /usr/share/bash-completion/completions/swift-dss
                       swift-dss completion zsh \\
                         > /usr/share/zsh/vendor-completions/_swift-dss
                       swift-dss completion fish \\
                         > /usr/share/fish/vendor_completions.d/swift-dss.fish
'''


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the argument."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument('shell', choices=SHELLS)


def run(args: argparse.Namespace) -> int:
    """Print it."""
    print(script(args.shell))
    return 0


def script(shell: str) -> str:
    """The script, of every command.

    :raises BadConfig: the library is not installed
    """
    # It imports all commands.
    from swift_dss.cli.main import whole_parser
    try:
        import shtab
    except ImportError as err:
        raise BadConfig('this needs shtab: pip install "swift-dss[package]"'
                        ) from err
    return str(shtab.complete(whole_parser(), shell))
