"""Output of perf script, intact and damaged."""

from __future__ import annotations

import random

from pytest_ldos.record.perf import fold_perf_script

SAMPLE = """\
python3 23180/23181 59913.900382: cpu-clock:
                  18a818 PyLong_FromLong (/usr/lib/libpython3.11.so.1.0)
                   fdc36 _PyEval_EvalFrameDefault (/usr/lib/libpython3.11.so.1.0)
            7fee0bc16b00 [unknown] ([unknown])

"""
KERNEL = """\
my thread 7 12/12   0.100000: cycles:u:
        ffffffff81000000 do_syscall_64 ([kernel.kallsyms])
            7f0000000000 [unknown] (/memfd:jit code (deleted))

"""


def fold(text: str, names=None):
    return fold_perf_script(text.splitlines(keepends=True), names or {})


def test_stacks_begin_with_process_and_outermost_frame():
    read = fold(SAMPLE + SAMPLE, {23180: "simulator"})
    assert read.damaged == 0
    assert read.profile.counts == {("simulator", "[unknown]", "_PyEval_EvalFrameDefault", "PyLong_FromLong"): 2}


def test_thread_names_with_blanks_and_files_without_symbols():
    assert fold(KERNEL).profile.counts == {("my thread 7", "[memfd:jit code (deleted)]", "do_syscall_64"): 1}


def test_function_names_may_contain_brackets():
    """The last bracket is the file."""
    handler = "std::_Function_handler<void (std_msgs::msg::String_<x.so> const&), F (*)(int)>::_M_invoke(Any&)"
    frames = {
        f"{handler} (/opt/ros/lib/librclcpp.so)": handler,
        "ns::(anonymous namespace)::f (inlined)": "ns::(anonymous namespace)::f",
        "f(int) (/tmp/my (old) libs/a.so)": "f(int)",
        "[unknown] (/memfd:jit (deleted))": "[memfd:jit (deleted)]",
        "g ([kernel.kallsyms])": "g",
    }
    text = "".join(f"a 1/1 1.5: e:\n\t 1f {frame}\n\n" for frame in frames)
    assert fold(text).profile.counts == {("a", name): 1 for name in frames.values()}


def test_unnamed_process_takes_a_threads_name():
    def sample(comm: str, pid: int, tid: int) -> str:
        return f"{comm} {pid}/{tid} 1.5: e:\n\t 1f f (/lib/a.so)\n\n"

    text = sample("recv", 7, 8) + sample("cost_ladder", 7, 7) + sample("gc", 7, 9) + sample("tev", 3, 4)
    assert fold(text).profile.counts == {("cost_ladder", "f"): 3, ("tev", "f"): 1}
    assert fold(text, {7: "ladder"}).profile.counts == {("ladder", "f"): 3, ("tev", "f"): 1}


def test_template_and_hostile_names_are_kept_as_names():
    name = "std::map<int, a&>::operator()(char const*) const"
    evil = "\x1b]0;owned\x07</title><script>alert(1)</script>;x"
    text = f"a 1/1 1.5: e:\n\t 1f {name} (/lib/a.so)\n\t 2f {evil} (/lib/b.so)\n\n"
    read = fold(text)
    assert read.damaged == 0
    ((_, outer, inner),) = read.profile.counts
    assert inner == name
    assert "\x1b" not in outer
    assert ";" not in outer


def test_damaged_samples_are_counted_and_left_out():
    lines = SAMPLE.splitlines(keepends=True)
    assert fold(SAMPLE + lines[0] + "\n").damaged == 1, "a sample without a frame"
    assert fold(SAMPLE + lines[1] + "\n").damaged == 1, "a frame without a sample"
    cut = fold(SAMPLE + SAMPLE[:100])
    assert cut.profile.samples == 1
    assert cut.damaged == 2


def test_empty_output_has_no_samples():
    assert not fold("").profile
    assert not fold("# a comment\n\n").profile


def test_damage_keeps_good_samples_and_raises_nothing():
    rng = random.Random(1)
    text = (SAMPLE + KERNEL) * 5
    for _ in range(200):
        letters = list(text)
        for _ in range(rng.randrange(1, 30)):
            letters[rng.randrange(len(letters))] = rng.choice("\x00\x1b;\n\t ()0aé￿")
        read = fold("".join(letters))
        assert read.profile.samples + read.damaged > 0
