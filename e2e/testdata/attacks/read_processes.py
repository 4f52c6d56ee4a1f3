# Reads tokens out of the processes of the operator: environment, memory, descriptors, files through their folders.
def environ(pid):
    return TOKEN.search(contents(f"/proc/{pid}/environ"))


def memory(pid):
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            at, mode = line.split()[:2]
            if "w" not in mode:
                continue
            start, end = (int(x, 16) for x in at.split("-"))
            mem.seek(start)
            if TOKEN.search(mem.read(min(end - start, 16 << 20))):
                return True


def vm_readv(pid):
    # Nothing is at the address; that the kernel says so means that it would have read.
    buffer = ctypes.create_string_buffer(64)
    local, remote = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 64), (ctypes.c_size_t * 2)(8, 64)
    return libc.process_vm_readv(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) > 0 or ctypes.get_errno() == errno.EFAULT


def descriptors(pid):
    return any(contents(f"/proc/{pid}/fd/{fd}", 64) for fd in os.listdir(f"/proc/{pid}/fd") if os.readlink(f"/proc/{pid}/fd/{fd}").startswith(STATE))


def attach(request, detach):
    def attempt(pid):
        if libc.ptrace(request, pid, None, None) != 0:
            return False
        if request == 16:
            os.waitpid(pid, 0x40000000)
            libc.ptrace(detach, pid, None, None)
        return True
    return attempt


def getfd(pid):
    fd = libc.syscall(434, pid, 0)
    return fd >= 0 and any(libc.syscall(438, fd, n, 0) >= 0 for n in range(30))


for pid in ours():
    way(f"environ of {pid}", lambda: environ(pid))
    way(f"mem of {pid}", lambda: memory(pid))
    way(f"maps of {pid}", lambda: contents(f"/proc/{pid}/maps", 100))
    way(f"auxv of {pid}", lambda: contents(f"/proc/{pid}/auxv", 100))
    way(f"process_vm_readv of {pid}", lambda: vm_readv(pid))
    way(f"descriptors of {pid}", lambda: descriptors(pid))
    way(f"pidfd_getfd of {pid}", lambda: getfd(pid))
    way(f"root of {pid}", lambda: contents(f"/proc/{pid}/root{STATE}/mark.key"))
    way(f"cwd of {pid}", lambda: os.listdir(f"/proc/{pid}/cwd/"))
    way(f"ptrace attach of {pid}", lambda: attach(16, 17)(pid))
    way(f"syscall of {pid}", lambda: contents(f"/proc/{pid}/syscall", 10))
    way(f"stack of {pid}", lambda: contents(f"/proc/{pid}/stack", 10))
for path in glob.glob("/proc/[0-9]*/cmdline"):
    way("token in the arguments of " + path, lambda: TOKEN.search(contents(path)))
    way("token in the environment of " + path, lambda: TOKEN.search(contents(path.replace("cmdline", "environ"))))
