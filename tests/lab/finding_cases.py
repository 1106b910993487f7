"""What somebody does to a lab host, or writes into its fleet file, so that check finds it: by the finding's id.

Those of one sweep are made together, and none hides another. Afterwards each one's remedy is applied as it stands.
"""

# ruff: noqa: E501 (a command a line)
from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field

UNITS = "/etc/systemd/system"
_ON_THE_GPU = textwrap.dedent("""\
    import json, os, signal
    PATH = "/etc/tinderbox-lab/gpu.json"
    def tell(apps):
        told = json.load(open(PATH))
        json.dump({**told, "compute_apps": apps}, open(PATH, "w"))
    def leave(*_):
        tell([])
        os._exit(0)
    signal.signal(signal.SIGTERM, leave)
    tell([[os.getpid(), "/usr/bin/blender", 20480]])
    while True:
        signal.pause()
    """)


def unit(name: str, command: str) -> str:
    """A unit of somebody else's that runs, and does so after each boot."""
    text = f"[Service]\\nExecStart={command}\\n[Install]\\nWantedBy=multi-user.target\\n"
    return f"printf '{text}' > {UNITS}/{name} && systemctl daemon-reload && systemctl enable --now {name}"


@dataclass(frozen=True)
class HostCase:
    """`make`: of root's shell; `undo`: the same, afterwards. `gpu`: what nvidia-smi tells. `keys`: of the fleet file's
    defaults. `cured`: those that the remedy in words asks for, where the finding does not give them; None: taken away.
    """

    sweep: str
    make: str = "true"
    undo: str = "true"
    gpu: Mapping[str, object] = field(default_factory=dict)
    keys: Mapping[str, object] = field(default_factory=dict)
    cured: Mapping[str, object] = field(default_factory=dict)


_ENGINE = (
    "rm -rf /tmp/engine && mkdir -p /tmp/engine/bin && cp /bin/sleep /tmp/engine/bin/llama-server && "
    "cp --parents -L $(ldd /bin/sleep | grep -o '/[^ ]*') /tmp/engine && "
    "tar -C /tmp/engine -c . | docker import - somebody/engine:1 >/dev/null && "
    "docker run -d --network none --restart=always --name sparkrun_solo somebody/engine:1 /bin/llama-server infinity"
)
NO_DRIVER = (
    "apt-get -qq purge -y nvidia-driver-580-open; rm -rf /etc/apt/sources.list.d/lab-upgrades.list /opt/lab-upgrades"
)
HOST_CASES: dict[str, HostCase] = {
    "install-interrupted": HostCase(
        "commands", "awk '/^Package: sudo$/,/^$/' /var/lib/dpkg/status > /var/lib/dpkg/updates/0001", "rm -f /var/lib/dpkg/updates/0001"
    ),
    "gpu-in-use": HostCase(
        "commands",
        f"cat > /usr/local/bin/on-the-gpu <<'END'\n{_ON_THE_GPU}END\n{unit('render.service', '/usr/bin/python3 /usr/local/bin/on-the-gpu')}",
        f"systemctl stop render; rm -f /usr/local/bin/on-the-gpu {UNITS}/render.service; systemctl daemon-reload",
    ),
    "engine-foreign": HostCase("commands", _ENGINE, "docker rm -f sparkrun_solo; docker image rm somebody/engine:1"),
    "port-taken": HostCase(
        "commands",
        unit("web.service", "/usr/bin/python3 -m http.server --bind 127.0.0.1 8000"),
        f"systemctl stop web; rm -f {UNITS}/web.service; systemctl daemon-reload",
    ),
    "docker-group": HostCase("commands", "gpasswd -d spark docker", "usermod -aG docker spark"),
    "docker-settings": HostCase(
        "commands",
        "mkdir -p /etc/docker; test ! -e /etc/docker/daemon.json || cp /etc/docker/daemon.json /root/; echo '{' > /etc/docker/daemon.json",
        "rm -f /etc/docker/daemon.json*; test ! -e /root/daemon.json || mv /root/daemon.json /etc/docker/daemon.json",
    ),
    "cache-owner": HostCase(
        "commands",
        "install -d -o spark -g spark /home/spark/.cache && mkdir -p /home/spark/.cache/huggingface/hub && touch /home/spark/.cache/huggingface/hub/version.txt",
        "rm -rf /home/spark/.cache/huggingface",
    ),
    "docker-masked": HostCase("masked", "systemctl mask docker.service docker.socket", "systemctl unmask docker.service docker.socket"),
    "docker-silent": HostCase("silent", "systemctl stop docker.socket docker.service", "systemctl start docker"),
    "sudo-password": HostCase(
        "sudo", "mv /etc/sudoers.d/spark /root/spark.sudoers", "mv -f /root/spark.sudoers /etc/sudoers.d/spark; chmod 0440 /etc/sudoers.d/spark"
    ),
    "python-missing": HostCase("python", "apt-get -qq remove -y python3-minimal"),
    "driver-other": HostCase("driver", undo=NO_DRIVER, gpu={"driver_version": "590.48.01"}),
    # The module that is loaded is the newer one.
    "driver-mismatch": HostCase(
        "restart", "apt-get -qq install -y --allow-downgrades nvidia-driver-580-open=580.142-1", NO_DRIVER,
        gpu={"driver_version": "580.159.03"},
    ),
    "reboot-pending": HostCase("restart", "touch /run/reboot-required"),
    "memory-small": HostCase("fleet", keys={"hardware.memory_gib": 500}),
    "memory-plan": HostCase("fleet", keys={"services.gpt-oss.environment.VLLM_CPU_KVCACHE_SPACE": "500"}),
    "disk-space": HostCase(
        "fleet", "mkdir -p /mnt/small && mount -t tmpfs -o size=1m none /mnt/small", "umount /mnt/small",
        keys={"weights.home": "/mnt/small/huggingface"}, cured={"weights.home": None},
    ),
    "desktop": HostCase(
        "fleet",
        f"ln -sfn gdm.service {UNITS}/display-manager.service && {unit('gdm.service', '/bin/sleep infinity')}",
        f"systemctl disable --now gdm; rm -f {UNITS}/gdm.service {UNITS}/display-manager.service; systemctl daemon-reload",
    ),
    "gpu-real": HostCase("real", gpu={"name": "NVIDIA GB10"}),
    "gpu-of-the-lab": HostCase(
        "of the lab", keys={"hardware.simulated": False, "hardware.gpu": "NVIDIA GB10"}, cured={"hardware.simulated": True, "hardware.gpu": "NVIDIA GB10 (simulated)"}
    ),
    "gpu-simulated": HostCase("of the lab after"),
    "gpu-other": HostCase("other", gpu={"name": "NVIDIA H100 (simulated)"}),
}  # fmt: skip
SWEEPS = tuple(dict.fromkeys(case.sweep for case in HOST_CASES.values()))
