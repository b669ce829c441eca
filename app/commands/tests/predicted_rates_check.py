"""tools/predicted-rates on a disassembly written by hand: predicted_rates_check.py SCRIPT FOLDER."""
import importlib.machinery
import importlib.util
import subprocess
import sys

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("predicted_rates", sys.argv[1])
script = importlib.util.module_from_spec(importlib.util.spec_from_loader("predicted_rates", loader))
loader.exec_module(script)


def instruction(address, words, stall, sets=7, waits=0):
    """As cuobjdump prints it: two lines, with the control bits in the upper part of the second number."""
    control = stall | sets << 5 | 7 << 8 | waits << 11
    return f"        /*{address:04x}*/  {words} ;  /* 0x0000000000000000 */\n  /* 0x{control << 41:016x} */\n"


def kernel(name, instructions):
    return (f"\n\t\tFunction : _ZN6spiked4cuda10run_kernelINS_10estimators4cuda{len(name)}{name}EEEvT_\n"
            "\t.headerflags\t@\"EF_CUDA_SM90\"\n" + "".join(instruction(*one) for one in instructions))


# A load that the first round of a loop waits for, a loop with a load from shared memory, a rare call, a barrier.
waiting = kernel("ScaleRows", [
    (0x00, "MOV R0, RZ", 2), (0x10, "LDG.E R2, desc[UR4][R4.64]", 1, 0), (0x20, "@P0 BRA 0xa0", 5),
    (0x30, "LDS R3, [R0]", 1, 1), (0x40, "FFMA R5, R3, R2, R5", 4, 7, 0b11), (0x50, "@P1 BRA 0x30", 5),
    (0x60, "@P2 BRA 0x90", 5), (0x70, "CALL.REL.NOINC 0xc0", 5),
    (0x90, "BAR.SYNC.DEFER_BLOCKING 0x0", 5), (0xa0, "EXIT", 5), (0xb0, "BRA 0xb0", 0), (0xc0, "RET.REL.NODEC R8 0x0", 5)])
# Two loops, the inner one within, then a choice whose second part is longer.
nested = kernel("FindGroups", [
    (0x00, "S2R R0, SR_TID.X", 1, 0), (0x10, "IADD3 R1, R1, 0x1, RZ", 2), (0x20, "DFMA R4, R4, R4, R4", 8),
    (0x30, "@P0 BRA 0x20", 5), (0x40, "@!P1 BRA 0x70", 5), (0x50, "MOV R2, R3", 3), (0x60, "BRA 0xa0", 5),
    (0x70, "MOV R2, R3", 1), (0x80, "MOV R2, R3", 1), (0x90, "MUFU.RCP R2, R2", 1, 1),
    (0xa0, "IADD3 R2, R2, R2, RZ", 4, 7, 0b10), (0xb0, "@P2 BRA 0x10", 5), (0xc0, "EXIT", 5)])
text = "Fatbin elf code:\n" + waiting + nested

script.LATENCY = {"LDS": 29, "MUFU": 24}
script.BARRIER = 30
programs = {name: script.Program(instructions) for name, instructions in script.kernels(text)}
assert list(programs) == ["ScaleRows", "FindGroups"], list(programs)
assert list(programs["ScaleRows"].loops) == [0x30], programs["ScaleRows"].loops
assert list(programs["FindGroups"].loops) == [0x10, 0x20], programs["FindGroups"].loops

# The load is issued at 2 and there at 102; the first round begins at 8 and ends 4 + 5 later, at 111; each later one takes
# 29 + 4 + 5 = 38. Then 5, 5 + 30 for the barrier, and 5.
cycles, issued, (pipe, occupied) = script.walk(programs["ScaleRows"].trace((10,)), 100)
assert (cycles, issued) == (111 + 9 * 38 + 45, 3 + 10 * 3 + 3), (cycles, issued)
assert (pipe, occupied) == ("memory", 4 + 10 * 4), (pipe, occupied)
# A round of the outer loop: 2, four times 13, 5, 1, 1, then 24 from MUFU to its result, 4 and 5.
cycles, issued, _ = script.walk(programs["FindGroups"].trace((3, 4)), 100)
assert (cycles, issued) == (1 + 3 * (2 + 52 + 5 + 2 + 24 + 4 + 5) + 5, 1 + 3 * 15 + 1), (cycles, issued)
# Half a round is half of the first.
assert script.walk(programs["FindGroups"].trace((0.5, 0)), 100)[1] == 1 + 0.5 * 7 + 1

# 32 blocks of 2 warps fill a processor; 16 warps of a scheduler take 44 cycles each, half of which the kernel runs.
work = script.Work(64, 2, 1e-3, 100, 0.5, 0, 0, (10,))
alone, warps, limit, best, in_step = script.predict(programs["ScaleRows"], work, 32, 0)
assert (alone, warps, limit) == (498, 16, "latency"), (alone, warps, limit)
a_cycle = 2 / (132 * 32) / 1980
assert abs(best / (498 * a_cycle) - 1) < 1e-12 and abs(in_step / ((498 + 15 * 22) * a_cycle) - 1) < 1e-12, (best, in_step)
# 100 registers a thread leave room for 9 blocks, and a great block of data takes its time.
assert script.predict(programs["ScaleRows"], work, 100, 0)[1] == 9 * 2 / 4
moved = script.predict(programs["ScaleRows"], work._replace(moved=1000), 32, 0)
assert moved[2] == "memory" and abs(moved[3] / (65.536 / 4.8) - 1) < 1e-12 and moved[3] == moved[4], moved

file = sys.argv[2] + "/canned.sass"
with open(file, "w") as out:
    out.write(text)
run = subprocess.run([sys.executable, sys.argv[1], "--disassembly", file], capture_output=True, text=True)
assert run.returncode == 1 and "ScaleRows (1)" in run.stderr and "ColourSide (no such kernel)" in run.stderr, run
run = subprocess.run([sys.executable, sys.argv[1], "--disassembly", file, "--loops", "Find"], capture_output=True, text=True)
assert run.returncode == 0 and run.stdout == "FindGroups\n  0x10: 11 instructions\n    0x20: 2 instructions\n", run
