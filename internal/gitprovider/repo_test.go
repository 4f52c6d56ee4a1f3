package gitprovider_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

func TestParseRemote(t *testing.T) {
	good := map[string][2]string{
		"https://github.com/joe/infra.git":           {"github.com", "joe/infra"},
		"https://Git.Example.org:3000/joe/infra":     {"git.example.org:3000", "joe/infra"},
		"https://host/gitea/joe/infra.git/":          {"host", "gitea/joe/infra.git"},
		"ssh://git@git.example.org:2222/joe/infra":   {"git.example.org:2222", "joe/infra"},
		"git@github.com:joe/infra.git":               {"github.com", "joe/infra"},
		"github.com:joe/infra":                       {"github.com", "joe/infra"},
		"file:///srv/git/joe/infra.git":              {gitprovider.HostLocal, "/srv/git/joe/infra"},
		"http://127.0.0.1:3000/joe/infra.git":        {"127.0.0.1:3000", "joe/infra"},
		"https://github.com.evil.example/joe/infra/": {"github.com.evil.example", "joe/infra"},
	}
	good["https://host/gitea/joe/infra.git/"] = [2]string{"host", "gitea/joe/infra"}
	for raw, want := range good {
		r, err := gitprovider.ParseRemote(raw)
		if err != nil || r.Host != want[0] || r.Path != want[1] {
			t.Errorf("ParseRemote(%q) = %+v, %v; want %v", raw, r, err, want)
		}
	}
	for _, bad := range []string{
		"https://joe:hunter2@github.com/joe/infra", "https://ghp_token@github.com/joe/infra", "ext::sh -c id",
		"-oProxyCommand=x:y",
		"https:///joe/infra", "file://otherhost/srv/x", "ftp://host/x", "just-a-name", "https://host/x?token=1",
		"https://host/x#f",
		"://", "/abs/path", "ext::x", "https://[::1", "git@:x", "javascript://x/y",
	} {
		if r, err := gitprovider.ParseRemote(bad); err == nil {
			t.Errorf("ParseRemote(%q) accepted %+v", bad, r)
		} else if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "ghp_") {
			t.Errorf("the error repeats a credential: %v", err)
		}
	}
}

func TestNewRepoRef(t *testing.T) {
	cases := []struct {
		name, owner, repo, url string
		problems               []string
	}{
		{"plain", "joe", "infra", "", nil},
		{"with a URL that names it", "joe", "infra", "https://github.com/Joe/Infra.git", nil},
		{"below a subpath", "joe", "infra", "https://host/gitea/joe/infra.git", nil},
		{"a URL that names another repository", "joe", "infra", "https://github.com/joe/other.git", []string{"clone_url"}},
		{"a URL whose path only ends alike", "joe", "infra", "https://github.com/xjoe/infra", []string{"clone_url"}},
		{"a URL with a token", "joe", "infra", "https://x@github.com/joe/infra", []string{"clone_url"}},
		{"nothing", "", "", "", []string{"repo_name", "repo_owner"}},
		{"a traversal", "..", "infra", "", []string{"repo_owner"}},
		{"a slash", "joe/x", "infra", "", []string{"repo_owner"}},
		{"a .git ending", "joe", "infra.git", "", []string{"repo_name"}},
		{"an option", "joe", "-rf", "", []string{"repo_name"}},
		{"a hidden name", "joe", ".git", "", []string{"repo_name"}},
		{"control characters", "joe\n", "infra", "", []string{"repo_owner"}},
		{"too long", strings.Repeat("a", 101), "infra", "", []string{"repo_owner"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, problems := gitprovider.NewRepoRef(c.owner, c.repo, c.url)
			if len(problems) != len(c.problems) {
				t.Fatalf("problems %v, want %v", problems, c.problems)
			}
			for _, argument := range c.problems {
				if problems[argument] == nil {
					t.Errorf("no problem with %s in %v", argument, problems)
				}
			}
		})
	}
}

func TestSlug(t *testing.T) {
	cases := map[string]string{
		"Check disk inodes":              "check-disk-inodes",
		"  --Fix: the *backup* check!! ": "fix-the-backup-check",
		"Überprüfe 2 Dienste":            "ueberpruefe-2-dienste",
		"Café à Łódź, naïve":             "cafe-a-lodz-naive",
		"修正 disk":                        "disk",
		"a/b\\c..d":                      "a-b-c-d",
		strings.Repeat("ab ", 40):        strings.TrimSuffix(strings.Repeat("ab-", 17), "-")[:50],
		"Say in the manual of the disks what progress on stdio looks like": "say-in-the-manual-of-the-disks-what-progress-on",
		strings.Repeat("a", 49) + " b":                                     strings.Repeat("a", 49),
	}
	for title, want := range cases {
		got, err := gitprovider.Slug(title)
		if err != nil || got != want {
			t.Errorf("Slug(%q) = %q, %v; want %q", title, got, err, want)
		}
	}
	for _, title := range []string{"", "---", "!?", "\u202e"} {
		if got, err := gitprovider.Slug(title); !errors.Is(err, gitprovider.ErrEmptySlug) {
			t.Errorf("Slug(%q) = %q, %v; want ErrEmptySlug", title, got, err)
		}
	}
}

// Titles in other scripts have a branch of their own each, and the same one each time.
func TestTitlesInOtherScriptsAreNamedByADigest(t *testing.T) {
	seen := map[string]string{}
	for _, title := range []string{"修正", "修正する", "Проверка диска", "فحص القرص", "\u0661\u0662"} {
		got, err := gitprovider.Slug(title)
		again, _ := gitprovider.Slug(title)
		if err != nil || !strings.HasPrefix(got, "title-") || got != again || seen[got] != "" {
			t.Errorf("%q: %q, %v", title, got, err)
		}
		seen[got] = title
	}
}

func TestBranchWithSuffixStaysWithinTheLimit(t *testing.T) {
	plain, err := gitprovider.BranchName(gitprovider.TypeCheck, strings.Repeat("long title ", 7))
	if err != nil {
		t.Fatal(err)
	}
	got := gitprovider.BranchWithSuffix(plain, "0123abcd")
	slug := strings.TrimPrefix(got, "claude-ops/check/")
	if len(slug) > gitprovider.MaxSlug || !strings.HasSuffix(slug, "-0123abcd") || strings.Contains(slug, "--") {
		t.Errorf("BranchWithSuffix = %q (slug of %d)", got, len(slug))
	}
}

func TestNoBranchOfOursIsAsLongAsAnObjectID(t *testing.T) {
	for _, kind := range gitprovider.ChangeTypes() {
		for n := 1; n <= gitprovider.MaxSlug; n++ {
			for _, title := range []string{strings.Repeat("a", n), strings.Repeat("a", max(n-2, 0)) + "-b"[:min(n, 2)]} {
				branch, err := gitprovider.BranchName(kind, title)
				if errors.Is(err, gitprovider.ErrEmptySlug) {
					continue
				}
				if again, _ := gitprovider.BranchName(kind, title); again != branch || err != nil {
					t.Fatalf("%q gives %q, then %q (%v)", title, branch, again, err)
				}
				for _, name := range []string{branch, gitprovider.BranchWithSuffix(branch, "0123abcd")} {
					for _, length := range []int{len(name), len("refs/heads/" + name)} {
						if length == 40 || length == 64 {
							t.Errorf("the title %q of a %s gives %q: %d characters", title, kind, name, length)
						}
					}
				}
				if slug := branch[strings.LastIndexByte(branch, '/')+1:]; len(slug) < n-2 {
					t.Errorf("the title %q of a %s gives %q, which is cut more than it must be", title, kind, branch)
				}
			}
		}
	}
	if got, _ := gitprovider.BranchName(gitprovider.TypeCheck, "disk is full"); got != "claude-ops/check/disk-is" {
		t.Errorf("twelve letters give %q", got)
	}
}

func TestCheckBranchName(t *testing.T) {
	for _, good := range []string{"main", "release/1.2", "feature_x-y", "v2"} {
		if err := gitprovider.CheckBranchName(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "-x", "/x", "x/", "x.", "a..b", "a//b", "a@{1}", "@", "HEAD", "refs/heads/main", "a b", "a~1", "a^", "a:b", "a?",
		"a*",
		"a[", `a\b`, "a\x7f", "a\n", ".x", "a/.b", "a.lock", "a.lock/b", "ü", strings.Repeat("a", 201),
	} {
		if gitprovider.CheckBranchName(bad) == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func FuzzSlug(f *testing.F) {
	for _, s := range []string{"Check disk", "修正 x", "--a--", "\xff\xfe", strings.Repeat("x-", 60), "K"} {
		f.Add(s)
	}
	form := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	f.Fuzz(func(t *testing.T, title string) {
		branch, err := gitprovider.BranchName(gitprovider.TypeFix, title)
		if err != nil {
			return
		}
		for _, name := range []string{branch, gitprovider.BranchWithSuffix(branch, "0123abcd")} {
			slug := strings.TrimPrefix(name, "claude-ops/fix/")
			if len(slug) > gitprovider.MaxSlug || !form.MatchString(slug) || gitprovider.CheckBranchName(name) != nil {
				t.Fatalf("title %q gives the branch %q", title, name)
			}
		}
	})
}
