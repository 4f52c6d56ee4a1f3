package doctor

import (
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/keyfile"
	"github.com/claudeops/claudeops/internal/system/filemodes"
	"github.com/claudeops/claudeops/internal/system/files"
)

// Guarded returns the files and folders that an agent must not be able to write, and those of secrets not even to read.
// scripts are the places of the operator's scripts.
func Guarded(c config.Config, scripts []string) []filemodes.Subject {
	out := []filemodes.Subject{
		{What: "the environment file", Path: c.EnvironmentFile, Secret: true},
		{What: "the policy file", Path: c.Permissions.PolicyFile},
		{What: "the prompts", Path: c.Sessions.PromptsDir, Tree: true},
		{What: "the folder of local repositories", Path: c.Forges.LocalRoot},
		{What: "the settings of scripts", Path: c.Permissions.Confinement.Scripts},
		{What: "the settings of definitions", Path: c.Tools.Definitions.ConfigFile},
		{What: "the home of deployments", Path: c.Tools.Deploy.AgentpackHome},
	}
	if dir := c.Records.Dir; dir != "" {
		out = append(out,
			filemodes.Subject{What: "the state folder", Path: dir},
			filemodes.Subject{What: "the key of the marks", Path: filepath.Join(dir, keyfile.Name), Secret: true},
			filemodes.Subject{What: "the key that seals what providers have given", Path: filepath.Join(dir, keyfile.Grants),
				Secret: true},
			filemodes.Subject{What: "the operator's token", Path: filepath.Join(dir, config.OperatorTokenFile), Secret: true},
			filemodes.Subject{What: "the records", Path: filepath.Join(dir, "claudeops.db"), Secret: true},
		)
	}
	for _, path := range c.Permissions.Confinement.Secret {
		if path != c.Permissions.Confinement.Scripts {
			out = append(out, filemodes.Subject{What: "the file of a secret", Path: path, Secret: true})
		}
	}
	for _, path := range scripts {
		out = append(out, filemodes.Subject{What: "the scripts", Path: path, Tree: true})
	}
	return out
}

// Repositories lists the files of local repositories that only pull requests may change. Of their objects only the
// folder counts: objects are read-only, and named by their contents.
func Repositories(root string) (out []filemodes.Subject) {
	if root == "" {
		return nil
	}
	for _, path := range files.Glob(root, "*/*.git") {
		for _, part := range []string{"HEAD", "config", "packed-refs", "objects", "refs", "hooks"} {
			out = append(out, filemodes.Subject{What: "a local repository", Path: filepath.Join(path, part),
				Tree: part == "refs" || part == "hooks"})
		}
	}
	return out
}

// modes says which of them somebody else could change. Where agents run as the user of claudeops, modes keep nothing
// from them: the boundary does.
func modes(d *Doctor) Finding {
	const name = "modes and owners"
	var scripts []string
	if d.Boundary.Scripts != nil {
		scripts = d.Boundary.Scripts()
	}
	var found []string
	for _, p := range filemodes.Look(filemodes.User{}, Guarded(d.Config, scripts)) {
		found = append(found, p.String())
	}
	f := Finding{Name: name, Status: OK,
		Detail: "nobody else can write the environment file, the state folder, keys, policy, prompts or scripts"}
	if len(found) > 0 {
		f.Status, f.Detail = Warning, strings.Join(found, "; ")
	}
	if d.Boundary.Exposed == nil {
		return f
	}
	if why := d.Boundary.Exposed(); why != "" {
		f.Status, f.Detail, f.Stops = Problem, why, stopsSessions
	}
	return f
}
