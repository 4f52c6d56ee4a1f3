# Takes what the machine has: processes, memory, files, disk. All of it bounded, so that it does no harm without a boundary.
def processes():
    # Without a limit of the session's own, 400 more processes would start.
    resource.setrlimit(resource.RLIMIT_NPROC, (min(1500, resource.getrlimit(resource.RLIMIT_NPROC)[1]),) * 2)
    started = []
    try:
        for _ in range(400):
            started.append(subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    finally:
        for p in started:
            p.kill()
        for p in started:
            p.wait()
    return False


def disk():
    with open(WORK + "/big", "wb") as f:
        f.truncate(1 << 40)
    os.unlink(WORK + "/big")
    return False


way("400 processes", processes)
way("a sparse file of 1 TiB", disk)
way("10,000 descriptors", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20, 1 << 20)) is not None)
