# Starts programs of the operator with other rights: a server of a higher tier, the review, a token, a session.
def server(*arguments, **env):
    def attempt():
        return opens(mcp(BINARY, "mcp-server", *arguments, calls=[proposal("Server of my own")], env=env))
    return attempt


everything = {"CLAUDEOPS_TIER": "3", "CLAUDEOPS_DRY_RUN": "false", "CLAUDEOPS_READ_ONLY": "false", "CLAUDEOPS_STATE_DIR": STATE, "CLAUDEOPS_LOCAL_ROOT": ROOT,
              "CLAUDEOPS_DEFAULT_PROVIDER": "local", "CLAUDEOPS_POLICY": ""}
way("server at tier 3", server(**everything))
way("server at tier 3 by flags", server("--tier", "3", "--dry-run=false", "--state-dir", STATE, "--local-root", ROOT, "--default-provider", "local"))
way("server with records of its own", server(**{**everything, "CLAUDEOPS_STATE_DIR": WORK + "/state"}))
def command(*arguments, **env):
    def attempt():
        code, output = run(BINARY, *arguments, env={**everything, **env})
        return code == 0
    return attempt


way("approve", command("review", "approve", "1", "--repo", "demo/home-cluster"))
way("merge", command("review", "merge", "1", "--repo", "demo/home-cluster", "--force"))
way("comment", command("review", "comment", "1", "--repo", "demo/home-cluster", "--comment", "fine"))
way("token create", command("token", "create", "--name", "mine", "--scopes", "operate", "--max-tier", "3"))
way("agent token", command("token", "create", "--name", "mine too", "--agent", "--tier", "3"))
way("audit list", command("audit", "list"))
way("prune", command("prune", "--older-than", "7d"))
way("backup", command("backup", WORK + "/backup"))
way("another session", command("run", "--tier", "3", CLAUDEOPS_MAX_TIER="3"))
way("a server for people", lambda: run("timeout", "5", BINARY, "serve", "--addr", "127.0.0.1:0", env=everything)[0] == 0)
