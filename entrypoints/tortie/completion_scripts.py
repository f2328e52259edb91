"""`tortie completion SHELL`: what a shell is told once, so that it asks `tortie __complete` what may stand there.

    source <(tortie completion bash)

Invariant: no script knows a command, an option or a name.
"""

from __future__ import annotations

from entrypoints.tortie.answer import Answer
from entrypoints.tortie.command import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from entrypoints.tortie.session import Session

BASH = r"""# tortie: completion for bash, by the program itself. source <(tortie completion bash)
_tortie() {
    local line="${COMP_LINE:0:COMP_POINT}" current="${COMP_WORDS[COMP_CWORD]}" full candidate answer
    local -a words
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    full="${words[${#words[@]}-1]}"
    [[ $current == [=:] ]] && current=""
    COMPREPLY=()
    answer="$("${words[0]/#\~/$HOME}" __complete "${words[@]:1}" 2>/dev/null)" || return 0
    while IFS=$'\t' read -r candidate _; do
        case "$candidate" in
            "") ;;
            :files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
            :folders) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
            *) COMPREPLY+=("${candidate#"${full%"$current"}"}") ;;
        esac
    done <<< "$answer"
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
    return 0
}
complete -F _tortie tortie
"""
ZSH = r"""#compdef tortie
# tortie: completion for zsh, by the program itself. source <(tortie completion zsh)
_tortie() {
    local line
    local -a described whole
    for line in "${(@f)$("${(Q)words[1]/#\~/$HOME}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
        case "$line" in
            "") ;;
            :files) _files ;;
            :folders) _files -/ ;;
            *=$'\t'*) whole+=("${line%%$'\t'*}") ;;
            *) described+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
        esac
    done
    (( $#described )) && _describe 'tortie' described
    (( $#whole )) && compadd -S '' -- $whole
    return 0
}
if [[ "$funcstack[1]" = _tortie ]]; then _tortie "$@"; else compdef _tortie tortie; fi
"""
FISH = r"""# tortie: completion for fish, by the program itself. tortie completion fish | source
function __tortie_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    for line in ($program __complete $words -- "$current" 2>/dev/null)
        switch $line
            case ':files*'
                __fish_complete_path $current
            case ':folders*'
                __fish_complete_directories $current
            case '*'
                echo $line
        end
    end
end
complete -c tortie -e
complete -c tortie -f -a '(__tortie_complete)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=tuple(SCRIPTS), help=", ".join(SCRIPTS))


def _run(options: Namespace, _session: Session) -> Answer:
    return Answer(SCRIPTS[options.shell])


COMMAND = Command(
    "completion",
    "Show what makes a shell complete this command.",
    _run,
    _add_arguments,
    uses_datastore=False,
    examples="""\
source <(tortie completion bash)                  in this shell; in ~/.bashrc for every one
tortie completion zsh > "${fpath[1]}/_tortie"
tortie completion fish > ~/.config/fish/completions/tortie.fish""",
)
