# Changes what the operator's side trusts: records, keys, policy, prompts, the repositories, the program itself.
def append(path):
    def attempt():
        with open(path, "ab") as f:
            f.write(b"")
        return True
    return attempt


def descriptor(path, change):
    # Reading is all that it is opened for.
    def attempt():
        fd = os.open(path, os.O_RDONLY)
        try:
            change(fd)
        finally:
            os.close(fd)
        return True
    return attempt


def replace(path):
    def attempt():
        temporary = path + ".new"
        with open(temporary, "wb") as f:
            f.write(b"x")
        os.unlink(temporary)
        return True
    return attempt


def truncated(path):
    # Opened for writing is enough: nothing is destroyed that a later attack needs.
    os.close(os.open(path, os.O_RDWR))
    return True


def sqlite():
    import sqlite3
    try:
        db = sqlite3.connect(STATE + "/claudeops.db", timeout=PATIENCE)
        return db.execute("select name from sqlite_master").fetchall()
    except sqlite3.Error:
        return False


targets = [POLICY, SECRET, BINARY, REPO + "/HEAD", REPO + "/config", STATE + "/mark.key", STATE + "/claudeops.db", STATE + "/session.lock"]
targets += glob.glob(PROMPTS + "/*.md") + glob.glob(REPO + "/refs/heads/*")
for target in targets:
    way("opened to append " + target, append(target))
    way("opened to write " + target, lambda: truncated(target))
    way("a neighbour of " + target, replace(target))
    way("mode of " + target, lambda: os.chmod(target, 0o666) is None)
    way("mode by a descriptor of " + target, descriptor(target, lambda fd: os.fchmod(fd, 0o777 if target == BINARY else 0o666)))
    way("owner of " + target, lambda: os.chown(target, os.getuid(), os.getgid()) is None)
    way("times of " + target, lambda: os.utime(target) is None)
    way("extended attribute of " + target, lambda: os.setxattr(target, "user.x", b"1") is None)
way("records by SQLite", sqlite)
way("git update-ref", lambda: run("git", "-C", REPO, "update-ref", "refs/heads/stolen", "HEAD")[0] == 0)
way("git push", lambda: run("sh", "-c", f"cd {WORK} && rm -rf c && git clone -q {REPO} c && cd c && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git push -q origin HEAD:refs/heads/stolen")[0] == 0)
way("git hook", lambda: open(REPO + "/hooks/pre-receive", "w").close() is None)
way("git object", lambda: open(REPO + "/objects/stolen", "w").close() is None)
way("repository moved", lambda: os.rename(REPO, REPO + ".moved") is None and os.rename(REPO + ".moved", REPO) is None)
way("state folder moved", lambda: os.rename(STATE, STATE + ".moved") is None and os.rename(STATE + ".moved", STATE) is None)
