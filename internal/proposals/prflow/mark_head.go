package prflow

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// markHead returns a head of the audit as a mark has it: the number of the row, a colon, and its hash in unpadded
// base64url. "" for one of an empty audit.
func markHead(seq int64, hash string) string {
	b, err := hex.DecodeString(hash)
	if err != nil || seq < 1 {
		return ""
	}
	return strconv.FormatInt(seq, 10) + ":" + base64.RawURLEncoding.EncodeToString(b)
}

// head returns the head of the audit that a mark has; ok is false for a mark without one.
func (m mark) head() (h record.Head, ok bool) {
	number, encoded, _ := strings.Cut(m.Audit, ":")
	seq, err := strconv.ParseInt(number, 10, 64)
	if err != nil || seq < 1 {
		return record.Head{}, false
	}
	hash, err := base64.RawURLEncoding.DecodeString(encoded)
	return record.Head{Seq: seq, Hash: hex.EncodeToString(hash)}, err == nil
}

// readHead reads the head that the mark of the draft is to have.
func (p Proof) readHead(ctx context.Context, d *draft) error {
	if p.Head == nil {
		return nil
	}
	seq, hash, err := p.Head(ctx)
	d.head = markHead(seq, hash)
	return err
}

// MarkedHeads are the heads of the audit in the marks of a repository's pull requests.
type MarkedHeads struct {
	Heads  []record.Head
	Marks  int // that are ours
	Others int // pull requests that look like ours and have no mark that our key has signed
}

// HeadsAt reads the marks of the pull requests of a repository at a provider that are open, and of those that were
// closed without a merge since a time: one snapshot. Marks that our key did not sign do not count.
func (r Reader) HeadsAt(ctx context.Context, provider, owner, name string, since time.Time) (out MarkedHeads,
	err error) {
	resolution, err := r.at(provider, owner, name)
	if err != nil {
		return out, r.failed(err)
	}
	marks, err := r.marks(resolution.Provider.Name(), resolution.Repo)
	if err != nil {
		return out, r.failed(err)
	}
	snapshot, err := resolution.Provider.Snapshot(ctx, gitprovider.SnapshotQuery{Repo: resolution.Repo,
		ClosedSince: since})
	if err != nil {
		return out, r.failed(err)
	}
	for _, pulls := range [][]gitprovider.PullRequest{snapshot.Open, snapshot.Closed} {
		for _, pr := range pulls {
			m, ours := marks.read(pr)
			if !ours {
				out.Others++
				continue
			}
			out.Marks++
			if h, ok := m.head(); ok {
				out.Heads = append(out.Heads, h)
			}
		}
	}
	return out, nil
}

// HeadOf reads the mark of one pull request; ok is false if it has no head, or is not ours.
func (r Reader) HeadOf(ctx context.Context, provider, owner, name string, number int) (h record.Head, ok bool,
	err error) {
	resolution, err := r.at(provider, owner, name)
	if err != nil {
		return h, false, r.failed(err)
	}
	marks, err := r.marks(resolution.Provider.Name(), resolution.Repo)
	if err != nil {
		return h, false, r.failed(err)
	}
	status, err := resolution.Provider.Status(ctx, resolution.Repo, number)
	if err != nil {
		return h, false, r.failed(err)
	}
	m, ours := marks.read(status.PullRequest)
	if !ours {
		return h, false, nil
	}
	h, ok = m.head()
	return h, ok, nil
}
