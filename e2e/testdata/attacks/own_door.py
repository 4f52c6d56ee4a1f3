# Asks the door of this session for more than it was given: by arguments, by environment, by what is sent besides MCP, by other
# sockets, by many connections. A second connection with the same ticket is let in: it may do what the session may.
def connect(*more, **env):
    def attempt():
        results = mcp(*connector(), *more, calls=[proposal("Through the door")], env=env)
        print("ANSWER:", json.dumps(results)[:300])
        return opens(results)
    return attempt


way("the connector as it is", connect())
way("a tier in the environment", connect(CLAUDEOPS_TIER="3", CLAUDEOPS_DRY_RUN="false", CLAUDEOPS_READ_ONLY="false"))
way("a tier by flag", connect("--tier", "3"))
way("no dry run by flag", connect("--dry-run=false", "--read-only=false"))
way("another session", connect(CLAUDEOPS_SESSION="01ARZ3NDEKTSV4RRFFQ69G5FAV", CLAUDEOPS_RUN="x"))

OPENING = [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "claudeops", "version": "3"}}}]
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": dict(zip(("name", "arguments"), proposal("By hand")))}


def said(hello):
    """A handshake of our own, and a proposal after it."""
    def attempt():
        path, ticket = door()
        answers = dial(path, hello(ticket), *OPENING, CALL)
        return opens(answers[-1:])
    return attempt


way("a higher tier in the handshake", said(lambda ticket: {"claudeops": 1, "ticket": ticket, "tier": 3, "dry_run": False, "read_only": False}))
way("a tier twice", said(lambda ticket: b'{"claudeops":1,"ticket":"%s","tier":1,"tier":3,"Tier":3,"dry_run":false}' % ticket.encode()))
way("other words", said(lambda ticket: {"claudeops": 1, "ticket": ticket, "session": "other", "rights": {"tier": 3}, "env": {"CLAUDEOPS_TIER": "3"}}))
way("a negative tier", said(lambda ticket: {"claudeops": 1, "ticket": ticket, "tier": -1}))


def let_in(hello):
    def attempt():
        path, ticket = door()
        return any(a.get("ok") or "result" in a for a in dial(path, hello(ticket), *OPENING))
    return attempt


way("no ticket", let_in(lambda ticket: {"claudeops": 1}))
way("an empty ticket", let_in(lambda ticket: {"claudeops": 1, "ticket": ""}))
way("half a ticket", let_in(lambda ticket: {"claudeops": 1, "ticket": ticket[: len(ticket) // 2]}))
way("a longer ticket", let_in(lambda ticket: {"claudeops": 1, "ticket": ticket + "a"}))
way("another ticket", let_in(lambda ticket: {"claudeops": 1, "ticket": ticket[::-1]}))
way("no handshake", let_in(lambda ticket: OPENING[0]))
way("the ticket of an earlier session", lambda: os.environ.get("EARLIER") and any(a.get("ok") for a in dial(door()[0], {"claudeops": 1, "ticket": os.environ["EARLIER"]})))
way("the socket of an earlier session", lambda: os.environ.get("EARLIER") and dial(os.environ["EARLIER_SOCKET"], {"claudeops": 1, "ticket": os.environ["EARLIER"]}))


def every_socket():
    # Each socket of the machine that the kernel or the file system names but our own, with our ticket and without one.
    own, ticket = door()
    names = {line.split()[-1] for line in open("/proc/net/unix") if len(line.split()) == 8}
    for folder in ("/tmp", "/run", WORK, os.path.dirname(WORK), os.environ["OPERATOR_TMPDIR"], STATE):
        for at, _, files in os.walk(folder): # not through links, of which one may lead to the whole file system
            names.update(os.path.join(at, f) for f in files if f.endswith(".sock"))
    for name in names - {own}:
        if "claude" not in name or name.startswith("@"):
            continue
        for hello in ({"claudeops": 1, "ticket": ticket}, OPENING[0]):
            try:
                if any(a.get("ok") or "result" in a for a in dial(name, hello, *OPENING, timeout=3)):
                    return True
            except (OSError, ValueError):
                pass


way("every socket", every_socket)


def flood(lines):
    # The operator's disk must not be filled through the door. Bounded: the door may let all of it wait.
    def attempt():
        path, ticket = door()
        for _ in range(2):
            try:
                print("FLOOD ANSWERED:", len(dial(path, *lines(ticket))))
            except (OSError, ValueError):
                pass
    return attempt


way("a flood of refused calls", flood(lambda ticket: [{"claudeops": 1, "ticket": ticket}, *OPENING] + [
    {"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": dict(zip(("name", "arguments"), proposal("Flood", body="x" * 50000)))} for i in range(1, 200)]))
way("a flood of large messages", flood(lambda ticket: [{"claudeops": 1, "ticket": ticket}, *OPENING] + [b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * (5 << 20) + b'"}'] * 4))
way("a flood of wrong tickets", lambda: [dial(door()[0], {"claudeops": 1, "ticket": "x" * 64}, timeout=5) for _ in range(300)] and False)


def openings(lines):
    def attempt():
        path, ticket = door()
        held, until = [], time.time() + 5
        while len(held) < 1000 and time.time() < until:
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(2)
            held.append(s)
            try:
                s.connect(path)
                s.sendall(lines(ticket))
            except OSError:
                time.sleep(0.01)
            for old in held[:-50]:
                old.close()
    return attempt


way("a flood of connections", openings(lambda ticket: b'{"claudeops":1,"ticket":"%s"}\n' % ticket.encode()))
way("a flood of connections that never say who they are", openings(lambda _: b'{"claudeops":1,'))
print("SOCKET:", door()[0])
