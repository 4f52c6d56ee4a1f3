# Leaves something for the next session, or reads what others keep there: in folders of everybody, in the kernel's memory, in its keyrings.
import platform
KEYCTL = {"x86_64": 250, "aarch64": 219}[platform.machine()]
RING = 425
MPTCP, VSOCK, ALL_KEYRINGS = 262, 40, (-3, -4, -5)
libc.mq_open.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p]


def of_system_v(make, control, *more):
    made = make(0, *more)
    if made < 0:
        return False
    control(made, 0, None) if control is not libc.semctl else control(made, 0, 0)
    return True


def queue():
    name = b"/claudeops-left-%d" % os.getpid()
    return libc.mq_open(name, os.O_RDWR | os.O_CREAT, 0o600, None) >= 0 and libc.mq_unlink(name) == 0


way("System V's memory", lambda: of_system_v(libc.shmget, libc.shmctl, 4096, 0o1600))
way("System V's semaphores", lambda: of_system_v(libc.semget, libc.semctl, 1, 0o1600))
way("System V's messages", lambda: of_system_v(libc.msgget, libc.msgctl, 0o1600))
way("a queue", queue)
for ring in ALL_KEYRINGS:
    way(f"keyring {ring}", lambda: libc.syscall(KEYCTL, 6, ring, None, 0) >= 0)  # KEYCTL_DESCRIBE
way("a ring of requests", lambda: libc.syscall(RING, 1, ctypes.create_string_buffer(120)) >= 0)
way("a socket of the hypervisor", lambda: socket.socket(VSOCK, socket.SOCK_STREAM))
# These work where modes permit them, and the test looks whether they are gone at the end.
for folder in ("/tmp", "/var/tmp", "/dev/shm"):
    path = f"{folder}/claudeops-left-{AGENT}-{os.getpid()}"
    tried += 1
    try:
        os.mkdir(path)
        open(path + "/file", "w").close()
        os.chmod(path, 0)
    except OSError:
        pass
