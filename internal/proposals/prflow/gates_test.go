package prflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

func TestAGoodRequestBecomesOnePullRequestWithOneCommit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	result := b.mustOpen(createRequest(files(
		file("checks/disk.md", "update", "# Disk\n\nMore.\n"), file("checks/inodes.md", "create", "# Inodes\n"),
		file("checks/old.md", "delete"),
	)))
	if result.Branch != "claude-ops/fix/check-inodes-too" || b.tip(result.Branch) != result.Commit {
		t.Errorf("branch %s at %s, result %+v", result.Branch, b.tip(result.Branch), result)
	}
	if got := strings.Join(result.Files, " "); got != "checks/disk.md checks/inodes.md checks/old.md" {
		t.Errorf("files %s", got)
	}
	w := b.world()
	if parents := w.Parents(result.Commit); len(parents) != 1 || parents[0] != b.tip("main") {
		t.Errorf("parents %v", parents)
	}
	have := map[string]string{}
	for _, f := range w.Files(result.Commit) {
		have[f.Path] = f.Content
	}
	if len(have) != 4 || have["checks/disk.md"] != "# Disk\n\nMore.\n" || have["checks/inodes.md"] != "# Inodes\n" ||
		have["README.md"] == "" {
		t.Errorf("the commit has %v", have)
	}
	if row := b.attempts()[0]; row.Outcome != record.OutcomeOpened || row.PRNumber != result.Number ||
		row.Caller != agent.String() ||
		row.Door != record.DoorMCP || row.Tier != 2 || row.Provider != "fake" || len(row.Paths) != 3 ||
		len(row.Verdicts) != len(prflow.Gates()) {
		t.Errorf("the audit has %+v", row)
	}
	for _, v := range b.attempts()[0].Verdicts {
		if v.Ruling != record.Pass {
			t.Errorf("gate %s: %s", v.Gate, v.Ruling)
		}
	}
}

// violationsOf lists code and rule of each violation.
func violationsOf(e *fault.Error) string {
	var out []string
	for _, v := range e.Violations {
		out = append(out, string(v.Code)+":"+v.Rule)
	}
	return strings.Join(out, " ")
}

func TestArgumentsGate(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		raw  []byte
		says []string
	}{
		"no arguments at all":       {nil, []string{"repo_owner", "repo_name", "title", "body", "files"}},
		"not JSON":                  {[]byte(`{"repo_owner":`), []string{""}},
		"an array":                  {[]byte(`[]`), []string{""}},
		"an unknown field":          {createRequest(with("tier", 3)), []string{"tier"}},
		"a field in the wrong case": {createRequest(with("Title", "x")), []string{"Title"}},
		"a wrong type":              {createRequest(with("title", 7)), []string{"title"}},
		"a null":                    {createRequest(with("files", nil)), []string{"files"}},
		"an empty title":            {createRequest(with("title", "")), []string{"title"}},
		"a title of spaces":         {createRequest(with("title", "   ")), []string{"title"}},
		"a title of 73 characters":  {createRequest(with("title", strings.Repeat("ä", 72)+"x")), []string{"title"}},
		"a title of two lines":      {createRequest(with("title", "one\ntwo")), []string{"title"}},
		"a title without a letter":  {createRequest(with("title", "!!!")), []string{"title"}},
		"an empty body":             {createRequest(with("body", " \n")), []string{"body"}},
		"a huge body": {createRequest(with("body", strings.Repeat("x", prflow.MaxBodyBytes()+1))),
			[]string{"body"}},
		"an unknown change type":       {createRequest(with("change_type", "hack")), []string{"change_type"}},
		"a malformed base branch":      {createRequest(with("base_branch", "a..b")), []string{"base_branch"}},
		"a base branch like an option": {createRequest(with("base_branch", "--upload-pack=x")), []string{"base_branch"}},
		"no files":                     {createRequest(files()), []string{"files"}},
		"an empty path":                {createRequest(files(file("", "create", "x"))), []string{"files[0].path"}},
		"an unknown action":            {createRequest(files(file("checks/x.md", "move", "x"))), []string{"files[0].action"}},
		"an action in capitals": {createRequest(files(file("checks/x.md", "Create", "x"))),
			[]string{"files[0].action"}},
		"a create without content": {createRequest(files(file("checks/x.md", "create"))), []string{"files[0].content"}},
		"a delete with content": {createRequest(files(file("checks/old.md", "delete", ""))),
			[]string{"files[0].content"}},
		"a bad owner": {createRequest(with("repo_owner", "../x")), []string{"repo_owner"}},
		"a clone URL with a token": {createRequest(with("clone_url", "https://x:y@git.example.org/joe/infra")),
			[]string{"clone_url"}},
		"a clone URL of another repository": {createRequest(with("clone_url", "https://git.example.org/joe/other")),
			[]string{"clone_url"}},
		"several at once": {createRequest(
			func(r map[string]any) { r["title"], r["body"], r["change_type"] = "", "", "x" }),
			[]string{"title", "body", "change_type"}},
		"a repeated key": {[]byte(strings.Replace(string(createRequest(nil)), `"title"`,
			`"title":"other","title"`, 1)), []string{"title"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			e, _ := b.mustRefuse(c.raw, fault.InvalidArgument)
			said := map[string]bool{}
			for _, v := range e.Violations {
				said[v.Path] = true
			}
			for _, path := range c.says {
				if !said[path] {
					t.Errorf("no violation names %q: %+v", path, e.Violations)
				}
			}
		})
	}
}

func TestATitleOf72CharactersIsAccepted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustOpen(createRequest(with("title", "x"+strings.Repeat("ä", 71))))
}

// What the tiers may not is tried in TestThePageOfAttacksIsWhatWasTried.
func TestTierGate(t *testing.T) {
	t.Parallel()
	t.Run("tier 1 does not even contact the provider", func(t *testing.T) {
		b := newBench(t)
		b.options.Authority.Tier = 1
		e, row := b.mustRefuse(createRequest(nil), fault.TierDenied)
		if calls := b.fake.Script.Calls(); len(calls) != 0 || row.Tier != 1 || !strings.Contains(e.Message, "tier") {
			t.Errorf("%v, row %+v, calls %v", e, row, calls)
		}
	})
	t.Run("tier 3 may change more files than tier 2", func(t *testing.T) {
		b := newBench(t)
		b.options.Authority.Tier = 3
		b.mustOpen(createRequest(files(file("checks/1.md", "create", "1"), file("checks/2.md", "create", "2"),
			file("checks/3.md", "create", "3"), file("checks/4.md", "create", "4"))))
	})
}

// Each spelling of a path out of scope is tried in TestThePageOfAttacksIsWhatWasTried.
func TestScopeGate(t *testing.T) {
	t.Parallel()
	t.Run("every path is named at once", func(t *testing.T) {
		b := newBench(t)
		e, row := b.mustRefuse(createRequest(files(file("README.md", "update", "x"), file("checks/ok.md", "create", "x"),
			file("prompts/a.md", "create", "x"))),
			fault.ScopeDenied)
		if got := violationsOf(e); got != "scope_denied:not-in-allow-list scope_denied:prompts/**" {
			t.Errorf("violations %s", got)
		}
		if len(row.Paths) != 3 {
			t.Errorf("the audit has the paths %q", row.Paths)
		}
	})
}

// Links, submodules and folders in the way are tried there, too.
func TestBaseTreeGate(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		file map[string]any
		code fault.Code
		rule string
	}{
		{"create of a file that exists", file("checks/disk.md", "create", "x"), fault.Conflict, "exists"},
		{"update of a file that is missing", file("checks/none.md", "update", "x"), fault.Conflict, "missing"},
		{"delete of a file that is missing", file("checks/none.md", "delete"), fault.NoChange, "missing"},
		{"an update that changes nothing", file("checks/disk.md", "update", "# Disk\n"), fault.NoChange, "identical"},
		{"a create that is on the base already", file("checks/disk.md", "create", "# Disk\n"), fault.NoChange, "identical"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			e, _ := b.mustRefuse(createRequest(files(c.file)), c.code)
			if got := violationsOf(e); got != string(c.code)+":"+c.rule {
				t.Errorf("violations %s", got)
			}
		})
	}
}

// More hidden characters and ways to write a secret are tried in TestThePageOfAttacksIsWhatWasTried.
func TestContentGate(t *testing.T) {
	t.Parallel()
	token := "ghp_" + strings.Join([]string{"z9Kq2LmX", "7vTbR4Wn", "8cYd1FgH", "5jPs3AuE", "6oZi"}, "")
	body := func(content string) func(map[string]any) { return files(file("checks/x.md", "create", content)) }
	cases := []struct {
		name   string
		change func(map[string]any)
		rule   string
		says   string
	}{
		{"a bidi override in a file", body("a\nb \u202e c\n"), "hidden-character", "line 2, column 3"},
		{"a bidi override in the title", with("title", "Check \u2066disk"), "hidden-character", "title"},
		{"a tag character in the body", with("body", "x \U000e0041"), "hidden-character", "body"},
		{"a NUL", body("a\x00b"), "binary", "NUL"},
		{"a secret in a file", body("\n\ntoken: " + token + "\n"), "secret:github-pat", "line 3"},
		{"a secret in the title", with("title", token), "secret:github-pat", "title"},
		{"a secret in the body", with("body", "use "+token), "secret:github-pat", "body"},
		{"a secret in a path", files(file("checks/"+token+".md", "create", "x")), "secret:github-pat", "files[0].path"},
		{"our own token", body("x " + ownToken + " y"), "secret:own-token", "line 1"},
		{"our own token in pieces over files and body", func(r map[string]any) {
			r["body"] = "ends in " + ownToken[24:]
			files(file("checks/a.md", "create", "one "+ownToken[:12]), file("checks/b.md", "create", "two "+ownToken[12:24]))(r)
		}, "secret:own-token", `content of "checks/a.md", the content of "checks/b.md"`},
		{"a file of 256 KiB and one byte", body(strings.Repeat("x\n", 128<<10) + "y"), "file-size", "262145 bytes"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			e, row := b.mustRefuse(createRequest(c.change), fault.ContentDenied)
			if e.Violations[0].Rule != c.rule || !strings.Contains(e.Violations[0].Message, c.says) {
				t.Errorf("violation %+v, want rule %s and %q", e.Violations[0], c.rule, c.says)
			}
			kept, err := b.store.History.Wanted(t.Context(), row.RequestID)
			b.must(err)
			record, err := json.Marshal([]any{row, kept})
			b.must(err)
			for _, secret := range []string{token, ownToken} {
				if strings.Contains(fmt.Sprintf("%+v", e), secret) && !strings.Contains(c.name, "path") ||
					strings.Contains(string(record), secret) {
					t.Errorf("the secret is repeated: %v, record %s", e, record)
				}
			}
		})
	}
	t.Run("1 MiB in all is the limit", func(t *testing.T) {
		b := newBench(t)
		b.options.Authority.Tier = 3
		var list []any
		for i := range 5 {
			list = append(list, file(fmt.Sprintf("checks/%d.md", i), "create", strings.Repeat("x\n", 110<<10)))
		}
		e, _ := b.mustRefuse(createRequest(files(list...)), fault.ContentDenied)
		if violationsOf(e) != "content_denied:total-size" {
			t.Errorf("violations %s", violationsOf(e))
		}
	})
	t.Run("emoji with variation selectors and joiners are fine", func(t *testing.T) {
		b := newBench(t)
		b.mustOpen(createRequest(body("⚠️ 👨‍👩‍👧 done ✔️\n")))
	})
}

// Repositories, branches and hosts that are not there are tried in TestThePageOfAttacksIsWhatWasTried.
func TestRepositoryGate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(b *bench)
		change  func(map[string]any)
		code    fault.Code
		says    string
	}{
		"an empty repository": {func(b *bench) { b.fake.AddRepo("joe", "empty", nil) }, with("repo_name", "empty"),
			fault.NotFound, ""},
		"a base branch that the policy does not allow": {func(b *bench) { b.world().Push("release") },
			with("base_branch", "release"), fault.RepoNotAllowed, "repo_not_allowed:base_branches"},
		"a repository that the host knows by a name that is not on the list": {func(b *bench) {
			b.options.Authority.Policy = mustPolicy(b.T, "repositories: [\"joe/infra\"]")
			b.through(altered{b.fake, func(s *gitprovider.Snapshot) { s.Repo.Name = "another" }})
		}, nil, fault.RepoNotAllowed, ""},
		"an archived repository": {func(b *bench) { b.fake.People.Alter(infra, true, false, "main") }, nil,
			fault.RepoNotAllowed, "repo_not_allowed:archived"},
		"a fork": {func(b *bench) { b.fake.People.Alter(infra, false, true, "main") }, nil,
			fault.RepoNotAllowed, "repo_not_allowed:allow_forks"},
		"a provider that is disabled": {func(*bench) {}, with("clone_url", "https://gitea.example.org/joe/infra"),
			fault.ProviderDisabled, "GITEA_TOKEN"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			c.prepare(b)
			e, _ := b.mustRefuse(createRequest(c.change), c.code)
			if says := violationsOf(e) + " " + e.Message; !strings.Contains(says, c.says) {
				t.Errorf("%q, want %q", says, c.says)
			}
		})
	}
	t.Run("a repository that is not on the list is not even contacted", func(t *testing.T) {
		b := newBench(t)
		b.options.Authority.Policy = mustPolicy(t, "repositories: [\"joe/other\"]")
		b.mustRefuse(createRequest(nil), fault.RepoNotAllowed)
		if calls := b.fake.Script.Calls(); len(calls) != 0 {
			t.Errorf("calls %v", calls)
		}
	})
	t.Run("what the policy allows", func(t *testing.T) {
		b := newBench(t)
		b.world().Push("release")
		b.fake.People.Alter(infra, false, true, "main")
		b.options.Authority.Policy = mustPolicy(t, "base_branches: [\"rel*\"]\nallow_forks: true")
		b.mustOpen(createRequest(with("base_branch", "release")))
	})
	t.Run("a branch of another proposal as the base", func(t *testing.T) {
		b := newBench(t)
		first := b.mustOpen(createRequest(nil))
		b.options.Authority.Policy = mustPolicy(t, "base_branches: [\"**\"]")
		b.mustRefuse(createRequest(func(r map[string]any) {
			titled("Stack one on top", file("checks/second.md", "create", "x"))(r)
			r["base_branch"] = first.Branch
		}), fault.RepoNotAllowed)
	})
}

// altered is a provider whose snapshots a test alters.
type altered struct {
	*forgetest.Fake
	change func(*gitprovider.Snapshot)
}

func (a altered) Snapshot(ctx context.Context, q gitprovider.SnapshotQuery) (*gitprovider.Snapshot, error) {
	snap, err := a.Fake.Snapshot(ctx, q)
	if snap != nil {
		a.change(snap)
	}
	return snap, err
}

func TestGatesOneToSixAnswerTogether(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.Policy = mustPolicy(t, "body: {required_sections: [Impact]}\nbase_branches: [release]")
	e, row := b.mustRefuse(createRequest(titled(strings.Repeat("long ", 20),
		file("README.md", "update", "x"), file("checks/disk.md", "create", "x"),
		file("checks/none.md", "update", "a\u200bb"),
		file("checks/y.md", "create", ownToken),
	)), fault.ScopeDenied)
	want := "scope_denied:not-in-allow-list invalid_argument: invalid_argument:required-section " +
		"tier_denied:tier-max-files " +
		"conflict:exists conflict:missing content_denied:hidden-character content_denied:secret:own-token " +
		"repo_not_allowed:base_branches"
	if got := violationsOf(e); got != want {
		t.Errorf("violations\n%s, want\n%s", got, want)
	}
	for _, v := range row.Verdicts {
		if later := v.Gate == record.GateDuplicate || v.Gate == record.GateCooldown || v.Gate == record.GateAudit ||
			v.Gate == record.GateCaps; later != (v.Ruling == record.Skipped) {
			t.Errorf("gate %s: %s", v.Gate, v.Ruling)
		}
	}
	for _, v := range e.Violations {
		if v.Message == "" || strings.Contains(v.Message, "%!") {
			t.Errorf("message %q", v.Message)
		}
	}
}

func TestAMalformedRequestIsJudgedAndRecordedAsFarAsItCanBeRead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e, row := b.mustRefuse(createRequest(func(r map[string]any) {
		r["titel"], r["change_type"], r["body"] = "Misspelled", "chore", " "
		r["files"] = []any{file("README.md", "update", "x"), file("checks/disk.md", "create", "x"),
			map[string]any{"path": 7, "action": "create"}, file("checks/b.md", "create")}
	}), fault.ScopeDenied)
	var paths []string
	for _, v := range e.Violations {
		paths = append(paths, v.Path)
	}
	want := []string{
		// "" is the number of files
		"README.md", "files[2].path", "titel", "change_type", "body", "files[3].content", "", "checks/disk.md",
	}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
	if row.Owner != "joe" || row.Repo != "infra" || len(row.Paths) != 4 || row.Paths[0] != "README.md" {
		t.Errorf("the audit has %+v", row)
	}
}

func TestAProviderFailureIsToldOnlyWhenNothingElseIsWrong(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fake.Script.FailBefore(forgetest.MethodSnapshot, fault.New(fault.UpstreamError, "the host is down"))
	b.mustRefuse(createRequest(files(file("README.md", "update", "x"), file("checks/a.md", "create", "x"))),
		fault.ScopeDenied)
	b.fake.Script.FailBefore(forgetest.MethodSnapshot, fault.New(fault.UpstreamError, "the host is down"))
	if _, row := b.mustRefuse(createRequest(nil), fault.UpstreamError); row.Outcome != record.OutcomeFailed {
		t.Errorf("outcome %s", row.Outcome)
	}
}

func TestAReadOnlyServerRefusesWithItsReason(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.ReadOnly = "the policy file /etc/p.yaml is broken: line 3: unknown key x"
	e, _ := b.mustRefuse(createRequest(nil), fault.ReadOnly)
	if !strings.Contains(e.Message, "line 3") || len(b.fake.Script.Calls()) != 0 {
		t.Errorf("%v, calls %v", e, b.fake.Script.Calls())
	}
}

// A row has the policy that judged its attempt: that of the moment, and a word while none can be read.
func TestARowHasTheHashOfThePolicyThatJudgedIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	seen := map[string]bool{}
	judged := func(what string, row record.Attempt) {
		t.Helper()
		want := b.options.Authority.Policy.Hash()
		if b.options.Authority.Unknown != "" {
			want = record.PolicyUnreadable
		}
		if row.Policy != want || seen[row.Policy] {
			t.Errorf("%s: the row has the policy %q, want %q, and another one than before", what, row.Policy, want)
		}
		seen[row.Policy] = true
	}
	b.mustOpen(createRequest(nil))
	judged("opened", b.attempts()[0])
	outside := createRequest(files(file("README.md", "update", "x\n")))
	b.options.Authority.Policy.Limits.Caps.OpenPRs++
	_, row := b.mustRefuse(outside, fault.ScopeDenied)
	judged("refused", row)
	b.options.Authority.DryRun, b.options.Authority.Policy.People.FourEyes = true, true
	_, err := b.create(createRequest(files(file("checks/b.md", "create", "# B\n"))))
	b.must(err)
	judged("a dry run", b.attempts()[0])
	b.options.Authority.ReadOnly, b.options.Authority.Unknown = "policy.yaml: line 3", "policy.yaml: line 3"
	_, row = b.mustRefuse(createRequest(nil), fault.ReadOnly)
	judged("while none can be read", row)
}

// A line that stood on the base is not what a proposal brings.
func TestOnlyWhatAProposalAddsOrAltersIsSearched(t *testing.T) {
	token := "ghp" + "_k7vSzR73bofKCYCoGaHUOAU6WiKRBjveUkly"
	other := "ghp" + "_Zq81RmT5xWbLd0KcVnY3pHs9GfJtE2uAoXiM"
	before := "# Disk\n\nOld token: " + token + "\n\nA zero\u200bwidth space.\n\nRun df.\n"
	update := func(content string) map[string]any { return file("checks/disk.md", "update", content) }
	edit := func(old, text string) map[string]any {
		return map[string]any{"path": "checks/disk.md", "action": "update",
			"edits": []any{map[string]any{"old": old, "new": text}}}
	}
	remove := file("checks/disk.md", "delete")
	for _, tt := range []struct {
		name  string
		files []any
		rule  string // "" if it is opened
		line  string
	}{
		{"the rest is altered", []any{update(strings.Replace(before, "Run df.", "Run df -i.", 1))}, "", ""},
		{"the rest is altered by edits", []any{edit("Run df.", "Run df -i.")}, "", ""},
		{"the file is renamed", []any{remove, file("checks/disks.md", "create", before+"More.\n")}, "", ""},
		{"the line is deleted", []any{edit("Old token: "+token+"\n", "")}, "", ""},
		{"the line is altered", []any{update(strings.Replace(before, "Old", "Older", 1))}, "secret:github-pat", "line 3"},
		{"the line is altered by edits", []any{edit("Old token", "A token")}, "secret:github-pat", "line 3"},
		{"another secret is added", []any{update(before + other + "\n")}, "secret:github-pat", "line 8"},
		{"another secret is added to a renamed file", []any{remove, file("checks/disks.md", "create", before+other+"\n")},
			"secret:github-pat", "line 8"},
		{"the line is copied", []any{file("checks/disks.md", "create", before)}, "secret:github-pat", "line 3"},
		{"a hidden character is added", []any{update(before + "a\u200bb\n")}, "hidden-character", "line 8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.fake.AddRepo("joe", "infra", map[string]string{"checks/disk.md": before})
			b.options.Authority.DryRun = true
			raw := createRequest(func(r map[string]any) { r["files"] = tt.files })
			result, err := b.create(raw)
			if tt.rule == "" {
				if err != nil || !strings.Contains(strings.Join(result.Warnings, "\n"), "stood there before") &&
					tt.name != "the line is deleted" {
					t.Fatalf("%v, warnings %q", err, result.Warnings)
				}
				if strings.Contains(result.Preview.Diff, token) {
					t.Errorf("the agent is shown\n%s", result.Preview.Diff)
				}
				return
			}
			e := fault.From(err)
			if e == nil || len(e.Violations) == 0 {
				t.Fatalf("opened: %+v", result)
			}
			for _, v := range e.Violations {
				if (v.Rule != tt.rule || !strings.Contains(v.Message, tt.line)) && tt.name != "the line is copied" {
					t.Errorf("%+v, want %s at %s", v, tt.rule, tt.line)
				}
			}
			if n := b.fake.Script.Writes(); n != 0 {
				t.Errorf("%d writes", n)
			}
		})
	}
}

func TestTokensOfOthersInNamesAreNeitherAnsweredNorRecorded(t *testing.T) {
	token := "ghp" + "_k7vSzR73bofKCYCoGaHUOAU6WiKRBjveUkly"
	for _, change := range []func(r map[string]any){
		func(r map[string]any) { r["base_branch"] = token },
		func(r map[string]any) { r["repo_name"] = token },
		func(r map[string]any) { r["repo_owner"] = token },
		func(r map[string]any) { r["change_type"] = token },
		func(r map[string]any) { r[token] = "x" },
	} {
		b := newBench(t)
		var log strings.Builder
		b.options.Log = slog.New(slog.NewTextHandler(&log, nil))
		_, err := b.create(createRequest(change))
		e := fault.From(err)
		if e == nil {
			t.Fatal("opened")
		}
		answer, _ := json.Marshal(e.Violations)
		rows, _ := json.Marshal(b.attempts())
		if len(b.fake.Script.Calls()) != 0 && e.Code != fault.InvalidArgument {
			t.Errorf("the provider was asked: %v", b.fake.Script.Calls())
		}
		for what, text := range map[string]string{"message": e.Message, "answer": string(answer), "record": string(rows),
			"log": log.String()} {
			if strings.Contains(text, token) {
				t.Errorf("the %s has it: %.300s", what, text)
			}
		}
	}
}
