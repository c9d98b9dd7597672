"""a_b_split: a variant chosen by hash, the same for the instance each time."""

from __future__ import annotations

import hashlib

from detent.kernel.blocks.body import cancel, renew, resume
from detent.kernel.program import Node
from detent.kernel.run import Run
from detent.model.snapshot import Frame, Lane

__all__ = ["cancel", "enter", "renew", "resume"]


def enter(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Choose a variant and run it; the choice is the block's output."""
    variants = node.block.variants
    words = f"{run.snapshot.id}\x00{node.id}".encode()
    point = int.from_bytes(hashlib.sha256(words).digest()[:8], "big")
    point %= sum(variant.weight for variant in variants)
    chosen = 0
    while point >= variants[chosen].weight:
        point -= variants[chosen].weight
        chosen += 1
    output = {"variant": variants[chosen].name, "variant_index": chosen}
    run.put_output(node.id, output)
    run.note("step.evaluated", path, {"output": output})
    frame.lanes = [Lane(i=chosen)]
    return resume(run, node, frame, path)
