# Uses what the supervisor left open at the start: descriptors, rights, the chance to get more of them.
for fd in os.listdir("/proc/self/fd"):
    def look(fd=int(fd)):
        if fd <= 2:
            return False
        target = os.readlink(f"/proc/self/fd/{fd}")
        return target.startswith((STATE, ROOT, os.path.dirname(SECRET), REPO))
    way("descriptor " + fd, look)
way("descriptors of the shell", lambda: any(os.readlink(fd).startswith((STATE, ROOT)) for fd in glob.glob(f"/proc/{os.getppid()}/fd/*")))
status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
way("capabilities", lambda: int(status["CapEff"], 16) | int(status["CapPrm"], 16) | int(status["CapAmb"], 16) | int(status["CapInh"], 16))
way("privileges may grow", lambda: status["NoNewPrivs"].strip() != "1")
way("supplementary groups", lambda: set(status["Groups"].split()) - {str(os.getgid())})
way("setuid(0)", lambda: os.setuid(0) is None)
way("su", lambda: run("su", "-c", "true")[0] == 0)
way("sudo", lambda: run("sudo", "-n", "true")[0] == 0)
way("a set-user-id program", lambda: run("sh", "-c", f"cp /usr/bin/id {WORK}/id && chmod 4755 {WORK}/id && {WORK}/id -u | grep -qx 0")[0] == 0)
way("chroot", lambda: os.chroot("/") is None)
way("mount", lambda: libc.mount(b"none", WORK.encode(), b"tmpfs", 0, None) == 0)
way("name spaces of the supervisor", lambda: libc.setns(os.open(f"/proc/{SUPERVISOR}/ns/mnt", os.O_RDONLY), 0) == 0)
way("core of the supervisor", lambda: resource.prlimit(SUPERVISOR, resource.RLIMIT_CORE))
way("core of the other program", lambda: resource.prlimit(VICTIM, resource.RLIMIT_CORE))


def abstract():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(PATIENCE)
    s.connect("\0" + os.environ["ABSTRACT"])
    return True


way("abstract socket", abstract)
