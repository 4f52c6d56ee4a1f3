package deploytest_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/system/sandbox"
	"github.com/claudeops/claudeops/internal/testkit/deploytest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// A variable that is added to the code has to be passed on here, otherwise it cannot be set in the container.
// `make golden` adds it behind the variable that the code has before it; where it belongs better is for people to say.
func TestTheFilesOfDeploymentNameEveryVariable(t *testing.T) {
	var handed, set []string
	for _, v := range deployed() {
		handed = append(handed, composeLine(v))
		if _, fixed := ofImage()[v.Name]; !fixed && !v.Secret {
			set = append(set, v.Name+"=")
		}
	}
	for name, text := range map[string]string{
		"compose.yaml": withLines(read(t, "compose.yaml"), ": ", handed),
		".env.example": withLines(read(t, ".env.example"), "=", set),
	} {
		operationtest.Golden(t, filepath.Join(top, name), []byte(text))
	}
}

// withLines returns a text with the lines that it lacks, each behind the wanted line before it. A line is known by what
// stands before the sign; what stands behind it is kept.
func withLines(text, sign string, wanted []string) string {
	lines, at := strings.Split(text, "\n"), 0
	for _, line := range wanted {
		key, _, _ := strings.Cut(line, sign)
		found := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, key+sign) })
		if found < 0 {
			found = at + 1
			lines = slices.Insert(lines, found, line)
		}
		at = found
	}
	return strings.Join(lines, "\n")
}

// composeLine is how compose.yaml hands a variable on: a secret as a file, and what the image settles as it is.
func composeLine(v config.Variable) string {
	name, value := v.Name, "${"+v.Name+":-}"
	if v.Name == "CLAUDEOPS_LOG_FORMAT" {
		value = "${CLAUDEOPS_LOG_FORMAT:-json}"
	}
	if v.Secret {
		name, value = v.Name+"_FILE", "/run/secrets/"+secretFile(v)
	}
	if fixed, ok := ofImage()[v.Name]; ok {
		value = fixed
	}
	return "      " + name + ": " + value
}

func TestComposeHandsOnWhatTheProductReads(t *testing.T) {
	env := composed(t).Services["claudeops"].Environment
	known := map[string]bool{}
	for _, v := range deployed() {
		name, _, _ := strings.Cut(strings.TrimSpace(composeLine(v)), ":")
		known[name] = true
		if !strings.Contains(read(t, "compose.yaml"), composeLine(v)+"\n") {
			t.Errorf("compose.yaml has no line %q", composeLine(v))
		}
	}
	// What this machine and the model are reached by, which Go and the agent's program read.
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "TZ", "ANTHROPIC_BASE_URL"} {
		known[name] = true
		if env[name] != "" || !strings.Contains(read(t, "compose.yaml"), "\n      "+name+": ${"+name+":-}\n") {
			t.Errorf("compose.yaml does not hand %s on", name)
		}
	}
	for name := range env {
		if !known[name] {
			t.Errorf("compose.yaml sets %s, which the product does not read", name)
		}
	}
	for _, v := range config.ServerVariables(forges.All()) {
		base, isFile := strings.CutSuffix(v.Name, "_FILE")
		if _, set := env[v.Name]; !set && (isFile || !known[v.Name+"_FILE"]) {
			t.Errorf(".claude/mcp.json hands %s on, which the container has not", base)
		}
	}
}

func TestEverySecretIsAFile(t *testing.T) {
	c := composed(t)
	script, example := read(t, "deploy/secrets.sh"), read(t, ".env.example")
	var want []string
	for _, v := range secrets() {
		file := secretFile(v)
		want = append(want, file)
		if c.Secrets[file].File != "./secrets/"+file {
			t.Errorf("the file of %s is %q", v.Name, c.Secrets[file].File)
		}
		if !strings.Contains(script, " "+file) {
			t.Errorf("deploy/secrets.sh does not make %s", file)
		}
		if !strings.Contains(example, "secrets/"+file+" ("+v.Name+")") {
			t.Errorf(".env.example does not say that %s is a file", v.Name)
		}
	}
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(c.Services["claudeops"].Secrets)); !slices.Equal(got, want) ||
		len(c.Secrets) != len(want) {
		t.Errorf("the container gets %q of %d secrets, want %q", got, len(c.Secrets), want)
	}
}

func TestTheExampleHasEveryVariableThatComposeTakes(t *testing.T) {
	example := read(t, ".env.example")
	env := deploytest.ParseEnv(example)
	for _, v := range deployed() {
		_, set := env[v.Name]
		_, fixed := ofImage()[v.Name]
		if set == (v.Secret || fixed) {
			t.Errorf("%s: set in .env.example %t; secrets and what the image settles do not belong there, all else does", v.Name,
				set)
		}
		if !strings.Contains(example, v.Name) {
			t.Errorf(".env.example does not name %s", v.Name)
		}
	}
	taken := deploytest.References(read(t, "compose.yaml"))
	for name := range env {
		if !slices.Contains(taken, name) {
			t.Errorf(".env.example sets %s, which compose.yaml does not take", name)
		}
	}
	for _, name := range taken {
		if _, set := env[name]; !set {
			t.Errorf("compose.yaml takes %s, which .env.example lacks", name)
		}
	}
	// The example sets the values that apply without it.
	with, err := deploytest.ParseCompose(read(t, "compose.yaml"), func(name string) string { return env[name] })
	must.Do(t, err)
	without := composed(t)
	for name, service := range with.Services {
		if !maps.Equal(service.Environment, without.Services[name].Environment) ||
			!slices.Equal(service.Ports, without.Services[name].Ports) ||
			!slices.Equal(service.Volumes, without.Services[name].Volumes) {
			t.Errorf("%s differs between .env.example and no .env", name)
		}
	}
}

func TestTheContainerHasNoRightsThatItDoesNotNeed(t *testing.T) {
	c := composed(t)
	_, _, final := stages(t)
	for name, s := range c.Services {
		if !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) ||
			s.PidsLimit <= 0 || s.MemLimit == "" {
			t.Errorf("%s: capabilities %q, options %q, %d processes, memory %q", name, s.CapDrop, s.SecurityOpt, s.PidsLimit,
				s.MemLimit)
		}
		if s.Logging.Options["max-size"] == "" || s.Logging.Options["max-file"] == "" {
			t.Errorf("%s: its log grows without bound: %+v", name, s.Logging)
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s is published on %s", name, port)
			}
		}
		for _, m := range s.Volumes {
			if _, declared := c.Volumes[m.Source]; m.Type == "volume" && !declared {
				t.Errorf("%s: the volume %s is not declared", name, m.Source)
			}
			if m.Type == "bind" && m.Bind.SELinux != "z" {
				t.Errorf("%s: %s has no label that SELinux lets containers read", name, m.Source)
			}
		}
	}
	s := c.Services["claudeops"]
	if !slices.Equal(s.CapAdd, []string{"SETUID", "SETGID", "KILL"}) || c.Services["gitea"].CapAdd != nil {
		t.Errorf("capabilities %q, and Gitea %q; those that start and end agents as a user of their own, and no other",
			s.CapAdd, c.Services["gitea"].CapAdd)
	}
	if agents := sandbox.DefaultLimits().Threads; s.PidsLimit < 2*agents {
		t.Errorf("%d processes, of which an agent may have %d: it could keep the server from starting one", s.PidsLimit,
			agents)
	}
	if !s.ReadOnly || s.User != final.Last("USER").Args || s.Profiles != nil ||
		!slices.Equal(c.Services["gitea"].Profiles, []string{"gitea"}) {
		t.Errorf("read-only %t, user %s, profiles %q and %q", s.ReadOnly, s.User, s.Profiles, c.Services["gitea"].Profiles)
	}
	writable := map[string]bool{}
	for _, m := range s.Volumes {
		writable[m.Target] = !m.ReadOnly
	}
	env := final.Env()
	if want := map[string]bool{env["CLAUDEOPS_STATE_DIR"]: true, "/git": true,
		env["CLAUDEOPS_REPOS_DIR"]: false}; !maps.Equal(writable, want) {
		t.Errorf("mounted are %v, want %v", writable, want)
	}
	for _, folder := range []string{"/tmp", env["HOME"]} {
		if !slices.ContainsFunc(s.Tmpfs, func(m string) bool { return strings.HasPrefix(m, folder+":size=") }) {
			t.Errorf("%s is not in memory: %q", folder, s.Tmpfs)
		}
	}
	// the root file system cannot be written
	if want := sandbox.ClaimFolder + ":size=1m,mode=0700"; !slices.Contains(s.Tmpfs, want) {
		t.Errorf("users of agents cannot be claimed: %q, without %s", s.Tmpfs, want)
	}
	if want := "127.0.0.1:8080:" + final.Last("EXPOSE").Args; !slices.Equal(s.Ports, []string{want}) {
		t.Errorf("published is %q, want %s", s.Ports, want)
	}
}

// unit returns the values of each key of the systemd unit.
func unit(t *testing.T) map[string][]string {
	t.Helper()
	keys := map[string][]string{}
	for line := range strings.Lines(read(t, "deploy/claudeops.service")) {
		line = strings.TrimSpace(line)
		if key, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			keys[key] = append(keys[key], value)
		}
	}
	return keys
}

func TestTheUnitHandsEverySecretOnAsACredential(t *testing.T) {
	keys := unit(t)
	environment := []string{"CLAUDEOPS_STATE_DIR=%S/" + keys["StateDirectory"][0]}
	var credentials []string
	for _, v := range secrets() {
		file := secretFile(v)
		credentials = append(credentials, file+":/etc/claudeops/secrets/"+file)
		environment = append(environment, v.Name+"_FILE=%d/"+file)
	}
	for key, want := range map[string][]string{"LoadCredential": credentials, "Environment": environment} {
		got := slices.Sorted(slices.Values(keys[key]))
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s is\n%q, want\n%q", key, got, want)
		}
	}
}

func TestTheUnitHasNoRightsThatItDoesNotNeed(t *testing.T) {
	keys := unit(t)
	const agents = "CAP_SETUID CAP_SETGID CAP_KILL" // what starts and ends agents as a user of their own
	for key, want := range map[string]string{
		"StartLimitIntervalSec": "0", "Restart": "on-failure", "RestartSec": "5",
		"RestartPreventExitStatus": strconv.Itoa(fault.ExitUsage),
		"ExecStart":                "/usr/local/bin/claudeops serve", "DynamicUser": "yes", "NoNewPrivileges": "yes",
		"ProtectSystem": "strict",
		"ProtectHome":   "yes", "PrivateTmp": "yes", "PrivateDevices": "yes", "CapabilityBoundingSet": agents,
		"AmbientCapabilities": agents, "StateDirectoryMode": "0700",
		"RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6 AF_NETLINK", "EnvironmentFile": "-/etc/claudeops/environment",
	} {
		if got := keys[key]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

// The agents' users are those that the code looks for unless others are configured.
func TestTheUnitsAgentsHaveAUser(t *testing.T) {
	text := read(t, "deploy/claudeops.sysusers")
	if !strings.Contains(text, "\ng "+sandbox.DefaultAccount+" -\n") {
		t.Errorf("deploy/claudeops.sysusers makes no group of all agents: %s", text)
	}
	for n := 1; n <= 16; n++ {
		if name := sandbox.DefaultAccount + "-" + strconv.Itoa(n); !strings.Contains(text, "\nu "+name+" - ") {
			t.Errorf("deploy/claudeops.sysusers makes no user %s: %s", name, text)
		}
	}
	keys := unit(t)
	for key, want := range map[string]string{"ExecStartPre": "+/usr/bin/install -d -m 0700 " + sandbox.ClaimFolder,
		"ReadWritePaths": "-" + sandbox.ClaimFolder} {
		if got := keys[key]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s is %q, want %q: users of agents could not be claimed", key, got, want)
		}
	}
	if hidden := keys["ProtectProc"]; hidden != nil {
		t.Errorf("ProtectProc is %q: the processes of agents could not be ended", hidden)
	}
}
