package dashboard

import (
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/words"
)

// Groups of what waits for a person, the worst first.
const (
	waitsBroken = "broken"
	waitsMerge  = "merge"
	waitsReview = "review"
	waitsDryRun = "dry"
)

// waitItem is something that waits for a person: what it is, why, and the one thing that moves it.
type waitItem struct {
	Group      string
	Word       words.Word
	Title      string // untrusted
	Why        string // in short
	More       string // the rest of why; untrusted
	Link       string // without the base
	Act        string // what the link is called
	At         time.Time
	Repository string // untrusted
	Number     int    // of a pull request; 0 for none
}

// Key implements pages.Part: it is the whole.
func (w waitItem) Key() any { return w }

// Moment implements pages.Part.
func (w waitItem) Moment() time.Time { return w.At }

// waitGroup is a link to what waits of a kind.
type waitGroup struct {
	Name, Text string
	Count      int
	Shown      bool
}

// waiting is what waits for a person.
type waiting struct {
	items []waitItem
	more  bool // there are more than were read
}

// of is how much waits of a group, of the items that were read.
func (w waiting) of(group string) (n int) {
	for _, i := range w.items {
		if i.Group == group {
			n++
		}
	}
	return n
}

// groups are the links to what waits, with the one that is shown.
func (w waiting) groups(shown string) []waitGroup {
	out := []waitGroup{{"", "All", len(w.items), shown == "" || shown == "all"}}
	for _, g := range []waitGroup{{Name: waitsBroken, Text: "Broken"}, {Name: waitsMerge, Text: "Merge"}, {Name: waitsReview, Text: "Review"}, {Name: waitsDryRun, Text: "Dry runs"}} {
		g.Count, g.Shown = w.of(g.Name), shown == g.Name
		out = append(out, g)
	}
	return out
}

// shown are the rows of a group, and how many there are beside them.
func (w waiting) shown(group string) (rows []waitItem, more int) {
	for _, i := range w.items {
		if group == "" || group == "all" || i.Group == group {
			rows = append(rows, i)
		}
	}
	if group == "" && len(rows) > firstRows {
		return rows[:firstRows], len(rows) - firstRows
	}
	return rows, 0
}

// waits is what waits for a person, the worst first, and of a kind the oldest.
func (h *overview) waits(req *handler.Request) (waiting, error) {
	var w waiting
	needs, err := h.needs(req)
	if err != nil {
		return w, err
	}
	w.items = needs
	open, err := h.records.Pulls.OpenPulls(req.Context(), maxOpenPulls+1)
	if err != nil {
		return w, err
	}
	if w.more = len(open) > maxOpenPulls; w.more {
		open = open[:maxOpenPulls]
	}
	for _, p := range open {
		if item, waits := waitOf(p); waits {
			w.items = append(w.items, item)
		}
	}
	dry, err := h.records.Summary.WaitingDryRuns(req.Context(), h.env.Now().AddDate(0, 0, -dryRunDays))
	slices.Reverse(dry)
	for _, p := range dry {
		item := proposalWait(p, words.Outcome(record.OutcomeDryRun), "Nothing was written.", " Opening it runs all checks again")
		item.Group, item.Act = waitsDryRun, "Open it"
		w.items = append(w.items, item)
	}
	order := []string{waitsBroken, waitsMerge, waitsReview, waitsDryRun}
	slices.SortStableFunc(w.items, func(a, b waitItem) int { return slices.Index(order, a.Group) - slices.Index(order, b.Group) })
	return w, err
}

// waitOf is what a person has to do with an open pull request; false if it is with the agent.
func waitOf(p record.PullRecord) (waitItem, bool) {
	link := pullLinkOf(p.PullKey, "", "")
	if link == nil {
		return waitItem{}, false
	}
	item := waitItem{
		Word: words.Pull(p, false), Title: p.Title, Link: link.Page, At: p.OpenedAt, Repository: p.Owner + "/" + p.Repo, Number: p.Number,
	}
	switch {
	case p.Checks == gitprovider.ChecksFailure:
		item.Group, item.Act, item.Why = waitsBroken, "Open", "The forge's checks fail"
	case p.ChangesRequested > 0:
		return item, false
	case p.Approvals > 0 && p.Checks != gitprovider.ChecksPending:
		item.Group, item.Act, item.Why = waitsMerge, "Merge", "Approved"
		if p.Approvals > 1 {
			item.Why += " by " + words.Count(p.Approvals)
		}
		if p.Checks == gitprovider.ChecksSuccess {
			item.More = ", checks passed"
		}
	case p.Approvals > 0:
		item.Group, item.Act, item.Why = waitsReview, "Open", "Approved, checks run"
	default:
		item.Group, item.Act, item.Why = waitsReview, "Review", "Nobody has reviewed it"
	}
	return item, true
}

// proposalWait is a proposal that needs a person.
func proposalWait(p record.Proposal, word words.Word, why, more string) waitItem {
	return waitItem{
		Group: waitsBroken, Word: word, Title: p.Title, Why: why, More: more, Link: proposalPath(p.ID), Act: "Open", At: p.CreatedAt,
		Repository: p.Owner + "/" + p.Repo,
	}
}

// brokenWait is something of the server that needs a person.
func brokenWait(title, why, link string, at time.Time) waitItem {
	return waitItem{
		Group: waitsBroken, Word: words.Word{Text: "Broken", Tone: words.Bad, Icon: "alert-triangle"}, Title: title, More: why, Link: link, Act: "Open", At: at,
	}
}
