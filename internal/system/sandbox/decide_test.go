package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestTheStrongestBoundaryThatHoldsIsChosen(t *testing.T) {
	has := func(accounts ...Account) func(string) ([]Account, error) {
		return func(text string) ([]Account, error) {
			if len(accounts) == 0 || text != "" {
				return nil, ErrNoAccount
			}
			return accounts, nil
		}
	}
	agents := Account{Name: DefaultAccount, UID: 10002, GID: 10002}
	one, two := Account{Name: DefaultAccount + "-1", UID: 10011, GID: 10011}, Account{Name: DefaultAccount + "-2",
		UID: 10012, GID: 10012}
	model := Choice{Ports: []uint16{443}}
	local := Choice{Ports: []uint16{8080}, NoUDP: true}
	may := func(m Machine) Machine {
		m.UID, m.GID, m.Filter = 10001, 10001, true
		if m.Accounts == nil {
			m.Accounts = has(agents)
		}
		return m
	}
	mayNot := errors.New("claudeops may not switch users")
	tests := []struct {
		name    string
		choice  Choice
		machine Machine
		want    string // of the boundary
		missing string
		why     string
		problem string
	}{
		{name: "a user of the default name", machine: Machine{ABI: 7}, want: "user claudeops-agent, with landlock (ABI 7)"},
		{name: "without Landlock", machine: Machine{}, want: "user claudeops-agent"},
		{name: "a kernel that is newer than we know", machine: Machine{ABI: 40},
			want: "user claudeops-agent, with landlock (ABI 11)"},
		{name: "no such user", machine: Machine{ABI: 7, Accounts: has()}, want: "landlock (ABI 7)",
			why: "there is no user claudeops-agent"},
		{name: "a named user that is not there", choice: Choice{Account: "agents"}, machine: Machine{ABI: 7},
			problem: "CLAUDEOPS_AGENT_USER is agents: there is no such user"},
		{name: "no right to switch", machine: Machine{ABI: 7, MaySwitch: mayNot}, want: "landlock (ABI 7)",
			why: "may not switch users"},
		{name: "neither", machine: Machine{MaySwitch: mayNot}, want: "none", why: "has no Landlock"},
		{name: "root as the agents' user", machine: Machine{ABI: 7, Accounts: has(Account{Name: DefaultAccount})},
			problem: "is root"},
		{name: "our own user", machine: Machine{ABI: 7, Accounts: has(Account{Name: DefaultAccount, UID: 10001, GID: 5})},
			problem: "of claudeops itself"},
		{name: "our own group", machine: Machine{ABI: 7,
			Accounts: has(Account{Name: DefaultAccount, UID: 10002, GID: 10001})}, problem: "groups of their own"},
		{name: "landlock by choice", choice: Choice{Kind: Landlock}, machine: Machine{ABI: 7}, want: "landlock (ABI 7)",
			why: "CLAUDEOPS_BOUNDARY is landlock"},
		{name: "none by choice", choice: Choice{Kind: None}, machine: Machine{ABI: 7}, want: "none",
			why: "CLAUDEOPS_BOUNDARY is none"},
		{name: "user by choice, and it may not", choice: Choice{Kind: User}, machine: Machine{ABI: 7, MaySwitch: mayNot},
			problem: "CLAUDEOPS_BOUNDARY is user, which cannot hold"},
		{name: "landlock by choice, and there is none", choice: Choice{Kind: Landlock}, machine: Machine{},
			problem: "CLAUDEOPS_BOUNDARY is landlock, which cannot hold"},
		{name: "before signals", machine: Machine{ABI: 5, MaySwitch: mayNot}, want: "landlock (ABI 5)", missing: "signalled",
			why: "switch"},
		{name: "before cutting off", machine: Machine{ABI: 2, MaySwitch: mayNot}, want: "landlock (ABI 2)",
			missing: "cut off", why: "switch"},
		{name: "before ports", choice: model, machine: Machine{ABI: 3, MaySwitch: mayNot}, want: "landlock (ABI 3)",
			missing: "CLAUDEOPS_AGENT_NET", why: "switch"},
		{name: "no ports before ports", machine: Machine{ABI: 3, MaySwitch: mayNot}, want: "landlock (ABI 3)",
			missing: "abstract sockets", why: "switch"},
		{name: "a service that runs commands", machine: Machine{ABI: 7, MaySwitch: mayNot,
			Doors: []string{"/run/docker.sock"}}, want: "landlock (ABI 7)", missing: "/run/docker.sock", why: "switch"},
		{name: "several users", machine: Machine{ABI: 7, Accounts: has(one, two)},
			want: "user claudeops-agent-1 to claudeops-agent-2, with landlock (ABI 7)"},
		{name: "root among several", machine: Machine{ABI: 7, Accounts: has(one, Account{Name: "toor"})},
			problem: "user toor is root"},
		{name: "our own user among several",
			machine: Machine{ABI: 7, Accounts: has(one, Account{Name: "us", UID: 10001, GID: 5})},
			problem: "user us is the user of claudeops itself"},
		{name: "our own group as that of all",
			machine: Machine{ABI: 7, Accounts: has(Account{Name: "x", UID: 5, GID: 5, Common: 10001})},
			problem: "has the group of claudeops"},
		{name: "one number twice", machine: Machine{ABI: 7, Accounts: has(one, Account{Name: "again", UID: 10011, GID: 9})},
			problem: "shares its number"},
		{name: "one group twice", machine: Machine{ABI: 7, Accounts: has(one, Account{Name: "again", UID: 9, GID: 10011})},
			problem: "shares its number or its group"},
		{name: "users that cannot be claimed",
			machine: Machine{ABI: 7, Claims: func() error { return errors.New("read-only file system") }},
			want:    "user claudeops-agent, with landlock (ABI 7)",
			missing: "the same user at the same time (read-only file system)"},
		{name: "the model's port", choice: model, machine: Machine{ABI: 7},
			want: "user claudeops-agent, with landlock (ABI 7), network: TCP to ports 53, 443; UDP to anywhere"},
		{name: "the model's port where UDP can be limited", choice: model, machine: Machine{ABI: 10},
			want: "user claudeops-agent, with landlock (ABI 10), network: TCP to ports 53, 443; UDP to port 53"},
		{name: "the model's port where no name is looked up", choice: local, machine: Machine{ABI: 7, MaySwitch: mayNot},
			want: "landlock (ABI 7), network: TCP to port 8080; no UDP", why: "switch"},
		{name: "the model's port without Landlock", choice: model, machine: Machine{}, want: "user claudeops-agent",
			missing: "TCP is not limited to CLAUDEOPS_AGENT_NET"},
		{name: "the same, out of reach", machine: Machine{ABI: 9, MaySwitch: mayNot, Doors: []string{"/run/docker.sock"}},
			want: "landlock (ABI 9)", why: "switch"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b, accounts, err := Decide(test.choice, may(test.machine))
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) || b.Held() {
					t.Errorf("%v, %v", b, err)
				}
				return
			}
			must.Do(t, err)
			if got, _, _ := strings.Cut(b.String(), ", lacking"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if missing := strings.Join(b.Missing, "; "); !strings.Contains(missing, test.missing) ||
				(test.missing == "") != (missing == "") {
				t.Errorf("lacks %q, want %q", missing, test.missing)
			}
			if !strings.Contains(b.Why, test.why) || (test.why == "") != (b.Why == "") {
				t.Errorf("why: %q, want %q", b.Why, test.why)
			}
			if (b.Kind == User) != (accounts != nil) || b.Whole() != (b.Kind != None && test.missing == "") {
				t.Errorf("users %v, whole %t", accounts, b.Whole())
			}
		})
	}
}

// What is missing where our own user is root, or system calls cannot be filtered.
func TestLandlockOfRootLacksAUser(t *testing.T) {
	m := Machine{ABI: 7, Accounts: func(string) ([]Account, error) { return nil, ErrNoAccount }}
	b, _, err := Decide(Choice{Ports: []uint16{443}}, m)
	if text := b.String(); err != nil || !strings.Contains(text, "other protocols pass") || b.Whole() ||
		!strings.Contains(text, "run as root") || !strings.Contains(text, "limits of processes") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestCarvingLeavesWhatIsHiddenOut(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	must.Do(t, err)
	for _, dir := range []string{"a/b/secret", "a/c", "d"} {
		must.Do(t, os.MkdirAll(filepath.Join(root, dir), 0o700))
	}
	must.Do(t, os.WriteFile(filepath.Join(root, "a/b/file"), nil, 0o600))
	must.Do(t, os.Symlink(filepath.Join(root, "a/b/secret"), filepath.Join(root, "a/link")))
	tests := []struct {
		name, of string
		hidden   []string
		want     string
	}{
		{"nothing hidden", "a", nil, "a"},
		{"elsewhere", "a", []string{"d"}, "a"},
		{"a name that begins alike", "a", []string{"ab"}, "a"},
		{"one deep inside", "a", []string{"a/b/secret"}, "a/b/file a/c"},
		{"one that is not there yet", "a", []string{"a/b/later/key"}, "a/b/file a/b/secret a/c"},
		{"itself", "a", []string{"a"}, ""},
		{"what it lies in", "a/b", []string{"a"}, ""},
		{"a file", "a/b/file", []string{"a/c"}, "a/b/file"},
		{"all of it", "", []string{"a/b", "d"}, "a/c"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var hidden, got []string
			for _, h := range test.hidden {
				hidden = append(hidden, filepath.Join(root, h))
			}
			for _, path := range carve(filepath.Join(root, test.of), resolvedAsFar(hidden)) {
				rel, _ := filepath.Rel(root, path)
				got = append(got, rel)
			}
			slices.Sort(got)
			if strings.Join(got, " ") != test.want {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
}

func TestCarvingIsBounded(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	must.Do(t, err)
	for i := range mostPaths + 10 {
		must.Do(t, os.WriteFile(filepath.Join(root, fmt.Sprint("f", i)), nil, 0o600))
	}
	if n := len(carve(root, []string{filepath.Join(root, "hidden")})); n > mostPaths {
		t.Errorf("%d paths", n)
	}
}

func FuzzContains(f *testing.F) {
	f.Add("/a/b", "/a/b/c")
	f.Add("/", "/x")
	f.Add("/a", "/ab")
	f.Fuzz(func(t *testing.T, folder, path string) {
		folder, path = filepath.Clean("/"+folder), filepath.Clean("/"+path)
		rel, err := filepath.Rel(folder, path)
		if want := err == nil && rel != ".." && !strings.HasPrefix(rel, "../"); contains(folder, path) != want {
			t.Errorf("%q in %q: %t", path, folder, !want)
		}
	})
}
