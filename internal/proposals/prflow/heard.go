package prflow

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// This file tells which remarks of people are not answered yet. It compares with the remarks that had been read when a
// revision was made, which its mark lists, and not with the clock: a remark that was made while the revision was on its
// way may be older than our answer, a server dates a review by the time at which its author began to write it, and
// times are in seconds.

const (
	// maxHeard bounds the remarks that a mark names, the newest: a body has little room.
	maxHeard = 80
	// heardDigits is the number of hex digits of a remark's digest in a mark.
	heardDigits = 4
)

// heardKey tells a remark from the others of its pull request.
func heardKey(r gitprovider.Remark) string {
	id := r.ID
	if id == "" {
		id = fmt.Sprintf("%s %d %s", r.Author, r.At.Unix(), r.Body)
	}
	sum := sha256.Sum256([]byte(id))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:heardDigits]
}

// heardOf encodes for a mark which remarks had been read: a time in seconds, up to which all had, and the keys of the
// later ones. remarks are in the order of their times.
func heardOf(remarks []gitprovider.Remark) string {
	left := max(0, len(remarks)-maxHeard)
	var upTo int64
	if left > 0 {
		upTo = remarks[left-1].At.Unix()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d:", upTo)
	for _, r := range remarks[left:] {
		b.WriteString(heardKey(r))
	}
	return b.String()
}

// hadHeard reports whether a mark says that a remark had been read.
func (m mark) hadHeard(r gitprovider.Remark) bool {
	seconds, keys, _ := strings.Cut(m.Heard, ":")
	upTo, err := strconv.ParseInt(seconds, 10, 64)
	if err == nil && upTo > 0 && r.At.Unix() <= upTo {
		return true
	}
	for at := 0; at+heardDigits <= len(keys); at += heardDigits {
		if keys[at:at+heardDigits] == heardKey(r) {
			return true
		}
	}
	return false
}

// lastRevision describes the last revision of a pull request, as far as it is known.
type lastRevision struct {
	mark  mark      // of the revision with the highest number
	count int       // of the revisions in the records
	made  time.Time // the last one, by the records; zero if they have none
}

// lastHeard finds the mark of the last revision: in the pull request's body, or, if that could not be written, in the
// records.
func lastHeard(marks markReader, inBody mark, pr gitprovider.PullRequest, made []record.Proposal) lastRevision {
	out := lastRevision{mark: inBody, count: countRevisions(made)}
	for _, p := range made {
		if p.Revises == 0 {
			continue
		}
		out.made = p.CreatedAt
		if m, isTrue := marks.read(gitprovider.PullRequest{Body: p.Body, Branch: pr.Branch, RepoID: pr.RepoID}); isTrue &&
			m.Revision >= out.mark.Revision && p.Commit != "" {
			out.mark = m
		}
	}
	return out
}

// unanswered returns the remarks that ask for a revision, oldest first: by somebody who may write, no approval, with
// words that are not settled, and not heard when the last revision was made. Where no mark tells, as of revisions of
// older programs, our answer's time does, and what was said in its very second counts as unanswered.
func (l lastRevision) unanswered(pr gitprovider.PullRequest, remarks []gitprovider.Remark) (out []gitprovider.Remark) {
	var since time.Time
	answers := 0
	for _, r := range remarks {
		if isOurAnswer(pr, r) {
			since = r.At
			if answersReview(r) {
				answers++
			}
		}
	}
	if answers < l.count && l.made.After(since) { // an answer did not come to be: then our own clock counts
		since = l.made
	}
	revisions := max(answers, l.count)
	told := l.mark.Heard != "" && l.mark.Revision >= revisions
	for _, r := range remarks {
		heard := revisions > 0 && r.At.Before(since)
		if told {
			heard = l.mark.hadHeard(r)
		}
		if r.MayWrite && !r.IsAnswer() && !heard && asksForMore(r) {
			out = append(out, r)
		}
	}
	return out
}

// asksForMore leaves out approvals, and remarks that say nothing beside conversations on lines that were settled.
func asksForMore(r gitprovider.Remark) bool {
	switch r.State {
	case gitprovider.ReviewApproved, gitprovider.ReviewDismissed:
		return false
	case gitprovider.ReviewChangesRequested:
		return true
	}
	open := func(c gitprovider.LineComment) bool { return !c.Resolved }
	onLinesAlone := len(r.Lines) > 0 && (r.Body == "" || r.State == "")
	return !onLinesAlone || slices.ContainsFunc(r.Lines, open)
}

// answersReview reports whether one of our answers is to a review as a whole, of which a revision has at most one.
func answersReview(r gitprovider.Remark) bool {
	first, _, _ := strings.Cut(r.Body, "\n")
	return strings.TrimSpace(first) != "" && !strings.Contains(first, commentsIn)
}

func countRevisions(made []record.Proposal) (n int) {
	for _, p := range made {
		if p.Revises > 0 {
			n++
		}
	}
	return n
}

// isOurAnswer reports whether a remark is an answer of ours: that of somebody who may not write only looks like one.
func isOurAnswer(pr gitprovider.PullRequest, r gitprovider.Remark) bool {
	author := func(name string) string { return strings.ToLower(strings.TrimSuffix(name, "[bot]")) }
	return r.IsAnswer() && (r.MayWrite || author(r.Author) == author(pr.Author))
}
