#!/usr/bin/env python3
"""All mutants of the pure core in one build, switched on one at a time.

    python3 scripts/mutants_at_once.py                  # all of them
    python3 scripts/mutants_at_once.py 'retry|Reads::'  # those with such a name

`cargo mutants` builds and links anew for each mutant, which is most of its time.
This takes its list of mutants, writes a copy of the sources in which every
function begins with a choice among its mutants, builds that once, and runs the
tests once for each mutant, up to the first that fails. What is mutated and which
tests run is in .cargo/mutants.toml; survivors that are no fault of the tests are
in tests/mutants.md.

A mutant that does not compile is unviable, as with `cargo mutants`. Functions that
return `impl ...` or are called in constants cannot be switched; their mutants are
named at the end, for `bash scripts/mutants.sh -F NAME`.

The outcomes, each with the test that caught it, are in
target/mutants-at-once/outcomes.jsonl. A run that was broken off goes on where it
was, unless the sources have changed.
"""

import collections
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "target" / "mutants-at-once"
TREE = WORK / "tree"
OUTCOMES = WORK / "outcomes.jsonl"
CONFIG = tomllib.loads((ROOT / ".cargo" / "mutants.toml").read_text())
CARGO_ARGS = CONFIG["additional_cargo_args"]
TEST_ARGS = CONFIG["additional_cargo_test_args"]

# A mutant that allocates without end must not take the machine along.
MEMORY_MAX = 8 << 30
# Few cases, always the same ones, and no time spent on shrinking, as in
# scripts/mutants.sh.
PROPTEST = {
    "PROPTEST_CASES": "64",
    "PROPTEST_RNG_SEED": "1",
    "PROPTEST_MAX_SHRINK_ITERS": "0",
    "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1",
}

SWITCH = """
/// Which mutant is on.
#[doc(hidden)]
pub mod mutant_switch {
    static ACTIVE: std::sync::LazyLock<u32> = std::sync::LazyLock::new(|| {
        let number = std::env::var("MUTANT").ok();
        number.and_then(|number| number.parse().ok()).unwrap_or(u32::MAX)
    });
    /// Its number.
    pub fn active() -> u32 {
        *ACTIVE
    }
}
"""

# What is no brace although it looks like one: comments, strings, characters.
NO_BRACE = re.compile(
    r"""//[^\n]* | /\*.*?\*/
      | (?<![A-Za-z0-9_])b?r(\#*)".*?"\1
      | "(?:\\.|[^"\\])*"
      | '(?:\\x..|\\u\{[^}]*\}|\\.|[^\\'])'
      | (?P<open>\{) | (?P<close>\})""",
    re.VERBOSE | re.DOTALL,
)


def output(*command):
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout.decode()


def opening_braces(text):
    """Where each closing brace was opened."""
    stack, opened = [], {}
    for token in NO_BRACE.finditer(text):
        if token["open"]:
            stack.append(token.start())
        elif token["close"]:
            opened[token.start()] = stack.pop()
    return opened


def switched(text, mutants, constant):
    """The source with a choice among its mutants at the start of each function,
    the lines that each of them takes, and the mutants that cannot be switched."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)

    def at(place):
        return starts[place["line"] - 1] + place["column"] - 1

    opened = opening_braces(text)
    choices, consts, left_out = collections.defaultdict(list), set(), []
    for number, mutant in mutants:
        function = mutant["function"]
        if function is None:
            left_out.append(number)
            continue
        end = at(function["span"]["end"]) - 1
        begin = opened[end]
        head_at = at(function["span"]["start"])
        head = text[head_at:begin]
        if "impl " in head.partition("->")[2]:
            left_out.append(number)
            continue
        # What is chosen while it runs cannot be `const`.
        const = re.search(r"\bconst (?=fn\b)", head)
        if const and function["function_name"] in constant:
            left_out.append(number)
            continue
        if const:
            consts.add(head_at + const.start())
        change = mutant["span"]
        body = text[begin : at(change["start"])] + mutant["replacement"]
        choices[begin].append((number, body + text[at(change["end"]) : end + 1]))

    parts, lines, last = [], [], 0
    line = 1

    def put(part):
        nonlocal line
        parts.append(part)
        line += part.count("\n")

    for place in sorted(consts | choices.keys()):
        if place in consts:
            put(text[last:place])
            last = place + len("const ")
            continue
        put(text[last : place + 1] + "\nmatch crate::mutant_switch::active() {\n")
        last = place + 1
        for number, body in choices[place]:
            first = line
            put(f"{number} => return {body},\n")
            lines.append((first, line - 1, number))
        put("_ => {}\n}\n")
    put(text[last:])
    return "".join(parts), lines, left_out


def write(path, content):
    """Writes what has changed, so that the rest is not built again."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def write_tree(mutants, unviable, constant):
    """Writes the switched copy. Returns the lines of each mutant by file, and the
    mutants that are left out."""
    by_file = collections.defaultdict(list)
    for number, mutant in enumerate(mutants):
        if number not in unviable:
            by_file[mutant["file"]].append((number, mutant))
    lines, left_out = {}, []
    for name in output("git", "ls-files", "-co", "--exclude-standard").splitlines():
        path = ROOT / name
        if not path.is_file():
            continue
        content = path.read_bytes()
        if name in by_file:
            text, lines[name], left = switched(content.decode(), by_file[name], constant)
            content, left_out = text.encode(), left_out + left
        elif name == "src/lib.rs":
            content += SWITCH.encode()
        write(TREE / name, content)
    return lines, left_out


def cargo(*args):
    """Runs cargo in the copy. Returns whether it went well, and its messages."""
    env = dict(os.environ, RUSTFLAGS="--cap-lints allow")
    command = ["cargo", *args, *CARGO_ARGS, "--message-format", "json"]
    done = subprocess.run(
        command, cwd=TREE, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    return done.returncode == 0, [json.loads(line) for line in done.stdout.splitlines()]


def broken(messages, lines):
    """The mutants that the compiler's errors are in, and the functions that have
    to stay `const`."""
    found, constant = set(), set()
    for message in messages:
        if message.get("reason") != "compiler-message" or message["message"]["level"] != "error":
            continue
        spans = sorted(message["message"]["spans"], key=lambda span: not span["is_primary"])
        hits = [
            number
            for span in spans
            for first, last, number in lines.get(span["file_name"], [])
            if first <= span["line_start"] <= last
        ]
        found.update(hits[:1])
        needed = re.search(r"non-const [^`]*`([^`]+)`", message["message"]["message"])
        if needed and not hits:
            constant.add(needed[1])
        elif spans and not hits:
            print(message["message"]["rendered"], file=sys.stderr)
    return found, constant


def build(mutants):
    """Builds the copy. Returns the test programs, what is unviable, and what is
    left out."""
    unviable, constant = set(), set()
    while True:
        lines, left_out = write_tree(mutants, unviable, constant)
        well, messages = cargo("check", "--lib")
        if well:
            break
        more, needed = broken(messages, lines)
        if not more and not needed:
            sys.exit("the copy does not compile, and no mutant is to blame")
        unviable |= more
        constant |= needed
    profile = CONFIG["profile"]
    # Built only once, so it may take a little longer and run faster.
    faster = ["--config", f"profile.{profile}.opt-level=1"]
    well, messages = cargo("test", "--no-run", "--profile", profile, *faster, *TEST_ARGS)
    if not well:
        sys.exit("the tests do not compile")
    programs = [
        message["executable"]
        for message in messages
        if message.get("executable") and message["profile"]["test"]
    ]
    return programs, unviable, set(left_out)


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))


def run(program, number, timeout):
    """Runs a test program with a mutant on. Returns what caught it, or None."""
    # The bootstrap variable is for the flag that ends the program at the first
    # test that fails.
    env = dict(os.environ, **PROPTEST, RUSTC_BOOTSTRAP="1", MUTANT=str(number))
    command = [program, "-Z", "unstable-options", "--fail-fast", "--test-threads", "1", "-q"]
    done = subprocess.run(
        command,
        cwd=TREE,
        env=env,
        timeout=timeout,
        preexec_fn=limit_memory,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode == 0:
        return None
    failed = re.search(r"^failures:\n    (\S+)", done.stdout.decode(errors="replace"), re.MULTILINE)
    return failed[1] if failed else f"{pathlib.Path(program).name}: exit {done.returncode}"


def outcome(programs, number, timeout):
    for program in list(programs):
        try:
            caught_by = run(program, number, timeout)
        except subprocess.TimeoutExpired:
            return "timeout", None
        if caught_by:
            # Most likely it catches the next one of this file, too.
            programs.remove(program)
            programs.insert(0, program)
            return "caught", caught_by
    return "missed", None


def known_outcomes(mutants):
    """What an earlier run has found out about these very sources and tests."""
    digest = hashlib.sha256(json.dumps(mutants).encode())
    for name in output("git", "ls-files", "-co", "--exclude-standard", "src", "tests").splitlines():
        if (ROOT / name).is_file():
            digest.update((ROOT / name).read_bytes())
    state = WORK / "sources"
    if not state.exists() or state.read_text() != digest.hexdigest():
        OUTCOMES.unlink(missing_ok=True)
        state.write_text(digest.hexdigest())
    if not OUTCOMES.exists():
        return {}
    lines = OUTCOMES.read_text().splitlines()
    return {entry["name"]: entry["outcome"] for entry in map(json.loads, lines)}


def summary(mutants, known, unviable, left_out):
    counts = collections.defaultdict(collections.Counter)
    for number, mutant in enumerate(mutants):
        what = known.get(mutant["name"], "not run")
        if number in unviable:
            what = "unviable"
        elif number in left_out:
            what = "left out"
        for group in (str(pathlib.Path(mutant["file"]).parent), "all"):
            counts[group][what] += 1
    for group, count in sorted(counts.items()):
        # A test that a mutant makes go on without end has caught it.
        tried = count["caught"] + count["timeout"] + count["missed"]
        if not tried:
            continue
        share = 100 * (tried - count["missed"]) / tried
        told = ", ".join(f"{number} {what}" for what, number in sorted(count.items()))
        print(f"{group}: {share:.1f} % of {tried} caught ({told})")
    for number in sorted(left_out):
        print("left to cargo mutants:", mutants[number]["name"])


def main():
    wanted = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    WORK.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(TREE / "src", ignore_errors=True)
    shutil.rmtree(TREE / "tests", ignore_errors=True)
    mutants = json.loads(output("cargo", "mutants", "--list", "--json"))
    known = known_outcomes(mutants)
    programs, unviable, left_out = build(mutants)
    began = time.monotonic()
    for program in programs:
        caught_by = run(program, 0xFFFF_FFFF, None)
        if caught_by:
            sys.exit(f"fails without any mutant: {caught_by}")
    timeout = max(20, 10 * (time.monotonic() - began))
    print(f"{len(mutants)} mutants, {len(unviable)} unviable, {len(left_out)} left out", flush=True)
    orders = collections.defaultdict(lambda: list(programs))
    with OUTCOMES.open("a") as outcomes:
        for number, mutant in enumerate(mutants):
            name = mutant["name"]
            if number in unviable | left_out or name in known or not wanted.search(name):
                continue
            what, caught_by = outcome(orders[mutant["file"]], number, timeout)
            known[name] = what
            outcomes.write(json.dumps({"name": name, "outcome": what, "by": caught_by}) + "\n")
            outcomes.flush()
            if what != "caught":
                print(what, name, flush=True)
    summary(mutants, known, unviable, left_out)


if __name__ == "__main__":
    main()
