package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/base/facts"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// acknowledged is a flag with classes of facts.
type acknowledged struct{ to *[]facts.Class }

// String implements pflag.Value.
func (a acknowledged) String() string { return policy.JoinClasses(*a.to) }

// Type implements pflag.Value.
func (a acknowledged) Type() string { return "classes" }

// Set implements pflag.Value.
func (a acknowledged) Set(text string) error {
	*a.to = append(*a.to, policy.SplitClasses(text)...)
	return nil
}

func addAcknowledge(cmd *cobra.Command, to *[]facts.Class) {
	cmd.Flags().Var(acknowledged{to}, "acknowledge",
		"classes of facts that you have seen, such as destroy,outbound, where the policy has them confirmed")
}

// knownFacts are the facts of a pull request, and the classes that the policy has people confirm.
type knownFacts struct {
	facts.Reading
	asked []facts.Class
	doubt string // "", or what stands before the classes that may be asked in vain, since not all was read
	head  string // to confirm them of
}

// factsOf returns the facts of a pull request as this program's records have them; not read where they have none. head
// is its head commit now, "" for that of the record.
func (a *commandLine) factsOf(ctx context.Context, key record.PullKey, head string) knownFacts {
	parts := a.program().Wire(app.Needs{})
	p, _, err := parts.Store.Pulls.NewestChange(ctx, key)
	if err != nil {
		return knownFacts{}
	}
	out, read := knownFacts{Reading: p.Facts, head: cmp.Or(head, p.Commit)}, p.Facts
	if out.head != p.Commit {
		read = facts.Reading{}
	}
	if !read.WasRead() {
		out.doubt = "you have looked whether "
	}
	if rules, err := parts.Rules.Effective(); err == nil && key.Provider == local.Name && out.head != "" {
		out.asked = rules.Facts.Asked(p.FactTier(), read)
	}
	return out
}

// describeFacts writes each fact with its line. Words of others stand in it, made harmless for a terminal.
func describeFacts(w *strings.Builder, known knownFacts) {
	if known.WasRead() {
		describeReading(w, known)
	}
	if len(known.asked) > 0 {
		fmt.Fprintf(w, "  to approve or merge, confirm that %sit %s: --acknowledge %s --head %s\n", known.doubt,
			policy.FactWords(known.asked), policy.JoinClasses(known.asked), known.head)
	}
}

func describeReading(w *strings.Builder, known knownFacts) {
	if len(known.Facts) == 0 {
		w.WriteString("What it would do: nothing of note\n")
		return
	}
	w.WriteString("What it would do, as facts, not as a verdict:\n")
	for _, alike := range facts.Alike(known.Facts) {
		fmt.Fprintf(w, "  %s  %s: %s\n", factPlaces(alike), alike[0].Class.Words(), visible(alike[0].Sentence))
	}
	if known.More > 0 {
		fmt.Fprintf(w, "  and %d more\n", known.More)
	}
}

// factPlaces lists the lines of facts, such as "a.md:3,17 (removed), b.md:4".
func factPlaces(alike []facts.Fact) string {
	var b strings.Builder
	for i, f := range alike {
		switch {
		case i > 0 && f.NextTo(alike[i-1]):
			fmt.Fprintf(&b, ",%d", f.Line)
			continue
		case i > 0:
			b.WriteString(removedMark(alike[i-1]) + ", ")
		}
		fmt.Fprintf(&b, "%s:%d", visible(f.Path), f.Line)
	}
	return b.String() + removedMark(alike[len(alike)-1])
}

func removedMark(f facts.Fact) string {
	if f.Removed {
		return " (removed)"
	}
	return ""
}

// providerOf returns the provider of a repository.
func (a *commandLine) providerOf(owner, name string) string {
	return a.program().Wire(app.Needs{}).Flow.Reader().ProviderOf(owner, name)
}

// maxTagged bounds the open pull requests whose tags a list has.
const maxTagged = 200

// tagsOf returns the tags of our open pull requests in a repository that the records know, by number.
func (a *commandLine) tagsOf(ctx context.Context, provider, owner, name string) map[int]string {
	pulls, err := a.program().Wire(app.Needs{}).Store.Pulls.OpenPulls(ctx, maxTagged)
	if err != nil {
		return nil
	}
	out := map[int]string{}
	for _, p := range pulls {
		if p.Provider == provider && strings.EqualFold(p.Owner+"/"+p.Repo, owner+"/"+name) {
			out[p.Number] = p.Tags
		}
	}
	return out
}
