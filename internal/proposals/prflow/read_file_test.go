package prflow_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// reading asks for a file; change alters the request.
func (b *bench) reading(path string, change ...func(map[string]any)) (prflow.FileText, error) {
	b.Helper()
	return prflow.New(b.options).ReadFile(b.Context(), agent, inInfra(append(change, with("path", path))...))
}

// mustRead reads a file, without a write and without a row in the audit.
func (b *bench) mustRead(path string, change ...func(map[string]any)) prflow.FileText {
	b.Helper()
	b.fake.Script.ForgetCalls()
	before := len(b.attempts())
	out, err := b.reading(path, change...)
	if err != nil {
		b.Fatalf("%s: %v", path, err)
	}
	if writes, rows := b.fake.Script.Writes(), len(b.attempts())-before; writes != 0 || rows != 0 {
		b.Errorf("%s: %d writes, %d rows", path, writes, rows)
	}
	return out
}

func blobID(text string) string { return gitprovider.BlobID([]byte(text), strings.Repeat("0", 40)) }

func TestAFileIsReadWithWhatCreatePRTakesAsItsBase(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for tier := gitprovider.TierObserve; tier <= gitprovider.TierRemediate; tier++ {
		b.options.Authority.Tier = tier
		got := b.mustRead("checks/disk.md")
		if got.Text != "# Disk\n" || got.BaseSHA != blobID("# Disk\n") || got.Commit != b.tip("main") ||
			got.Branch != "main" || got.Lacks != nil ||
			!strings.Contains(got.Untrusted, "never instructions") {
			t.Errorf("tier %d: %+v", tier, got)
		}
	}
	b.options.Authority.Tier = gitprovider.TierInvestigate
	change := edited("checks/disk.md", "# Disk", "# Disks")
	change["base_sha"] = b.mustRead("checks/disk.md").BaseSHA
	b.mustOpen(createRequest(files(change)))
}

func TestAFileOfAPullRequestOfOursIsThatOfItsBranch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustOpen(createRequest(files(edited("checks/disk.md", "# Disk", "# Disks"),
		file("checks/inodes.md", "create", "# Inodes\n"))))
	for path, want := range map[string]string{
		// which it does not change
		"checks/disk.md": "# Disks\n", "checks/inodes.md": "# Inodes\n", "checks/old.md": "# Old\n",
	} {
		got := b.mustRead(path, with("pull", 1))
		if got.Text != want || got.BaseSHA != blobID(want) || got.Pull != 1 || got.Branch != b.pull(1).Branch ||
			got.Commit != b.pull(1).HeadCommit {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if got := b.mustRead("checks/disk.md"); got.Text != "# Disk\n" || got.Pull != 0 {
		t.Errorf("the base branch has %+v", got)
	}
	b.ask(1, "Say how, too.")
	change := edited("checks/inodes.md", "# Inodes\n", "# Inodes\n\ndf -i\n")
	change["base_sha"] = b.mustRead("checks/inodes.md", with("pull", 1)).BaseSHA
	result, err := b.create(revising(files(change)))
	if err != nil || !result.Revised {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestWhatMayNotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.Policy = kindBench(t, gitprovider.TierInvestigate).options.Authority.Policy
	b.world().Push("main", providertest.File{Path: "checks/link.md", Content: "disk.md", Kind: gitprovider.KindSymlink},
		providertest.File{Path: "playbooks/sub", Content: "../checks", Kind: gitprovider.KindSymlink},
		providertest.File{Path: ".fractary/agents/a.yaml", Content: "name: a\n"},
		providertest.File{Path: "checks/binary.md", Content: "a\x00b"},
		providertest.File{Path: "checks/latin.md", Content: "\xe9"},
		providertest.File{Path: "checks/large.md", Content: strings.Repeat("x", prflow.MaxShownFile+1)},
		providertest.File{Path: "checks/huge.md", Content: strings.Repeat("x", gitprovider.MaxContentRead+1)})
	b.mustOpen(createRequest(nil))
	b.world().Push("person/fix", providertest.File{Path: "checks/disk.md", Content: "theirs\n"})
	foreign := b.world().OpenPR("person/fix", "By hand")
	asOurs := b.world().OpenPR("person/fix", "By hand, labelled", gitprovider.LabelOurs)
	closed := b.mustOpen(createRequest(titled("Another", file("checks/b.md", "create", "# B\n")))).Number
	b.world().Close(closed)
	pull := func(n int) func(map[string]any) { return with("pull", n) }
	for name, c := range map[string]struct {
		path   string
		change func(map[string]any)
		code   fault.Code
		rule   string
	}{
		"outside of the scope":  {path: "README.md", code: fault.ScopeDenied, rule: gitprovider.RuleNotInAllowList},
		"denied":                {path: ".env", code: fault.ScopeDenied, rule: ".env*"},
		"denied on our branch":  {"CLAUDE.md", pull(1), fault.ScopeDenied, "CLAUDE.md"},
		"outside on our branch": {"README.md", pull(1), fault.ScopeDenied, gitprovider.RuleNotInAllowList},
		"a path that climbs": {path: "checks/../README.md", code: fault.ScopeDenied,
			rule: gitprovider.RuleCanonicalPath},
		"an encoded path": {path: "checks%2fdisk.md", code: fault.ScopeDenied,
			rule: gitprovider.RuleCanonicalPath},
		"a path with a dot": {path: "./checks/disk.md", code: fault.ScopeDenied,
			rule: gitprovider.RuleCanonicalPath},
		"of git":                   {path: ".git/config", code: fault.ScopeDenied, rule: gitprovider.RuleCanonicalPath},
		"of a kind for tier 3":     {path: ".fractary/agents/a.yaml", code: fault.TierDenied, rule: "kind:definitions"},
		"of a kind, on our branch": {".fractary/agents/a.yaml", pull(1), fault.TierDenied, "kind:definitions"},
		"a link":                   {path: "checks/link.md", code: fault.ScopeDenied, rule: "not-a-file"},
		"binary":                   {path: "checks/binary.md", code: fault.ContentDenied, rule: "binary"},
		"no UTF-8":                 {path: "checks/latin.md", code: fault.ContentDenied, rule: "binary"},
		"too large":                {path: "checks/large.md", code: fault.ContentDenied, rule: "file-size"},
		"much too large":           {path: "checks/huge.md", code: fault.ContentDenied, rule: "file-size"},
		"missing":                  {path: "checks/none.md", code: fault.NotFound, rule: "missing"},
		"missing on our branch":    {"checks/none.md", pull(1), fault.NotFound, "missing"},
		"another repository":       {"checks/disk.md", with("repo_name", "none"), fault.NotFound, ""},
		"another provider": {"checks/disk.md", with("clone_url", "https://other.example.org/joe/infra.git"),
			fault.ProviderUnresolved, ""},
		"a disabled provider": {"checks/disk.md", with("clone_url", "https://gitea.example.org/joe/infra.git"),
			fault.ProviderDisabled, ""},
		"a pull request that is none":   {"checks/disk.md", pull(99), fault.NotFound, ""},
		"a person's pull request":       {"checks/disk.md", pull(foreign), fault.NotFound, ""},
		"a person's with our label":     {"checks/disk.md", pull(asOurs), fault.NotFound, ""},
		"a pull request that is closed": {"checks/b.md", pull(closed), fault.Conflict, ""},
		"a pull request below 1":        {"checks/disk.md", pull(0), fault.InvalidArgument, ""},
		"an unknown argument":           {"checks/disk.md", with("tier", 3), fault.InvalidArgument, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.change == nil {
				c.change = func(map[string]any) {}
			}
			b.fake.Script.ForgetCalls()
			before := len(b.attempts())
			got, err := b.reading(c.path, c.change)
			e := fault.From(err)
			if err == nil || e.Code != c.code || c.rule != "" && (len(e.Violations) != 1 || e.Violations[0].Rule != c.rule) {
				t.Fatalf("%+v, %v %+v", got, err, e)
			}
			if e.Next == "" || operation.RequestIDOf(err) == "" || b.fake.Script.Writes() != 0 {
				t.Errorf("next %q, request %q", e.Next, operation.RequestIDOf(err))
			}
			rows := b.attempts()
			byAuthority := c.code == fault.ScopeDenied || c.code == fault.TierDenied
			if (len(rows) > before) != byAuthority {
				t.Errorf("%d rows", len(rows)-before)
			}
			if byAuthority {
				row := rows[0]
				if row.Action != prflow.ActionReadFile || row.Outcome != record.OutcomeRefused ||
					row.RequestID != operation.AttemptIDOf(err) ||
					row.Code != c.code || row.Caller != agent.String() || len(row.Paths) != 1 {
					t.Errorf("the audit has %+v", row)
				}
			}
		})
	}
	b.mustVerify()
}

func TestAFileOfAKindIsReadByWhoMayProposeIt(t *testing.T) {
	t.Parallel()
	b := kindBench(t, gitprovider.TierRemediate)
	b.mustOpen(createRequest(files(file(".fractary/agents/a.yaml", "create", "name: a\n"))))
	if got := b.mustRead(".fractary/agents/a.yaml", with("pull", 1)); got.Text != "name: a\n" {
		t.Errorf("%+v", got)
	}
	b.options.Authority.Tier = gitprovider.TierInvestigate
	if got := b.mustRead(".fractary/agents/a.yaml", with("pull", 1)); got.Text != "name: a\n" {
		t.Errorf("a file of our own pull request: %+v", got)
	}
	if _, err := b.reading(".fractary/agents/b.yaml", with("pull", 1)); fault.CodeOf(err) != fault.TierDenied {
		t.Errorf("one that it does not change: %v", err)
	}
}

func TestARepositoryThatIsNotListedIsNotReadAndThatIsRecorded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.Policy = mustPolicy(t, "repositories: [joe/other]")
	b.fake.Script.ForgetCalls()
	_, err := b.reading("checks/disk.md")
	if fault.CodeOf(err) != fault.RepoNotAllowed || len(b.fake.Script.Calls()) != 0 {
		t.Errorf("%v after %v", err, b.fake.Script.Calls())
	}
	if rows := b.attempts(); len(rows) != 1 || rows[0].Code != fault.RepoNotAllowed || rows[0].Owner != "joe" {
		t.Errorf("%+v", rows)
	}
}

func TestOnlyBranchesThatMayBeTargetedAreBaseBranches(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.Policy = mustPolicy(t, "base_branches: [release/*]")
	if _, err := b.reading("checks/disk.md"); fault.CodeOf(err) != fault.RepoNotAllowed {
		t.Errorf("got %v", err)
	}
}

// letters are those of a secret that is made at run time, so that this source holds none.
func letters(n int, seed uint32) string {
	const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	var b strings.Builder
	state := seed*2654435761 + 1
	for range n {
		state = state*1664525 + 1013904223
		b.WriteByte(alphabet[int(state>>16)%len(alphabet)])
	}
	return b.String()
}

func TestSecretsAndHiddenCharactersAreTakenOutAndSaid(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	token, key := "gh"+"p_"+letters(36, 3), make([]string, 8)
	for i := range key {
		key[i] = letters(64, uint32(20+i))
	}
	pem := fmt.Sprintf("-----%s RSA PRIVATE KEY-----\n%s\n-----%s RSA PRIVATE KEY-----\n", "BEGIN",
		strings.Join(key, "\n"), "END")
	long := "sk-" + "ant-api03-" + letters(93, 10) + "AA"
	for name, c := range map[string]struct {
		text    string
		secrets []string
		lacks   string
	}{
		"a token": {"# A\n\nexport GITHUB_TOKEN=" + token + "\n\nAfter.\n", []string{token},
			"looks like a secret"},
		"our own token": {"# A\n\nuse " + ownToken + " there\n\nAfter.\n", []string{ownToken},
			"looks like a secret"},
		"our own, encoded": {"# A\n\n" + base64.StdEncoding.EncodeToString([]byte(ownToken)) + "\n\nAfter.\n",
			[]string{base64.StdEncoding.EncodeToString([]byte(ownToken))[4:20]}, "looks like a secret"},
		"a private key": {"# A\n\n" + pem + "\nAfter.\n", key, "looks like a secret"},
		"a token over two lines": {"# A\n\n  " + token[:24] + "\n  " + token[24:] + "\n\nAfter.\n",
			[]string{token[:24], token[24:]}, "looks like a secret"},
		"a token that ends below": {"# A\n\nkey: " + long[:60] + "\n     " + long[60:] + "\n\nAfter.\n",
			[]string{long[:60], long[60:]}, "looks like a secret"},
		"two tokens": {token + "\n" + pem + "then " + token + "\n\nAfter.\n",
			append(slices.Clone(key), token), "looks like a secret"},
		"hidden by a hidden one": {"# A\n\nexport GITHUB_TOKEN=" + token[:10] + "\u200b" + token[10:] + "\n\nAfter.\n",
			[]string{token}, "cannot see"},
		"characters that change all": {"# A\n\n\u202eevil\u200b\n\nAfter.\n", []string{"\u202e", "\u200b"}, "cannot see"},
	} {
		t.Run(name, func(t *testing.T) {
			b.world().Push("main", providertest.File{Path: "checks/disk.md", Content: c.text})
			got := b.mustRead("checks/disk.md")
			for _, secret := range c.secrets {
				if strings.Contains(got.Text, secret) {
					t.Errorf("%q is in %q", secret, got.Text)
				}
			}
			if !strings.Contains(strings.Join(got.Lacks, "; "), c.lacks) || !strings.HasSuffix(got.Text, "After.\n") {
				t.Errorf("%q lacks %q", got.Text, got.Lacks)
			}
			if strings.Count(got.Text, "\n") != strings.Count(c.text, "\n") || got.BaseSHA != blobID(c.text) {
				t.Errorf("%d lines of %d: %q", strings.Count(got.Text, "\n"), strings.Count(c.text, "\n"), got.Text)
			}
		})
	}
	var parts []string
	for at := 0; at < len(ownToken); at += 8 {
		parts = append(parts, "- "+ownToken[at:min(at+8, len(ownToken))]+" and then some words\n")
	}
	b.world().Push("main", providertest.File{Path: "checks/disk.md", Content: strings.Join(parts, "\n")})
	if got, err := b.reading("checks/disk.md"); err == nil && strings.Contains(got.Text, ownToken[8:16]) {
		t.Errorf("our own token in parts is shown: %+v", got)
	}
}

func TestAPathThatHoldsASecretIsNotInTheAudit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, secret := range []string{ownToken, "gh" + "p_" + letters(36, 3)} {
		if _, err := b.reading("notes/" + secret + ".md"); fault.CodeOf(err) != fault.ScopeDenied {
			t.Fatal(err)
		}
		row := b.attempts()[0]
		if strings.Contains(fmt.Sprintf("%+v", row), secret) || row.Paths[0] != prflow.Withheld {
			t.Errorf("%+v", row)
		}
	}
}

func TestReadingTakesFewCallsAndNoTimeOfAMerge(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustOpen(createRequest(nil))
	for calls, read := range map[int]func(){
		1: func() { b.mustRead("checks/disk.md") }, 2: func() { b.mustRead("checks/inodes.md", with("pull", 1)) },
	} {
		start := b.clock.Now()
		read()
		if got := b.fake.Script.Calls(); len(got) != calls || b.clock.Now().Sub(start) > time.Second {
			t.Errorf("%d calls, want %d: %v", len(got), calls, got)
		}
	}
}

// listFiles asks which files there are; change alters the request.
func (b *bench) listFiles(change ...func(map[string]any)) (prflow.FileList, error) {
	b.Helper()
	return prflow.New(b.options).ListFiles(b.Context(), agent, inInfra(change...))
}

// manyFiles puts files into the repository, in the scope and out of it.
func (b *bench) manyFiles() {
	b.Helper()
	b.world().Push("main", providertest.File{Path: "CLAUDE-OPS.md", Content: "# Ops\n"},
		providertest.File{Path: ".claude-ops/skills/disk/SKILL.md", Content: "x\n"},
		providertest.File{Path: "prompts/secret.md", Content: "x\n"},
		providertest.File{Path: "src/main.go", Content: "x\n"},
		providertest.File{Path: "checks/deep/er.md", Content: "x\n"},
		providertest.File{Path: "checks/link.md", Content: "disk.md", Kind: gitprovider.KindSymlink})
}

func TestTheFilesThatMayBeProposedAreListed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.manyFiles()
	list, err := b.listFiles()
	b.must(err)
	var paths []string
	for _, f := range list.Files {
		paths = append(paths, f.Path)
	}
	all := []string{".claude-ops/skills/disk/SKILL.md", "CLAUDE-OPS.md", "checks/disk.md", "checks/old.md",
		"playbooks/a.md"}
	if !slices.Equal(paths, all) || list.Total != len(all) || list.Next != "" || list.Incomplete ||
		list.Commit != b.tip("main") || !strings.Contains(list.Untrusted, "never instructions") {
		t.Errorf("%+v", list)
	}
	if f := list.Files[2]; f.BaseSHA != blobID("# Disk\n") || f.Bytes != int64(len("# Disk\n")) {
		t.Errorf("%+v", f)
	}
	for name, c := range map[string]struct {
		change func(map[string]any)
		want   string // paths, and what is next
	}{
		"of a folder":      {with("glob", "checks/**"), "checks/disk.md checks/old.md"},
		"by a pattern":     {with("glob", "**/SKILL.md"), ".claude-ops/skills/disk/SKILL.md"},
		"none":             {with("glob", "src/**"), ""},
		"a page":           {with("limit", 2), ".claude-ops/skills/disk/SKILL.md CLAUDE-OPS.md next CLAUDE-OPS.md"},
		"the page after":   {with("after", "checks/disk.md"), "checks/old.md playbooks/a.md"},
		"past the last":    {with("after", "z"), ""},
		"the last, in all": {with("after", "checks/old.md"), "playbooks/a.md"},
	} {
		got, err := b.listFiles(c.change)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var said []string
		for _, f := range got.Files {
			said = append(said, f.Path)
		}
		if got.Next != "" {
			said = append(said, "next", got.Next)
		}
		if strings.Join(said, " ") != c.want {
			t.Errorf("%s: %q, want %q", name, said, c.want)
		}
	}
	if _, err := b.listFiles(with("glob", "checks/[")); fault.CodeOf(err) != fault.InvalidArgument {
		t.Errorf("a pattern that is none: %v", err)
	}
	b.options.Authority.Policy.Targets.Repositories = []policy.RepoPattern{{Owner: "joe", Name: "other"}}
	if _, err := b.listFiles(); fault.CodeOf(err) != fault.RepoNotAllowed {
		t.Errorf("a repository off the list: %v", err)
	}
}

// Reading a folder as if it were a file tells which files it has.
func TestAFolderThatIsReadIsListed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.manyFiles()
	read := prflow.Resources(func() *prflow.Service { return prflow.New(b.options) }, nil).Read
	for uri, want := range map[string]string{
		"claudeops://joe/infra/files":                              "CLAUDE-OPS.md",
		"claudeops://joe/infra/files?glob=checks/**":               "checks/disk.md",
		"claudeops://joe/infra/files?glob=checks%2F%2A%2A":         "checks/disk.md",
		"claudeops://joe/infra/files?glob=checks/**&after=checks/": "checks/disk.md",
		"claudeops://joe/infra/file/checks":                        "checks/disk.md",
		"claudeops://joe/infra/file/checks/":                       "checks/disk.md",
		"claudeops://joe/infra/file/.claude-ops/skills/disk":       ".claude-ops/skills/disk/SKILL.md",
	} {
		got, err := read(t.Context(), operation.Call{Caller: agent, Ceiling: gitprovider.TierInvestigate}, uri)
		if err != nil || got.Type != "application/json" || !strings.Contains(got.Text, `"path":"`+want+`"`) ||
			strings.Contains(got.Text, "src/") || got.About["commit"] != b.tip("main") {
			t.Errorf("%s: %+v, %v", uri, got, err)
		}
	}
	for _, uri := range []string{"claudeops://joe/infra/file/src", "claudeops://joe/infra/files?sort=x",
		"claudeops://joe/infra/files/x", "claudeops://joe/infra/files?glob=a&glob=b"} {
		if _, err := read(t.Context(), operation.Call{Caller: agent, Ceiling: gitprovider.TierInvestigate}, uri); err == nil {
			t.Errorf("%s was read", uri)
		}
	}
	_, err := b.reading("checks")
	if e := fault.From(err); e.Code != fault.ScopeDenied ||
		!strings.Contains(e.Violations[0].Suggestion, "files?glob=checks/**") {
		t.Errorf("by the operation: %v", err)
	}
}
