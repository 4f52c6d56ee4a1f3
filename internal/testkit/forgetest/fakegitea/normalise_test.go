package fakegitea

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// bijection pairs recorded object ids with the fake's. Commit ids differ, for the host's commits are not git's; and so
// do the ids of what has stand-ins. Everything else must be the very same.
type bijection struct {
	ours, theirs map[string]string
	standIns     map[string]bool
}

// patterns are the kinds of text in which the two servers may differ.
type patterns struct{ objectID, moment, face, comment, workspace, mailbox *regexp.Regexp }

func newPatterns() patterns {
	return patterns{
		objectID:  regexp.MustCompile(`\b[0-9a-f]{40}\b`),
		moment:    regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`),
		face:      regexp.MustCompile(`/avatars/[0-9a-f]{32}$`),
		comment:   regexp.MustCompile(`#issuecomment-\d+$`),
		workspace: regexp.MustCompile(`upload\.git\d+`),
		mailbox:   regexp.MustCompile(`^(joe|reviewer)@example\.test$`),
	}
}

// toOurs replaces recorded ids in a request.
func (r *replay) toOurs(text string) string {
	return r.like.objectID.ReplaceAllStringFunc(text, func(id string) string {
		if ours, known := r.ids.ours[id]; known {
			return ours
		}
		return id
	})
}

// pair notes that two ids are the same object, or says why they cannot be.
func (b *bijection) pair(recorded, ours string, isBlob func(string) bool) string {
	if known, seen := b.ours[recorded]; seen && known != ours {
		return fmt.Sprintf("id %s is %s here and was %s before", recorded, ours, known)
	}
	if known, seen := b.theirs[ours]; seen && known != recorded {
		return fmt.Sprintf("id %s stands for %s and for %s", ours, recorded, known)
	}
	if recorded != ours && isBlob(ours) && !b.standIns[recorded] {
		return fmt.Sprintf("blob %s, recorded was %s", ours, recorded)
	}
	b.ours[recorded], b.theirs[ours] = ours, recorded
	return ""
}

// compare holds an answer against the recorded one and lists what differs.
func (r *replay) compare(recorded, got heard) []string {
	var problems []string
	if recorded.Status != got.Status {
		problems = append(problems, fmt.Sprintf("status %d, recorded was %d", got.Status, recorded.Status))
	}
	for _, name := range []string{"Content-Type", "Link", "X-Total-Count", "Location"} {
		problems = r.text("header "+name, recorded.Headers[name], got.Headers[name], problems)
	}
	return r.value("body", recorded.Body, got.Body, problems)
}

// volatile are members whose value says how large, how busy or which version the recorded server was. Their type and
// their presence are compared all the same.
func volatile(member string) bool {
	return slices.Contains([]string{"size of repository", "open_pr_counter", "version", "description of repository"},
		member)
}

func (r *replay) value(path string, recorded, got any, problems []string) []string {
	switch want := recorded.(type) {
	case map[string]any:
		have, is := got.(map[string]any)
		if !is {
			return append(problems, fmt.Sprintf("%s: %v is no object", path, got))
		}
		_, isRepo := want["languages_url"]
		for _, name := range slices.Sorted(maps.Keys(want)) {
			member, there := have[name]
			if !there {
				problems = append(problems, path+": "+name+" is missing")
				continue
			}
			qualified := name
			if isRepo && (name == "size" || name == "description") {
				qualified += " of repository"
			}
			if volatile(qualified) && fmt.Sprintf("%T", member) == fmt.Sprintf("%T", want[name]) {
				continue
			}
			problems = r.value(path+"."+name, want[name], member, problems)
		}
		for _, name := range slices.Sorted(maps.Keys(have)) {
			if _, there := want[name]; !there {
				problems = append(problems, path+": "+name+" was not recorded")
			}
		}
		return problems
	case []any:
		have, is := got.([]any)
		if !is || len(have) != len(want) {
			return append(problems, fmt.Sprintf("%s: %v, recorded was a list of %d", path, got, len(want)))
		}
		for i := range want {
			problems = r.value(fmt.Sprintf("%s[%d]", path, i), want[i], have[i], problems)
		}
		return problems
	case string:
		have, is := got.(string)
		if !is {
			return append(problems, fmt.Sprintf("%s: %v, recorded was %q", path, got, want))
		}
		return r.text(path, want, have, problems)
	default:
		if recorded != got {
			problems = append(problems, fmt.Sprintf("%s: %v, recorded was %v", path, got, recorded))
		}
		return problems
	}
}

// text compares strings in which addresses, times and ids may differ.
func (r *replay) text(path, recorded, got string, problems []string) []string {
	got = strings.ReplaceAll(got, r.s.URL(), "https://gitea.example")
	got = strings.ReplaceAll(got, "git@127.0.0.1:", "git@gitea.example:")
	got = r.like.mailbox.ReplaceAllString(got, "user@example.test")
	if r.like.moment.MatchString(recorded) && r.like.moment.MatchString(got) && special(recorded) == special(got) {
		return problems
	}
	for _, counted := range []*regexp.Regexp{r.like.face, r.like.comment, r.like.workspace} {
		recorded, got = counted.ReplaceAllString(recorded, "X"), counted.ReplaceAllString(got, "X")
	}
	theirs, ours := r.like.objectID.FindAllString(recorded, -1), r.like.objectID.FindAllString(got, -1)
	if len(theirs) == len(ours) {
		for i := range theirs {
			if problem := r.ids.pair(theirs[i], ours[i], r.isBlob); problem != "" {
				problems = append(problems, path+": "+problem)
			}
		}
		recorded, got = r.like.objectID.ReplaceAllString(recorded, "ID"), r.like.objectID.ReplaceAllString(got, "ID")
	}
	if recorded != got {
		problems = append(problems, fmt.Sprintf("%s: %q, recorded was %q", path, got, recorded))
	}
	return problems
}

// special are times that mean something else than a moment.
func special(when string) string {
	for _, year := range []string{"0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2001-01-01T00:00:00Z"} {
		if when == year {
			return when
		}
	}
	return ""
}

// isBlob reports whether an id is a file's in one of the fake's repositories.
func (r *replay) isBlob(id string) (is bool) {
	r.s.host.Locked(func() {
		for _, st := range r.s.repos {
			if n := st.objects.byID[id]; n != nil && n.kind == gitprovider.KindFile {
				is = true
			}
		}
	})
	return is
}
