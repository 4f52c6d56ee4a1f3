package doctor

import (
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/filemodes"
	"github.com/claudeops/claudeops/internal/keyfile"
)

// Guarded are the files and folders that an agent must not be able to write, and of keys not even to read.
func Guarded(c config.Config) []filemodes.Subject {
	out := []filemodes.Subject{
		{What: "the policy file", Path: c.Permissions.PolicyFile},
		{What: "the prompts", Path: c.Sessions.PromptsDir, Tree: true},
	}
	if dir := c.Records.Dir; dir != "" {
		out = append(out,
			filemodes.Subject{What: "the state folder", Path: dir},
			filemodes.Subject{What: "the key of the marks", Path: filepath.Join(dir, keyfile.Name), Secret: true},
			filemodes.Subject{What: "the operator's token", Path: filepath.Join(dir, config.OperatorTokenFile), Secret: true},
			filemodes.Subject{What: "the records", Path: filepath.Join(dir, "claudeops.db")},
		)
	}
	return out
}

// modes says which of them somebody else could change. Where agents run as the user of claudeops, modes keep nothing from them: the boundary does.
func modes(c config.Config) Finding {
	const name = "modes and owners"
	var found []string
	for _, p := range filemodes.Look(filemodes.User{}, Guarded(c)) {
		found = append(found, p.String())
	}
	if len(found) > 0 {
		return Finding{Name: name, Status: Warning, Detail: strings.Join(found, "; ")}
	}
	return Finding{Name: name, Status: ok, Detail: "nobody else can write the state folder, keys, policy or prompts"}
}
