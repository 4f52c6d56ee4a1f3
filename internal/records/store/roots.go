package store

import (
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/records/record"
)

// Local pull requests belong to a root: the folder CLAUDEOPS_LOCAL_ROOT, which has an identity of its own. Several
// processes may share a database and have different roots. So the provider "local" is stored with the identity of the
// root, and is read as "local" only where that is the root of this process. What is recorded of another root is handed
// out by no method that leads to a decision; in the audit it stands with its identity. See
// docs/adr/0018-a-root-has-an-identity.md.
const (
	localProvider = "local"
	rootMark      = ":" // between the provider, or the root's identity, and what follows
)

// root is the identity of the root of this process; "" if it has none, or the root has none yet.
type root struct {
	mu sync.Mutex
	id string
}

// rootID asks for the identity until there is one.
func (d *database) rootID() string {
	if d.opts.LocalRoot == nil {
		return ""
	}
	d.root.mu.Lock()
	defer d.root.mu.Unlock()
	if d.root.id == "" {
		d.root.id = d.opts.LocalRoot()
	}
	return d.root.id
}

// stored returns a provider as the database has it.
func (d *database) stored(provider string) string {
	if provider != localProvider {
		return provider
	}
	if id := d.rootID(); id != "" {
		return localProvider + rootMark + id
	}
	return provider
}

// shown returns a provider of the database as others know it.
func (d *database) shown(provider string) string {
	if id, rooted := strings.CutPrefix(provider, localProvider+rootMark); rooted && id == d.rootID() {
		return localProvider
	}
	return provider
}

// localKey returns a repository of this root as the tables of the local provider have it.
func (d *database) localKey(repo string) string {
	if id := d.rootID(); id != "" {
		return id + rootMark + repo
	}
	return repo
}

// oursAt returns a condition: the provider in the column is none of another root. $n is the argument,
// d.stored(localProvider).
func oursAt(column, n string) string {
	return "(" + column + " = " + n + " OR " + column + " <> '" + localProvider + "' AND " + column + " NOT LIKE '" +
		localProvider + rootMark + "%')"
}

// own returns the argument of oursAt.
func (d *database) own() text { return text(d.stored(localProvider)) }

// storedKey returns a key as the database has it, and shownKey takes that back.
func (d *database) storedKey(key record.PullKey) record.PullKey {
	key.Provider = d.stored(key.Provider)
	return key
}

func (d *database) shownKey(key record.PullKey) record.PullKey {
	key.Provider = d.shown(key.Provider)
	return key
}

// shownPulls converts records to the form that callers know.
func (d *database) shownPulls(found []record.PullRecord) []record.PullRecord {
	for i := range found {
		found[i].PullKey = d.shownKey(found[i].PullKey)
	}
	return found
}
