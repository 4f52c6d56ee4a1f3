package gitprovider_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

func TestParseTierFallsToOneForEverythingElse(t *testing.T) {
	cases := map[string]struct {
		tier gitprovider.Tier
		ok   bool
	}{
		"1": {1, true}, "2": {2, true}, "3": {3, true}, " 2\n": {2, true},
		"": {1, true}, "0": {1, false}, "4": {1, false}, "-1": {1, false}, "2.0": {1, false}, "02": {1, false},
		"two": {1, false},
		"+3":  {1, false}, "3 3": {1, false}, "${CLAUDEOPS_TIER}": {1, false}, "３": {1, false},
		"99999999999999999999": {1, false},
	}
	for raw, want := range cases {
		tier, ok := gitprovider.ParseTier(raw)
		if tier != want.tier || ok != want.ok {
			t.Errorf("ParseTier(%q) = %d, %t; want %d, %t", raw, tier, ok, want.tier, want.ok)
		}
	}
}

func TestValidateTier(t *testing.T) {
	cases := []struct {
		tier   gitprovider.Tier
		files  int
		denied bool
		says   string
	}{
		{1, 1, true, "tier 2 and tier 3 may"},
		{0, 1, true, "may not propose"}, {4, 1, true, "may not propose"}, {-2, 1, true, "may not propose"},
		{2, 1, false, ""}, {2, 3, false, ""}, {2, 4, true, "tier 3 may change up to 100"}, {2, 101, true, "no tier"},
		{3, 100, false, ""}, {3, 101, true, "no tier"},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("tier %d with %d files", c.tier, c.files), func(t *testing.T) {
			v := gitprovider.ValidateTier(gitprovider.DefaultTierLimits(), c.tier, c.files)
			if (len(v) > 0) != c.denied {
				t.Fatalf("violations %v, want denied=%t", v, c.denied)
			}
			if c.denied && (v[0].Code != fault.TierDenied || !strings.Contains(v[0].Message, c.says)) {
				t.Errorf("%+v does not say %q", v[0], c.says)
			}
		})
	}
}

func TestLimitsCanOnlyBeTightened(t *testing.T) {
	loose := gitprovider.TierLimits{Investigate: 50, Remediate: 5000}
	if got := loose.MaxFiles(2); got != gitprovider.MaxFilesTier2 {
		t.Errorf("tier 2 may change %d files", got)
	}
	if got := loose.MaxFiles(3); got != gitprovider.MaxFilesPerPR {
		t.Errorf("tier 3 may change %d files", got)
	}
	if got := (gitprovider.TierLimits{}).MaxFiles(3); got != 0 {
		t.Errorf("a policy that forbids tier 3 lets it change %d files", got)
	}
}

func TestNewChangeSetIsTheOnlyWayAndRunsBothValidators(t *testing.T) {
	rules := gitprovider.Rules{Tier: 2, Limits: gitprovider.DefaultTierLimits(), Scope: gitprovider.DefaultScope()}
	set, violations := gitprovider.NewChangeSet(rules, changes("playbooks/b.md", "checks/a.md"))
	if len(violations) != 0 || set.Len() != 2 || set.Paths()[0].String() != "checks/a.md" {
		t.Fatalf("a good request gave %v, %v", set, violations)
	}
	set.Changes()[0].Content = "tampered"
	if set.Changes()[0].Content != "x\n" {
		t.Error("a change set can be altered from outside")
	}
	set, violations = gitprovider.NewChangeSet(rules, changes("a.go", "checks/1.md", "checks/2.md", "checks/3.md"))
	if set.Len() != 0 || len(violations) != 2 {
		t.Errorf("a request that breaks tier and scope gave %d changes and %v", set.Len(), violations)
	}
	if set, violations = gitprovider.NewChangeSet(rules, nil); set.Len() != 0 || len(violations) == 0 {
		t.Error("an empty request made a change set")
	}
}

// canonicalPaths are accepted as they are.
func canonicalPaths() []string {
	return []string{
		"checks/disk.md", "CLAUDE-OPS.md", ".claude-ops/skills/a.md", "checks/v1..v2.md", "checks/my.env.md",
		"checks/Dockerfile-health.md", "a/b/c/d/e.txt", "checks/_x.md", "checks/console.md", "checks/nullable.md", "com.md",
		"com10.md",
		"checks/git.md", "checks/x.git", strings.Repeat("a", 255) + "/b.md",
	}
}

func TestParsePathAcceptsCanonicalPathsUnchanged(t *testing.T) {
	for _, s := range canonicalPaths() {
		p, err := gitprovider.ParsePath(s)
		if err != nil || p.String() != s {
			t.Errorf("ParsePath(%q) = %q, %v; want it accepted unchanged", s, p, err)
		}
	}
}

// pathTricks are refused, each by the rule that its message names.
func pathTricks() map[string]struct{ path, says string } {
	return map[string]struct{ path, says string }{
		"the empty path":                     {"", "empty"},
		"an absolute path":                   {"/etc/passwd", "absolute"},
		"a parent segment":                   {"checks/../prompts/x.md", `".."`},
		"a leading parent segment":           {"../x.md", `".."`},
		"a dot segment":                      {"./checks/x.md", `"."`},
		"an inner dot segment":               {"checks/./x.md", `"."`},
		"a doubled slash":                    {"checks//x.md", "empty segment"},
		"a trailing slash":                   {"checks/", "empty segment"},
		"a backslash":                        {`checks\x.md`, `'\\'`},
		"a percent-encoded parent":           {"checks/%2e%2e/x.md", "'%'"},
		"a percent-encoded slash":            {"checks%2fx.md", "'%'"},
		"a NUL":                              {"checks/x.md\x00.txt", "U+0000"},
		"a newline":                          {"checks/x\n.md", "U+000A"},
		"a space":                            {"checks/a b.md", "U+0020"},
		"a trailing space":                   {"checks/x.md ", "U+0020"},
		"a trailing dot":                     {"checks/x.md.", "ends with a dot"},
		"a folder that ends with a dot":      {"checks./x.md", "ends with a dot"},
		"three dots":                         {"checks/.../x.md", "ends with a dot"},
		"a Cyrillic look-alike":              {"сhecks/x.md", "U+0441"},
		"a full-width dot":                   {"checks/．．/x.md", "U+FF0E"},
		"a fraction slash":                   {"checks⁄x.md", "U+2044"},
		"a decomposed letter (NFD)":          {"checks/e\u0301.md", "U+0301"},
		"a composed letter (NFC)":            {"checks/\u00e9.md", "U+00E9"},
		"a zero-width joiner":                {"checks/\u200dx.md", "U+200D"},
		"invalid UTF-8":                      {"checks/\xff.md", "U+FFFD"},
		"git's folder":                       {".git/config", "git's own folder"},
		"git's folder in capitals":           {".GIT/config", "git's own folder"},
		"git's folder further down":          {"checks/.Git/hooks/pre-commit", "git's own folder"},
		"git's short name on NTFS":           {"GIT~1/config", "'~'"},
		"git's folder with an NTFS stream":   {".git::$INDEX_ALLOCATION/config", "':'"},
		"git's folder with HFS ignorables":   {".g\u200cit/config", "U+200C"},
		"git's folder with a trailing dot":   {".git./config", "ends with a dot"},
		"git's folder with a trailing space": {".git /config", "U+0020"},
		"a hidden file":                      {".env", "hidden"},
		"a hidden folder":                    {"checks/.x/y.md", "hidden"},
		"our folder in another case":         {".Claude-Ops/checks/x.md", "hidden"},
		"a leading hyphen":                   {"-rf", "hyphen"},
		"an inner leading hyphen":            {"checks/--help.md", "hyphen"},
		"a device name":                      {"checks/nul", "device"},
		"a device name with an extension":    {"checks/con.md", "device"},
		"a device name in capitals":          {"checks/AUX.tar.md", "device"},
		"a numbered device":                  {"checks/Com1.md", "device"},
		"a device as a folder":               {"lpt9/x.md", "device"},
		"a segment of 256 bytes":             {strings.Repeat("a", 256) + "/b.md", "255"},
		"a path of 1025 bytes":               {strings.Repeat("a/", 512) + "b", "1024"},
		"a drive letter":                     {"C:/x.md", "':'"},
		"a UNC path":                         {"//server/share", "absolute"},
		"a tilde":                            {"~/x.md", "'~'"},
		"a wildcard":                         {"checks/*.md", "'*'"},
	}
}

func TestParsePathRefusesEveryTrickByName(t *testing.T) {
	for name, c := range pathTricks() {
		t.Run(name, func(t *testing.T) {
			p, err := gitprovider.ParsePath(c.path)
			if err == nil {
				t.Fatalf("ParsePath(%q) accepted %q", c.path, p)
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("the message %q does not name the problem (%s)", err, c.says)
			}
			if p.String() != "" {
				t.Errorf("a refused path left %q behind", p)
			}
		})
	}
}

func TestAncestorsAreOutermostFirst(t *testing.T) {
	p, err := gitprovider.ParsePath("a/b/c.md")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(p.Ancestors(), " "); got != "a a/b" {
		t.Errorf("Ancestors = %q", got)
	}
}

// FuzzParsePath holds that what is accepted is canonical, and that git names exactly that file: check-ref-format is not
// about paths, so git's own index is asked.
func FuzzParsePath(f *testing.F) {
	for _, s := range canonicalPaths() {
		f.Add(s)
	}
	for _, c := range pathTricks() {
		f.Add(c.path)
	}
	dir := f.TempDir()
	if out, err := exec.Command("git", "init", "--quiet", "--bare", dir).CombinedOutput(); err != nil {
		f.Fatalf("git init: %v: %s", err, out)
	}
	const emptyBlob = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
	f.Fuzz(func(t *testing.T, s string) {
		p, err := gitprovider.ParsePath(s)
		if err != nil {
			return
		}
		if p.String() != s || !utf8.ValidString(s) || strings.Contains("/"+s+"/", "/../") || strings.Contains(s, "\\") {
			t.Fatalf("accepted %q as %q, which is not canonical", s, p)
		}
		index := t.TempDir() + "/index"
		git := func(stdin string, args ...string) string {
			cmd := exec.Command("git", append([]string{"--git-dir", dir}, args...)...)
			cmd.Env = []string{"GIT_INDEX_FILE=" + index, "GIT_CONFIG_NOSYSTEM=1", "HOME=/nonexistent",
				"PATH=/usr/bin:/bin:/usr/local/bin"}
			cmd.Stdin = strings.NewReader(stdin)
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("git %v does not take %q: %v", args, s, err)
			}
			return string(out)
		}
		git("100644 "+emptyBlob+"\t"+s+"\x00", "-c", "core.protectNTFS=true", "-c", "core.protectHFS=true",
			"update-index", "-z", "--index-info")
		if got := git("", "ls-files", "-z"); got != s+"\x00" {
			t.Fatalf("git names %q what was approved as %q", got, s)
		}
	})
}

// What is at the path of a change, and above it, decides whether a host may write it; hosts do not ask.
func TestACommitIsHeldAgainstItsSnapshot(t *testing.T) {
	t.Parallel()
	const base = "1111111111111111111111111111111111111111"
	tree := gitprovider.Tree{
		"checks": {Kind: gitprovider.KindDir}, "playbooks": {Kind: gitprovider.KindSymlink},
		"checks/disk.md":   {Kind: gitprovider.KindFile, ID: gitprovider.BlobID([]byte("disk\n"), base)},
		"checks/link.md":   {Kind: gitprovider.KindSymlink, ID: gitprovider.BlobID([]byte("disk.md"), base)},
		"checks/module.md": {Kind: gitprovider.KindSubmodule, ID: base}, "checks/folder.md": {Kind: gitprovider.KindDir},
	}
	for name, c := range map[string]struct {
		action  gitprovider.Action
		path    string
		content string
		code    fault.Code
	}{
		"a new file":               {gitprovider.ActionCreate, "checks/new.md", "new\n", ""},
		"a changed file":           {gitprovider.ActionUpdate, "checks/disk.md", "new\n", ""},
		"a removed file":           {gitprovider.ActionDelete, "checks/disk.md", "", ""},
		"creating what exists":     {gitprovider.ActionCreate, "checks/disk.md", "new\n", fault.Conflict},
		"creating it as it is":     {gitprovider.ActionCreate, "checks/disk.md", "disk\n", fault.Conflict},
		"updating what is missing": {gitprovider.ActionUpdate, "checks/none.md", "new\n", fault.Conflict},
		"deleting what is missing": {gitprovider.ActionDelete, "checks/none.md", "", fault.Conflict},
		"updating to the same":     {gitprovider.ActionUpdate, "checks/disk.md", "disk\n", fault.NoChange},
		"updating a link":          {gitprovider.ActionUpdate, "checks/link.md", "new\n", fault.Conflict},
		"deleting a link":          {gitprovider.ActionDelete, "checks/link.md", "", fault.Conflict},
		"updating a submodule":     {gitprovider.ActionUpdate, "checks/module.md", "new\n", fault.Conflict},
		"deleting a folder":        {gitprovider.ActionDelete, "checks/folder.md", "", fault.Conflict},
		"creating below a link":    {gitprovider.ActionCreate, "playbooks/new.md", "new\n", fault.Conflict},
		"another spelling":         {gitprovider.ActionCreate, "checks/Disk.md", "new\n", fault.Conflict},
	} {
		set, wrong := gitprovider.NewChangeSet(gitprovider.Rules{Tier: gitprovider.TierRemediate,
			Limits: gitprovider.DefaultTierLimits(), Scope: gitprovider.DefaultScope()},
			[]gitprovider.FileChange{{Path: c.path, Action: c.action, Content: c.content}})
		req := gitprovider.CommitRequest{Branch: "claude-ops/fix/x", Changes: set,
			Snapshot: &gitprovider.Snapshot{Base: "main", BaseCommit: base, Tree: tree}}
		if err := req.Check(); fault.CodeOf(err) != c.code || len(wrong) > 0 {
			t.Errorf("%s: %v, want %q; %v", name, err, c.code, wrong)
		}
		req.Snapshot = &gitprovider.Snapshot{Base: "main", Tree: tree}
		if err := req.Check(); fault.CodeOf(err) != fault.InvalidArgument {
			t.Errorf("%s, without a commit to stand on: %v", name, err)
		}
	}
}

func TestFiltersOfAttributes(t *testing.T) {
	attributes := gitprovider.Attributes{
		"":       "# big files\n*.bin filter=lfs diff=lfs -text\n/checks/big.md filter=lfs\n[attr]crypt filter=git-crypt\n\"a b.md\" filter=lfs\n",
		"checks": "*.md crypt\nplain.md -filter\nsub/**/*.md filter=lfs\n",
	}
	for path, want := range map[string]string{
		"README.md": "", "x/y/z.bin": "lfs", "a b.md": "lfs", "big.md": "", "checks/big.md": "git-crypt",
		"checks/plain.md":         "",
		"checks/sub/deep/er/x.md": "lfs", "playbooks/big.md": "", "checks/x.bin": "lfs",
	} {
		if got := attributes.Filter(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if got := attributes.Filtered(""); len(got) != 3 || got[0] != "*.bin (lfs)" {
		t.Errorf("%q", got)
	}
}
