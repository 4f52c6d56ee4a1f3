package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

//nolint:gochecknoglobals // of constants alone; never changed
var pullColumns = `r.provider, r.owner, r.repo, r.number, r.proposal_id, r.state, r.head, r.approvals, r.objections, r.checks,
	r.updated_us, r.asked_us, r.reviewed_us, r.revised_us, NULLIF(r.tried_us, 0), r.seen_us, r.seen_by, r.ended_us, r.ended_by,
	r.misses, r.version,
	r.acted_us, r.reminded_us, r.labels_digest, r.closing_us, r.expired_us,
	COALESCE(p.base, ''), COALESCE(p.branch, ''), COALESCE(p.title, ''), COALESCE(p.pr_url, ''), p.opened_us, ` + newestFacts

// newestFacts selects the facts of the newest proposal of a pull request that changes files: of the whole of it.
//
//nolint:gochecknoglobals // of constants alone; never changed
var newestFacts = "COALESCE((SELECT " + factTagsOf("f.facts") + ` FROM proposals f WHERE f.provider = r.provider AND f.owner = r.owner
	AND f.repo = r.repo AND f.pr_number = r.number AND f.state = 'opened'
	AND EXISTS (SELECT 1 FROM proposal_files c WHERE c.proposal_id = f.id) ORDER BY f.opened_seq DESC LIMIT 1), '')`

const fromPulls = " FROM pulls r LEFT JOIN proposals p ON p.id = r.proposal_id "

// recordPull begins the record of the pull request that a proposal has become.
func recordPull(ctx context.Context, tx *sql.Tx, proposalID string, now time.Time) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO pulls (provider, owner, repo, number, proposal_id, state, head, updated_us, seq)
		SELECT provider, owner, repo, pr_number, id, 'open', commit_id, CAST($1 AS BIGINT), opened_seq FROM proposals WHERE id = $2 AND pr_number > 0
		ON CONFLICT (provider, owner, repo, number) DO NOTHING`, micros(now), textColumn(proposalID))
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE pulls SET revised_us = $1 WHERE (provider, owner, repo, number) IN (
		SELECT p.provider, p.owner, p.repo, p.pr_number FROM proposals p WHERE p.id = $2 AND p.revises > 0)`,
		micros(now), textColumn(proposalID))
	return err
}

// Pulls keeps what was last seen of the pull requests that we opened, for internal/proposals/pullsync and for people.
type Pulls struct{ db *database }

// FindPull returns the record of a pull request of ours, letter case of ASCII in owner and repository aside: forges do
// not tell names apart by it. found is false if we opened none with the number.
func (p *Pulls) FindPull(ctx context.Context, key record.PullKey) (record record.PullRecord, found bool, err error) {
	key = p.db.storedKey(key)
	err = p.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		records, err := selectPulls(ctx, tx, `WHERE r.provider = $1 AND r.number = $2 AND LOWER(r.owner) = $3 AND LOWER(r.repo) = $4
			ORDER BY CASE WHEN r.owner = $5 AND r.repo = $6 THEN 0 ELSE 1 END, r.version DESC LIMIT 1`, textColumn(key.Provider), key.Number,
			textColumn(lowerASCII(key.Owner)), textColumn(lowerASCII(key.Repo)), textColumn(key.Owner), textColumn(key.Repo))
		if len(records) > 0 {
			record, found = p.db.shownPulls(records)[0], true
		}
		return err
	})
	return record, found, err
}

// NewestChange returns the newest proposal of a pull request of ours that changes files; its facts are those of the
// whole pull request. Names are compared as by FindPull. false for none.
func (p *Pulls) NewestChange(ctx context.Context, key record.PullKey) (record.Proposal, bool, error) {
	pull, found, err := p.FindPull(ctx, key)
	if err != nil || !found {
		return record.Proposal{}, false, err
	}
	key = p.db.storedKey(pull.PullKey)
	made, err := p.db.proposals(ctx, `WHERE provider = $1 AND owner = $2 AND repo = $3 AND pr_number = $4 AND state = 'opened'
		AND EXISTS (SELECT 1 FROM proposal_files c WHERE c.proposal_id = proposals.id) ORDER BY opened_seq DESC LIMIT 1`,
		textColumn(key.Provider), textColumn(key.Owner), textColumn(key.Repo), key.Number)
	if err != nil || len(made) == 0 {
		return record.Proposal{}, false, err
	}
	return made[0], true, nil
}

// OpenPullsOf returns the open pull requests of ours whose head is the branch, at most 10, letter case of ASCII in
// owner and repository aside.
func (p *Pulls) OpenPullsOf(ctx context.Context, provider, owner, repo, branch string) (keys []record.PullKey,
	err error) {
	err = p.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		records, err := selectPulls(ctx, tx, `WHERE r.provider = $1 AND r.state = 'open' AND LOWER(r.owner) = $2
			AND LOWER(r.repo) = $3 AND p.branch = $4 ORDER BY r.number DESC LIMIT 10`,
			textColumn(p.db.stored(provider)), textColumn(lowerASCII(owner)), textColumn(lowerASCII(repo)), textColumn(branch))
		for _, r := range p.db.shownPulls(records) {
			keys = append(keys, r.PullKey)
		}
		return err
	})
	return keys, err
}

// OpenPulls returns the pull requests of ours that are open, as far as anybody has looked, the oldest proposal first.
func (p *Pulls) OpenPulls(ctx context.Context, limit int) (out []record.PullRecord, err error) {
	err = p.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		out, err = selectPulls(ctx, tx, "WHERE r.state = 'open' AND "+oursAt("r.provider", "$2")+
			" ORDER BY r.proposal_id LIMIT $1", limit, p.db.own())
		return err
	})
	return p.db.shownPulls(out), err
}

// StandingPulls returns pull requests of ours that stand so, the oldest proposals first; at most limit of each
// standing.
func (p *Pulls) StandingPulls(ctx context.Context, standings []record.NextActor,
	limit int) (out []record.PullRecord, err error) {
	err = p.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for _, standing := range standings {
			some, err := selectPulls(ctx, tx, "WHERE r.standing = $1 AND "+oursAt("r.provider", "$2")+
				" ORDER BY r.proposal_id LIMIT $3", textColumn(standing), p.db.own(), limit)
			if err != nil {
				return err
			}
			out = append(out, some...)
		}
		return nil
	})
	slices.SortStableFunc(out, func(a, b record.PullRecord) int { return strings.Compare(a.ProposalID, b.ProposalID) })
	return p.db.shownPulls(out), err
}

// keysAtOnce is the number of pull requests that one statement looks up. With more, each takes longer: the driver
// compares each parameter with all of them.
const keysAtOnce = 8

// PullRecords returns the records of those of the pull requests, at most 200, that are ours.
func (p *Pulls) PullRecords(ctx context.Context, keys []record.PullKey) (map[record.PullKey]record.PullRecord, error) {
	out := map[record.PullKey]record.PullRecord{}
	err := p.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for some := range slices.Chunk(keys[:min(len(keys), record.MaxAttemptLimit)], keysAtOnce) {
			wanted := make([]record.PullKey, len(some))
			for i, key := range some {
				wanted[i] = p.db.storedKey(key)
			}
			records, err := pullsOf(ctx, tx, wanted)
			if err != nil {
				return err
			}
			for _, r := range p.db.shownPulls(records) {
				out[r.PullKey] = r
			}
		}
		return nil
	})
	return out, err
}

// pullsOf looks up at most keysAtOnce pull requests.
func pullsOf(ctx context.Context, tx *sql.Tx, keys []record.PullKey) ([]record.PullRecord, error) {
	wanted := slices.Clone(keys)
	for len(wanted)&(len(wanted)-1) != 0 { // a power of two, so that there are few statements to compile
		wanted = append(wanted, keys[0])
	}
	tuples, args := make([]string, len(wanted)), make([]any, 0, 4*len(wanted))
	for i, key := range wanted {
		tuples[i] = fmt.Sprintf("(CAST($%d AS TEXT), CAST($%d AS TEXT), CAST($%d AS TEXT), CAST($%d AS BIGINT))", 4*i+1,
			4*i+2, 4*i+3, 4*i+4)
		args = append(args, textColumn(key.Provider), textColumn(key.Owner), textColumn(key.Repo), key.Number)
	}
	// CROSS JOIN has SQLite look each of them up, rather than compare each pull request of the table with all of them.
	return scanPulls(ctx, tx, "WITH wanted (provider, owner, repo, number) AS (VALUES "+strings.Join(tuples, ", ")+") SELECT "+pullColumns+`
		FROM wanted w CROSS JOIN pulls r LEFT JOIN proposals p ON p.id = r.proposal_id
		WHERE r.provider = w.provider AND r.owner = w.owner AND r.repo = w.repo AND r.number = w.number`, args...)
}

// followEnded is how long after its last change a pull request that is not open is still looked at.
const followEnded = 30 * 24 * time.Hour

// DuePulls returns pull requests of the provider that are to be looked at, least recently tried first: open ones that
// were not tried since the time open, and, for 30 days, closed and gone ones that were not since the time rest. Merged
// ones stay so. Tries in the future, caused by a wrong clock, do not count.
func (p *Pulls) DuePulls(ctx context.Context, provider string, open, rest time.Time,
	limit int) (out []record.PullRecord, err error) {
	now := p.db.now()
	err = p.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		out, err = selectPulls(ctx, tx, `WHERE r.provider = $1 AND (
				r.state = 'open' AND (r.tried_us <= $2 OR r.tried_us > $3)
				OR r.state IN ('closed', 'gone') AND r.updated_us > $4 AND (r.tried_us <= $5 OR r.tried_us > $3))
			ORDER BY r.tried_us, r.owner, r.repo, r.number LIMIT $6`,
			textColumn(p.db.stored(provider)), micros(open), micros(now), micros(now.Add(-followEnded)), micros(rest), limit)
		return err
	})
	return p.db.shownPulls(out), err
}

// RecentPulls returns pull requests of ours that are open, and those that have ended since the time, at most limit:
// open ones first, each sorted by the last change, newest first.
func (p *Pulls) RecentPulls(ctx context.Context, since time.Time, limit int) (out []record.PullRecord, err error) {
	err = p.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		out, err = selectPulls(ctx, tx, `WHERE (r.state = 'open' OR r.updated_us > $1) AND `+oursAt("r.provider", "$3")+`
			ORDER BY CASE WHEN r.state = 'open' THEN 0 ELSE 1 END, r.updated_us DESC, r.owner, r.repo, r.number LIMIT $2`, micros(since), limit, p.db.own())
		return err
	})
	return p.db.shownPulls(out), err
}

// TriedPull notes that the provider was asked in vain.
func (p *Pulls) TriedPull(ctx context.Context, key record.PullKey) error {
	return p.db.exec(ctx,
		`UPDATE pulls SET tried_us = $1 WHERE provider = $2 AND owner = $3 AND repo = $4 AND number = $5`,
		micros(p.db.now()), textColumn(p.db.stored(key.Provider)), textColumn(key.Owner), textColumn(key.Repo), key.Number)
}

// SeePull replaces the record that has seen's version by seen, and with it appends the attempt, if any, to the audit
// and the notices to the outbox. ok is false, and nothing is recorded, if the record has changed since that version:
// what was seen may be older than what is recorded.
func (p *Pulls) SeePull(
	ctx context.Context, seen record.PullRecord, a *record.Attempt, notices ...record.Notice,
) (ok bool, err error) {
	seen.PullKey = p.db.storedKey(seen.PullKey)
	err = p.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if ok, err = updatePull(ctx, tx, seen); err != nil || !ok || a == nil {
			return err
		}
		if err := insertNotices(ctx, tx, notices, p.db.now()); err != nil {
			return err
		}
		_, err := p.db.appendAudit(ctx, tx, *a)
		return err
	})
	return ok && err == nil, err
}

// updatePull replaces the record of seen's version.
func updatePull(ctx context.Context, tx *sql.Tx, seen record.PullRecord) (bool, error) {
	return changesOne(tx.ExecContext(ctx, `UPDATE pulls SET state = $1, head = $2, approvals = $3, objections = $4, checks = $5,
			updated_us = $6, tried_us = $7, seen_us = $8, seen_by = $9, ended_us = $10, ended_by = $11, misses = $12, asked_us = $13,
			reviewed_us = $14, acted_us = $15, reminded_us = $16, labels_digest = $17,
			closing_us = $18, expired_us = $19, version = version + 1
		WHERE provider = $20 AND owner = $21 AND repo = $22 AND number = $23 AND version = $24`,
		textColumn(seen.State), textColumn(bound(seen.Head, maxName)), seen.Approvals, seen.ChangesRequested,
		textColumn(bound(string(seen.Checks), maxWord)),
		micros(seen.UpdatedAt), triedMicros(seen.TriedAt), timeColumn(&seen.SeenAt), textColumn(seen.SeenBy),
		timeColumn(&seen.EndedAt),
		textColumn(bound(seen.EndedBy, maxWord)), seen.Misses, timeColumn(&seen.AskedAt),
		timeColumn(&seen.ReviewedAt), timeColumn(&seen.ActedAt), timeColumn(&seen.RemindedAt),
		textColumn(seen.LabelsDigest), timeColumn(&seen.ClosingAt), timeColumn(&seen.ExpiredAt),
		textColumn(seen.Provider), textColumn(seen.Owner), textColumn(seen.Repo), seen.Number, seen.Version))
}

func triedMicros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return micros(t)
}

// endPull notes the end. news is false if the record has it.
func endPull(ctx context.Context, tx *sql.Tx, record, end record.PullRecord) (news bool, err error) {
	if news = record.State != end.State; news {
		record.State, record.EndedAt, record.UpdatedAt = end.State, end.EndedAt, end.EndedAt
	}
	record.SeenAt, record.SeenBy, record.EndedBy = end.EndedAt, end.SeenBy, end.EndedBy
	_, err = updatePull(ctx, tx, record)
	return news, err
}

func selectPulls(ctx context.Context, tx *sql.Tx, clauses string, args ...any) ([]record.PullRecord, error) {
	return scanPulls(ctx, tx, "SELECT "+pullColumns+fromPulls+clauses, args...)
}

func scanPulls(ctx context.Context, tx *sql.Tx, query string, args ...any) ([]record.PullRecord, error) {
	return selectRows(ctx, tx, func(rows *sql.Rows, r *record.PullRecord) error {
		return rows.Scan((*textColumn)(&r.Provider), (*textColumn)(&r.Owner), (*textColumn)(&r.Repo), &r.Number,
			(*textColumn)(&r.ProposalID),
			(*textColumn)(&r.State),
			(*textColumn)(&r.Head), &r.Approvals, &r.ChangesRequested, (*textColumn)(&r.Checks), timeColumn(&r.UpdatedAt),
			timeColumn(&r.AskedAt),
			timeColumn(&r.ReviewedAt), timeColumn(&r.RevisedAt), timeColumn(&r.TriedAt), timeColumn(&r.SeenAt),
			(*textColumn)(&r.SeenBy), timeColumn(&r.EndedAt), (*textColumn)(&r.EndedBy), &r.Misses, &r.Version,
			timeColumn(&r.ActedAt), timeColumn(&r.RemindedAt), (*textColumn)(&r.LabelsDigest),
			timeColumn(&r.ClosingAt), timeColumn(&r.ExpiredAt),
			(*textColumn)(&r.Base), (*textColumn)(&r.Branch), (*textColumn)(&r.Title), (*textColumn)(&r.URL),
			timeColumn(&r.OpenedAt), (*factTags)(&r.Tags))
	}, query, args...)
}

// Merged returns the pull requests of a repository that are recorded as merged, the newest first.
func (p *Pulls) Merged(ctx context.Context, repo record.RepoName, limit int) (keys []record.PullKey, err error) {
	err = p.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		records, err := selectPulls(ctx, tx, `WHERE r.provider = $1 AND r.owner = $2 AND r.repo = $3 AND r.state = 'merged'
			ORDER BY r.number DESC LIMIT $4`, textColumn(p.db.stored(repo.Provider)), textColumn(repo.Owner), textColumn(repo.Name), limit)
		for _, r := range p.db.shownPulls(records) {
			keys = append(keys, r.PullKey)
		}
		return err
	})
	return keys, err
}

// PullPaths remembers, for one provider, which files its pull requests change, so that a forge is asked once for each
// head commit and not by each process anew. It is a convenience: what cannot be read or written is simply not
// remembered.
type PullPaths struct {
	db       *database
	provider string
}

// PathsAt returns what the pull request changed when its head was the given commit, if that is its latest known head.
func (m *PullPaths) PathsAt(ctx context.Context, repo gitprovider.RepoRef, number int, head string) (paths []string,
	ok bool) {
	var encoded string
	found, err := m.db.first(ctx, []any{(*textColumn)(&encoded)}, `SELECT paths FROM pull_paths
		WHERE provider = $1 AND repo = $2 AND number = $3 AND head = $4`, textColumn(m.provider), repoOf(repo), number, textColumn(head))
	if err != nil || !found || json.Unmarshal([]byte(encoded), &paths) != nil {
		return nil, false
	}
	return paths, true
}

// RememberPaths keeps what the pull request changes at the head commit, in place of what was known before.
func (m *PullPaths) RememberPaths(ctx context.Context, repo gitprovider.RepoRef, number int, head string,
	paths []string) {
	m.RememberManyPaths(ctx, repo, map[int]string{number: head}, map[int][]string{number: paths})
}

// maxNumbers bounds how many pull requests one statement is about.
const maxNumbers = 500

// ManyPathsAt returns what those of the pull requests changed, by number, whose latest known head is the given one.
func (m *PullPaths) ManyPathsAt(ctx context.Context, repo gitprovider.RepoRef, heads map[int]string) map[int][]string {
	out := map[int][]string{}
	err := m.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for numbers := range slices.Chunk(slices.Sorted(maps.Keys(heads)), maxNumbers) {
			if err := m.readMany(ctx, tx, repo, numbers, heads, out); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return out
}

func (m *PullPaths) readMany(ctx context.Context, tx *sql.Tx, repo gitprovider.RepoRef, numbers []int,
	heads map[int]string,
	out map[int][]string) error {
	args := []any{textColumn(m.provider), repoOf(repo)}
	for _, number := range numbers {
		args = append(args, number)
	}
	return queryRows(ctx, tx, func(rows *sql.Rows) error {
		var number int
		var head, encoded string
		if err := rows.Scan(&number, (*textColumn)(&head), (*textColumn)(&encoded)); err != nil {
			return err
		}
		var paths []string
		if head == heads[number] && json.Unmarshal([]byte(encoded), &paths) == nil {
			out[number] = paths
		}
		return nil
	}, "SELECT number, head, paths FROM pull_paths WHERE provider = $1 AND repo = $2 AND number IN ("+
		placeholders(3, len(args))+")", args...)
}

// RememberManyPaths keeps what pull requests change at their heads, in place of what was known before: all of it or
// nothing.
func (m *PullPaths) RememberManyPaths(ctx context.Context, repo gitprovider.RepoRef, heads map[int]string,
	paths map[int][]string) {
	_ = m.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		// in one order, so that writers do not wait for one another in a circle
		for _, number := range slices.Sorted(maps.Keys(paths)) {
			if err := m.upsertPaths(ctx, tx, repo, number, heads[number], paths[number], micros(m.db.now())); err != nil {
				return err
			}
		}
		return nil
	})
}

func (m *PullPaths) upsertPaths(ctx context.Context, tx *sql.Tx, repo gitprovider.RepoRef, number int, head string,
	paths []string,
	seen int64) error {
	encoded, err := json.Marshal(append([]string{}, paths...))
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO pull_paths (provider, repo, number, head, paths, seen_us)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (provider, repo, number) DO UPDATE SET head = excluded.head, paths = excluded.paths, seen_us = excluded.seen_us`,
		textColumn(m.provider), repoOf(repo), number, textColumn(head), textColumn(encoded), seen)
	return err
}

func repoOf(repo gitprovider.RepoRef) textColumn { return textColumn(strings.ToLower(repo.String())) }

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

// publicProvider returns a provider of the database as others know it.
func (d *database) publicProvider(provider string) string {
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
func (d *database) own() textColumn { return textColumn(d.stored(localProvider)) }

// storedKey returns a key as the database has it, and shownKey takes that back.
func (d *database) storedKey(key record.PullKey) record.PullKey {
	key.Provider = d.stored(key.Provider)
	return key
}

func (d *database) shownKey(key record.PullKey) record.PullKey {
	key.Provider = d.publicProvider(key.Provider)
	return key
}

// shownPulls converts records to the form that callers know.
func (d *database) shownPulls(found []record.PullRecord) []record.PullRecord {
	for i := range found {
		found[i].PullKey = d.shownKey(found[i].PullKey)
	}
	return found
}
