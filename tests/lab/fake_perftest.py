#!/usr/bin/env python3
"""The lab's stand-in for ib_write_bw and, called so, for mpirun with nccl-tests (simulated).

Two ends meet by TCP as perftest's do. The figures are those of /etc/tinderbox-lab/rdma.json: RDMA device → Gb/s, and
`nccl` in GB/s. Each run is a line of /tmp/fabric-runs.
"""

import argparse
import json
import socket
import sys
from pathlib import Path

FIGURES = Path("/etc/tinderbox-lab/rdma.json")
TABLE = """\
# simulated by the lab of Tinderbox: no RDMA took place
---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : {device}
 Number of qps   : 1\t\tTransport type : IB
 Mtu             : 4096[B]
 Link type       : Ethernet
 GID index       : {gid}
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000             {gbps:.2f}             {gbps:.2f}\t\t   0.207806
---------------------------------------------------------------------------------------
"""
NCCL = """\
# simulated by the lab of Tinderbox: no NCCL took place
# nccl-tests version 2.19.7 nccl-headers=22809 nccl-library=22809
# Collective test starting: all_gather_perf
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
   {size}   2097152   float   none   -1   6420.62  {gbs:.2f}  {gbs:.2f}    0   6425.48  {gbs:.2f}  {gbs:.2f}   0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : {gbs:.2f}
#
# Collective test concluded: all_gather_perf
"""


def nccl(figures: dict[str, float]) -> int:
    size = int(sys.argv[sys.argv.index("-e") + 1])
    sys.stdout.write(NCCL.format(gbs=figures["nccl"], size=size))
    return 0


def rdma(figures: dict[str, float]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("-d", dest="device")
    parser.add_argument("-x", dest="gid")
    parser.add_argument("-p", dest="port", type=int)
    parser.add_argument("--report_gbits", action="store_true")
    parser.add_argument("-F", action="store_true")
    parser.add_argument("server", nargs="?")
    asked = parser.parse_args()
    if asked.server is None:
        with socket.create_server(("", asked.port)) as waiting:
            waiting.accept()[0].close()
    else:
        try:
            socket.create_connection((asked.server, asked.port), timeout=5).close()
        except OSError:
            sys.stdout.write(f"Couldn't connect to {asked.server}:{asked.port}\n")
            return 1
    sys.stdout.write(TABLE.format(device=asked.device, gid=asked.gid, gbps=figures[asked.device]))
    return 0


if __name__ == "__main__":
    name = Path(sys.argv[0]).name
    with Path("/tmp/fabric-runs").open("a") as runs:
        runs.write(f"{name} {' '.join(sys.argv[1:])}\n")
    figures = json.loads(FIGURES.read_text())
    sys.exit(nccl(figures) if name == "mpirun" else rdma(figures))
