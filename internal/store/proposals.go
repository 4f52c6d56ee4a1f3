package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/prflow"
)

const proposalColumns = `id, created_us, door, caller, tier, provider, owner, repo, base, base_commit, change_type,
	title, body, digest, state, branch, commit_id, pr_number, pr_url`

// Proposal returns a recorded proposal with its files; not_found if there is none with the id.
func (s *Store) Proposal(ctx context.Context, id string) (p prflow.Proposal, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		p, err = proposalByID(ctx, tx, id)
		return err
	})
	return p, err
}

func proposalByID(ctx context.Context, tx *sql.Tx, id string) (prflow.Proposal, error) {
	found, err := selectProposals(ctx, tx, "WHERE id = $1", text(id))
	switch {
	case err != nil:
		return prflow.Proposal{}, err
	case len(found) == 0:
		return prflow.Proposal{}, fault.New(fault.NotFound, "there is no proposal %q", id)
	}
	return found[0], nil
}

// selectProposals returns the proposals that the clauses after FROM select, with their files.
func selectProposals(ctx context.Context, tx *sql.Tx, clauses string, args ...any) (out []prflow.Proposal, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT "+proposalColumns+" FROM proposals "+clauses, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var p prflow.Proposal
		if err := rows.Scan((*text)(&p.ID), at(&p.CreatedAt), (*text)(&p.Door), (*text)(&p.Caller), &p.Tier,
			(*text)(&p.Provider), (*text)(&p.Owner), (*text)(&p.Repo), (*text)(&p.Base), (*text)(&p.BaseCommit),
			(*text)(&p.ChangeType), (*text)(&p.Title), (*text)(&p.Body), (*text)(&p.Digest), (*text)(&p.State),
			(*text)(&p.Branch), (*text)(&p.Commit), &p.PRNumber, (*text)(&p.PRURL)); err != nil {
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
func insertProposal(ctx context.Context, tx *sql.Tx, p prflow.Proposal, now time.Time) error {
	if p.CreatedAt.IsZero() {
		p.CreatedAt = now
	}
	query := "INSERT INTO proposals (" + proposalColumns + ") VALUES (" + placeholders(1, 19) + ")"
	_, err := tx.ExecContext(ctx, query, text(p.ID), at(&p.CreatedAt), text(p.Door), text(p.Caller), int(p.Tier),
		text(p.Provider), text(p.Owner), text(p.Repo), text(p.Base), text(p.BaseCommit), text(p.ChangeType), text(p.Title),
		text(p.Body), text(p.Digest), text(p.State), text(p.Branch), text(p.Commit), p.PRNumber, text(p.PRURL))
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
