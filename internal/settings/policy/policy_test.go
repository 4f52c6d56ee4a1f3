package policy_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/facts"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

const full = `version: 1
scope:
  allow: ["checks/*.md", "services/**"]
  deny: ["services/secret/**"]
  drop_default_deny: ["*.yaml"]
tiers:
  2: {max_files: 2}
  3: {max_files: 10}
repositories: ["local:demo/home-cluster", "joe/*"]
base_branches: [main, "release/*"]
limits: {max_file_bytes: 1000, max_total_bytes: 2000}
caps: {open_prs: 3, creations_per_hour: 5}
cooldown_hours: 2
labels: [agents]
body: {required_sections: [Why]}
pull_requests: {draft: true, reviewers: ["@ann", acme/ops, ann], assignees: [joe], create_labels: true}
allow_forks: true
duplicates: any
tools: {tiers: {fractary_forge_cache_clear: 3, fractary_forge_agent_list: 2}}
sessions: {require_boundary: true}
retention: {session_transcripts: 90d}
stale: {remind_after: 3d, close_after: 4d}
pins:
  - {repository: joe/infra, provider: Gitea, base_branch: main}
  - {repository: joe/other, base_branch: release/1}
`

func TestAFullPolicyIsRead(t *testing.T) {
	p := must.Get(policy.Parse("rules.yaml", []byte(full)))(t)
	if !p.Scope.Check("services/web.yaml").Allowed || p.Scope.Check("services/secret/x.md").Allowed ||
		p.Scope.Check("playbooks/x.md").Allowed {
		t.Error("the scope is not the file's")
	}
	if p.Scope.Check("services/rules.yaml").Allowed {
		t.Error("the policy file itself may be proposed")
	}
	if p.Tiers.MaxFiles(2) != 2 || p.Tiers.MaxFiles(3) != 10 || p.Limits.MaxFileBytes != 1000 ||
		p.Limits.MaxTotalBytes != 2000 {
		t.Errorf("limits: %+v", p)
	}
	if p.Limits.Caps != (policy.Caps{OpenPRs: 3, CreationsPerHour: 5}) || p.Limits.Cooldown != 2*time.Hour {
		t.Errorf("caps: %+v, cooldown %s", p.Limits.Caps, p.Limits.Cooldown)
	}
	if strings.Join(p.Labels, " ") != "claude-ops agents" || strings.Join(p.Text.RequiredSections, " ") != "Why" {
		t.Errorf("labels %v, sections %v", p.Labels, p.Text.RequiredSections)
	}
	pins := []policy.RepoPin{{Owner: "joe", Name: "infra", Provider: "gitea", BaseBranch: "main"},
		{Owner: "joe", Name: "other", BaseBranch: "release/1"}}
	if pin, found := p.PinFor("JOE", "Infra"); !reflect.DeepEqual(p.Targets.Pins, pins) || !found || pin != pins[0] {
		t.Errorf("pins %+v, that of joe/infra %+v", p.Targets.Pins, pin)
	}
	if _, found := p.PinFor("joe", "infra2"); found {
		t.Error("a pin holds for another repository")
	}
	if p.LeastTier("fractary_forge_cache_clear") != 3 || p.LeastTier("fractary_forge_agent_list") != 2 ||
		p.LeastTier("plan") != 0 {
		t.Errorf("tiers of tools %+v", p.Agents.ToolTiers)
	}
	if p.Server.SessionTranscripts != 90*24*time.Hour || p.View().SessionTranscripts != "90d" ||
		policy.Default().View().SessionTranscripts != "30d" {
		t.Errorf("what sessions said is kept for %s", p.Server.SessionTranscripts)
	}
	if !p.Agents.RequireBoundary || !p.View().RequireBoundary || policy.Default().Agents.RequireBoundary {
		t.Errorf("agents %+v", p.Agents)
	}
	pulls := policy.PullRequests{Draft: true, Reviewers: []string{"ann", "acme/ops"}, Assignees: []string{"joe"},
		CreateLabels: true}
	if p.Duplicates != policy.DuplicatesAny || policy.Default().Duplicates != policy.DuplicatesOurs {
		t.Errorf("duplicates %q, by default %q", p.Duplicates, policy.Default().Duplicates)
	}
	if !reflect.DeepEqual(p.Pulls, pulls) || !p.Targets.AllowForks || p.RemindAfter != 3*24*time.Hour ||
		p.CloseAfter != 4*24*time.Hour {
		t.Errorf("pull requests %+v, forks %t, a reminder after %s", p.Pulls, p.Targets.AllowForks, p.RemindAfter)
	}
}

func TestABrokenPolicyIsAnErrorThatSaysWhere(t *testing.T) {
	cases := map[string]struct{ text, says string }{
		"a checker without a path":    {"version: 1\ncheckers: [{name: a, command: [a]}]\n", "checkers[0].command: it begins with the absolute path"},
		"a checker named as a class":  {"version: 1\ncheckers: [{name: destroy, command: [/a]}]\n", `"destroy" is a class of facts`},
		"two checkers of one name":    {"version: 1\ncheckers: [{name: a, command: [/a]}, {name: a, command: [/b]}]\n", "another checker"},
		"a checker without an end":    {"version: 1\ncheckers: [{name: a, command: [/a], timeout: 2h}]\n", "timeout: \"2h\" is not a time from 1s to 1m0s"},
		"a checker that fails oddly":  {"version: 1\ncheckers: [{name: a, command: [/a], fail: open}]\n", "neither show nor refuse"},
		"a checker of a bad pattern":  {"version: 1\ncheckers: [{name: a, command: [/a], on: [\"[\"]}]\n", "not a valid pattern"},
		"an unknown class of facts":   {"version: 1\nfacts: {deletes: show}\n", `facts: "deletes" is not a class of facts`},
		"an unknown rule for facts":   {"version: 1\ntiers: {2: {facts: {destroy: ask}}}\n", `tiers.2.facts.destroy: "ask" is not one of`},
		"an unknown key":              {"version: 1\nscoep: {}\n", "line 2: unknown key scoep"},
		"an unknown nested key":       {"version: 1\nscope:\n  alow: []\n", "line 3: unknown key alow"},
		"several problems at once":    {"version: 1\na: 1\nb: 2\n", "line 2: unknown key a; line 3: unknown key b"},
		"a number as an unknown tier": {"version: 1\ntiers:\n  4: {max_files: 1}\n", "line 3: unknown key 4"},
		"tier 1 cannot be let in":     {"version: 1\ntiers:\n  1: {max_files: 1}\n", "line 3: unknown key 1"},
		"a repeated key":              {"version: 1\nlabels: [a]\nlabels: [b]\n", "line 3"},
		"a wrong type":                {"version: 1\nscope:\n  allow: 3\n", "line 3: wrong type"},
		"not YAML":                    {"version: 1\n\tx: [\n", "line 2"},
		"no version":                  {"", "version must be 1"},
		"a future version":            {"version: 2\n", "version must be 1, not 2"},
		"two documents":               {"version: 1\n---\nversion: 1\n", "more than one"},
		"tier 2 loosened": {"version: 1\ntiers:\n  2: {max_files: 4}\n",
			"tiers.2.max_files: 4 is outside 0 to 3"},
		"a negative limit":              {"version: 1\nlimits: {max_file_bytes: -1}\n", "limits.max_file_bytes"},
		"a limit beyond the message":    {"version: 1\nlimits: {max_total_bytes: 99999999}\n", "limits.max_total_bytes"},
		"a pattern with a parent":       {"version: 1\nscope: {allow: [\"../x\"]}\n", "../x"},
		"a malformed pattern":           {"version: 1\nscope: {deny: [\"[\"]}\n", "malformed"},
		"a default deny that is none":   {"version: 1\nscope: {drop_default_deny: [\"*.txt\"]}\n", "*.txt"},
		"an empty allowlist":            {"version: 1\nrepositories: []\n", "empty"},
		"a malformed repository":        {"version: 1\nrepositories: [joe]\n", "owner/name"},
		"stacking on our own branches":  {"version: 1\nbase_branches: [\"claude-ops/**\"]\n", "stacked"},
		"a label with a comma":          {"version: 1\nlabels: [\"a,b\"]\n", "labels"},
		"an empty required section":     {"version: 1\nbody: {required_sections: [\" \"]}\n", "required_sections"},
		"a team as an assignee":         {"version: 1\npull_requests: {assignees: [acme/ops]}\n", "pull_requests.assignees"},
		"a reviewer without a name":     {"version: 1\npull_requests: {reviewers: [acme/]}\n", "pull_requests.reviewers"},
		"too many reviewers":            {"version: 1\npull_requests: {reviewers: [a,b,c,d,e,f,g,h,i,j,k]}\n", "11 names"},
		"an unknown rule on duplicates": {"version: 1\nduplicates: all\n", "duplicates: \"all\" is neither"},
		"an empty rule on duplicates":   {"version: 1\nduplicates: \"\"\n", "duplicates: \"\" is neither"},
		"a pin of nothing":              {"version: 1\npins: [{repository: joe/x}]\n", "pins[0]: it names neither"},
		"a pin of many repositories": {"version: 1\npins: [{repository: \"joe/*\", provider: gitea}]\n",
			"without patterns"},
		"a pin without a repository": {"version: 1\npins: [{provider: gitea}]\n", "pins[0]: repository"},
		"a pin with an unknown key":  {"version: 1\npins: [{repository: joe/x, branch: main}]\n", "unknown key branch"},
		"a repository pinned twice": {"version: 1\npins: [{repository: joe/x, provider: a}, {repository: Joe/X, " +
			"base_branch: b}]\n", "twice"},
		"a pin to a proposal's branch": {"version: 1\npins: [{repository: joe/x, base_branch: claude-ops/fix/x}]\n",
			"stacked"},
		"an unknown rule on revisions":     {"version: 1\nrevise: never\n", "revise: \"never\" is none of"},
		"too many revisions":               {"version: 1\nmax_revisions: 51\n", "max_revisions: 51 is outside 0 to 50"},
		"a lifting label with a comma":     {"version: 1\ncooldown_lift_label: \"a,b\"\n", "cooldown_lift_label"},
		"a lifting label that all have":    {"version: 1\nlabels: [a]\ncooldown_lift_label: a\n", "every pull request"},
		"a tool below tier 2":              {"version: 1\ntools: {tiers: {plan: 1}}\n", "tools.tiers.plan: 1 is outside 2 to 3"},
		"a tool beyond the tiers":          {"version: 1\ntools: {tiers: {plan: 4}}\n", "tools.tiers.plan: 4 is outside 2 to 3"},
		"a tool without a tier":            {"version: 1\ntools: {tiers: {plan: }}\n", "tools.tiers.plan: 0 is outside 2 to 3"},
		"a tier that is not a number":      {"version: 1\ntools: {tiers: {plan: high}}\n", "wrong type"},
		"a tool named twice":               {"version: 1\ntools:\n  tiers:\n    plan: 3\n    plan: 2\n", "line 5"},
		"a tool without a name":            {"version: 1\ntools: {tiers: {\"\": 3}}\n", "tools.tiers: a tool has no name"},
		"an unknown key of sessions":       {"version: 1\nsessions: {requires: true}\n", "unknown key requires"},
		"an age that is not one":           {"version: 1\nretention: {session_transcripts: long}\n", "\"long\" is not an age"},
		"too short a retention":            {"version: 1\nretention: {session_transcripts: 6d}\n", "\"6d\" is less than 7d"},
		"a reminder that is not an age":    {"version: 1\nstale: {remind_after: soon}\n", "\"soon\" is not an age such as 7d"},
		"a reminder that is too early":     {"version: 1\nstale: {remind_after: 2h}\n", "\"2h\" is outside 1d to 365d; 0 is never"},
		"a close that is not an age":       {"version: 1\nstale: {close_after: soon}\n", "stale.close_after: \"soon\" is not an age such as 7d"},
		"a close that is too late":         {"version: 1\nstale: {close_after: 366d}\n", "\"366d\" is outside 1d to 365d; 0 is never"},
		"a close with the reminder":        {"version: 1\nstale: {close_after: 7d}\n", "at least a day after the reminder (remind_after: 7d)"},
		"a close hours after the reminder": {"version: 1\nstale: {remind_after: 2d, close_after: 71h}\n", "\"71h\" is too early"},
		"a close without a reminder":       {"version: 1\nstale: {remind_after: 0, close_after: 5h}\n", "\"5h\" is outside 1d to 365d"},
		"an unknown key of stale":          {"version: 1\nstale: {close: 1d}\n", "unknown key close"},
		"an unknown retention":             {"version: 1\nretention: {sessions: 30d}\n", "unknown key sessions"},
		"a boundary that is not an answer": {"version: 1\nsessions: {require_boundary: perhaps}\n", "wrong type"},
		"an unknown key of tools":          {"version: 1\ntools: {plan: 3}\n", "unknown key plan"},
		"an alias bomb does not expand":    {"version: 1\nlabels: &a [x, *a]\n", "broken"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := policy.Parse("rules.yaml", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "rules.yaml") {
				t.Errorf("error %v, want one that names rules.yaml and says %q", err, c.says)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	if p, err := policy.Load(""); err != nil || p.Source != "embedded default" {
		t.Errorf("no file gave %v, %v", p.Source, err)
	}
	dir := t.TempDir()
	if _, err := policy.Load(filepath.Join(dir, "missing.yaml")); err == nil ||
		!strings.Contains(err.Error(), "missing.yaml") {
		t.Errorf("a missing file gave %v", err)
	}
	if _, err := policy.Load(dir); err == nil {
		t.Error("a folder was read as a policy")
	}
	big := filepath.Join(dir, "big.yaml")
	must.Do(t, os.WriteFile(big, []byte(strings.Repeat("#\n", 600_000)), 0o600))
	if _, err := policy.Load(big); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("a huge file gave %v", err)
	}
}

func TestTheEmbeddedDefaultIsTheDesignsRules(t *testing.T) {
	v := policy.Default().View()
	if strings.Join(v.Allow, " ") != strings.Join(gitprovider.DefaultAllow(), " ") || v.Tier2MaxFiles != 3 ||
		v.Tier3MaxFiles != 100 ||
		v.MaxFileBytes != 256<<10 || v.MaxTotalBytes != 1<<20 || v.OpenPRs != 10 || v.CreationsPerHour != 20 ||
		v.CooldownHours != 24 {
		t.Errorf("the default is %+v", v)
	}
}

func TestAllowsRepo(t *testing.T) {
	parse := func(entries ...string) (out []policy.RepoPattern) {
		for _, e := range entries {
			out = append(out, must.Get(policy.ParseRepoPattern(e))(t))
		}
		return out
	}
	cases := []struct {
		name      string
		file, env []string
		provider  string
		repo      string
		want      bool
	}{
		{"no list", nil, nil, "local", "infra", true},
		{"on the list", []string{"joe/infra"}, nil, "local", "infra", true},
		{"letter case aside", []string{"JOE/Infra"}, nil, "local", "infra", true},
		{"not on the list", []string{"joe/other"}, nil, "local", "infra", false},
		{"a glob", []string{"joe/in*"}, nil, "local", "infra", true},
		{"a glob does not span owners", []string{"*" + "/other"}, nil, "local", "infra", false},
		{"pinned to the provider", []string{"gitea:joe/infra"}, nil, "gitea", "infra", true},
		{"pinned to another provider", []string{"gitea:joe/infra"}, nil, "github", "infra", false},
		{"the environment cannot widen the file", []string{"joe/other"}, []string{"joe/*"}, "local", "infra", false},
		{"the file cannot widen the environment", []string{"joe/*"}, []string{"joe/other"}, "local", "infra", false},
		{"on both lists", []string{"joe/*"}, []string{"local:joe/infra"}, "local", "infra", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := policy.Default()
			p.Targets.Repositories, p.Targets.EnvRepositories = parse(c.file...), parse(c.env...)
			if _, ok := p.AllowsRepo(c.provider, "joe", c.repo); ok != c.want {
				t.Errorf("allowed %t, want %t", ok, c.want)
			}
		})
	}
	for _, bad := range []string{"", "joe", "/x", "x/", "a/b/c", ":a/b", "a/[", "gitea:"} {
		if p, err := policy.ParseRepoPattern(bad); err == nil {
			t.Errorf("%q was read as %+v", bad, p)
		}
	}
}

func TestAllowsBase(t *testing.T) {
	p := policy.Default()
	for base, want := range map[string]bool{"main": true, "trunk": true, "release/1": false, "": false} {
		if got := p.AllowsBase(base, "main", "trunk"); got != want {
			t.Errorf("without a list, %q: %t, want %t", base, got, want)
		}
	}
	p.Targets.BaseBranches = []string{"release/*"}
	for base, want := range map[string]bool{"main": false, "release/1": true, "release/1/x": false, "xrelease/1": false} {
		if got := p.AllowsBase(base, "main", ""); got != want {
			t.Errorf("with a list, %q: %t, want %t", base, got, want)
		}
	}
}

func TestHashFollowsTheRulesAndNotTheFile(t *testing.T) {
	a := must.Get(policy.Parse("a.yaml", []byte("version: 1\n")))(t)
	b := must.Get(policy.Parse("a.yaml", []byte("# comment\nversion: 1\n")))(t)
	for _, same := range []string{
		"# said otherwise\nversion: 1\ncaps:\n  open_prs: 1\nlabels:\n- \"agents\"\n",
		"labels: ['agents']\nversion: 0x1\ncaps: {\"open_prs\": 1}\n",
	} {
		one, oneErr := policy.Parse("a.yaml", []byte("version: 1\ncaps: {open_prs: 1}\nlabels: [agents]\n"))
		other, otherErr := policy.Parse("a.yaml", []byte(same))
		if oneErr != nil || otherErr != nil || one.Hash() != other.Hash() || one.Hash() == a.Hash() {
			t.Errorf("%q: %s and %s, %v", same, one.Hash(), other.Hash(), otherErr)
		}
	}
	for _, rule := range []string{"caps: {open_prs: 1}", "duplicates: any", "retention: {session_transcripts: 0}",
		"stale: {remind_after: 0}", "facts: {destroy: refuse}"} {
		other := must.Get(policy.Parse("a.yaml", []byte("version: 1\n"+rule+"\n")))(t)
		if other.Hash() == a.Hash() {
			t.Errorf("%s is not in the hash", rule)
		}
	}
	never := must.Get(policy.Parse("a.yaml",
		[]byte("version: 1\nretention: {session_transcripts: 0}\nstale: {remind_after: 0}\n")))(t).View()
	if never.SessionTranscripts != "0" || never.RemindAfter != "0" || a.View().RemindAfter != "7d" {
		t.Errorf("shown as %+v", never)
	}
	if a.Hash() != b.Hash() || len(a.Hash()) != 12 {
		t.Errorf("hashes %s %s", a.Hash(), b.Hash())
	}
}

func TestWhenAPullRequestMayBeAddedTo(t *testing.T) {
	for text, want := range map[string]policy.Revisions{
		"": {Once: true}, "revise: once\n": {Once: true}, "revise: reviewed\n": {}, "revise: always\n": {Always: true},
	} {
		p, err := policy.Parse("test.yaml", []byte("version: 1\n"+text))
		if got := (policy.Revisions{Once: p.Revisions.Once, Always: p.Revisions.Always}); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestKindsOfFilesAreNamedByThePolicy(t *testing.T) {
	kind := gitprovider.FileKind{Name: "definitions", Patterns: []string{".fractary/agents/**"}}
	p, err := policy.Parse("a.yaml", []byte("version: 1\nscope: {kinds: [definitions]}\n"), kind)
	if err != nil || len(p.View().Kinds) != 1 || p.Hash() == policy.Default().Hash() {
		t.Errorf("%v, %+v", err, p.View().Kinds)
	}
	if answer := p.CheckPaths(3, []string{".fractary/agents/a.md"}); !answer.Allowed {
		t.Errorf("tier 3: %+v", answer)
	}
	if answer := p.CheckPaths(2, []string{".fractary/agents/a.md"}); answer.Allowed ||
		answer.Paths[0].Code != fault.TierDenied {
		t.Errorf("tier 2: %+v", answer)
	}
	for _, text := range []string{"[packages]", "[definitions, definitions]", "definitions"} {
		if _, err := policy.Parse("a.yaml", []byte("version: 1\nscope: {kinds: "+text+"}\n"), kind); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

func TestTier2MayProposeTheSmallKindsThatThePolicyNames(t *testing.T) {
	kinds := []gitprovider.FileKind{{Name: "skills", Small: true, Patterns: []string{".claude/skills/*/SKILL.md"}},
		{Name: "definitions", Patterns: []string{".fractary/agents/**"}}}
	parse := func(tiers string) (policy.Policy, error) {
		return policy.Parse("a.yaml", []byte("version: 1\nscope: {kinds: [skills], drop_default_deny: [.claude/**, SKILL.md]}\n"+
			"tiers: "+tiers+"\n"), kinds...)
	}
	p, err := parse("{2: {kinds: [skills]}}")
	if err != nil || p.View().Kinds[0].Tier != 2 || !p.CheckPaths(2, []string{".claude/skills/a/SKILL.md"}).Allowed {
		t.Errorf("%v, %+v", err, p.View().Kinds)
	}
	wide, err := parse("{2: {max_files: 3}}")
	if err != nil || wide.Hash() == p.Hash() || wide.CheckPaths(2, []string{".claude/skills/a/SKILL.md"}).Allowed {
		t.Errorf("without: %v", err)
	}
	for _, tiers := range []string{"{2: {kinds: [definitions]}}", "{3: {kinds: [skills]}}", "{2: {kinds: [nothing]}}"} {
		if _, err := parse(tiers); err == nil {
			t.Errorf("%s is accepted", tiers)
		}
	}
	if _, err := policy.Parse("a.yaml", []byte("version: 1\nscope: {kinds: [definitions]}\n"+
		"tiers: {2: {kinds: [definitions]}}\n"), kinds...); err == nil {
		t.Error("a kind for tier 3 alone is accepted")
	}
}

// The rules are at most a second old, are read no more often, and each change is told once.
func TestTheRulesAreThoseOfNow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write := func(text string) {
		t.Helper()
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	const roles = "version: 1\nroles: {operator: [{provider: gitea, user: ann}]}\n"
	write(roles)
	now, reads := time.Unix(1_800_000_000, 0), 0
	var told []string
	file := &policy.File{}
	if most := policy.Every + policy.Every/2; most > 2*time.Second { // by a server's own look, see app.Serve
		t.Errorf("a change may hold after %s only", most)
	}
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
		Pause:   func() {},
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
	if want := 1 + 6 + 3; reads != want { // at the start, at each step, and once more at each change
		t.Errorf("it was read %d times, want %d", reads, want)
	}
	if live.State().Hash == first.Hash {
		t.Error("another policy has the same hash")
	}
}

// A half-written file changes nothing, though it can be read and allows more.
func TestRulesThatAreBeingWrittenDoNotCount(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	const whole, wider = "version: 1\nrepositories: [demo/one]\ndry_run: true\n", "version: 1\n"
	for name, c := range map[string]struct {
		seen []string // in the file at one reading after the other; the last one stays
		// Of the rules afterwards.
		problem string
		narrow  bool
		changes int
	}{
		"a part, and then as before":      {[]string{wider, whole}, "", true, 0},
		"nothing, and then as before":     {[]string{"", whole}, "", true, 0},
		"nothing, a part, and the change": {[]string{"", wider + "dry_run: true\n", wider}, "", false, 1},
		"a change":                        {[]string{wider}, "", false, 1},
		"something else each time": {strings.Split(strings.Repeat(wider+"|"+whole+"|", 40)+wider, "|"), "change all the time",
			false, 1},
	} {
		seen, changes, now := append([]string{whole}, c.seen...), 0, time.Unix(1_800_000_000, 0)
		file := &policy.File{}
		live := policy.NewLive(policy.LiveOptions{
			Read: func() policy.Reading {
				must.Do(t, os.WriteFile(path, []byte(seen[0]), 0o600))
				seen = seen[min(1, len(seen)-1):]
				p, err := file.Load(path)
				if err != nil {
					return policy.Reading{Policy: policy.Default(), Problem: err.Error()}
				}
				r := policy.Reading{Policy: p}
				r.DryRun.Say(path, p.Server.DryRun != nil && *p.Server.DryRun)
				return r
			},
			Changed: func(_, _ policy.Snapshot) { changes++ },
			Now:     func() time.Time { return now }, Pause: func() {},
		})
		now = now.Add(policy.Every)
		is := live.Now()
		if (c.problem == "") != (is.Problem == "") || !strings.Contains(is.Problem, c.problem) || changes != c.changes ||
			is.Problem == "" && (is.DryRun.On != c.narrow || len(is.Policy.Targets.Repositories) > 0 != c.narrow) {
			t.Errorf("%s: problem %q, %d changes, dry run %v, repositories %v", name, is.Problem, changes, is.DryRun.On,
				is.Policy.Targets.Repositories)
		}
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
	must.Do(t, filepath.WalkDir(filepath.Join(root, "internal"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		if found := field.FindString(string(text)); found != "" && allowed[filepath.ToSlash(name)] == "" {
			t.Errorf("%s keeps %q; ask for the rules when they count", name, strings.TrimSpace(found))
		}
		return err
	}))
}

func TestFactsAreShownUnlessThePolicySaysMore(t *testing.T) {
	p := must.Get(policy.Parse("a.yaml", []byte("version: 1\nfacts: {destroy: acknowledge, outbound: refuse}\n"+
		"tiers: {2: {facts: {destroy: refuse, outbound: show}}}\n")))(t)
	for _, c := range []struct {
		tier  gitprovider.Tier
		class facts.Class
		want  policy.FactRule
	}{
		{2, facts.Destroy, policy.RefuseFact}, {3, facts.Destroy, policy.AcknowledgeFact},
		{2, facts.Outbound, policy.RefuseFact}, // a tier cannot loosen what holds for all
		{3, facts.Outbound, policy.RefuseFact}, {3, facts.Address, policy.ShowFact},
	} {
		if got := p.Facts.For(c.tier, c.class); got != c.want {
			t.Errorf("tier %s, %s: %s, want %s", c.tier, c.class, got, c.want)
		}
	}
	must.Equal(t, policy.Default().Facts.For(3, facts.Destroy), policy.ShowFact)
}
