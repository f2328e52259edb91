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
# Of properties, too: the same examples each time, so that who has changed nothing of it is not told of an old fault.
export TORTIE_SAME_EXAMPLES=1

closings='^=* ?([0-9]+ (passed|failed|skipped|error)|no tests ran).* in [0-9.]+s' # how pytest ends

complaints() { # log: pytest's list of what failed, at most 40 lines; without one, how the log ends
    local list
    list=$(sed -n '/^=* short test summary info =*$/,$p' "$1" | grep -av -e '^SKIPPED' -e '^=' -e '^make' | head -n 40)
    if [ -n "$list" ]; then printf '%s\n' "$list"; else tail -n 12 "$1"; fi
}

remembering() { # target, command: pytest remembers what has failed apart from other targets
    rm -rf "$logs/$1.cache"
    PYTEST_ADDOPTS="-o cache_dir=$logs/$1.cache" "${@:2}"
}

stage() { # target
    local started=$SECONDS
    printf '\n===== make %s =====\n' "$1"
    remembering "$1" "${MAKE:-make}" --no-print-directory "$1" 2>&1 | tee "$logs/$1.log"
    conclude "$1" "${PIPESTATUS[0]}" $((SECONDS - started))
}

# A test that has failed is tried once more alone, so that whoever reads the end knows whether it fails by itself or
# by chance, by what ran beside it or before. The build has failed in either case: chance is a fault of ours, too.
once_more() { # target
    local closing
    grep -aqE '^(FAILED|ERROR) ' "$logs/$1.log" || return 0
    printf '\n===== make %s: what has failed, once more alone =====\n' "$1"
    PYTEST_ADDOPTS="-o cache_dir=$logs/$1.cache --last-failed --last-failed-no-failures none --cov-fail-under=0" \
        timeout 600 "${MAKE:-make}" --no-print-directory "$1" WORKERS=0 </dev/null 2>&1 | tee "$logs/$1.alone.log"
    closing=$(grep -aE "$closings" "$logs/$1.alone.log" | tail -n 1)
    summary+=("  once more alone, which counts for nothing: ${closing:-not within ten minutes}")
}

conclude() { # target, exit code, seconds
    local verdict=passed closing
    [ "$2" = 0 ] || { verdict=FAILED && failed+=("$1"); }
    closing=$(grep -aE "$closings" "$logs/$1.log" | tail -n 1)
    summary+=("$(printf '%-13s %s in %d s' "$1" "$verdict" "$3")")
    [ -z "$closing" ] || summary+=("  $closing")
    # Whoever reads only the end has to know which test it was, and in what words it failed.
    [ "$verdict" = passed ] || while IFS= read -r line; do summary+=("  ${line:0:600}"); done < <(complaints "$logs/$1.log")
    [ "$verdict" = passed ] || once_more "$1"
}

# What mostly waits runs beside stages that compute. What it says is shown when it has ended.
beside=()
begin() { # targets, one after the other
    local target
    begun=$SECONDS beside=("$@")
    for target; do rm -f "$logs/$target.ended"; done
    set -m # a group of its own, and signals as usual
    for target; do
        remembering "$target" "${MAKE:-make}" --no-print-directory "$target" </dev/null >"$logs/$target.log" 2>&1
        echo "$? $SECONDS" >"$logs/$target.ended"
    done &
    set +m
    group=$!
    trap 'kill -- -$group 2>/dev/null' EXIT
}

finish() { # those that were begun
    local target code ended before=$begun
    wait $group
    trap - EXIT
    for target in "${beside[@]}"; do
        read -r code ended 2>/dev/null <"$logs/$target.ended" || code=1 ended=$SECONDS
        printf '\n===== make %s (beside stages above) =====\n' "$target"
        cat "$logs/$target.log"
        conclude "$target" "$code" $((ended - before))
        before=$ended
    done
}

stage build
if [ ${#failed[@]} = 0 ]; then
    [ "$SUBJECT" = build ] || stage "$SUBJECT"
    [ ${#failed[@]} = 0 ] || SUBJECT=build # which says more than nothing does
    TORTIE_BIN=$("${MAKE:-make}" --no-print-directory -s tested)
    export TORTIE_BIN # as it is now, for all stages
    # These take the executable in any case.
    QUICK=1 MINUTES=1 FRESH=$([ "$SUBJECT" = build ] || echo 1) begin runtimes chaos
    for target in lint site unit fuzz mutants; do stage "$target"; done
    finish
    for target in integration ut-etcd ut-kdd ut-kubevirt ut-transports demo; do stage "$target"; done
    summary+=("windows       NOT RUN under Wine: make windows does that; the bindings' tests ran over a Linux build of the fakes")
    if [ -n "${PEER:-}" ]; then
        stage interop
    else
        not_run=' (interop NOT RUN: it needs PEER)'
        summary+=("interop       NOT RUN: it needs the original's executables, make test PEER=<their folder>")
    fi
fi

if [ ${#failed[@]} != 0 ]; then
    printf '\n===== what has failed =====\n'
    said=("${failed[@]/#/$logs/}")
    python3 packaging/failures.py "${said[@]/%/.log}"
fi
printf '\n===== make test =====\n'
printf '%s\n' "${summary[@]}"
if [ ${#failed[@]} != 0 ]; then
    printf 'RESULT: FAILED (%s)\n' "${failed[*]}"
    exit 1
fi
echo "RESULT: all stages passed$not_run"
