package deploytest_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/system/confine"
)

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
		"ExecStart": "/usr/local/bin/claudeops serve", "DynamicUser": "yes", "NoNewPrivileges": "yes",
		"ProtectSystem": "strict",
		"ProtectHome":   "yes", "PrivateTmp": "yes", "PrivateDevices": "yes", "CapabilityBoundingSet": agents,
		"AmbientCapabilities": agents, "StateDirectoryMode": "0700",
		"RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6", "EnvironmentFile": "-/etc/claudeops/environment",
	} {
		if got := keys[key]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

// Agents are the users that the code looks for where nobody names others.
func TestTheUnitsAgentsHaveAUser(t *testing.T) {
	text := read(t, "deploy/claudeops.sysusers")
	if !strings.Contains(text, "\ng "+confine.DefaultAccount+" -\n") {
		t.Errorf("deploy/claudeops.sysusers makes no group of all agents: %s", text)
	}
	for n := 1; n <= 16; n++ {
		if name := confine.DefaultAccount + "-" + strconv.Itoa(n); !strings.Contains(text, "\nu "+name+" - ") {
			t.Errorf("deploy/claudeops.sysusers makes no user %s: %s", name, text)
		}
	}
	keys := unit(t)
	for key, want := range map[string]string{"ExecStartPre": "+/usr/bin/install -d -m 0700 " + confine.ClaimFolder,
		"ReadWritePaths": "-" + confine.ClaimFolder} {
		if got := keys[key]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s is %q, want %q: users of agents could not be claimed", key, got, want)
		}
	}
	if hidden := keys["ProtectProc"]; hidden != nil {
		t.Errorf("ProtectProc is %q: the processes of agents could not be ended", hidden)
	}
}
