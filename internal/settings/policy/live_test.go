package policy_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/settings/policy"
)

// The rules are at most a second old, are read no more often, and each change is told once.
func TestTheRulesAreThoseOfNow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const roles = "version: 1\nroles: {operator: [{provider: gitea, user: ann}]}\n"
	write(roles)
	now, reads := time.Unix(1_800_000_000, 0), 0
	var told []string
	file := &policy.File{}
	live := policy.NewLive(policy.LiveOptions{
		Read: func() policy.Reading {
			reads++
			p, err := file.Load(path)
			if err != nil {
				return policy.Reading{Policy: policy.Default(), Problem: err.Error()}
			}
			return policy.Reading{Policy: p}
		},
		Changed: func(was, is policy.Snapshot) { told = append(told, was.Hash+" "+is.Hash+" "+is.Problem) },
		Now:     func() time.Time { return now },
	})
	first := live.Now()
	began := now
	ann := policy.Known{Provider: "gitea", User: "ann"}
	for _, step := range []struct {
		name, text string
		problem    string
		changes    int
		since      bool // begins now
		role       policy.Role
	}{
		{"nothing", roles, "", 0, false, policy.RoleOperator},
		{"the same text again", roles, "", 0, false, policy.RoleOperator},
		{"broken", "version: 1\nnonsense: 1\n", "nonsense", 1, true, policy.RoleOperator},
		{"still broken", "version: 1\nnonsense: 1\n", "nonsense", 1, false, policy.RoleOperator},
		{"mended", roles, "", 2, true, policy.RoleOperator},
		{"a role less", "version: 1\n", "", 3, true, ""},
	} {
		write(step.text)
		before := live.Now()
		if now = now.Add(policy.Every - time.Millisecond); !before.Since.Equal(live.Now().Since) {
			t.Errorf("%s: it was read again within %s", step.name, policy.Every)
		}
		now = now.Add(time.Millisecond)
		is := live.Now()
		if step.since {
			began = now
		}
		if (step.problem == "") != (is.Problem == "") || !strings.Contains(is.Problem, step.problem) ||
			len(told) != step.changes || is.Roles.RoleOf(ann) != step.role || !is.Since.Equal(began) && step.since {
			t.Errorf("%s: problem %q, since %s, role %q, told %q", step.name, is.Problem, is.Since, is.Roles.RoleOf(ann), told)
		}
		if is.Problem != "" && (is.Hash != first.Hash || live.State().Hash != first.Hash) {
			t.Errorf("%s: the hash is not that of the last policy that could be read", step.name)
		}
	}
	if want := 7; reads != want {
		t.Errorf("it was read %d times, want %d", reads, want)
	}
	if live.State().Hash == first.Hash {
		t.Error("another policy has the same hash")
	}
}

func TestManyAskForTheRulesAtOnce(t *testing.T) {
	t.Parallel()
	live := policy.NewLive(policy.LiveOptions{
		Read: func() policy.Reading { return policy.Reading{Policy: policy.Default()} }, Now: time.Now})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				s := live.Now()
				s.DryRun.Say("one", true)
			}
		})
	}
	all.Wait()
	if s := live.Now(); s.DryRun.On || len(s.DryRun.By) > 0 {
		t.Errorf("what one of them lowered for itself holds for all: %+v", s.DryRun)
	}
}

// Only what lives for one decision may hold a policy. Everything else asks a Live, or a function that does.
func TestNothingKeepsAPolicyBeyondOneDecision(t *testing.T) {
	t.Parallel()
	allowed := map[string]string{
		"internal/proposals/prflow/service.go":    "Authority, which is asked for each call",
		"internal/proposals/prflow/pull_setup.go": "of one creation",
		"internal/operation/admit.go":             "Rules of an Authority, which is asked for each call",
		"internal/ops/doctor/doctor.go":           "of one look",
	}
	root := filepath.Join("..", "..", "..")
	field := regexp.MustCompile(`(?m)^\t\w+\s+\*?policy\.(Policy|Snapshot|Reading)(\s+//.*)?$`)
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		if found := field.FindString(string(text)); found != "" && allowed[filepath.ToSlash(name)] == "" {
			t.Errorf("%s keeps %q; ask for the rules when they count", name, strings.TrimSpace(found))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
