package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// PullRequests says what our pull requests get beside their labels, on hosts that have such things. The zero value is
// the default: nothing.
type PullRequests struct {
	Draft        bool     `json:"draft"`         // they are opened as drafts
	Reviewers    []string `json:"reviewers"`     // who is asked for a review; owner/team is a team
	Assignees    []string `json:"assignees"`     // who is assigned
	CreateLabels bool     `json:"create_labels"` // labels that the repository lacks are made
}

// maxPeople bounds reviewers and assignees: GitHub takes 15 of the former and 10 of the latter.
const maxPeople = 10

type pullSection struct {
	Draft        bool     `yaml:"draft"`
	Reviewers    []string `yaml:"reviewers"`
	Assignees    []string `yaml:"assignees"`
	CreateLabels bool     `yaml:"create_labels"`
}

func (f policyFile) pulls(p *Policy) error {
	p.Targets.AllowForks = f.Forks
	if f.Pulls == nil {
		return nil
	}
	reviewers, err := people("pull_requests.reviewers", f.Pulls.Reviewers, true)
	if err != nil {
		return err
	}
	assignees, err := people("pull_requests.assignees", f.Pulls.Assignees, false)
	p.Pulls = PullRequests{
		Draft: f.Pulls.Draft, Reviewers: reviewers, Assignees: assignees, CreateLabels: f.Pulls.CreateLabels,
	}
	return err
}

func (f policyFile) labels(p *Policy) error {
	if slices.Contains(p.Labels, p.Limits.CooldownLabel) || slices.Contains(f.Labels, p.Limits.CooldownLabel) {
		return fmt.Errorf("cooldown_lift_label: %q is a label of every pull request, so that nothing would ever rest",
			p.Limits.CooldownLabel)
	}
	if f.Labels == nil {
		return nil
	}
	p.Labels = []string{gitprovider.LabelOurs}
	for _, l := range f.Labels {
		l, err := label("labels", l)
		if err != nil {
			return err
		}
		if !slices.Contains(p.Labels, l) {
			p.Labels = append(p.Labels, l)
		}
	}
	return nil
}

func (f policyFile) body(p *Policy) error {
	if f.Body == nil {
		return nil
	}
	for _, s := range f.Body.RequiredSections {
		if strings.TrimSpace(s) == "" {
			return fmt.Errorf("body.required_sections: a heading is empty")
		}
		p.Text.RequiredSections = append(p.Text.RequiredSections, strings.TrimSpace(s))
	}
	return nil
}

func (f policyFile) outgoing(p *Policy) error {
	for _, name := range f.Mentions {
		name = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(name), "@"))
		if name == "" || strings.ContainsAny(name, " \t\n@") {
			return fmt.Errorf("mentions: %q is not a name", name)
		}
		p.Text.Mentions = append(p.Text.Mentions, name)
	}
	p.Text.ClosingKeywords = f.Closing
	p.Server.NotifyRefused = f.Notify != nil && f.Notify.Refused
	p.Server.RequireSink = f.Audit != nil && f.Audit.RequireSink
	return nil
}

// people checks a list of names.
func people(key string, names []string, teams bool) ([]string, error) {
	if len(names) > maxPeople {
		return nil, fmt.Errorf("%s: %d names; at most %d", key, len(names), maxPeople)
	}
	var out []string
	for _, given := range names {
		name := strings.TrimPrefix(strings.TrimSpace(given), "@")
		owner, team, isTeam := strings.Cut(name, "/")
		if owner == "" || isTeam && (!teams || team == "") || strings.ContainsAny(name, " \t\n@,") ||
			strings.Contains(team, "/") {
			return nil, fmt.Errorf("%s: %q is not a name", key, given)
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out, nil
}

// withoutNulls returns the same with lists that are never null.
func (p PullRequests) withoutNulls() PullRequests {
	p.Reviewers, p.Assignees = append([]string{}, p.Reviewers...), append([]string{}, p.Assignees...)
	return p
}

// Duplicates says whose open pull requests keep a proposal off the files that they change.
type Duplicates string

// The rules about duplicates. Under DuplicatesOurs a pull request of somebody else is a warning in the answer.
const (
	DuplicatesOurs Duplicates = "ours" // the default
	DuplicatesAny  Duplicates = "any"
)

func (f policyFile) duplicates(p *Policy) error {
	if f.Duplicates == nil {
		return nil
	}
	p.Duplicates = Duplicates(*f.Duplicates)
	if p.Duplicates != DuplicatesOurs && p.Duplicates != DuplicatesAny {
		return fmt.Errorf("duplicates: %q is neither %q nor %q", *f.Duplicates, DuplicatesOurs, DuplicatesAny)
	}
	return nil
}

// label returns the name of a label, without the spaces around it.
func label(key, name string) (string, error) {
	if name = strings.TrimSpace(name); name == "" || len(name) > 50 || strings.ContainsAny(name, ",\n\r\t") {
		return "", fmt.Errorf("%s: %q must be 1 to 50 bytes without commas", key, name)
	}
	return name, nil
}

// The rules about revisions, as a policy names them.
const (
	reviseReviewed = "reviewed"
	reviseOnce     = "once" // the default
	reviseAlways   = "always"
)

func (r Revisions) when() string {
	switch {
	case r.Always:
		return reviseAlways
	case r.Once:
		return reviseOnce
	}
	return reviseReviewed
}

func (f policyFile) revisions(p *Policy) error {
	if f.Revise != nil {
		if !slices.Contains([]string{reviseReviewed, reviseOnce, reviseAlways}, *f.Revise) {
			return fmt.Errorf("revise: %q is none of %q, %q and %q", *f.Revise, reviseReviewed, reviseOnce, reviseAlways)
		}
		p.Revisions.Always, p.Revisions.Once = *f.Revise == reviseAlways, *f.Revise == reviseOnce
	}
	if f.ReviseChecks != nil {
		p.Revisions.OnChecks = *f.ReviseChecks
	}
	return setLimit("max_revisions", &p.Revisions.Max, f.MaxRevisions, maxRevisions)
}
