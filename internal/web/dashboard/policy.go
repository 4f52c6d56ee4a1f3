package dashboard

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/views"
)

// policyPage shows the rules and says what they permit.
type policyPage struct {
	*renderer
	tier   gitprovider.Tier
	policy func() (policy.Policy, error)
	// suggest makes a policy for a repository; zero on a server without the operation.
	suggest operation.Operation
}

// askParams are the fields of the form on the page of the policy.
type askParams struct {
	Tier int    `json:"tier,omitempty" minimum:"1"`
	Path string `json:"path,omitempty"`
	Repo string `json:"repo,omitempty"` // that a policy is suggested for
}

// policyView is the content of the page.
type policyView struct {
	pages.Page
	Problem      string // why there are no rules
	Source, Hash string
	Sections     []section
	Path         string
	Tiers        []option
	Answer       *policyAnswer
	Suggestion   *suggestionView // nil on a server that suggests none
}

// section is some rules under a heading.
type section struct {
	Title string
	Rules []string
	Code  bool // the rules are patterns
}

func (h *policyPage) showRules(req *httpx.Request, q askParams) (httpx.Response, error) {
	if q.Tier > int(gitprovider.TierRemediate) {
		return httpx.Response{}, fault.New(fault.InvalidArgument, "the parameter `tier` is 1, 2 or 3")
	}
	view := policyView{Page: h.frame(req, "Policy", "/policy"), Path: q.Path, Suggestion: h.suggestion(req, q.Repo)}
	rules, err := h.policy()
	if err != nil {
		view.Problem = fault.From(err).Message
		return h.html("policy", view)
	}
	tier := min(h.tier, req.Principal.Ceiling)
	if q.Tier != 0 {
		tier = gitprovider.Tier(q.Tier)
	}
	for t := gitprovider.TierObserve; t <= gitprovider.TierRemediate; t++ {
		view.Tiers = append(view.Tiers, tierOption(t, tier))
	}
	shown := rules.View()
	view.Source, view.Hash, view.Sections = shown.Source, shown.Hash, sections(shown)
	if lines := kindLines(shown.Kinds); len(lines) > 0 {
		view.Sections = append(view.Sections,
			section{Title: "Kinds of files that may be proposed beside, if they are sound", Rules: lines, Code: true})
	}
	if lines := toolLines(shown.ToolTiers); len(lines) > 0 {
		view.Sections = append(view.Sections, section{Title: "Tools that only higher tiers may call", Rules: lines})
	}
	if q.Path != "" {
		view.Answer = answerOf(rules.CheckPaths(tier, []string{q.Path}))
	}
	return h.html("policy", view)
}

func tierOption(t, chosen gitprovider.Tier) option {
	return option{t.String(), "Tier " + t.String(), t == chosen}
}

// policyAnswer is the answer to "may this tier change this path?".
type policyAnswer struct {
	policy.PathVerdict
	Tier int
}

// answerOf returns the answer about one path. What the tier says comes first: no path helps against it.
func answerOf(a policy.CheckAnswer) *policyAnswer {
	out := &policyAnswer{a.Paths[0], a.Tier}
	if out.Allowed && len(a.TierSays) > 0 {
		t := a.TierSays[0]
		out.Rule, out.Code, out.Message, out.Suggestion = t.Rule, t.Code, t.Message, t.Suggestion
	}
	out.Allowed = a.Allowed
	return out
}

// sections returns the rules in words.
func sections(v policy.View) []section {
	return []section{
		{Title: "Who may what", Rules: []string{
			"Tier 1 looks, and hands over what it finds. It may not propose.",
			fmt.Sprintf("Tier 2 proposes: it may change %s in one pull request; %s.", fault.CountFiles(v.Tier2MaxFiles),
				caps(v.Tier2Caps)),
			fmt.Sprintf("Tier 3 proposes more: it may change %s in one pull request; %s.", fault.CountFiles(v.Tier3MaxFiles),
				caps(v.Tier3Caps)),
			fmt.Sprintf("A file may have %s, all files together %s.", views.Size(v.MaxFileBytes), views.Size(v.MaxTotalBytes)),
			fmt.Sprintf("A change that was closed without merging rests for %g hours; a person may lift that here%s.",
				v.CooldownHours,
				textIf(v.CooldownLabel != "", ", or by the label "+v.CooldownLabel, "")),
			fmt.Sprintf("An open pull request may be revised %s, %s.", fault.Count(v.MaxRevisions, "time", "times"),
				textIf(v.Revise == "always", "whenever the agent wants",
					"each time after a review or a comment"+textIf(v.ReviseOnChecks, ", or when checks fail", "")+
						textIf(v.Revise == "once", ", and once before anybody has looked at it", ""))),
			"An open pull request of somebody else on the same files is " +
				textIf(v.Duplicates == policy.DuplicatesAny, "a refusal", "a warning") + ".",
		}},
		{Title: "Where", Rules: []string{
			"Repositories: " + orElse(v.Repositories, "every one that a provider serves") + ".",
			"Base branches: " + orElse(v.BaseBranches, "the default branch, or the one that the manifest names") + ".",
			"Pinned whatever their manifests say: " + orElse(pinned(v.Pins), "none") + ".",
			"Forks " + textIf(v.AllowForks, "may be targeted", "may not be targeted") + ".",
		}},
		{Title: "Files that may be proposed", Rules: v.Allow, Code: true},
		{Title: "Files that never may, whatever else allows them", Rules: v.Deny, Code: true},
		{Title: "What pull requests are like", Rules: []string{
			"They are opened " + textIf(v.PullRequests.Draft, "as drafts", "ready for review") + ", with the labels " +
				orElse(v.Labels, "(none)") + "; labels that a repository lacks " +
				textIf(v.PullRequests.CreateLabels, "are made", "are left out") + ".",
			"Reviewers: " + orElse(v.PullRequests.Reviewers, "none") + ". Assignees: " +
				orElse(v.PullRequests.Assignees, "none") + ".",
			"Sections that a body must have: " + orElse(v.RequiredSections, "none") + ".",
			"Names that a text may mention: " + orElse(v.Mentions, "none") + ". Words that close issues " +
				textIf(v.ClosingKeywords, "are left as they are", "are made harmless") + ".",
			textIf(v.RemindAfter == "0", "Nobody is reminded of one that waits.",
				"People are reminded of one on which nobody has acted for "+v.RemindAfter+".") +
				textIf(v.CloseAfter == "0", "", " It is closed after "+v.CloseAfter+" without an act of a person."),
			"Of refusals people are " + textIf(v.NotifyRefused, "told", "not told") + ".",
			textIf(v.RequireSink, "Nothing is proposed unless the audit was exported to every sink before.",
				"A sink of the audit that fails stops no proposal."),
		}},
		{Title: "Sources that files of projects may choose from", Rules: sourceLines(v.Sources), Code: true},
		{Title: "Agents", Rules: []string{
			"A session starts " + textIf(v.RequireBoundary, "only where a boundary keeps its agent from our files and processes",
				"with the boundary that there is, or without one") + ".",
			"What agents said in sessions is " + textIf(v.SessionTranscripts == "0", "kept.",
				"removed after "+v.SessionTranscripts+"."),
		}},
		{Title: "What may start sessions from outside", Rules: v.Hooks},
	}
}

// kindLines returns the kinds of files with their patterns.
func kindLines(kinds []policy.Kind) (out []string) {
	for _, kind := range kinds {
		for _, pattern := range kind.Patterns {
			out = append(out, fmt.Sprintf("%s, from tier %s: %s", kind.Name, kind.Tier, pattern))
		}
	}
	return out
}

// toolLines returns the tools whose lowest tier the policy raises.
func toolLines(tools []policy.ToolTier) (out []string) {
	for _, t := range tools {
		out = append(out, fmt.Sprintf("%s: from tier %s.", t.Tool, t.Tier))
	}
	return out
}

func sourceLines(list sources.List) (out []string) {
	for _, s := range list {
		out = append(out, s.Origin)
	}
	return out
}

func pinned(pins []policy.RepoPin) (out []string) {
	for _, pin := range pins {
		out = append(out, pin.String())
	}
	return out
}

func caps(c policy.Caps) string {
	return fmt.Sprintf("%d may be open in a repository, and %d be opened in an hour", c.OpenPRs, c.CreationsPerHour)
}

func orElse(list []string, none string) string {
	if len(list) == 0 {
		return none
	}
	return strings.Join(list, ", ")
}

func textIf(yes bool, then, otherwise string) string {
	if yes {
		return then
	}
	return otherwise
}
