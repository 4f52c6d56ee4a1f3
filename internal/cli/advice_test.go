package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every message of the records that advises to verify them may be the answer of the command that does so.
func TestVerifyingNeverAdvisesToVerify(t *testing.T) {
	t.Parallel()
	const verify = "`claudeops audit verify`"
	joined, literal := regexp.MustCompile(`"\s*\+\s*"`), regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	found := 0
	err := filepath.WalkDir("../records", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, message := range literal.FindAllString(joined.ReplaceAllString(string(source), ""), -1) {
			if !strings.Contains(message, verify) {
				continue
			}
			found++
			got := trimOwnAdvice(message)
			restores := strings.HasSuffix(got, `; restore a backup"`)
			if strings.Contains(got, verify) || strings.Contains(message, "and restore") != restores {
				t.Errorf("%s: %s becomes %s", path, message, got)
			}
		}
		return err
	})
	if err != nil || found < 7 {
		t.Errorf("%d messages, %v", found, err)
	}
}
