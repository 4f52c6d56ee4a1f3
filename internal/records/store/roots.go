package store

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"time"

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

// stored is a provider as the database has it.
func (d *database) stored(provider string) string {
	if provider != localProvider {
		return provider
	}
	if id := d.rootID(); id != "" {
		return localProvider + rootMark + id
	}
	return provider
}

// shown is a provider of the database as others know it.
func (d *database) shown(provider string) string {
	if id, rooted := strings.CutPrefix(provider, localProvider+rootMark); rooted && id == d.rootID() {
		return localProvider
	}
	return provider
}

// localKey is a repository of this root as the tables of the local provider have it.
func (d *database) localKey(repo string) string {
	if id := d.rootID(); id != "" {
		return id + rootMark + repo
	}
	return repo
}

// oursAt is a condition: the provider in the column is none of another root. $n is the argument,
// d.stored(localProvider).
func oursAt(column, n string) string {
	return "(" + column + " = " + n + " OR " + column + " <> '" + localProvider + "' AND " + column + " NOT LIKE '" +
		localProvider + rootMark + "%')"
}

// own is the argument of oursAt.
func (d *database) own() text { return text(d.stored(localProvider)) }

// storedKey is a key as the database has it, and shownKey takes that back.
func (d *database) storedKey(key record.PullKey) record.PullKey {
	key.Provider = d.stored(key.Provider)
	return key
}

func (d *database) shownKey(key record.PullKey) record.PullKey {
	key.Provider = d.shown(key.Provider)
	return key
}

// shownPulls are records as others know them.
func (d *database) shownPulls(found []record.PullRecord) []record.PullRecord {
	for i := range found {
		found[i].PullKey = d.shownKey(found[i].PullKey)
	}
	return found
}

// adoptEvery is how often it is looked whether rows without an identity are a root's own.
const adoptEvery = time.Hour

// unowned is a row without an identity: a pull request, or a proposal.
type unowned struct {
	id     string // of a proposal; "" for a pull request
	number int    // of the pull request; 0 for a proposal without one
	commit string // that tells whose it is; "" where base has to do
	base   string
}

// isIn reports whether a repository that has these commits is the one that a proposal is of. pulls are the numbers of
// its pull requests. base says that the base commit is evidence enough for a proposal that has no other.
func (u unowned) isIn(has map[string]bool, pulls map[int]bool, base bool) bool {
	switch {
	case u.number > 0 && pulls[u.number]:
		return true
	case u.commit != "":
		return has[u.commit]
	}
	return u.number == 0 && base && has[u.base]
}

// Adopt implements local.Records. It looks once an hour at most.
func (l *LocalPulls) Adopt(ctx context.Context,
	holds func(ctx context.Context, repo string, commits []string) (map[string]bool, error)) error {
	id := l.db.rootID()
	if id == "" {
		return nil
	}
	now := l.db.opts.Now()
	var looked time.Time
	if _, err := l.db.first(ctx, []any{at(&looked)}, "SELECT looked_us FROM local_roots WHERE id = $1",
		text(id)); err != nil || isRecent(looked, now, adoptEvery) {
		return err
	}
	repos, err := l.unowned(ctx)
	if err != nil || len(repos) == 0 { // then there is nothing to write down, and nobody waits until that can be done
		return err
	}
	for repo, rows := range repos {
		var commits []string
		for _, row := range rows {
			commits = append(commits, row.commit, row.base)
		}
		has, err := holds(ctx, repo, commits)
		if err != nil {
			return err
		}
		if err := l.adopt(ctx, id, repo, rows, has); err != nil {
			return err
		}
	}
	return l.db.exec(ctx,
		`INSERT INTO local_roots (id, looked_us) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET looked_us = excluded.looked_us`,
		text(id), micros(now))
}

// unowned are the rows without an identity, by repository.
func (l *LocalPulls) unowned(ctx context.Context) (map[string][]unowned, error) {
	found := map[string][]unowned{}
	add := func(rows *sql.Rows) error {
		var repo string
		var u unowned
		err := rows.Scan((*text)(&repo), (*text)(&u.id), &u.number, (*text)(&u.commit), (*text)(&u.base))
		found[repo] = append(found[repo], u)
		return err
	}
	return found, l.db.read(ctx, func(tx *sql.Tx) error {
		err := queryRows(ctx, tx, add, "SELECT repo, '', number, head_commit, '' FROM local_prs WHERE repo NOT LIKE '%"+
			rootMark+"%'")
		if err != nil {
			return err
		}
		return queryRows(ctx, tx, add,
			"SELECT owner || '/' || repo, id, pr_number, commit_id, base_commit FROM proposals WHERE provider = '"+localProvider+
				"'")
	})
}

// adopt makes those rows the root's own whose commits it has.
func (l *LocalPulls) adopt(ctx context.Context, id, repo string, rows []unowned, has map[string]bool) error {
	if len(has) == 0 {
		return nil
	}
	pulls, told, its := map[int]bool{}, false, false // whether any row tells whose it is, and whether one is this root's
	for _, row := range rows {
		told, its = told || row.commit != "", its || has[row.commit]
		if row.id == "" && has[row.commit] {
			pulls[row.number] = true
		}
	}
	return l.db.write(ctx, func(tx *sql.Tx) error {
		for number := range pulls {
			if err := adoptPull(ctx, tx, id, repo, number); err != nil {
				return err
			}
		}
		for _, row := range rows {
			if row.id == "" || !row.isIn(has, pulls, its || !told) {
				continue
			}
			for _, table := range []string{"proposals SET provider = $1 WHERE id",
				"reservations SET provider = $1 WHERE proposal_id", "pulls SET provider = $1 WHERE proposal_id"} {
				if _, err := tx.ExecContext(ctx, "UPDATE "+table+" = $2 AND provider = '"+localProvider+"'",
					text(localProvider+rootMark+id), text(row.id)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// adoptPull moves a pull request with its reviews to the root. Whoever refers to a row is moved before the row goes.
func adoptPull(ctx context.Context, tx *sql.Tx, id, repo string, number int) error {
	own, was, n := text(id+rootMark+repo), text(repo), number
	for _, statement := range []string{
		"INSERT INTO local_prs (repo, " + localPullColumns + ") SELECT CAST($1 AS TEXT), " + localPullColumns +
			" FROM local_prs WHERE repo = $2 AND number = $3",
		`INSERT INTO local_reviews (repo, number, position, author, state, body, submitted_us)
			SELECT CAST($1 AS TEXT), number, position, author, state, body, submitted_us FROM local_reviews WHERE repo = $2 AND number = $3`,
		"UPDATE local_review_comments SET repo = $1 WHERE repo = $2 AND number = $3",
	} {
		if _, err := tx.ExecContext(ctx, statement, own, was, n); err != nil {
			return err
		}
	}
	for _, table := range []string{"local_reviews", "local_prs"} {
		if _, err := tx.ExecContext(ctx, "DELETE FROM "+table+" WHERE repo = $1 AND number = $2", was, n); err != nil {
			return err
		}
	}
	for _, table := range []string{"pulls", "cooldown_lifts"} {
		folded := map[string]string{"pulls": "owner || '/' || repo = $2",
			"cooldown_lifts": "owner || '/' || repo = LOWER($2)"}[table]
		_, err := tx.ExecContext(ctx, "UPDATE "+table+" SET provider = $1 WHERE provider = '"+localProvider+"' AND "+folded+
			" AND number = $3",
			text(localProvider+rootMark+id), was, n)
		if err != nil {
			return err
		}
	}
	return nil
}
