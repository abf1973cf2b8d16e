#!/usr/bin/env bash
# Counts the instructions of one of each operation of benches/instructions with valgrind's callgrind, and fails where
# there are more than benches/instructions.txt allows. `--write` writes that file anew: what was counted and 2 % more.
set -euo pipefail
cd "$(dirname "$0")/.."
budget=benches/instructions.txt

command -v valgrind > /dev/null || {
    echo "benches/instructions.sh needs valgrind, which is not here: install it, as with \`apt install valgrind\`" >&2
    exit 2
}

program=$(cargo bench --quiet --no-run --bench instructions --message-format json |
    sed -n 's/.*"executable":"\([^"]*\/instructions-[^"]*\)".*/\1/p')
counts=$(mktemp -d)
trap 'rm -r "$counts"' EXIT
# Callgrind writes a file and starts from zero after each `counted`, which is called twice for each operation: the
# second file has nothing but the second call in it.
valgrind --quiet --tool=callgrind --callgrind-out-file="$counts/out" --dump-after='*counted*' \
    "$program" > "$counts/names" 2> "$counts/log" ||
    { cat "$counts/log" >&2; exit 2; }

# Tab-separated: instructions of one operation, its name.
number=0
while IFS= read -r name; do
    number=$((number + 2))
    total=$(sed -n 's/^totals: //p' "$counts/out.$number")
    printf '%d\t%s\n' $(((total + 500) / 1000)) "$name"
done < "$counts/names" > "$counts/counted"

if [[ ${1-} == --write ]]; then
    {
        echo "# The most instructions that one of each operation may take, on $(uname -m), with $(rustc --version)."
        echo "# Written by \`benches/instructions.sh --write\`: what was counted, and 2 % more."
        awk -F'\t' -v OFS='\t' '{ print int($1 * 1.02) + 1, $2 }' "$counts/counted"
    } > "$budget"
fi

awk -F'\t' '
    NR == FNR { if (!/^#/) allowed[$2] = $1; next }
    !($2 in allowed) { printf "%s is not in the budget\n", $2; failed = 1; next }
    {
        is_over = $1 > allowed[$2]
        printf "%6d of %6d  %s%s\n", $1, allowed[$2], $2, is_over ? "  <- too many" : ""
        failed = failed || is_over
    }
    END { exit failed }
' "$budget" "$counts/counted"
