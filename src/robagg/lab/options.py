"""How runs are done, on which device and in how many processes: what no result depends on, or what its record names."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from robagg.lab.plugins import list_plugins
from robagg.lab.run import Run


@dataclass(frozen=True)
class Options:
    """How runs are done; nothing here changes a result, but for threads and the device, which are recorded.

    Args:
        device: "auto", "cpu", "cuda", or several such as "cuda:0,cuda:1".
        data: the folder of the data sets; None: the usual one.
        threads: of one run.
        workers: how many runs at once, each in a process of its own.
        plugins: paths of plugins that workers load.
        checkpoints: the folder for the states of long runs; None: beside the store.
        patience: seconds between two checkpoints.
        address: of a Ray cluster; None or "local": one started on this machine.
    """

    device: str = "auto"
    data: str | None = None
    threads: int = 1
    workers: int = 1
    plugins: tuple[str, ...] = ()
    checkpoints: str | None = None
    patience: float = 20.0
    address: str | None = None

    def __post_init__(self) -> None:
        for name in ("threads", "workers"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if len(self.devices) > self.workers:
            raise ValueError(
                f"workers must be at least one per device, got device={self.device!r} and workers={self.workers}"
            )

    @property
    def devices(self) -> list[str]:
        """The devices that workers take in turn."""
        return [device.strip() for device in str(self.device).split(",")]

    def cover(self, runs: Sequence[Run]) -> Options:
        """The same with the plugin files that the runs use, which other processes have to load as well."""
        used = {digest for run in runs for digest in run.plugins.values()}
        files = [plugin.source for plugin in list_plugins() if plugin.digest in used and Path(plugin.source).is_file()]
        return dataclasses.replace(self, plugins=tuple(dict.fromkeys((*self.plugins, *files))))

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Options:
        """Read what `to_json` wrote."""
        fields = json.loads(text)
        return cls(**fields | {"plugins": tuple(fields["plugins"])})
