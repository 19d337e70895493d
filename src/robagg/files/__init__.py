"""Aggregation of models in files, which need not fit into memory, and of LoRA adapters."""

from robagg.files.aggregate import aggregate_files, aggregate_sources
from robagg.files.header import FileFaultError
from robagg.files.lora.aggregate import aggregate_adapters
from robagg.files.source import Entry, Source

__all__ = ["Entry", "FileFaultError", "Source", "aggregate_adapters", "aggregate_files", "aggregate_sources"]
