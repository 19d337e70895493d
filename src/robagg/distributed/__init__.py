"""Rules over several ranks of torch.distributed: columns shared out over them, and a robust gradient for DDP.

It protects against bad gradients (hostile data, broken hardware), not against a rank that runs other code: every rank
computes a part of the value, and the others take it as it comes.
"""

import torch.distributed as _torch_distributed

if not _torch_distributed.is_available():
    raise ImportError("robagg.distributed must have a torch with torch.distributed, got one that is built without it")

from robagg.distributed.hook import HookState, robust_hook
from robagg.distributed.sharded import Sharded

__all__ = ["HookState", "Sharded", "robust_hook"]
