package store

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Bounds of what these methods return; see prflow.History.
const (
	maxByDigest     = 20
	maxMadeOf       = 100
	maxUnfinished   = 1000
	maxRepositories = 200
	maxWaiting      = 20
)

// History answers questions about the past.
type History struct{ db *database }

// Proposal returns a recorded proposal with its files; not_found if there is none with the id.
func (h *History) Proposal(ctx context.Context, id string) (record.Proposal, error) {
	found, err := h.db.proposals(ctx, "WHERE id = $1 AND "+oursAt("provider", "$2"), textColumn(id), h.db.own())
	switch {
	case err != nil:
		return record.Proposal{}, err
	case len(found) == 0:
		return record.Proposal{}, fault.New(fault.NotFound, "there is no proposal %q", id)
	}
	return found[0], nil
}

// ByDigest implements prflow.History.
func (h *History) ByDigest(ctx context.Context, digest string) ([]record.Proposal, error) {
	return h.db.proposals(ctx, "WHERE digest = $1 AND "+oursAt("provider", "$3")+
		" AND state IN ('opened', 'reserved', 'committed', 'unsettled') "+
		"ORDER BY created_us DESC, id DESC LIMIT $2", textColumn(digest), maxByDigest, h.db.own())
}

// Unfinished implements prflow.History.
func (h *History) Unfinished(ctx context.Context) ([]record.Proposal, error) {
	return h.db.proposals(ctx, "WHERE id IN (SELECT proposal_id FROM reservations) AND "+oursAt("provider", "$2")+
		" ORDER BY created_us, id LIMIT $1",
		maxUnfinished, h.db.own())
}

// Position implements prflow.History: the number of the last row of the audit.
func (h *History) Position(ctx context.Context) (record.Position, error) {
	var seq int64
	err := h.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		seq, _, err = auditHead(ctx, tx)
		return err
	})
	return record.Position(seq), err
}

// PathsOf implements prflow.History.
func (h *History) PathsOf(ctx context.Context, provider, owner, repo string, number int) ([]string, error) {
	return selectOf(ctx, h.db, scanText, `SELECT DISTINCT path FROM proposal_files WHERE proposal_id IN (
			SELECT id FROM proposals WHERE provider = $1 AND owner = $2 AND repo = $3 AND pr_number = $4
				AND state = 'opened')
		ORDER BY path`, textColumn(h.db.stored(provider)), textColumn(owner), textColumn(repo), number)
}

// MadeOf implements prflow.History.
func (h *History) MadeOf(ctx context.Context, provider, owner, repo string, number int) ([]record.Proposal, error) {
	return h.db.proposals(ctx, `WHERE provider = $1 AND owner = $2 AND repo = $3 AND pr_number = $4 AND state = 'opened'
		ORDER BY opened_seq LIMIT $5`, textColumn(h.db.stored(provider)), textColumn(owner), textColumn(repo), number, maxMadeOf)
}

// Undone implements prflow.History.
func (h *History) Undone(ctx context.Context, id string) (bool, error) {
	var when int64
	_, err := h.db.first(ctx, []any{&when}, "SELECT undone_us FROM proposals WHERE id = $1", textColumn(id))
	return when > 0, err
}

// UndoneBranches implements prflow.History.
func (h *History) UndoneBranches(ctx context.Context, provider, owner, repo string, since time.Time) ([]string, error) {
	return selectOf(ctx, h.db, scanText,
		"SELECT DISTINCT branch FROM proposals WHERE provider = $1 AND owner = $2 AND repo = $3 AND undone_us > 0 AND "+
			"undone_us >= $4",
		textColumn(h.db.stored(provider)), textColumn(owner), textColumn(repo), micros(since))
}

// RefusalsByGate counts for each gate the attempts that it refused on the day of since (UTC) or later, the most
// frequent first.
func (h *History) RefusalsByGate(ctx context.Context, since time.Time) ([]record.GateCount, error) {
	return selectOf(ctx, h.db, func(rows *sql.Rows, out *record.GateCount) error {
		return rows.Scan((*textColumn)(&out.Gate), &out.Count)
	}, `SELECT name, SUM(count) FROM day_counts WHERE kind = 'gate' AND day >= $1
		GROUP BY name ORDER BY SUM(count) DESC, name`, dayOf(since))
}

// OutcomesByDay counts the attempts by day and outcome, from the day of since (UTC) on, in order; and the pull requests
// that ended, as record.EndedMerged and record.EndedClosed.
func (h *History) OutcomesByDay(ctx context.Context, since time.Time) ([]record.OutcomeCount, error) {
	return selectOf(ctx, h.db, func(rows *sql.Rows, out *record.OutcomeCount) error {
		var day int64
		err := rows.Scan(&day, (*textColumn)(&out.Outcome), &out.Count)
		out.Day = time.Unix(day*int64(24*time.Hour/time.Second), 0).UTC()
		return err
	}, `SELECT day, name, count FROM day_counts WHERE kind IN ('outcome', 'ended') AND day >= $1 ORDER BY day, name`, dayOf(since))
}

// Proposed reports whether any proposal for a repository of the provider has passed the gates.
func (h *History) Proposed(ctx context.Context, provider string) (bool, error) {
	var one int
	return h.db.first(ctx, []any{&one}, "SELECT 1 FROM proposals WHERE provider = $1 LIMIT 1", textColumn(h.db.stored(provider)))
}

// Repositories lists the repositories for which a proposal has passed the gates, by name, at most 200.
func (h *History) Repositories(ctx context.Context) ([]record.RepoName, error) {
	return selectOf(ctx, h.db, func(rows *sql.Rows, out *record.RepoName) error {
		err := rows.Scan((*textColumn)(&out.Provider), (*textColumn)(&out.Owner), (*textColumn)(&out.Name))
		out.Provider = h.db.publicProvider(out.Provider)
		return err
	}, "SELECT DISTINCT provider, owner, repo FROM proposals WHERE "+oursAt("provider", "$2")+
		" ORDER BY provider, owner, repo LIMIT $1",
		maxRepositories, h.db.own())
}

// WaitingDryRuns returns the dry runs made at or after since whose change no proposal has taken up, newest first, at
// most 20: of each its id, time, repository, title and tags. Of several with the same change it returns each.
func (h *History) WaitingDryRuns(ctx context.Context, since time.Time) ([]record.Proposal, error) {
	return selectOf(ctx, h.db, func(rows *sql.Rows, p *record.Proposal) error {
		p.State = record.StateDryRun
		err := rows.Scan((*textColumn)(&p.ID), timeColumn(&p.CreatedAt), (*textColumn)(&p.Provider), (*textColumn)(&p.Owner),
			(*textColumn)(&p.Repo),
			(*textColumn)(&p.Title), (*factTags)(&p.Tags))
		p.Provider = h.db.publicProvider(p.Provider)
		return err
	}, "SELECT p.id, p.created_us, p.provider, p.owner, p.repo, p.title, "+
		factTagsOf("p.facts")+" FROM dry_runs w JOIN proposals p ON p.id = w.id "+
		"WHERE "+dryRunsWait("w", 1, 2)+" ORDER BY w.created_us DESC, w.id DESC LIMIT $3",
		h.db.own(), micros(since), maxWaiting)
}

// OldestDryRun returns when the oldest of those dry runs was made, at or after since; the zero time for none.
func (h *History) OldestDryRun(ctx context.Context, since time.Time) (at time.Time, err error) {
	_, err = h.db.first(ctx, []any{timeColumn(&at)}, "SELECT w.created_us FROM dry_runs w WHERE "+dryRunsWait("w", 1, 2)+
		" ORDER BY w.created_us, w.id LIMIT 1", h.db.own(), micros(since))
	return at, err
}

const proposalColumns = `id, created_us, door, caller, tier, provider, owner, repo, base, base_commit, change_type,
	title, body, digest, state, branch, commit_id, pr_number, pr_url, process, session, pruned_us, revises, answers, actor, facts,
	policy`

// proposalRow is a proposal as stored: without Abandoned, with the name of its holder's lock.
type proposalRow struct {
	record.Proposal
	lock string // "": not known
}

// proposals returns what selectProposals finds.
func (d *database) proposals(ctx context.Context, clauses string, args ...any) ([]record.Proposal, error) {
	var kept []proposalRow
	err := d.readTx(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		kept, err = selectProposals(ctx, tx, clauses, args...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return d.withAbandoned(ctx, kept)
}

// withAbandoned sets for each proposal that holds a reservation whether its lock has ended. The locks are checked after
// the proposals were read: a process that finished one in between counts as dead, and Finish then returns conflict.
func (d *database) withAbandoned(ctx context.Context, kept []proposalRow) ([]record.Proposal, error) {
	var asked []string
	for _, p := range kept {
		if p.lock != "" && holdsPaths(p.State) && !slices.Contains(asked, p.lock) {
			asked = append(asked, p.lock)
		}
	}
	ended, err := d.endedLocks(ctx, asked)
	if err != nil {
		return nil, err
	}
	out := make([]record.Proposal, len(kept))
	for i, p := range kept {
		out[i] = p.Proposal
		out[i].Provider = d.publicProvider(p.Provider)
		out[i].Abandoned = holdsPaths(p.State) && ended[p.lock]
		if holdsPaths(p.State) {
			out[i].Holder = p.lock
		}
	}
	return out, nil
}

func holdsPaths(state record.ProposalState) bool {
	switch state {
	case record.StateReserved, record.StateCommitted, record.StateUnsettled:
		return true
	}
	return false
}

// selectProposals returns the proposals that the clauses after FROM select, with their files.
func selectProposals(
	ctx context.Context, tx *sql.Tx, clauses string, args ...any,
) (out []proposalRow, err error) {
	out, err = selectRows(ctx, tx, func(rows *sql.Rows, p *proposalRow) error {
		return rows.Scan((*textColumn)(&p.ID), timeColumn(&p.CreatedAt), (*textColumn)(&p.Door), (*textColumn)(&p.Caller),
			&p.Tier,
			(*textColumn)(&p.Provider), (*textColumn)(&p.Owner), (*textColumn)(&p.Repo), (*textColumn)(&p.Base),
			(*textColumn)(&p.BaseCommit),
			(*textColumn)(&p.ChangeType), (*textColumn)(&p.Title), (*textColumn)(&p.Body), (*textColumn)(&p.Digest),
			(*textColumn)(&p.State),
			(*textColumn)(&p.Branch), (*textColumn)(&p.Commit), &p.PRNumber, (*textColumn)(&p.PRURL), (*textColumn)(&p.lock),
			(*textColumn)(&p.Session), timeColumn(&p.PrunedAt), &p.Revises, (*answers)(&p.Answers), (*actor)(&p.Actor),
			(*factsColumn)(&p.Facts), (*textColumn)(&p.Policy))
	}, "SELECT "+proposalColumns+" FROM proposals "+clauses, args...)
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i].Files, err = selectRows(ctx, tx, func(rows *sql.Rows, f *gitprovider.FileChange) error {
			return rows.Scan((*textColumn)(&f.Path), (*textColumn)(&f.Action), &f.Content, (*textColumn)(&f.BaseSHA))
		}, `SELECT path, action, content, base_sha FROM proposal_files WHERE proposal_id = $1 ORDER BY path`, textColumn(out[i].ID))
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// insertProposal records a proposal in p.State with its files. now stands in for a missing time.
func insertProposal(ctx context.Context, tx *sql.Tx, p proposalRow, now time.Time) error {
	if p.CreatedAt.IsZero() {
		p.CreatedAt = now
	}
	if !p.Actor.IsZero() {
		p.Door, p.Caller = p.Actor.Door, p.Actor.String()
	}
	query := "INSERT INTO proposals (" + proposalColumns + ") VALUES (" + placeholders(1, 27) + ")"
	_, err := tx.ExecContext(ctx, query, textColumn(p.ID), timeColumn(&p.CreatedAt), textColumn(p.Door),
		textColumn(p.Caller), int(p.Tier),
		textColumn(p.Provider), textColumn(p.Owner), textColumn(p.Repo), textColumn(p.Base), textColumn(p.BaseCommit),
		textColumn(p.ChangeType), textColumn(p.Title),
		textColumn(p.Body), textColumn(p.Digest), textColumn(p.State), textColumn(p.Branch), textColumn(p.Commit), p.PRNumber,
		textColumn(p.PRURL), textColumn(p.lock),
		textColumn(p.Session), timeColumn(&p.PrunedAt), p.Revises, answers(p.Answers), actor(p.Actor),
		factsColumn(p.Facts), textColumn(p.Policy))
	if causeOf(err) == causeUnique {
		return fault.Wrap(err, fault.Internal, "a proposal with the request id %q is recorded already", p.ID)
	}
	if err != nil {
		return err
	}
	for _, f := range p.Files {
		const insert = `INSERT INTO proposal_files (proposal_id, path, action, content, base_sha, fingerprint) VALUES ($1, $2, $3, $4, $5, $6)`
		_, err := tx.ExecContext(ctx, insert, textColumn(p.ID), textColumn(f.Path), textColumn(f.Action), []byte(f.Content),
			textColumn(f.BaseSHA),
			f.Fingerprint())
		if causeOf(err) == causeUnique {
			return fault.Wrap(err, fault.Internal, "the proposal names the path %q twice", f.Path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
