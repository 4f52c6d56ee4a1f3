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
		"Überprüfe 2 Dienste":            "berpr-fe-2-dienste",
		"a/b\\c..d":                      "a-b-c-d",
		strings.Repeat("ab ", 40):        strings.TrimSuffix(strings.Repeat("ab-", 17), "-")[:50],
		strings.Repeat("a", 49) + " b":   strings.Repeat("a", 49),
	}
	for title, want := range cases {
		got, err := gitprovider.Slug(title)
		if err != nil || got != want {
			t.Errorf("Slug(%q) = %q, %v; want %q", title, got, err, want)
		}
	}
	for _, title := range []string{"", "---", "修正", "!?", "\u202e"} {
		if got, err := gitprovider.Slug(title); !errors.Is(err, gitprovider.ErrEmptySlug) {
			t.Errorf("Slug(%q) = %q, %v; want ErrEmptySlug", title, got, err)
		}
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

func TestCheckBranchName(t *testing.T) {
	for _, good := range []string{"main", "release/1.2", "feature_x-y", "v2"} {
		if err := gitprovider.CheckBranchName(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "-x", "/x", "x/", "x.", "a..b", "a//b", "a@{1}", "@", "HEAD", "refs/heads/main", "a b", "a~1", "a^", "a:b", "a?", "a*",
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
