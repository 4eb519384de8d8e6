"""Memory of the softmax losses when one class holds half the batch, where positives x negatives explode."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BATCH = 2048
MEASURE = """
import sys, torch
from losslib import losses
torch.set_num_threads(1)
loss = getattr(losses, sys.argv[1])()
batch = int(sys.argv[2])
small = torch.randn(8, 4, requires_grad=True)
loss(small, torch.arange(8) % 2).backward()  # first-use constants are not what is measured
embeddings = torch.randn(batch, 32, requires_grad=True)
labels = torch.arange(batch) % 16 + 1
labels[: batch // 2] = 0
def kilobytes(key):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(key))
open("/proc/self/clear_refs", "w").write("5")  # the high-water mark starts again here
before = kilobytes("VmRSS")
loss(embeddings, labels).backward()
print((kilobytes("VmHWM") - before) * 1024)
if len(sys.argv) > 3:
    from losslib.kernels import plain
    open("/proc/self/clear_refs", "w").write("5")
    before = kilobytes("VmRSS")
    with plain():
        loss(embeddings, labels).backward()
    print((kilobytes("VmHWM") - before) * 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux to measure the peak")
@pytest.mark.parametrize("name", ["NTXentLoss", "SupConLoss"])
def test_peak_memory_is_a_small_multiple_of_the_distance_matrix(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, name, str(BATCH), "plain too"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        cwd=ROOT,
    )
    matrix = BATCH * BATCH * 4
    # positives x negatives of that one class would be 1e9 values, 250 such matrices
    fused, plain = (int(line) for line in done.stdout.split())
    assert matrix // 8 <= fused <= 2 * matrix  # half the exponentials, and blocks of rows
    assert matrix <= plain <= 12 * matrix
