package gitprovider_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

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
