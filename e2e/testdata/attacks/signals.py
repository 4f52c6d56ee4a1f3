# Ends, stops or disturbs the processes of the operator. Signal 0 first: what may be asked may be sent.
def send(pid, number):
    def attempt():
        os.kill(pid, number)
        return True
    return attempt


def by_pidfd(pid):
    fd = libc.syscall(434, pid, 0)
    return fd >= 0 and libc.syscall(424, fd, 0, None, 0) == 0


for pid in ours():
    way(f"signal 0 to {pid}", send(pid, 0))
    way(f"SIGCONT to {pid}", send(pid, signal.SIGCONT))
    way(f"pidfd_send_signal to {pid}", lambda: by_pidfd(pid))
    way(f"tgkill of {pid}", lambda: libc.syscall(234, pid, pid, 0) == 0)
    way(f"rlimit of {pid}", lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE) and resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0)) is not None)
    way(f"oom score of {pid}", lambda: open(f"/proc/{pid}/oom_score_adj", "w").write("1000"))


def sigio():
    # A terminal's or pipe's owner gets signals in our name.
    import fcntl
    r, w = os.pipe()
    fcntl.fcntl(r, fcntl.F_SETOWN, SUPERVISOR)
    fcntl.fcntl(r, 10, signal.SIGCONT)  # F_SETSIG
    fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC)
    os.write(w, b"x")
    return False  # whether it came shows in the supervisor, which lives


way("SIGIO", sigio)
