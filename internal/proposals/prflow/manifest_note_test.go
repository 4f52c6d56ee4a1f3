package prflow_test

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
)

const manifestNow = "# Infra\n\n## Git Provider\n\n- provider: fake\n- owner: joe\n- repo: infra\n- base_branch: " +
	"main\n\n## Notes\n\nOld.\n"

// newManifestBench has a repository with a manifest, at tier 3.
func newManifestBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.options.Authority.Tier = gitprovider.TierRemediate
	b.fake.AddRepo("joe", "infra", map[string]string{"CLAUDE-OPS.md": manifestNow, "checks/disk.md": "# Disk\n"})
	return b
}

func manifestUpdate(old, replacement string) []byte {
	update := file("CLAUDE-OPS.md", "update", strings.ReplaceAll(manifestNow, old, replacement))
	update["base_sha"] = gitprovider.BlobID([]byte(manifestNow), "")
	return createRequest(files(update, file("checks/new.md", "create", "# New\n")))
}

func TestAChangeOfWhereProposalsGoIsToldToEverybody(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		raw  []byte
		says string // "": nothing
	}{
		"the provider": {manifestUpdate("provider: fake", "provider: evil"), "provider `evil` (was `fake`)"},
		"the owner":    {manifestUpdate("owner: joe", "owner: eve"), "owner `eve` (was `joe`)"},
		"the repo":     {manifestUpdate("repo: infra", "repo: other"), "repo `other` (was `infra`)"},
		"the base":     {manifestUpdate("base_branch: main", "base_branch: prod"), "base_branch `prod` (was `main`)"},
		"a remote": {manifestUpdate("- owner", "- remote: https://evil.example/x\n- owner"),
			"remote `https://evil.example/x` (was not set)"},
		"two of them": {manifestUpdate("joe\n- repo: infra", "eve\n- repo: x"),
			"owner `eve` (was `joe`), repo `x` (was `infra`)"},
		"the section goes": {manifestUpdate("## Git Provider", "## Other"),
			"provider not set (was `fake`), owner not set (was `joe`), repo not set (was `infra`), base_branch not set (was `main`)"},
		"it becomes unreadable": {manifestUpdate("- owner: joe", "- owner:"), "unreadable"},
		"the manifest goes":     {createRequest(files(file("CLAUDE-OPS.md", "delete"))), "provider not set (was `fake`)"},
		"a value that would end its code span": {manifestUpdate("provider: fake", "provider: a`b<c>@x"),
			"provider `a?b?c?@x` (was `fake`)"},
		"a long value": {manifestUpdate("provider: fake", "provider: "+strings.Repeat("a", 300)),
			strings.Repeat("a", 60) + "...`"},
		"other sections":                  {manifestUpdate("Old.", "New."), ""},
		"the same values in another form": {manifestUpdate("- provider: fake", "* **provider**: `fake`"), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newManifestBench(t)
			shown := b.shown(c.raw)
			b.wantRedirect("the dry run", c.says, shown.Warnings, shown.Preview.Body)
			made := b.mustOpen(c.raw)
			b.wantRedirect("the pull request", c.says, made.Warnings, b.body(made.Number))
		})
	}
}

// wantRedirect holds that a change of where proposals go is in an answer, a body and the last row of the audit, or in
// none.
func (b *bench) wantRedirect(where, says string, warnings []string, body string) {
	b.Helper()
	var recorded []string
	for _, v := range b.attempts()[0].Verdicts {
		recorded = append(recorded, v.Warnings...)
	}
	note := prflow.RedirectNote(body)
	if says == "" {
		if len(warnings)+len(recorded) > 0 || note != "" {
			b.Errorf("%s warns of nothing: %q, %q, %q", where, warnings, recorded, note)
		}
		return
	}
	for place, text := range map[string]string{
		"answer": strings.Join(warnings, "\n"), "audit": strings.Join(recorded, "\n"), "body": note,
	} {
		if !strings.HasPrefix(text, "Changes where later proposals go: ") || !strings.Contains(text, says) {
			b.Errorf("%s: the %s says %q, want %q", where, place, text, says)
		}
	}
	if agent := prflow.AgentText(body); strings.Contains(agent, "later proposals") {
		b.Errorf("%s: the note is in the agent's text: %q", where, agent)
	}
}

func TestANewManifestIsToldAsWell(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.mustOpen(createRequest(files(file("CLAUDE-OPS.md", "create", manifestNow))))
	if len(made.Warnings) != 1 || !strings.Contains(made.Warnings[0], "provider `fake` (was not set)") {
		t.Errorf("warnings %q", made.Warnings)
	}
}

func TestAFakeNoteOfTheAgentIsNoneOfOurs(t *testing.T) {
	t.Parallel()
	b := newManifestBench(t)
	made := b.mustOpen(createRequest(with("body", "x\n\nChanges where later proposals go: nothing.")))
	if note := prflow.RedirectNote(b.body(made.Number)); note != "" {
		t.Errorf("%q", note)
	}
}

// A value may be a secret: then the record must not have it.
func TestARefusedSecretInAManifestIsNotRepeatedAsAWarning(t *testing.T) {
	t.Parallel()
	b := newManifestBench(t)
	e, row := b.mustRefuse(manifestUpdate("provider: fake", "provider: "+ownToken), fault.ContentDenied)
	for _, v := range row.Verdicts {
		if len(v.Warnings) > 0 {
			t.Errorf("the record warns of %q", v.Warnings)
		}
	}
	if strings.Contains(e.Message, ownToken) {
		t.Error(e)
	}
}

// A process that is killed leaves no verdicts; what settles its proposal still tells what it changes.
func TestWhatSettlesARedirectTellsOfIt(t *testing.T) {
	t.Parallel()
	b := newManifestBench(t)
	b.options.Step = func(step string) {
		if step == "opened" {
			panic("killed")
		}
	}
	if _, err := b.create(manifestUpdate("provider: fake", "provider: evil")); err == nil {
		t.Fatal("not broken off")
	}
	b.options.Step = nil
	left, err := b.store.Image(t.Context())
	b.must(err)
	b.store = records.Open(t, left, b.clock.Now)
	b.options.Ledger, b.options.History = b.store.Ledger, b.store.History
	judgedBy := b.options.Authority.Policy.Hash()
	b.options.Authority.Policy.Limits.Caps.OpenPRs++
	b.resume()
	row := b.attempts()[0]
	if row.Action != record.ActionSettle || len(row.Verdicts) != 1 ||
		!strings.Contains(row.Verdicts[0].Warnings[0], "provider `evil`") {
		t.Errorf("settled as %+v", row)
	}
	if row.Policy != judgedBy {
		t.Errorf("the row has the policy %q, not that of its beginning, %q", row.Policy, judgedBy)
	}
}

// mounted is the manifest of a mounted working copy of joe/infra.
type mounted gitprovider.Manifest

func (m mounted) Find(string, string) (gitprovider.Manifest, bool, error) {
	return gitprovider.Manifest(m), true, nil
}

// withManifest resolves by a manifest, and by the policy's pins as the command line hands them on.
func (b *bench) withManifest(m gitprovider.Manifest) {
	b.Helper()
	var pins []gitprovider.Pin
	for _, p := range b.options.Authority.Policy.Targets.Pins {
		pins = append(pins, gitprovider.Pin{Provider: p.Provider, Owner: p.Owner, Name: p.Name, BaseBranch: p.BaseBranch,
			Policy: true})
	}
	b.options.Registry = gitprovider.NewRegistry(b.options.Registry.Entries(), pins, "", mounted(m))
}

func TestThePolicyPinsProviderAndBase(t *testing.T) {
	t.Parallel()
	redirected := gitprovider.Manifest{Provider: "gitea", Owner: "joe", Repo: "infra", BaseBranch: "trunk"}
	t.Run("without a pin the manifest decides", func(t *testing.T) {
		b := newBench(t)
		b.withManifest(redirected)
		b.mustRefuse(createRequest(nil), fault.ProviderDisabled)
	})
	t.Run("a pin wins over it", func(t *testing.T) {
		b := newBench(t)
		b.options.Authority.Policy = mustPolicy(t, "pins: [{repository: JOE/infra, provider: fake, base_branch: main}]")
		b.withManifest(redirected)
		if made := b.mustOpen(createRequest(nil)); b.pull(made.Number).Base != "main" {
			t.Errorf("base %q", b.pull(made.Number).Base)
		}
	})
	t.Run("another base is refused for every caller", func(t *testing.T) {
		b := newBench(t)
		b.world().Push("trunk")
		b.options.Authority.Policy = mustPolicy(t,
			"base_branches: [main, trunk]\npins: [{repository: joe/infra, base_branch: main}]")
		e, _ := b.mustRefuse(createRequest(with("base_branch", "trunk")), fault.RepoNotAllowed)
		if e.Violations[0].Rule != "pins" {
			t.Errorf("%+v", e.Violations)
		}
	})
	t.Run("a pinned base need not be on the list", func(t *testing.T) {
		b := newBench(t)
		b.world().Push("trunk")
		b.options.Authority.Policy = mustPolicy(t,
			"base_branches: [main]\npins: [{repository: joe/infra, base_branch: trunk}]")
		b.withManifest(gitprovider.Manifest{})
		b.mustOpen(createRequest(nil))
	})
	t.Run("a dry run that was shown for another provider is not opened there", func(t *testing.T) {
		b := newBench(t)
		id := b.dryRun(createRequest(nil))
		b.options.Authority.Policy = mustPolicy(t, "pins: [{repository: joe/infra, provider: gitea}]")
		b.withManifest(gitprovider.Manifest{})
		b.mustNotPromote(fault.RepoNotAllowed, id)
	})
	t.Run("the reviewer learns what stays", func(t *testing.T) {
		b := newManifestBench(t)
		b.options.Authority.Policy = mustPolicy(t, "pins: [{repository: joe/infra, provider: fake}]")
		made := b.mustOpen(manifestUpdate("provider: fake", "provider: evil"))
		if len(made.Warnings) != 1 || !strings.HasSuffix(made.Warnings[0],
			"The operator's policy keeps joe/infra at fake all the same.") {
			t.Errorf("warnings %q", made.Warnings)
		}
	})
}
