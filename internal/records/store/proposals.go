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

const proposalColumns = `id, created_us, door, caller, tier, provider, owner, repo, base, base_commit, change_type,
	title, body, digest, state, branch, commit_id, pr_number, pr_url, process, session, pruned_us, revises, answers, actor`

// proposalRow is a proposal as stored: without Abandoned, with the name of its holder's lock.
type proposalRow struct {
	record.Proposal
	lock string // "": not known
}

// proposals returns what selectProposals finds.
func (d *database) proposals(ctx context.Context, clauses string, args ...any) ([]record.Proposal, error) {
	var kept []proposalRow
	err := d.read(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
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
		out[i].Provider = d.shown(p.Provider)
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
		return rows.Scan((*text)(&p.ID), at(&p.CreatedAt), (*text)(&p.Door), (*text)(&p.Caller), &p.Tier,
			(*text)(&p.Provider), (*text)(&p.Owner), (*text)(&p.Repo), (*text)(&p.Base), (*text)(&p.BaseCommit),
			(*text)(&p.ChangeType), (*text)(&p.Title), (*text)(&p.Body), (*text)(&p.Digest), (*text)(&p.State),
			(*text)(&p.Branch), (*text)(&p.Commit), &p.PRNumber, (*text)(&p.PRURL), (*text)(&p.lock),
			(*text)(&p.Session), at(&p.PrunedAt), &p.Revises, (*answers)(&p.Answers), (*actor)(&p.Actor))
	}, "SELECT "+proposalColumns+" FROM proposals "+clauses, args...)
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i].Files, err = selectRows(ctx, tx, func(rows *sql.Rows, f *gitprovider.FileChange) error {
			return rows.Scan((*text)(&f.Path), (*text)(&f.Action), &f.Content, (*text)(&f.BaseSHA))
		}, `SELECT path, action, content, base_sha FROM proposal_files WHERE proposal_id = $1 ORDER BY path`, text(out[i].ID))
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
	query := "INSERT INTO proposals (" + proposalColumns + ") VALUES (" + placeholders(1, 25) + ")"
	_, err := tx.ExecContext(ctx, query, text(p.ID), at(&p.CreatedAt), text(p.Door), text(p.Caller), int(p.Tier),
		text(p.Provider), text(p.Owner), text(p.Repo), text(p.Base), text(p.BaseCommit), text(p.ChangeType), text(p.Title),
		text(p.Body), text(p.Digest), text(p.State), text(p.Branch), text(p.Commit), p.PRNumber, text(p.PRURL), text(p.lock),
		text(p.Session), at(&p.PrunedAt), p.Revises, answers(p.Answers), actor(p.Actor))
	if causeOf(err) == causeUnique {
		return fault.Wrap(err, fault.Internal, "a proposal with the request id %q is recorded already", p.ID)
	}
	if err != nil {
		return err
	}
	for _, f := range p.Files {
		const insert = `INSERT INTO proposal_files (proposal_id, path, action, content, base_sha, fingerprint) VALUES ($1, $2, $3, $4, $5, $6)`
		_, err := tx.ExecContext(ctx, insert, text(p.ID), text(f.Path), text(f.Action), []byte(f.Content), text(f.BaseSHA),
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
