package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/record"
)

const proposalColumns = `id, created_us, door, caller, tier, provider, owner, repo, base, base_commit, change_type,
	title, body, digest, state, branch, commit_id, pr_number, pr_url, process, session, pruned_us`

// keptProposal is a proposal as the database has it: without Abandoned, with the name of the process that made it.
type keptProposal struct {
	record.Proposal
	process string // "": not known
}

// Proposal returns a recorded proposal with its files; not_found if there is none with the id.
func (s *Store) Proposal(ctx context.Context, id string) (record.Proposal, error) {
	found, err := s.proposals(ctx, "WHERE id = $1", text(id))
	switch {
	case err != nil:
		return record.Proposal{}, err
	case len(found) == 0:
		return record.Proposal{}, fault.New(fault.NotFound, "there is no proposal %q", id)
	}
	return found[0], nil
}

// proposals hands out what selectProposals finds.
func (s *Store) proposals(ctx context.Context, clauses string, args ...any) ([]record.Proposal, error) {
	var kept []keptProposal
	err := s.read(ctx, func(tx *sql.Tx) (err error) {
		kept, err = selectProposals(ctx, tx, clauses, args...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.handOut(ctx, kept)
}

// handOut says of each proposal that holds a reservation whether its process has ended. That is asked after the
// proposals were read: a process that finished one in between is taken for dead, and Finish then gives conflict.
func (s *Store) handOut(ctx context.Context, kept []keptProposal) ([]record.Proposal, error) {
	var asked []string
	for _, p := range kept {
		if p.process != "" && holdsPaths(p.State) && !slices.Contains(asked, p.process) {
			asked = append(asked, p.process)
		}
	}
	ended := map[string]bool{}
	if len(asked) > 0 {
		var err error
		if ended, err = s.gone(ctx, asked); err != nil {
			return nil, s.fail(ctx, err)
		}
	}
	out := make([]record.Proposal, len(kept))
	for i, p := range kept {
		out[i] = p.Proposal
		out[i].Abandoned = holdsPaths(p.State) && ended[p.process]
		if holdsPaths(p.State) {
			out[i].Holder = p.process
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
) (out []keptProposal, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT "+proposalColumns+" FROM proposals "+clauses, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var p keptProposal
		if err := rows.Scan((*text)(&p.ID), at(&p.CreatedAt), (*text)(&p.Door), (*text)(&p.Caller), &p.Tier,
			(*text)(&p.Provider), (*text)(&p.Owner), (*text)(&p.Repo), (*text)(&p.Base), (*text)(&p.BaseCommit),
			(*text)(&p.ChangeType), (*text)(&p.Title), (*text)(&p.Body), (*text)(&p.Digest), (*text)(&p.State),
			(*text)(&p.Branch), (*text)(&p.Commit), &p.PRNumber, (*text)(&p.PRURL), (*text)(&p.process),
			(*text)(&p.Session), at(&p.PrunedAt)); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for i := range out {
		if out[i].Files, err = selectFiles(ctx, tx, out[i].ID); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func selectFiles(ctx context.Context, tx *sql.Tx, id string) (out []gitprovider.FileChange, err error) {
	const query = `SELECT path, action, content FROM proposal_files WHERE proposal_id = $1 ORDER BY path`
	rows, err := tx.QueryContext(ctx, query, text(id))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var f gitprovider.FileChange
		if err := rows.Scan((*text)(&f.Path), (*text)(&f.Action), &f.Content); err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, rows.Err()
}

// insertProposal records a proposal in p.State with its files. now stands in for a missing time.
func insertProposal(ctx context.Context, tx *sql.Tx, p keptProposal, now time.Time) error {
	if p.CreatedAt.IsZero() {
		p.CreatedAt = now
	}
	query := "INSERT INTO proposals (" + proposalColumns + ") VALUES (" + placeholders(1, 22) + ")"
	_, err := tx.ExecContext(ctx, query, text(p.ID), at(&p.CreatedAt), text(p.Door), text(p.Caller), int(p.Tier),
		text(p.Provider), text(p.Owner), text(p.Repo), text(p.Base), text(p.BaseCommit), text(p.ChangeType), text(p.Title),
		text(p.Body), text(p.Digest), text(p.State), text(p.Branch), text(p.Commit), p.PRNumber, text(p.PRURL), text(p.process),
		text(p.Session), at(&p.PrunedAt))
	if causeOf(err) == causeUnique {
		return fault.Wrap(err, fault.Internal, "a proposal with the request id %q is recorded already", p.ID)
	}
	if err != nil {
		return err
	}
	for _, f := range p.Files {
		const insert = `INSERT INTO proposal_files (proposal_id, path, action, content) VALUES ($1, $2, $3, $4)`
		_, err := tx.ExecContext(ctx, insert, text(p.ID), text(f.Path), text(f.Action), []byte(f.Content))
		if causeOf(err) == causeUnique {
			return fault.Wrap(err, fault.Internal, "the proposal names the path %q twice", f.Path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// placeholders is "$from, ..., $to".
func placeholders(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		if i > from {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "$%d", i)
	}
	return b.String()
}
