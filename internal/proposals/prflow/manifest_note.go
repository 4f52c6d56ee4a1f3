package prflow

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// This file watches the section "## Git Provider" of the manifest. Once such a change is merged and the working copy
// that is mounted has it, it decides where later proposals go, so that people have to know. It refuses nothing: a
// person decides by merging. What the policy pins holds whatever the manifest says.

// redirectOpening begins the text of manifestNote in the footer and in the record.
const redirectOpening = "Changes where later proposals go: "

// manifestNote says how the changes alter the section; "" if they do not.
func manifestNote(p policy.Policy, snapshot *gitprovider.Snapshot, changes []gitprovider.Change) string {
	for _, c := range changes {
		if !isManifest(c.Path) {
			continue
		}
		before, known := snapshot.Contents[c.Path]
		if _, exists := snapshot.Tree[c.Path.String()]; exists && !known {
			return redirectOpening + "the section Git Provider of " + gitprovider.ManifestFile +
				" may differ; the file on the base branch is " +
				"too large to compare." + pinNote(p, snapshot)
		}
		now := c.Content
		if c.Action == gitprovider.ActionDelete {
			now = ""
		}
		if changed := manifestChanges(string(before), now); len(changed) > 0 {
			return redirectOpening + "the section Git Provider of " + gitprovider.ManifestFile + " gets " +
				strings.Join(changed, ", ") + "." +
				pinNote(p, snapshot)
		}
	}
	return ""
}

func isManifest(path gitprovider.Path) bool {
	return strings.EqualFold(path.String(), gitprovider.ManifestFile)
}

// manifestChanges lists what differs in the sections of two manifests.
func manifestChanges(before, now string) (out []string) {
	was, wasErr := gitprovider.ParseManifest(before)
	is, isErr := gitprovider.ParseManifest(now)
	if isErr != nil {
		if wasErr != nil && before == now {
			return nil
		}
		return []string{"unreadable: calls about a repository that is mounted with it will fail"}
	}
	for _, f := range []struct{ name, was, is string }{
		{"provider", was.Provider, is.Provider}, {"remote", was.Remote, is.Remote}, {"owner", was.Owner, is.Owner},
		{"repo", was.Repo, is.Repo}, {"base_branch", was.BaseBranch, is.BaseBranch},
	} {
		if f.was == f.is {
			continue
		}
		out = append(out, fmt.Sprintf("%s %s (was %s)", f.name, declared(f.is), declared(f.was)))
	}
	if wasErr != nil && len(out) == 0 {
		return []string{"readable again"}
	}
	return out
}

// declared returns a value of the section for a text that we write: it cannot end its code span, nor the line.
func declared(value string) string {
	const most = 60 // bytes; the whole then fits into a sentence of the record
	if value == "" {
		return "not set"
	}
	plain := strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f || r == '`' || r == '<' || r == '>' {
			return '?'
		}
		return r
	}, value)
	if len(plain) > most {
		plain = plain[:most] + "..."
	}
	return "`" + plain + "`"
}

// pinNote says what of the section cannot take effect.
func pinNote(p policy.Policy, snapshot *gitprovider.Snapshot) string {
	pin, found := p.PinFor(snapshot.Repo.Owner, snapshot.Repo.Name)
	if !found {
		return ""
	}
	return " The operator's policy keeps " + pin.String() + " all the same."
}
