package facts

import (
	"slices"
	"strings"
)

// act is what a command does: a class, and what is said before its words.
type act struct {
	class Class
	says  string
}

// actsOf gives what a command does, as far as it is worth a fact.
func actsOf(c *command) []act {
	var acts []act
	if read := programs()[c.name]; read != nil {
		acts = read(c)
	} else {
		acts = otherProgram(c)
	}
	acts = append(acts, writesOf(c)...)
	acts = append(acts, riskyOptions(c)...)
	if len(acts) > 0 && c.discarded && slices.ContainsFunc(acts, func(a act) bool {
		return a.class == Destroy || a.class == Outbound || a.class == DownloadRun
	}) {
		acts = append(acts, act{Conceal, "Throws away what a command says"})
	}
	if c.isAnswered() {
		acts = append(acts, act{Weakens, "Answers yes to whatever a program asks"})
	}
	if c.tolerated && isCheck(c) {
		acts = append(acts, act{Weakens, "Goes on where a check fails"})
	}
	return acts
}

// isAnswered says whether the program yes answers what a command asks.
func (c *command) isAnswered() bool {
	last := len(c.before) - 1
	return c.piped && last >= 0 && c.before[last] == "yes" && (len(c.args) > 0 || strings.Contains(c.text, "/"))
}

// isCheck says whether a command is a test, a linter or another check.
func isCheck(c *command) bool {
	for _, text := range append([]string{c.name}, c.args...) {
		for _, check := range []string{"test", "lint", "check", "verify", "validate", "audit", "scan", "diff"} {
			if strings.Contains(strings.ToLower(text), check) {
				return true
			}
		}
	}
	return false
}

// programs maps the names of programs to what reads their commands.
func programs() map[string]func(*command) []act { return programTable() }

// one gives an act if it holds.
func one(holds bool, class Class, says string) []act {
	if !holds {
		return nil
	}
	return []act{{class, says}}
}

func removesFiles(c *command) []act {
	operands := c.operands()
	if strings.Contains(c.text, "history") {
		return []act{{Conceal, "Deletes a history"}}
	}
	return one(slices.ContainsFunc(operands, func(o string) bool { return !isScratch(o) }), Destroy, "Deletes files")
}

// isScratch says whether a path is made to be deleted: below /tmp, or a product of a build.
func isScratch(path string) bool {
	rest, temporary := strings.CutPrefix(path, "/tmp/")
	if temporary {
		return len(rest) > 0 && !strings.HasPrefix(rest, "*") && !strings.Contains(rest, "..")
	}
	for _, name := range []string{"node_modules", "__pycache__", "dist", "build", "target", ".pytest_cache", ".venv",
		"venv"} {
		if strings.Trim(path, "./") == name {
			return true
		}
	}
	return strings.HasSuffix(path, ".tmp") || strings.HasSuffix(path, ".pyc") || strings.HasSuffix(path, ".o")
}

func overwritesDevice(c *command) []act {
	for _, arg := range c.args {
		if target, ok := strings.CutPrefix(arg, "of="); ok && !isScratch(target) {
			return []act{{Destroy, "Overwrites"}}
		}
	}
	return nil
}

func alwaysDestroys(c *command) []act {
	return one(len(c.args) > 0 && !c.flag("--help", "-h", "--version"), Destroy, "Deletes data")
}

func movesFiles(c *command) []act {
	operands := c.operands()
	return one(len(operands) > 0 && operands[len(operands)-1] == "/dev/null", Destroy, "Deletes files")
}

func findsFiles(c *command) []act {
	return one(c.flag("-delete"), Destroy, "Deletes files")
}

func endsProcesses(c *command) []act {
	hard := c.name != "kill" || c.flag("-9", "-KILL", "-SIGKILL")
	return one(len(c.operands()) > 0 && hard, Destroy, "Ends processes")
}

func stopsMachine(c *command) []act {
	return one(!c.flag("--help"), Destroy, "Stops the machine")
}

// controlsCluster reads kubectl and oc.
func controlsCluster(c *command) []act {
	operands := withoutValues(c.args,
		"-n --namespace -c --container -l --selector -o --output --context -f --filename --kubeconfig")
	verb, kind := at(operands, 0), strings.ToLower(at(operands, 1))
	kind, _, _ = strings.Cut(kind, "/")
	switch verb {
	case "delete":
		pod := kind == "pod" || kind == "pods" || kind == "po"
		all := c.flag("--all", "-A", "--all-namespaces")
		return one(!pod && kind != "" && !strings.HasPrefix(kind, "<") || all, Destroy, "Deletes objects of a cluster")
	case "scale":
		return one(c.flag("--replicas=0") || strings.Contains(c.text, "--replicas 0"), Destroy, "Stops a service")
	case "drain":
		return one(c.flag("--force", "--delete-emptydir-data", "--delete-local-data"), Destroy, "Empties a node")
	case "replace":
		return one(c.flag("--force"), Destroy, "Deletes objects of a cluster")
	case "get", "describe", "extract", "view", "edit":
		secretKind := strings.HasPrefix(kind, "secret")
		return one(secretKind && (verb != "get" || c.flag("-o", "--output") || c.flag("-ojson", "-oyaml")), Credential,
			"Reads a secret of a cluster")
	case "config":
		return one(c.flag("--raw"), Credential, "Reads the cluster's credentials")
	case "create", "apply":
		switch {
		case kind == "clusterrolebinding" || strings.Contains(c.text, "cluster-admin"):
			return []act{{Rights, "Gives rights in a cluster"}}
		case strings.Contains(c.text, "://"):
			return []act{{DownloadRun, "Applies what an address serves"}}
		case kind == "token":
			return []act{{Credential, "Makes a token"}}
		}
	case "adm":
		return one(kind == "policy" && strings.Contains(c.text, "add-"), Rights, "Gives rights in a cluster")
	case "run":
		return []act{{DownloadRun, "Runs an image"}}
	}
	return nil
}

func at(list []string, index int) string {
	if index < len(list) {
		return list[index]
	}
	return ""
}

// withoutValues gives the arguments without options and their values. valued are the options with a value behind them.
func withoutValues(args []string, valued string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case strings.HasPrefix(arg, "-"):
			if containsWord(valued, arg) {
				i++
			}
		default:
			out = append(out, arg)
		}
	}
	return out
}

// handlesContainers reads docker and podman.
func handlesContainers(c *command) []act {
	verb, second := c.operand(0), c.operand(1)
	switch verb {
	case "compose", "system", "volume", "image", "container", "network":
		down := second == "down" && c.flag("-v", "--volumes", "--rmi")
		return one(down || second == "prune" || second == "rm" || second == "kill", Destroy,
			"Deletes containers, images or volumes")
	case "rm", "rmi", "kill", "stop":
		return []act{{Destroy, "Stops or deletes containers"}}
	case "push":
		return []act{{Outbound, "Uploads an image"}}
	case "run", "pull", "create":
		acts := []act{{DownloadRun, "Runs an image"}}
		if strings.Contains(c.text, "-v /:") || strings.Contains(c.text, "docker.sock") ||
			c.flag("--pid=host", "--network=host", "--net=host", "--cap-add") {
			acts = append(acts, act{Rights, "Gives a container the host"})
		}
		return acts
	}
	return nil
}

func controlsServices(c *command) []act {
	verb := c.operand(0)
	switch verb {
	case "stop", "disable", "mask", "kill", "isolate", "poweroff", "reboot", "halt":
		if isWatcher(c.text) {
			return []act{{Conceal, "Stops what watches"}}
		}
		return []act{{Destroy, "Stops a service"}}
	case "enable", "link", "edit":
		return []act{{Persist, "Makes a service start by itself"}}
	}
	return nil
}

// isWatcher says whether a command is about a program that watches or protects a machine.
func isWatcher(text string) bool {
	for _, name := range []string{"auditd", "rsyslog", "syslog", "falco", "journald", "osquery", "crowdstrike", "falcon",
		"wazuh",
		"clamav", "fail2ban", "firewalld", "apparmor", "defender", "sysmon", "telegraf", "node_exporter", "splunk",
		"datadog"} {
		if strings.Contains(text, name) {
			return true
		}
	}
	return false
}

func startsService(c *command) []act {
	return one(c.operand(1) == "stop", Destroy, "Stops a service")
}

func changesRepository(c *command) []act {
	operands := withoutValues(c.args, "-C -c -m -b")
	verb, second := at(operands, 0), at(operands, 1)
	acts := gitSettings(c, verb)
	switch verb {
	case "push":
		forced := c.flag("--force", "-f", "--force-with-lease", "--delete", "--mirror", "-d") || strings.Contains(c.text,
			" +") ||
			strings.Contains(c.text, " :")
		switch {
		case forced:
			acts = append(acts, act{Destroy, "Overwrites a branch"})
		case strings.Contains(c.text, "://") || strings.Contains(second, "@"):
			acts = append(acts, act{Outbound, "Sends a repository elsewhere"})
		}
	case "reset":
		acts = append(acts, one(c.flag("--hard"), Destroy, "Drops changes")...)
	case "clean":
		acts = append(acts, one(c.flag("-f", "--force"), Destroy, "Deletes files")...)
	case "branch", "tag":
		acts = append(acts, one(c.flag("-D", "--delete"), Destroy, "Deletes a branch")...)
	case "filter-branch", "filter-repo":
		acts = append(acts, act{Destroy, "Rewrites the history"})
	case "stash":
		acts = append(acts, one(second == "drop" || second == "clear", Destroy, "Drops changes")...)
	case "remote":
		acts = append(acts, one(second == "add" || second == "set-url", Outbound, "Sets where a repository is sent to")...)
	}
	return acts
}

func gitSettings(c *command, verb string) []act {
	if verb != "config" && !c.flag("-c") {
		return nil
	}
	text := strings.ToLower(c.text)
	switch {
	case strings.Contains(text, "sslverify"):
		return []act{{Rights, "Switches security off"}}
	case strings.Contains(text, "hookspath"), strings.Contains(text, "alias."), strings.Contains(text, "fsmonitor"),
		strings.Contains(text, "sshcommand"), strings.Contains(text, "insteadof"):
		return []act{{Persist, "Sets what git runs"}}
	case strings.Contains(text, "credential.helper"):
		return []act{{Credential, "Sets where git keeps credentials"}}
	}
	return nil
}

// requestsAddress reads curl, wget and their like.
func requestsAddress(c *command) []act {
	var acts []act
	if c.name == "curl" || c.name == "wget" || c.name == "http" || c.name == "https" || c.name == "xh" {
		sends := c.flag("-d", "-F", "-T", "--data", "--data-raw", "--data-binary", "--data-urlencode", "--data-ascii",
			"--form",
			"--form-string", "--upload-file", "--json", "--post-data", "--post-file", "--body-data", "--body-file") ||
			isPost(c) || c.reads && c.name != "wget"
		target := ""
		if sends || strings.ContainsAny(c.text, "$`") {
			target = remoteTarget(c.args)
		}
		if sends && target != "" {
			acts = append(acts, act{Outbound, "Sends data out"})
		} else if hasQueryData(target) {
			acts = append(acts, act{Outbound, "Sends data in an address"})
		}
	}
	if fetchesProgram(c) {
		acts = append(acts, act{DownloadRun, "Downloads a program"})
	}
	return acts
}

// isPost says whether a request changes what a server has.
func isPost(c *command) bool {
	for i, arg := range c.args {
		method := strings.TrimPrefix(arg, "-X")
		if (arg == "-X" || arg == "--request") && i+1 < len(c.args) {
			method = c.args[i+1]
		}
		method = strings.TrimPrefix(strings.TrimPrefix(method, "--request="), "--method=")
		if method == "POST" || method == "PUT" || method == "PATCH" {
			return true
		}
	}
	return false
}

// hasQueryData says whether an address is made of what a command or a variable gives.
func hasQueryData(target string) bool {
	_, query, _ := strings.Cut(target, "://")
	slash := strings.IndexAny(query, "/?")
	return slash >= 0 && (strings.Contains(query[slash:], "$(") || strings.Contains(query[slash:], "`"))
}

// remoteTarget gives the first argument that names a host which is not of this machine or its network.
func remoteTarget(args []string) string {
	for _, arg := range args {
		arg = strings.Trim(arg, `"'`)
		if !strings.Contains(arg, "://") && (strings.HasPrefix(arg, "-") || !isHost(strings.ToLower(arg))) {
			continue
		}
		host := hostOf(arg)
		if host == "" && strings.Contains(arg, "://") {
			_, host, _ = strings.Cut(arg, "://")
		}
		if !isNear(host) {
			return arg
		}
	}
	return ""
}

// isNear says whether a host is of this machine or a private network, or stands in a variable.
func isNear(host string) bool {
	host = strings.ToLower(host)
	if host == "" || strings.HasPrefix(host, "$") || strings.HasPrefix(host, "<") || strings.HasPrefix(host,
		"localhost") ||
		strings.HasPrefix(host, "{") {
		return true
	}
	name, _, _ := strings.Cut(host, "/")
	name, _, _ = strings.Cut(name, ":")
	if isLocal(name) || isPrivateIP(name) {
		return true
	}
	return !strings.Contains(name, ".") || strings.HasSuffix(name, ".local") || strings.HasSuffix(name, ".internal")
}

// fetchesProgram says whether a request fetches a program and gives it to a shell, or to a file of one.
func fetchesProgram(c *command) bool {
	for _, arg := range c.args {
		const longest = len(".exe")
		dot := strings.LastIndexByte(arg, '.')
		if dot < 0 || len(arg)-dot > longest {
			continue
		}
		switch strings.ToLower(arg[dot:]) {
		case ".sh", ".py", ".exe", ".ps1", ".deb", ".rpm", ".bin", ".jar", ".msi", ".apk":
			return true
		}
	}
	return false
}

// copiesElsewhere reads scp, rsync and their like: the last operand is where the files go.
func copiesElsewhere(c *command) []act {
	operands := c.operands()
	if len(operands) < 2 {
		return nil
	}
	target := operands[len(operands)-1]
	colon := strings.IndexByte(target, ':')
	return one(colon > 1 && !strings.HasPrefix(target, "/") && !strings.HasPrefix(target, "."), Outbound,
		"Copies files to another host")
}

func connects(c *command) []act {
	if c.flag("-z", "-l") && !c.flag("-e", "-c") {
		return nil
	}
	return one(c.reads || c.flag("-e", "-c", "--exec") || len(c.operands()) > 1 && !c.flag("-v"), Outbound,
		"Connects to another host")
}

func asksNames(c *command) []act {
	return one(strings.Contains(c.text, "$(") || strings.Contains(c.text, "`"), Outbound,
		"Sends data in the name of a host")
}

func handlesStorage(c *command) []act {
	operands := c.operands()
	text := strings.ToLower(c.text)
	if words := strings.Join(operands[:min(3, len(operands))], " "); containsWord(words, "rm", "rb", "delete", "del",
		"terminate",
		"purge") || strings.Contains(words, "delete-") || strings.Contains(words, "terminate-") {
		return []act{{Destroy, "Deletes objects of a cloud"}}
	}
	last := ""
	if len(operands) > 0 {
		last = operands[len(operands)-1]
	}
	upload := (containsWord(text, "cp", "mv", "sync", "copy", "rsync", "put", "put-object", "upload", "upload-batch")) &&
		(strings.Contains(last, "://") || strings.Contains(last, ":") && c.name == "rclone" || strings.Contains(text,
			"put-object") ||
			strings.Contains(text, "upload"))
	switch {
	case upload:
		return []act{{Outbound, "Uploads to a cloud"}}
	case strings.Contains(text, "get-secret-value"), strings.Contains(text, "print-access-token"), strings.Contains(text,
		"get-access-token"),
		strings.Contains(text, "secrets versions access"), strings.Contains(text, "configure get"), strings.Contains(text,
			"--with-decryption"):
		return []act{{Credential, "Reads a secret"}}
	case strings.Contains(text, "attach-user-policy"), strings.Contains(text, "add-iam-policy-binding"),
		strings.Contains(text, "create-access-key"),
		strings.Contains(text, "role assignment create"), strings.Contains(text, "authorize-security-group-ingress"):
		return []act{{Rights, "Gives rights in a cloud"}}
	}
	return nil
}

func containsWord(text string, words ...string) bool {
	for field := range strings.FieldsSeq(text) {
		if slices.Contains(words, field) {
			return true
		}
	}
	return false
}

func sendsMail(c *command) []act {
	return one(strings.Contains(c.text, "@") || c.reads, Outbound, "Sends mail")
}

func handlesForge(c *command) []act {
	first, second := c.operand(0), c.operand(1)
	switch {
	case first == "gist" && second == "create", first == "release" && second == "upload":
		return []act{{Outbound, "Publishes on a forge"}}
	case first == "auth" && second == "token":
		return []act{{Credential, "Reads a token"}}
	case second == "delete":
		return []act{{Destroy, "Deletes on a forge"}}
	}
	return nil
}

func takesRights(*command) []act { return []act{{Rights, "Runs with more rights"}} }

func setsModes(c *command) []act {
	mode := c.operand(0)
	wide := strings.HasSuffix(mode, "777") || strings.HasSuffix(mode, "666") || strings.Contains(mode, "+s") ||
		strings.HasPrefix(mode, "a+w") || strings.HasPrefix(mode, "o+w") || strings.HasPrefix(mode, "a+rw") ||
		strings.HasPrefix(mode, "ugo+") ||
		len(mode) == 4 && (mode[0] == '4' || mode[0] == '2' || mode[0] == '6')
	return one(wide, Rights, "Gives everybody rights to a file")
}

func changesAccounts(c *command) []act {
	return one(len(c.args) > 0, Rights, "Changes accounts or rights")
}

func changesGroups(c *command) []act {
	return one(c.flag("-G", "-aG", "-a"), Rights, "Changes accounts or rights")
}

func switchesSecurity(c *command) []act {
	text := strings.ToLower(c.text)
	off := containsWord(text, "0", "disable", "off", "-f", "--flush", "reset", "teardown", "permissive", "allow",
		"accept", "disabled") ||
		strings.Contains(text, "disable") || strings.Contains(text, "-disablerealtime")
	return one(off, Rights, "Switches security off")
}

func plansTasks(c *command) []act {
	switch {
	case c.flag("-l"):
		return nil
	case c.flag("-r"):
		return []act{{Destroy, "Deletes planned tasks"}}
	}
	return one(len(c.args) > 0 || c.reads, Persist, "Plans a task that runs later")
}

func plansWindowsTasks(c *command) []act {
	text := strings.ToLower(c.text)
	return one(strings.Contains(text, "/create") || strings.Contains(text, "load") || strings.Contains(text,
		"bootstrap") ||
		strings.Contains(text, `\run`), Persist, "Plans a task that runs later")
}

func installs(c *command) []act {
	verb := c.operand(0)
	switch verb {
	case "install", "add", "i", "get", "in", "tap", "sync", "pip", "tool", "create", "dlx", "exec", "x", "update",
		"upgrade", "ci":
		return one(len(c.operands()) > 1 || c.flag("-r", "-e"), DownloadRun, "Installs programs")
	}
	return nil
}

func removesPackages(c *command) []act {
	verb := c.operand(0)
	return append(installs(c), one(verb == "remove" || verb == "purge" || verb == "autoremove", Destroy,
		"Removes programs")...)
}

func fetchesAndRuns(c *command) []act {
	return one(len(c.operands()) > 0, DownloadRun, "Downloads and runs a program")
}

func startsModel(c *command) []act {
	return one(containsWord(c.text, "run", "pull", "download"), DownloadRun, "Loads a model")
}

// interprets reads shells and interpreters.
func interprets(c *command) []act {
	if c.piped && slices.ContainsFunc(c.before, func(name string) bool { return isFetcher(name) }) {
		return []act{{DownloadRun, "Downloads and runs a program"}}
	}
	if c.piped && slices.ContainsFunc(c.before, func(name string) bool {
		return name == "base64" || name == "xxd" || name == "openssl" || name == "rev"
	}) {
		return []act{{Opaque, "Runs what is encoded"}}
	}
	if strings.Contains(c.text, "<(curl") || strings.Contains(c.text, "$(curl") || strings.Contains(c.text, "$(wget") ||
		strings.Contains(c.text, "<(wget") || strings.Contains(c.text, "urlopen") || strings.Contains(c.text,
		"DownloadString") {
		return []act{{DownloadRun, "Downloads and runs a program"}}
	}
	if strings.Contains(c.text, "/dev/tcp/") {
		return []act{{Outbound, "Connects to another host"}}
	}
	if lower := strings.ToLower(c.text); strings.Contains(lower, " -enc") || strings.Contains(lower, "-encodedcommand") {
		return []act{{Opaque, "Runs what is encoded"}}
	}
	if c.operand(0) == "-m" || c.flag("-m") {
		if c.operand(0) == "pip" {
			return one(c.operand(1) == "install", DownloadRun, "Installs programs")
		}
		return nil
	}
	return one(isScript(c.operand(0)), RunsCode, "Runs a script")
}

func isFetcher(name string) bool {
	switch name {
	case "curl", "wget", "fetch", "iwr", "invoke-webrequest", "irm", "invoke-restmethod", "aria2c", "http":
		return true
	}
	return false
}

// isScript says whether a path is that of a script.
func isScript(path string) bool {
	dot := strings.LastIndexByte(path, '.')
	if dot < 0 || len(path)-dot > len(".bash") {
		return false
	}
	switch path[dot:] {
	case ".sh", ".bash", ".py", ".js", ".ts", ".mjs", ".cjs", ".rb", ".pl", ".php", ".ps1", ".bat", ".cmd", ".go", ".lua",
		".R", ".jar", ".exe", ".tsx":
		return true
	}
	return false
}

// printsSecrets reads programs that show what they are given or what the environment has.
func printsSecrets(c *command) []act {
	if c.name == "printenv" || c.name == "env" && len(c.args) == 0 || c.name == "set" && len(c.args) == 0 && c.depth > 0 {
		return []act{{Credential, "Prints the environment"}}
	}
	for _, arg := range c.args {
		if strings.Contains(arg, "$") && namesSecretVariable(arg) {
			return []act{{Credential, "Shows a secret"}}
		}
	}
	return nil
}

func unsetsHistory(c *command) []act {
	text := strings.ToLower(c.text)
	hides := c.name == "history" && c.flag("-c", "-w", "-d") || strings.Contains(text, "histfile") ||
		strings.Contains(text, "histsize") ||
		c.name == "set" && strings.Contains(text, "+o history")
	return one(hides, Conceal, "Keeps no history")
}

func clearsJournal(c *command) []act {
	text := strings.ToLower(c.text)
	return one(strings.Contains(text, "--vacuum") || c.name == "wevtutil" && strings.Contains(text, "cl") ||
		c.name == "auditctl" && c.flag("-D", "-e"), Conceal, "Deletes logs")
}

func readsKeychain(c *command) []act {
	return one(containsWord(c.text, "find-generic-password", "find-internet-password", "dump-keychain", "read", "get",
		"show", "kv",
		"decrypt", "--export-secret-keys", "export"), Credential, "Reads a secret")
}

func runsSQL(c *command) []act {
	return sqlActs(c.text)
}

func opensTunnel(c *command) []act {
	return one(c.flag("-R", "-L", "-D") && !c.flag("-V"), Outbound, "Opens a tunnel to another host")
}

func exposesPort(c *command) []act {
	return one(len(c.args) > 0, Outbound, "Opens a tunnel to another host")
}

func linksKey(c *command) []act { return one(len(c.args) > 0, Persist, "Lets a key sign in") }

func runsFile(c *command) []act { return one(c.operand(0) != "", RunsCode, "Runs a script") }

// otherProgram reads programs without rules of their own: scripts, and the words that many programs have for deletion.
func otherProgram(c *command) []act {
	first := c.name
	if first == "mkfs" || strings.HasPrefix(first, "mkfs.") {
		return []act{{Destroy, "Formats a disk"}}
	}
	full, _, _ := strings.Cut(c.text, " ")
	if strings.HasPrefix(full, "./") || strings.HasPrefix(full, "../") || strings.HasPrefix(full, "~/") ||
		isScript(full) ||
		strings.HasPrefix(full, "scripts/") || strings.HasPrefix(full, "bin/") {
		return []act{{RunsCode, "Runs a script"}}
	}
	if !isProgramName(first) {
		return nil
	}
	for _, verb := range c.operands()[:min(2, len(c.operands()))] {
		switch verb {
		case "destroy", "purge", "wipe", "delete-all", "flushall", "flushdb", "uninstall", "rm", "delete", "drop", "prune":
			return []act{{Destroy, "Deletes data"}}
		}
	}
	return nil
}

// isProgramName says whether a word may be the name of a program: a sentence has none that begin like these.
func isProgramName(name string) bool {
	switch name, _, _ := strings.Cut(name, "."); name {
	case "mkfs":
		return true
	case "terraform", "tofu", "pulumi", "helm", "etcdctl", "redis-cli", "ceph", "rados", "rbd", "zfs", "zpool",
		"lvremove", "vgremove",
		"pvremove", "velero", "argocd", "vault", "consul", "nomad", "heroku", "fly", "flyctl", "vercel", "netlify", "doctl",
		"linode-cli",
		"hcloud", "openstack", "virsh", "virtctl", "multipass", "minikube", "kind", "k3d", "eksctl", "rosa", "ocm",
		"supabase",
		"firebase", "wrangler", "cf", "serverless", "sls", "cdk", "sam", "copilot", "kopia", "restic", "borg", "mc",
		"s3cmd", "b2":
		return true
	}
	return false
}
