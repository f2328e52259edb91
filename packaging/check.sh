#!/bin/bash
# `make test`: runs every stage, goes on after a failed one, and ends with what each of them said.
# The exit code is 0 only if all stages passed.
#
# Integration tests and matrices are of the self-contained executable; `SUBJECT=build make test` takes the bundle for them.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export SUBJECT=${SUBJECT:-dist}
logs=build/check
mkdir -p $logs
failed=()
summary=()
not_run=

# Of `make fuzz`, for each of its targets: little, and the same each time; longer runs by hand look for what is new.
export MINUTES=${MINUTES:-0.008} FUZZ_ARGS=${FUZZ_ARGS:---jobs=2 --seed=1}

complaints() { # log: pytest's list of what failed, at most 40 lines; without one, how the log ends
    local list
    list=$(sed -n '/^=* short test summary info =*$/,$p' "$1" | grep -av -e '^SKIPPED' -e '^=' -e '^make' | head -n 40)
    if [ -n "$list" ]; then printf '%s\n' "$list"; else tail -n 12 "$1"; fi
}

stage() { # target
    local started=$SECONDS verdict=passed closing
    printf '\n===== make %s =====\n' "$1"
    "${MAKE:-make}" --no-print-directory "$1" 2>&1 | tee "$logs/$1.log"
    [ "${PIPESTATUS[0]}" = 0 ] || { verdict=FAILED && failed+=("$1"); }
    closing=$(grep -aE '^=+ .*(passed|failed|error|no tests ran).* in [0-9.]+s' "$logs/$1.log" | tail -n 1)
    summary+=("$(printf '%-13s %s in %d s' "$1" "$verdict" $((SECONDS - started)))")
    [ -z "$closing" ] || summary+=("  $closing")
    # Whoever reads only the end has to know which test it was, and in what words it failed.
    [ "$verdict" = passed ] || while IFS= read -r line; do summary+=("  ${line:0:600}"); done < <(complaints "$logs/$1.log")
}

stage build
if [ ${#failed[@]} = 0 ]; then
    [ "$SUBJECT" = build ] || stage "$SUBJECT"
    [ ${#failed[@]} = 0 ] || SUBJECT=build # which says more than nothing does
    TORTIE_BIN=$("${MAKE:-make}" --no-print-directory -s tested)
    export TORTIE_BIN # as it is now, for all stages
    for target in lint site unit fuzz mutants integration ut-etcd ut-kdd ut-kubevirt ut-transports demo; do stage "$target"; done
    QUICK=1 stage runtimes # which takes the executable in any case, and so does
    MINUTES=1 stage chaos
    if [ -n "${PEER:-}" ]; then
        stage interop
    else
        not_run=' (interop NOT RUN: it needs PEER)'
        summary+=("interop       NOT RUN: it needs the original's executables, make test PEER=<their folder>")
    fi
fi

printf '\n===== make test =====\n'
printf '%s\n' "${summary[@]}"
if [ ${#failed[@]} != 0 ]; then
    printf 'RESULT: FAILED (%s)\n' "${failed[*]}"
    exit 1
fi
echo "RESULT: all stages passed$not_run"
