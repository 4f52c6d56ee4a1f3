package packages

import (
	"strings"
	"testing"
)

func TestOnlySoundManifestsMayBeProposed(t *testing.T) {
	t.Parallel()
	const sound = "name: disk-checks\nversion: 1.0.0\nartifacts:\n  skills:\n    - {name: disk, path: skills/disk}\n"
	for name, c := range map[string]struct {
		content, says string
		line          int
	}{
		"sound":       {sound, "", 0},
		"no YAML":     {"name: a\n\tb", "YAML", 2},
		"a type":      {strings.Replace(sound, "1.0.0", "[1]", 1), "YAML", 2},
		"a version":   {strings.Replace(sound, "1.0.0", "one", 1), "version:", 0},
		"a way out":   {strings.Replace(sound, "skills/disk", "../disk", 1), "leads out", 0},
		"no artifact": {"name: a\nversion: 1.0.0\n", "artifacts:", 0},
	} {
		problems := FileKind().Validate("aam.yaml", c.content)
		switch {
		case c.says == "" && len(problems) > 0:
			t.Errorf("%s: %v", name, problems)
		case c.says != "" && (len(problems) == 0 || !strings.Contains(problems[0].Message, c.says) ||
			problems[0].Line != c.line):
			t.Errorf("%s: %+v", name, problems)
		}
	}
}
