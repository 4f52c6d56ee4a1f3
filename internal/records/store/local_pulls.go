package store

import (
	"context"
	"database/sql"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

const localPullColumns = `number, title, body, url, branch, head_commit, base, state, labels, paths, created_us, closed_us`

// LocalPulls implements local.Records: what a forge would keep beside a git repository.
type LocalPulls struct{ db *database }

// InsertPR records a new open pull request under the repository's next number, starting at 1. If an open one with the
// same head branch and base exists, that one is returned and nothing is recorded.
func (l *LocalPulls) InsertPR(
	ctx context.Context, repo string, pr gitprovider.PullRequest,
) (recorded gitprovider.PullRequest, err error) {
	repo = l.db.localKey(repo)
	err = l.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		same, err := selectLocalPulls(ctx, tx, "WHERE repo = $1 AND branch = $2 AND base = $3 AND state = 'open'",
			textColumn(repo), textColumn(pr.Branch), textColumn(pr.Base))
		if err != nil {
			return err
		}
		if len(same) > 0 {
			recorded = same[0]
			return nil
		}
		var last int
		const query = `SELECT COALESCE(MAX(number), 0) FROM local_prs WHERE repo = $1`
		err = tx.QueryRowContext(ctx, query, textColumn(repo)).Scan(&last)
		if err != nil {
			return err
		}
		pr.Number, pr.State = last+1, gitprovider.StateOpen
		if pr.CreatedAt.IsZero() {
			pr.CreatedAt = l.db.now()
		}
		_, err = tx.ExecContext(ctx,
			"INSERT INTO local_prs (repo, "+localPullColumns+") VALUES ("+placeholders(1, 13)+")", localPullArgs(repo, &pr)...)
		if err != nil {
			return err
		}
		recorded, err = localPull(ctx, tx, repo, pr.Number)
		return err
	})
	return recorded, err
}

// PR returns one pull request and its reviews, oldest first; not_found for an unknown number.
func (l *LocalPulls) PR(
	ctx context.Context, repo string, number int,
) (pr gitprovider.PullRequest, reviews []gitprovider.Review, err error) {
	repo = l.db.localKey(repo)
	err = l.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if pr, err = localPull(ctx, tx, repo, number); err != nil {
			return err
		}
		reviews, err = selectReviews(ctx, tx, repo, number)
		return err
	})
	return pr, reviews, err
}

// PRs returns every pull request of the repository in the given state ("" for all), oldest first.
func (l *LocalPulls) PRs(
	ctx context.Context, repo string, state gitprovider.State,
) (prs []gitprovider.PullRequest, err error) {
	repo = l.db.localKey(repo)
	err = l.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		prs, err = selectLocalPulls(ctx, tx, "WHERE repo = $1 AND (state = $2 OR $2 = '') ORDER BY number",
			textColumn(repo), textColumn(state))
		return err
	})
	return prs, err
}

// UpdatePR hands the recorded pull request to change within one transaction and records what it left there, but never
// another number. If change fails, nothing is recorded and its error is returned as it is. A second open pull request
// for one head and base is fault.Conflict. change must not call the store: other writers wait until it returns.
func (l *LocalPulls) UpdatePR(
	ctx context.Context, repo string, number int, change func(*gitprovider.PullRequest) error,
) error {
	repo = l.db.localKey(repo)
	var refused error
	err := l.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		pr, err := localPull(ctx, tx, repo, number)
		if err != nil {
			return err
		}
		if refused = change(&pr); refused != nil {
			return refused
		}
		pr.Number = number
		_, err = tx.ExecContext(ctx, `UPDATE local_prs SET title = $3, body = $4, url = $5, branch = $6,
				head_commit = $7, base = $8, state = $9, labels = $10, paths = $11, created_us = $12, closed_us = $13
			WHERE repo = $1 AND number = $2`, localPullArgs(repo, &pr)...)
		if causeOf(err) == causeUnique {
			return fault.Wrap(err, fault.Conflict, "another open pull request merges %s into %s", pr.Branch, pr.Base)
		}
		return err
	})
	if refused != nil {
		return refused
	}
	return err
}

// AddReview appends a review to a pull request; not_found for an unknown number.
func (l *LocalPulls) AddReview(ctx context.Context, repo string, number int, review gitprovider.Review) error {
	repo = l.db.localKey(repo)
	return l.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := localPull(ctx, tx, repo, number); err != nil {
			return err
		}
		position := 0
		const next = `SELECT COALESCE(MAX(position), 0) + 1 FROM local_reviews WHERE repo = $1 AND number = $2`
		if err := tx.QueryRowContext(ctx, next, textColumn(repo), number).Scan(&position); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO local_reviews (repo, number, position, author, state, body, submitted_us, issuer, subject)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			textColumn(repo), number, position, textColumn(review.Author), textColumn(review.State), textColumn(review.Body),
			timeColumn(&review.SubmittedAt),
			textColumn(review.Account.Issuer), textColumn(review.Account.Subject))
		if err != nil {
			return err
		}
		for i, c := range review.Comments {
			_, err := tx.ExecContext(ctx, `INSERT INTO local_review_comments (repo, number, review, position, path, line, before, commit_id, body)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
				textColumn(repo), number, position, i+1, textColumn(c.Path), c.Line, number01(c.Before), textColumn(c.Commit),
				textColumn(c.Body))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// number01 returns a truth as a column of numbers has it.
func number01(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// plainRepo returns a repository without the identity of its root.
func plainRepo(key string) string {
	if _, repo, has := strings.Cut(key, rootMark); has {
		return repo
	}
	return key
}

func localPullArgs(repo string, pr *gitprovider.PullRequest) []any {
	return []any{textColumn(repo), pr.Number, textColumn(pr.Title), textColumn(pr.Body), textColumn(pr.URL),
		textColumn(pr.Branch), textColumn(pr.HeadCommit),
		textColumn(pr.Base), textColumn(pr.State), textList(pr.Labels), textList(pr.Paths), timeColumn(&pr.CreatedAt),
		timeColumn(&pr.ClosedAt)}
}

func localPull(ctx context.Context, tx *sql.Tx, repo string, number int) (gitprovider.PullRequest, error) {
	found, err := selectLocalPulls(ctx, tx, "WHERE repo = $1 AND number = $2", textColumn(repo), number)
	switch {
	case err != nil:
		return gitprovider.PullRequest{}, err
	case len(found) == 0:
		return gitprovider.PullRequest{}, fault.New(fault.NotFound, "there is no pull request %d in %s", number,
			plainRepo(repo))
	}
	return found[0], nil
}

func selectLocalPulls(ctx context.Context, tx *sql.Tx, clauses string, args ...any) ([]gitprovider.PullRequest, error) {
	return selectRows(ctx, tx, func(rows *sql.Rows, pr *gitprovider.PullRequest) error {
		return rows.Scan(&pr.Number, (*textColumn)(&pr.Title), (*textColumn)(&pr.Body), (*textColumn)(&pr.URL),
			(*textColumn)(&pr.Branch),
			(*textColumn)(&pr.HeadCommit), (*textColumn)(&pr.Base), (*textColumn)(&pr.State), (*textList)(&pr.Labels),
			(*textList)(&pr.Paths),
			timeColumn(&pr.CreatedAt), timeColumn(&pr.ClosedAt))
	}, "SELECT "+localPullColumns+" FROM local_prs "+clauses, args...)
}

func selectReviews(ctx context.Context, tx *sql.Tx, repo string, number int) ([]gitprovider.Review, error) {
	indexes := map[int]int{} // by position
	reviews, err := selectRows(ctx, tx, func(rows *sql.Rows, r *gitprovider.Review) error {
		position := 0
		err := rows.Scan(&position, (*textColumn)(&r.Author), (*textColumn)(&r.State), (*textColumn)(&r.Body),
			timeColumn(&r.SubmittedAt),
			(*textColumn)(&r.Account.Issuer), (*textColumn)(&r.Account.Subject))
		indexes[position] = len(indexes)
		return err
	}, `SELECT position, author, state, body, submitted_us, issuer, subject FROM local_reviews
		WHERE repo = $1 AND number = $2 ORDER BY position`, textColumn(repo), number)
	if err != nil || len(reviews) == 0 {
		return reviews, err
	}
	type row struct {
		gitprovider.LineComment
		review int
	}
	comments, err := selectRows(ctx, tx, func(rows *sql.Rows, c *row) error {
		before := 0
		err := rows.Scan(&c.review, (*textColumn)(&c.Path), &c.Line, &before, (*textColumn)(&c.Commit),
			(*textColumn)(&c.Body))
		c.Before = before != 0
		return err
	}, `SELECT review, path, line, before, commit_id, body FROM local_review_comments
		WHERE repo = $1 AND number = $2 ORDER BY review, position`, textColumn(repo), number)
	for _, c := range comments {
		r := &reviews[indexes[c.review]]
		r.Comments = append(r.Comments, c.LineComment)
	}
	return reviews, err
}
