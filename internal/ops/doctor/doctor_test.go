package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/identity"
	"github.com/claudeops/claudeops/internal/system/sandbox"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// forge is a provider that tells of its access.
type forge struct {
	*forgetest.Fake
	access gitprovider.Access
	ping   error
}

// newFake is a forge with the repository joe/infra.
func newFake() *forgetest.Fake {
	f := forgetest.NewFake()
	f.AddRepo("joe", "infra", map[string]string{"README.md": "# Infra\n"})
	return f
}

func (f *forge) Examine(_ context.Context, repo gitprovider.RepoRef, _ string, _ []string) (gitprovider.Access, error) {
	if repo.Name != "infra" {
		return gitprovider.Access{}, fault.New(fault.NotFound, "the repository %s does not exist", repo)
	}
	return f.access, nil
}

func (f *forge) Ping(context.Context) error { return f.ping }

// sound are records in which nothing is wrong.
type sound struct{ err error }

func (s sound) Check(context.Context) error                         { return s.err }
func (sound) Exports(context.Context) ([]record.AuditExport, error) { return nil, nil }
func (sound) Verify(context.Context, string) (record.AuditReport, error) {
	return record.AuditReport{}, nil
}
func (sound) NoticeCounts(context.Context) (record.NoticeCounts, error) {
	return record.NoticeCounts{}, nil
}
func (sound) Path() string                     { return "claudeops.db" }
func (sound) ClockSkew() (time.Duration, bool) { return 0, false }

// skewed are records whose server's clock is ahead.
type skewed struct {
	sound
	ahead time.Duration
}

func (s skewed) ClockSkew() (time.Duration, bool) { return s.ahead, true }

func TestClocksThatDifferAreTold(t *testing.T) {
	for ahead, part := range map[time.Duration]string{
		time.Hour: "1h0m0s ahead of", -time.Minute: "1m0s behind", time.Second: "",
	} {
		d := newDoctor(&forge{})
		d.Records = skewed{ahead: ahead}
		f := d.records(t.Context())
		if (f.Status == Warning) != (part != "") || !strings.Contains(f.Detail, part) || f.Blocks {
			t.Errorf("%s: %+v", ahead, f)
		}
	}
}

func TestOtherRecordsOfTheLocalRootAreAWarning(t *testing.T) {
	for _, others := range [][]string{nil, {"/srv/state"}} {
		d := newDoctor(&forge{})
		d.OtherRecords = others
		found := OtherRecords(d.OtherRecords)
		told := false
		for _, f := range d.Look(t.Context()) {
			told = told || f.Status == Warning && f.Name == found.Name && strings.Contains(f.Detail, "/srv/state")
		}
		if told != (len(others) > 0) {
			t.Errorf("%q: told %t, %+v", others, told, found)
		}
	}
}

func newDoctor(f *forge, repos ...string) *Doctor {
	p := policy.Default()
	for _, name := range repos {
		pattern, err := policy.ParseRepoPattern(name)
		if err != nil {
			panic(err)
		}
		p.Targets.EnvRepositories = append(p.Targets.EnvRepositories, pattern)
	}
	return New(Options{
		Config: config.Config{
			Permissions: config.Permissions{Tier: gitprovider.TierInvestigate},
			Sessions:    config.Sessions{Binary: config.DefaultClaude},
			Mounted:     config.Mounted{Dir: "/does/not/exist"},
		},
		Rules: Rules{Policy: p}, Records: sound{}, Audit: sound{}, Outbox: sound{},
		Key: func() ([]byte, error) { return nil, nil },
		Registry: gitprovider.NewRegistry([]gitprovider.Registration{
			{Name: "fake", Provider: f}, {Name: "gitea", Disabled: "GITEA_TOKEN is not set"},
		}, nil, "", nil),
		Redact: func(text string) string { return strings.ReplaceAll(text, "a-secret", "[redacted]") },
	})
}

func TestNothingStopsAPullRequestThatIsInOrder(t *testing.T) {
	yes := true
	d := newDoctor(&forge{Fake: newFake(), access: gitprovider.Access{Base: "main", CanPush: &yes}}, "joe/infra")
	findings := append(d.Look(t.Context()), d.Online(t.Context(), nil)...)
	if got := Blocking(findings); len(got) > 0 {
		t.Errorf("blocked by %q: %+v", got, findings)
	}
}

func TestWhatStopsPullRequestsBlocks(t *testing.T) {
	no := false
	for name, c := range map[string]struct {
		change func(*Doctor, *forge)
		repos  []string // the allowlist
		ask    []string
		want   string // what blocks
		says   string
	}{
		"records": {change: func(d *Doctor, _ *forge) { d.Records = sound{errors.New("x")} },
			want: "records"},
		"a key": {change: func(d *Doctor, _ *forge) { d.Key = func() ([]byte, error) { return nil, errors.New("x") } },
			want: "key of the marks"},
		"a policy": {change: func(d *Doctor, _ *forge) { d.Rules.Problem = "broken" }, want: "policy",
			says: "broken"},
		"a malformed list": {change: func(d *Doctor, _ *forge) { d.Rules.ReposProblem = "malformed" },
			want: "allowlist"},
		"an unknown provider": {repos: []string{"fkae:joe/infra"}, want: "allowlist", says: "there is no provider"},
		"a disabled provider": {repos: []string{"gitea:joe/infra"}, want: "allowlist", says: "GITEA_TOKEN"},
		"lists that do not meet": {change: onlyOthers, repos: []string{"joe/infra"}, want: "allowlist",
			says: "must be in both"},
		"a default provider": {change: func(d *Doctor, _ *forge) { d.Config.Forges.DefaultProvider = "fkae" },
			want: "default provider"},
		"a provider half set": {change: func(d *Doctor, _ *forge) {
			d.Config.Forges = config.Load(config.Environment(giteaToken), forges.All()).Forges
		}, want: "provider gitea"},
		"a provider that is down": {change: func(_ *Doctor, f *forge) { f.ping = fault.New(fault.Timeout, "with a-secret") },
			want: "provider fake", says: "[redacted]"},
		"a missing repository": {repos: []string{"joe/infra", "joe/infar"}, want: "repository joe/infar",
			says: "does not exist"},
		"one that is asked about": {ask: []string{"joe/infar"}, want: "repository joe/infar", says: "does not exist"},
		"one that is not listed": {repos: []string{"joe/infra"}, ask: []string{"joe/x"}, want: "repository joe/x",
			says: "not on the operator's list"},
		"a token for reading": {change: func(_ *Doctor, f *forge) {
			f.access.Lacks, f.access.CanPush = []string{"write:repository"}, &no
		}, repos: []string{"joe/infra"}, want: "repository joe/infra", says: "lacks write:repository"},
		"a user for reading": {change: func(_ *Doctor, f *forge) { f.access.CanPush = &no }, repos: []string{"joe/infra"},
			want: "repository joe/infra", says: "may not push"},
		"an archive": {change: func(_ *Doctor, f *forge) { f.access.Archived = true }, repos: []string{"joe/infra"},
			want: "repository joe/infra"},
		"a fork": {change: func(_ *Doctor, f *forge) { f.access.Fork = true }, repos: []string{"joe/infra"},
			want: "repository joe/infra"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &forge{Fake: newFake(), access: gitprovider.Access{Base: "main"}}
			d := newDoctor(f, c.repos...)
			if c.change != nil {
				c.change(d, f)
			}
			var asked []gitprovider.RepoRef
			for _, repo := range c.ask {
				owner, name, _ := strings.Cut(repo, "/")
				asked = append(asked, gitprovider.RepoRef{Owner: owner, Name: name})
			}
			findings := append(d.Look(t.Context()), d.Online(t.Context(), asked)...)
			blocking := Blocking(findings)
			if !slices.Contains(blocking, c.want) {
				t.Fatalf("blocked by %q, want %q: %+v", blocking, c.want, findings)
			}
			says := func(f Finding) bool { return f.Name == c.want && f.Blocks && strings.Contains(f.Detail, c.says) }
			if !slices.ContainsFunc(findings, says) {
				t.Errorf("nothing says %q: %+v", c.says, findings)
			}
			for _, f := range findings {
				if strings.Contains(f.Detail, "a-secret") {
					t.Errorf("a secret is shown: %+v", f)
				}
			}
		})
	}
}

func onlyOthers(d *Doctor, _ *forge) {
	d.Rules.Policy.Targets.Repositories = []policy.RepoPattern{{Owner: "joe", Name: "other"}}
}

// A part has one finding, whatever asked about it: a forge that is configured and does not answer is not also in order.
func TestAPartHasOneFindingAndTheWorstDecides(t *testing.T) {
	yes, no := true, false
	f := &forge{Fake: newFake(), ping: fault.New(fault.Timeout, "no answer in time"),
		access: gitprovider.Access{Base: "main", CanPush: &yes, BaseProtected: &no}}
	d := newDoctor(f, "joe/infra")
	found := Merge(append(d.Look(t.Context()), d.Online(t.Context(), nil)...))
	names := map[string]Finding{}
	for _, f := range found {
		if _, twice := names[f.Name]; twice {
			t.Errorf("%s has two findings", f.Name)
		}
		names[f.Name] = f
		if (f.Stops != "") != (f.Status == Problem || f.Status == Held) && f.Blocks {
			t.Errorf("%+v does not say what it stops", f)
		}
	}
	if got := names["provider fake"]; got.Status != Problem || !got.Blocks || got.Stops != "proposals at fake" ||
		got.Headline() != "The forge fake does not answer" || got.Do == "" {
		t.Errorf("a forge that does not answer: %+v", got)
	}
	if got := names["repository joe/infra"]; got.Status != Warning || !strings.Contains(got.Do, "protect it") ||
		!strings.Contains(got.Detail, "main is not protected; the host does not say") {
		t.Errorf("a branch that is not protected: %+v", got)
	}
}

// giteaToken is an environment with a token of Gitea and no address.
func giteaToken(name string) (value string, set bool) {
	return "a-secret", name == "GITEA_TOKEN"
}

func TestDoctorForetellsWhatRulesAndPermissionsRefuse(t *testing.T) {
	yes := true
	for want, access := range map[string]gitprovider.Access{
		"restrict their creation, their names":               {BranchRules: []string{"their creation", "their names"}},
		"a commit that updates an executable file would not": {Unsigned: "a commit that updates an executable file"},
		"shallow": {Defects: []gitprovider.Defect{{What: "it is shallow", Do: "fetch the rest"}}},
		"no team is asked": {
			Installation: &gitprovider.Installation{Permissions: []string{"contents: write"}},
		},
	} {
		access.Base, access.CanPush = "main", &yes
		d := newDoctor(&forge{Fake: newFake(), access: access}, "joe/infra")
		d.Rules.Policy.Pulls.Reviewers = []string{"joe/ops"}
		var warnings []string
		for _, f := range d.Online(t.Context(), nil) {
			if f.Status == Warning {
				warnings = append(warnings, f.Detail)
			}
		}
		if said := strings.Join(warnings, "\n"); !strings.Contains(said, want) || len(warnings) != 1 {
			t.Errorf("want %q alone: %s", want, said)
		}
	}
}

func TestWhatAFilterTakesIsTold(t *testing.T) {
	yes := true
	for text, want := range map[string]string{"*.md filter=lfs -text\n": "*.md (lfs)", "*.md text\n": ""} {
		f := &forge{Fake: forgetest.NewFake(), access: gitprovider.Access{Base: "main", CanPush: &yes}}
		f.AddRepo("joe", "infra", map[string]string{".gitattributes": text})
		var said string
		for _, found := range newDoctor(f, "joe/infra").Online(t.Context(), nil) {
			if found.Status == Warning {
				said += found.Detail
			}
		}
		if (said != "") != (want != "") || !strings.Contains(said, want) {
			t.Errorf("%q: %q", text, said)
		}
	}
}

// Who may merge only what was approved is not told to require a review.
func TestNobodyIsToldToRequireAReviewWhereOneIsRequired(t *testing.T) {
	yes := true
	for _, reviewed := range []bool{false, true} {
		d := newDoctor(&forge{Fake: newFake(),
			access: gitprovider.Access{Base: "main", CanPush: &yes, CanMerge: &yes, Reviewed: reviewed}}, "joe/infra")
		var said string
		for _, f := range d.Online(t.Context(), nil) {
			said += f.Detail + "; " + f.Do + "\n"
		}
		if strings.Contains(said, "require a review") == reviewed ||
			strings.Contains(said, "once they are approved") != reviewed {
			t.Errorf("a review is required: %t; said: %s", reviewed, said)
		}
	}
}

func TestDoctorSaysWhichBoundaryHoldsAndWhyNoBetterOne(t *testing.T) {
	tests := []struct {
		name     string
		boundary sandbox.Boundary
		err      error
		required bool
		broken   string
		status   string
		says     []string
	}{
		{name: "a user", boundary: sandbox.Boundary{Kind: sandbox.User, Account: "agents", ABI: 7}, required: true,
			status: OK, says: []string{"user agents, with landlock (ABI 7)"}},
		{name: "landlock", boundary: sandbox.Boundary{Kind: sandbox.Landlock, ABI: 7, Why: "no user"}, required: true,
			status: OK, says: []string{"landlock (ABI 7); no user"}},
		{name: "a limited network", boundary: sandbox.Boundary{Kind: sandbox.Landlock, ABI: 7,
			Net: "TCP to ports 53, 443; UDP to anywhere"}, required: true, status: OK,
			says: []string{"network: TCP to ports 53, 443; UDP to anywhere"}},
		{name: "users that cannot be claimed where a boundary is required",
			boundary: sandbox.Boundary{Kind: sandbox.User, Account: "agents",
				Missing: []string{"two claudeops could give agents the same user"}}, required: true, status: Problem,
			says: []string{"the same user", "stops agents' sessions"}},
		{name: "none", boundary: sandbox.Boundary{Kind: sandbox.None, Why: "an old kernel"}, status: Warning,
			says: []string{"none; an old kernel", "can do what the user of claudeops can"}},
		{name: "none where one is required", boundary: sandbox.Boundary{Kind: sandbox.None}, required: true, status: Problem,
			says: []string{"stops agents' sessions", "sessions.require_boundary"}},
		{name: "none where the policy cannot be read", boundary: sandbox.Boundary{Kind: sandbox.None}, broken: "line 3",
			status: Problem, says: []string{"stops agents' sessions"}},
		{name: "an old landlock", boundary: sandbox.Boundary{Kind: sandbox.Landlock, ABI: 3, Missing: []string{"signals"}},
			status: Warning, says: []string{"lacking: signals"}},
		{name: "an old landlock where one is required",
			boundary: sandbox.Boundary{Kind: sandbox.Landlock, ABI: 3, Missing: []string{"signals"}}, required: true,
			status: Problem, says: []string{"stops agents' sessions"}},
		{name: "a setting that is not valid", err: errors.New("CLAUDEOPS_AGENT_USER is x"), status: Problem,
			says: []string{"CLAUDEOPS_AGENT_USER is x stops agents' sessions"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newDoctor(&forge{Fake: forgetest.NewFake()})
			d.Boundary.Held = func() (sandbox.Boundary, error) { return test.boundary, test.err }
			d.Rules.Policy.Agents.RequireBoundary, d.Rules.Problem = test.required, test.broken
			f := boundary(d)
			if f.Status != test.status || f.Blocks {
				t.Errorf("%+v", f)
			}
			must.Contain(t, f.Detail+" stops "+f.Stops, test.says...)
		})
	}
}

func TestDoctorSaysThatAnAdministratorKeepsSessionsFromTheirServer(t *testing.T) {
	d := newDoctor(&forge{Fake: forgetest.NewFake()})
	why := ""
	d.Boundary.Managed = func() string { return why }
	if f := managed(d); f.Name != "" {
		t.Errorf("%+v", f)
	}
	why = "a file names the only servers"
	if f := managed(d); f.Status != Problem || f.Detail != why || f.Stops != stopsSessions || f.Blocks {
		t.Errorf("%+v", f)
	}
}

// fakeSignIn is a provider; down says that it does not answer.
type fakeSignIn struct {
	name string
	down bool
}

func (f fakeSignIn) Name() string        { return f.name }
func (f fakeSignIn) Kind() identity.Kind { return identity.OpenID }
func (f fakeSignIn) Redirect() string    { return "https://ops.example/sign-in/callback/" + f.name }
func (f fakeSignIn) Check(context.Context) ([]string, error) {
	if f.down {
		return nil, fault.New(fault.UpstreamError, "the provider %s cannot be asked", f.name)
	}
	return []string{"it can end sessions here"}, nil
}

func TestSignInIsLookedAt(t *testing.T) {
	d := New(Options{SignIn: []SignIn{fakeSignIn{name: "gitea"}, fakeSignIn{"company", true}}})
	d.Rules.Policy.People.Roles = []policy.RoleRule{{Role: policy.RoleViewer, Provider: "gitea", User: "ann"},
		{Role: policy.RoleViewer, Provider: "gone", User: "x"}}
	var got []string
	for _, f := range append(d.signIns(), d.askSignIns(t.Context())...) {
		got = append(got, f.Status+" "+f.Name+": "+f.Detail)
	}
	want := []string{
		"ok sign-in by gitea: enter as redirect address there: https://ops.example/sign-in/callback/gitea",
		"warning sign-in by company: enter as redirect address there: https://ops.example/sign-in/callback/company; the " +
			"policy gives nobody of it a role",
		"warning sign-in by gone: the policy gives roles to people of it, and CLAUDEOPS_SIGN_IN does not name it",
		"ok sign-in by gitea: its description was read; it can end sessions here",
		"problem sign-in by company: the provider company cannot be asked",
	}
	must.Equal(t, got, want)
}

func TestAHookOfAForgeWithoutAWebhookIsTold(t *testing.T) {
	byLabel := policy.Hook{Name: "fix", Forge: []policy.ForgeAct{policy.ForgeLabel}}
	for name, tt := range map[string]struct {
		hook   policy.Hook
		secret string
		told   bool
	}{
		"no webhook":             {byLabel, "", true},
		"a webhook":              {byLabel, "0123456789abcdef", false},
		"a hook of a program":    {policy.Hook{Name: "alerts", TokenSHA256: "ab"}, "", false},
		"a webhook and no forge": {policy.Hook{Name: "alerts"}, "0123456789abcdef", false},
	} {
		t.Run(name, func(t *testing.T) {
			d := New(Options{})
			d.Rules.Policy.Agents.Hooks = []policy.Hook{tt.hook}
			d.Config.Forges.All = make([]config.Forge, 2)
			d.Config.Forges.All[1].HookSecret = tt.secret
			f := d.forgeHooks()
			if told := f.Status == Warning && strings.Contains(f.Detail, "by fix,"); told != tt.told {
				t.Errorf("%+v", f)
			}
		})
	}
}
