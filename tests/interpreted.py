"""Triton's interpreter on this machine's NumPy."""

from __future__ import annotations

from typing import Any


def mend_interpreter() -> None:
    """Triton 3.6 turns arrays of one element into loop bounds in a way that NumPy 2.4 no longer takes."""
    from triton.runtime import interpreter

    before: Any = interpreter._patch_lang_tensor

    def index_by_item(tensor: Any, scope: Any) -> None:
        before(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    interpreter._patch_lang_tensor = index_by_item
