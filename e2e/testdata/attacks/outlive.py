# Leaves processes behind that nobody should find after the session. The test looks for their marks.
DAEMON = """
import os, sys, signal, time
for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(s, signal.SIG_IGN)
end = time.time() + 900
while time.time() < end: time.sleep(1)
"""


def daemon(how):
    if os.fork() == 0:
        if how != "child":
            os.setsid()
        if os.fork() == 0:
            env = {"MARK": "outlived"} if how == "bare" else {**os.environ, "MARK": "outlived"}
            null = os.open("/dev/null", os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(null, fd)
            os.execve("/usr/bin/python3", ["python3", "-c", DAEMON, f"outlived-{how}-{AGENT}"], env)
        os._exit(0)
    os.wait()
    return False  # the test says whether it is still there


way("double fork", lambda: daemon("child"))
way("setsid and double fork", lambda: daemon("session"))
way("setsid with an empty environment", lambda: daemon("bare"))
way("a name space of its own", lambda: run("sh", "-c", f"unshare -Urpf --kill-child=none sleep 901.{AGENT} >/dev/null 2>&1 &")[0] != 0)
way("nohup", lambda: run("sh", "-c", f"nohup sleep 902.{AGENT} >/dev/null 2>&1 &")[0] != 0)
way("another control group", lambda: any(open(p, "w").write(str(os.getpid())) for p in glob.glob("/sys/fs/cgroup/cgroup.procs") + glob.glob("/sys/fs/cgroup/*/cgroup.procs") if os.access(p, os.W_OK)))
way("at", lambda: run("sh", "-c", "echo true | at now + 1 hour")[0] == 0)
way("crontab", lambda: run("sh", "-c", "echo '* * * * * true' | crontab -")[0] == 0)
way("systemd-run", lambda: run("systemd-run", "--user", "sleep", f"903.{AGENT}")[0] == 0)


def left():
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            if re.search(os.environ["OUTLIVED"].encode(), contents(path)):
                return True
        except OSError:
            pass


# What the test looks for after the session is there now.
until = time.time() + 240
while not left() and time.time() < until:
    time.sleep(0.05)
print("LEFT:", left())
