"""What most clients hold, and in what the others differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from robagg._core.pytree import Form, describe_difference


def find_majority(
    names: Sequence[str], forms: Mapping[int, Form], faults: Mapping[int, str], model: Form | None = None
) -> tuple[Form, dict[int, str]]:
    """The form that most clients have, and why each client that has another, or had a fault before, is broken.

    Args:
        names: how all clients are called.
        forms: of those that could be read, what they hold.
        faults: why the others could not.
        model: the form that must be had, where it is known.
    """
    if not names:
        raise ValueError("one file or more must be given, got none")
    if model is None:
        counts = Counter(forms.values())
        model = max(counts, key=lambda form: counts[form], default=frozenset())
        if 2 * counts[model] <= len(names):
            odd = next((k for k in range(len(names)) if forms.get(k) != model), 0)
            why = faults[odd] if odd in faults else describe_difference(forms[odd], model)
            raise ValueError(
                f"more than half of the clients must hold the same tensors, got {counts[model]} of {len(names)}: "
                f"{names[odd]}: {why}"
            )
    reasons = {k: describe_difference(form, model) for k, form in forms.items() if form != model}
    return model, dict(sorted({**faults, **reasons}.items()))


def describe_fault(error: Exception) -> str:
    """Why a file cannot be used, as its client's reason."""
    return (error.strerror or "it cannot be read") if isinstance(error, OSError) else str(error)
