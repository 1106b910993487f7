"""A lab host whose clock is wrong, to all programs that it starts: hosts and their mirror share the kernel's clock.

A library that every program loads (`/etc/ld.so.preload`) adds an offset to the time of day, and to nothing else.
Programs that do not link to the C library, like docker, go on with the right time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.lab.lab_driver import Lab

_LIBRARY, _OFFSET, _PRELOAD = "/usr/local/lib/wrong-clock.so", "/etc/wrong-clock", "/etc/ld.so.preload"
_SOURCE = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long offset;
__attribute__((constructor)) static void begin(void) {
    char text[32] = {0};
    int file = open("/etc/wrong-clock", O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    if (read(file, text, sizeof text - 1) > 0) offset = atol(text);
    close(file);
}
int clock_gettime(clockid_t which, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, which, now);
    if (!failed && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) now->tv_sec += offset;
    return failed;
}
time_t time(time_t *kept) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (kept) *kept = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}
"""


@contextmanager
def wrong_clock(lab: Lab, host: str, days: int) -> Iterator[None]:
    """While this lasts, programs that start on the host see a time so many days later, or earlier."""
    lab.write(host, "/root/wrong-clock.c", _SOURCE)
    lab.ssh(host, f"sudo gcc -shared -fPIC -O1 -o {_LIBRARY} /root/wrong-clock.c && sudo rm /root/wrong-clock.c")
    lab.write(host, _OFFSET, f"{days * 86400}\n")
    before = int(lab.ssh(host, "date +%s").stdout)
    lab.write(host, _PRELOAD, f"{_LIBRARY}\n")
    try:
        shown = int(lab.ssh(host, "python3 -c 'import time; print(int(time.time()))'").stdout)
        assert abs(shown - before - days * 86400) < 3600, "the clock is not wrong"
        yield
    finally:
        lab.ssh(host, f"sudo rm -f {_PRELOAD} {_OFFSET} {_LIBRARY}")
