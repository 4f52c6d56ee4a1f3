package checkouts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/claudeops/claudeops/internal/system/git"
)

// harmless returns the settings of a working copy with which git starts no program, reaches no other file or machine,
// and writes no other text than the repository has. Names are as git prints them: section and variable in small
// letters.
func harmless() *regexp.Regexp {
	return regexp.MustCompile(`^(?:` + strings.Join([]string{
		`core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|symlinks|ignorecase|precomposeunicode)`,
		`extensions\.objectformat`,
		`remote\.[^\n]*\.(?:url|pushurl|fetch|tagopt|gh-resolved)`,
		`branch\.[^\n]*\.(?:remote|merge|rebase|description|vscode-merge-base)`,
		`user\.(?:name|email)`, `init\.defaultbranch`, `pull\.(?:ff|rebase)`, `push\.(?:default|autosetupremote)`,
		`color\.[^\n]*`,
		`gc\.auto`, `maintenance\.(?:auto|strategy)`,
	}, "|") + `)$`)
}

// settings returns the settings of a configuration file, the last value of each. It is an error if one is not harmless:
// it is not known what git would do with it.
func (c *checkout) settings(ctx context.Context, text []byte) (map[string]string, error) {
	list, err := c.run(ctx, git.Call{Args: []string{"config", "--file", "-", "--no-includes", "--null", "--list"},
		Stdin: bytes.NewReader(text)})
	if err != nil {
		return nil, errors.New("its .git/config cannot be understood")
	}
	out, known := map[string]string{}, harmless()
	for entry := range strings.SplitSeq(list, "\x00") {
		name, value, _ := strings.Cut(entry, "\n")
		if name == "" {
			continue
		}
		if !known.MatchString(name) {
			return nil, fmt.Errorf("its .git/config has the setting %q, with which git is not run here", name)
		}
		out[name] = value
	}
	return out, nil
}
