# Reads keys, secrets and records: directly, through links, through another name, through folders opened earlier.
def lister(folder):
    return lambda: os.listdir(folder)


def linked(target):
    def attempt():
        link = os.path.join(WORK, "link")
        if os.path.lexists(link):
            os.unlink(link)
        os.symlink(target, link)
        return contents(link, 10)
    return attempt


def hard(target):
    def attempt():
        name = os.path.join(WORK, "hard")
        if os.path.lexists(name):
            os.unlink(name)
        os.link(target, name)
        return True
    return attempt


def mapped(target):
    fd = os.open(target, os.O_RDONLY)
    return mmap.mmap(fd, 1, mmap.MAP_SHARED, mmap.PROT_READ)[:1]


targets = [SECRET, STATE + "/mark.key", STATE + "/claudeops.db", STATE + "/claudeops.db-wal", STATE + "/session.lock"]
targets += glob.glob(STATE + "/*") + glob.glob(os.path.dirname(SECRET) + "/*")
for target in targets:
    way("read " + target, lambda: contents(target, 10))
    way("read by a link " + target, linked(target))
    way("hard link to " + target, hard(target))
    way("mapped " + target, lambda: mapped(target))
    way("path descriptor of " + target, lambda: contents("/proc/self/fd/%d" % os.open(target, os.O_PATH), 10))
    way("copied with cat " + target, lambda: run("cat", target)[0] == 0)
    way("renamed " + target, lambda: os.rename(target, target + ".moved") is None and os.rename(target + ".moved", target) is None)
for folder in [STATE, ROOT, os.path.dirname(SECRET)]:
    way("listed " + folder, lister(folder))
    way("entered " + folder, lambda: os.chdir(folder) is None and os.listdir("."))
    way("listed through dot dot " + folder, lister(os.path.join(WORK, "../" * 12, folder.lstrip("/"))))
    way("in a user namespace " + folder, lambda: run("unshare", "-Urm", "ls", folder)[0] == 0)
    way("bind mounted " + folder, lambda: run("unshare", "-Urm", "sh", "-c", f"mount --bind {folder} {WORK} && ls {WORK}/*.key")[0] == 0)
