package dashboard

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/review"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/words"
)

const (
	mergeVerb   = "merge"
	maxRendered = 64 << 10 // bytes of a file that is shown rendered
	maxMark     = 40
)

// showDifference shows a part of the difference, with the comments on its lines, and notes that it was shown.
func (h *pullPages) showDifference(ctx context.Context, req *handler.Request, view *pullPage, detail review.Detail,
	q pullParams) error {
	t := view.Target
	key := seenKey{handler.Key(req.Principal.Actor), t, detail.HeadCommit}
	switch {
	case detail.DiffTooLarge:
		view.DiffNote = "The difference has more than 16 MiB and is not shown; use git."
		return nil
	case detail.Diff == "":
		view.DiffNote = "There is no difference to show."
		h.seen.note(key, 1, 1)
		return nil
	}
	diff := pages.ParseDiff(h.env.Redact(detail.Diff), q.View == "split", q.Part)
	diff.Here = h.base + t.Path()
	if markdown := slices.DeleteFunc(diff.Paths(),
		func(path string) bool { return !pages.IsMarkdown(path) }); len(markdown) > 0 {
		repo := gitprovider.RepoRef{Owner: t.owner, Name: t.name}
		texts, err := h.reviewer.Texts(ctx, t.provider, repo, detail.HeadCommit, markdown, maxRendered)
		if err != nil {
			return err
		}
		for path, text := range texts {
			texts[path] = h.env.Redact(text)
		}
		diff.Render(texts)
	}
	diff.May = req.Principal.Scopes.Has(access.Review)
	mark := q.On
	if !diff.May {
		mark = ""
	}
	diff.Annotate(notesOf(detail), mark, func(key pages.LineKey) *pages.LineForm {
		return &pages.LineForm{
			Action: h.base + t.Path() + "/review", Head: detail.HeadCommit, Path: key.Path, Line: key.Line, Before: key.Before,
			Cancel: diff.To(diff.Part) + "#" + mark, Shown: diff.Shown(mark),
		}
	})
	view.Diff = &diff
	h.seen.note(key, diff.Part, diff.Parts)
	return nil
}

// notesOf returns the comments on lines of the head, by line.
func notesOf(detail review.Detail) map[pages.LineKey][]pages.LineNote {
	notes := map[pages.LineKey][]pages.LineNote{}
	for _, r := range detail.Reviews {
		for _, c := range r.Comments {
			if c.Commit == detail.HeadCommit {
				key := pages.LineKey{Path: c.Path, Line: c.Line, Before: c.Before}
				notes[key] = append(notes[key], pages.LineNote{Author: r.Author, State: words.Review(r.State), Body: c.Body,
					At: r.SubmittedAt})
			}
		}
	}
	return notes
}

// obstacles say why a pull request should not be merged yet: what this person has not seen, who asks for changes, which
// checks fail.
func (h *pullPages) obstacles(req *handler.Request, t target, detail review.Detail) (out []string) {
	missing, parts := h.seen.missing(seenKey{handler.Key(req.Principal.Actor), t, detail.HeadCommit})
	if detail.DiffTooLarge || len(missing) > 0 {
		out = append(out, unseenText(missing, parts, detail.DiffTooLarge))
	}
	if _, objections := gitprovider.Opinions(detail.Reviews); objections == 1 {
		out = append(out, "One reviewer asks for changes.")
	} else if objections > 1 {
		out = append(out, fmt.Sprintf("%d reviewers ask for changes.", objections))
	}
	switch detail.Checks.State {
	case gitprovider.ChecksFailure:
		out = append(out, "Checks fail.")
	case gitprovider.ChecksPending:
		out = append(out, "Checks have not ended.")
	}
	if detail.Mergeable != nil && !*detail.Mergeable {
		out = append(out, "It conflicts with its base, so merging will be refused.")
	}
	return out
}

func unseenText(missing []int, parts int, tooLarge bool) string {
	switch {
	case tooLarge:
		return "The difference is too large to be shown here."
	case parts == 0:
		return "You have not been shown the difference of this commit."
	case len(missing) == 1:
		return fmt.Sprintf("You have not been shown part %d of %d of the difference.", missing[0], parts)
	}
	text := ""
	for i, part := range missing[:min(len(missing), pages.MaxItems)] {
		if i > 0 {
			text += ", "
		}
		text += strconv.Itoa(part)
	}
	if len(missing) > pages.MaxItems {
		text += " and more"
	}
	return fmt.Sprintf("You have not been shown the parts %s of %d of the difference.", text, parts)
}

// unseen says what a person who wants to merge was not shown; "" where they were shown all, and where there is nothing
// to merge, which the reviewer says better.
func (h *pullPages) unseen(req *handler.Request, t target, head string) string {
	missing, parts := h.seen.missing(seenKey{handler.Key(req.Principal.Actor), t, head})
	if parts > 0 && len(missing) == 0 {
		return ""
	}
	detail, err := h.reviewer.Show(req.Context(), t.provider, gitprovider.RepoRef{Owner: t.owner, Name: t.name}, t.number)
	if err != nil || detail.State != gitprovider.StateOpen || head != "" && head != detail.HeadCommit {
		return ""
	}
	if missing, parts = h.seen.missing(seenKey{handler.Key(req.Principal.Actor), t, detail.HeadCommit}); parts > 0 &&
		len(missing) == 0 {
		return ""
	}
	return unseenText(missing, parts, detail.DiffTooLarge)
}

// seenKey is the difference of a pull request at a head, as one person sees it.
type seenKey struct {
	who  string
	pull target
	head string
}

// maxSeen bounds how many differences are remembered. When there are more, all are forgotten, and people look again.
const maxSeen = 10_000

// seenParts remembers which parts of differences people were shown, until the server ends. It is safe for concurrent
// use.
type seenParts struct {
	mu    sync.Mutex
	shown map[seenKey][]bool
}

// note remembers that a part, from 1, was shown.
func (s *seenParts) note(key seenKey, part, parts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown == nil || len(s.shown) >= maxSeen {
		s.shown = map[seenKey][]bool{}
	}
	if len(s.shown[key]) != parts {
		s.shown[key] = make([]bool, parts)
	}
	s.shown[key][part-1] = true
}

// missing returns the parts that were not shown, and how many there are; 0 if nothing was.
func (s *seenParts) missing(key seenKey) (missing []int, parts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, shown := range s.shown[key] {
		if !shown {
			missing = append(missing, i+1)
		}
	}
	return missing, len(s.shown[key])
}
