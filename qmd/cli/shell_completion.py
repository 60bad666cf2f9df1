"""
``qmd completion``: the scripts with which bash, zsh and fish complete a command line.

The mechanism is click's: the script of the shell starts ``qmd`` with the line in the environment
and ``_QMD_COMPLETE=SHELL_complete``, and click asks the parameter under the cursor. The scripts are
qmd's own for three reasons: bash takes ``:`` for the end of a word, no shell should put a space
after a folder, and names of files contain commas and spaces.
"""

from __future__ import annotations

import os
import re

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

from qmd.cli.command import command
from qmd.cli.terminal import write

VARIABLE = "_QMD_COMPLETE"
SHELLS = ("bash", "zsh", "fish")

_BASH = """\
# Completion of qmd for bash. In ~/.bashrc:  eval "$(qmd completion bash)"
%(complete_func)s() {
    local kind value response
    response=$(COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORD="${COMP_WORDS[COMP_CWORD]}" \\
        %(complete_var)s=bash_complete "${1/#\\~/$HOME}" 2>/dev/null)
    COMPREPLY=()
    while IFS=, read -r kind value; do
        case $kind in
            dir) compopt -o dirnames 2>/dev/null ;;
            file) compopt -o default 2>/dev/null ;;
            plain) COMPREPLY+=("$value") ;;
            path) COMPREPLY+=("$value"); compopt -o filenames 2>/dev/null ;;
            part) COMPREPLY+=("$value"); compopt -o filenames -o nospace 2>/dev/null ;;
        esac
    done <<< "$response"
}
complete -o nosort -F %(complete_func)s %(prog_name)s 2>/dev/null ||
    complete -F %(complete_func)s %(prog_name)s
"""

_ZSH = """\
#compdef %(prog_name)s
# Completion of qmd for zsh. In ~/.zshrc, after compinit:  eval "$(qmd completion zsh)"
%(complete_func)s() {
    local kind key descr
    local -a response plain described parts
    (( ! $+commands[%(prog_name)s] )) && return 1
    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) \\
        %(complete_var)s=zsh_complete %(prog_name)s 2>/dev/null)}")
    for kind key descr in ${response}; do
        case $kind in
            dir) _path_files -/ ;;
            file) _path_files -f ;;
            part) parts+=("$key") ;;
            plain|path)
                if [[ $descr == _ ]]; then plain+=("$key"); else described+=("$key:$descr"); fi ;;
        esac
    done
    [[ -n $described ]] && _describe -V unsorted described -U
    [[ -n $parts ]] && compadd -U -S '' -V unsorted -a parts
    [[ -n $plain ]] && compadd -U -V unsorted -a plain
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""

_FISH = """\
# Completion of qmd for fish:  qmd completion fish > ~/.config/fish/completions/qmd.fish
function %(complete_func)s
    set -l response (env %(complete_var)s=fish_complete \\
        COMP_WORDS=(commandline -cp | string collect) \\
        COMP_CWORD=(commandline -ct | string collect) %(prog_name)s 2>/dev/null)
    for completion in $response
        set -l item (string split -m 1 "," -- $completion)
        switch $item[1]
            case dir
                __fish_complete_directories $item[2]
            case file
                __fish_complete_path $item[2]
            case plain path part
                echo $item[2]
        end
    end
end
complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""


class _Shell(ShellComplete):
    """
    What the three shells share.

    ``splits_options``: whether the shell takes the value of ``--option=value`` for a word.
    """

    splits_options = False

    def complete(self) -> str:
        args, incomplete = self.get_completion_args()
        items = self.get_completions(args, incomplete)
        if incomplete.startswith("-") and "=" in incomplete and not self.splits_options:
            # click completes the value alone, and the shell replaces the whole word.
            option = incomplete.partition("=")[0]
            items = [
                item
                if item.type in ("dir", "file")
                else _with_value(item, f"{option}={item.value}")
                for item in items
            ]
        return "\n".join(map(self.format_completion, items))


class _Bash(_Shell, BashComplete):
    source_template = _BASH
    splits_options = True  # "=" ends a word

    def source(self) -> str:
        # click's starts bash and warns if it is old; this script works with old ones, too.
        return self.source_template % self.source_vars()

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_LINE"]
        words = split_arg_string(line)[1:]
        is_new_word = not words or (line[-1:].isspace() and split_arg_string(line + "x")[-1] == "x")
        return (words, "") if is_new_word else (words[:-1], words[-1])

    def format_completion(self, item: CompletionItem[str]) -> str:
        if item.type in ("dir", "file"):
            return f"{item.type},{item.value}"
        word = os.environ["COMP_WORD"]
        value = item.value[self._before(word) :]
        if item.type == "plain":  # bash itself quotes names of files
            value = _quoted(value, word[:1])
        return f"{item.type},{value}"

    def _before(self, word: str) -> int:
        """How many characters of the value stand before ``word``, which bash will replace."""
        typed = self.get_completion_args()[1]
        if typed.startswith("-"):
            typed = typed.partition("=")[2]
        unquoted = "".join(split_arg_string(word)) if word.strip(":=") else ""
        return len(typed) - len(unquoted) if typed.endswith(unquoted) else 0


def _quoted(value: str, quote: str) -> str:
    """A value as bash reads it after this quotation mark, so that it runs nothing of it."""
    if quote == "'":
        return value.replace("'", r"'\''")
    if quote == '"':
        return re.sub(r'([$`"\\])', r"\\\1", value)
    return re.sub(r"([^\w@%+=:,./-])", r"\\\1", value)


class _Zsh(_Shell, ZshComplete):
    source_template = _ZSH


class _Fish(_Shell, FishComplete):
    source_template = _FISH


def register() -> None:
    """Make these the shells that click completes."""
    for shell in (_Bash, _Zsh, _Fish):
        add_completion_class(shell)


def _with_value(item: CompletionItem[str], value: str) -> CompletionItem[str]:
    return CompletionItem(value, type=item.type, help=item.help)


@command(
    "completion",
    examples=(
        'eval "$(qmd completion bash)"     # in ~/.bashrc',
        'eval "$(qmd completion zsh)"      # in ~/.zshrc, after compinit',
        "qmd completion fish > ~/.config/fish/completions/qmd.fish",
    ),
)
@click.argument("shell", type=click.Choice(SHELLS), metavar="SHELL")
def completion(shell: str) -> None:
    """
    Print the script that completes qmd in bash, zsh or fish.

    It completes commands and options, and from your database collections, documents, tags,
    properties, models and conversations.
    """
    register()
    root = click.get_current_context().find_root()
    shell_class = get_completion_class(shell)
    assert shell_class is not None
    write(shell_class(root.command, {}, "qmd", VARIABLE).source())
