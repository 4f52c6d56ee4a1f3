package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/base/facts"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/review"
	"github.com/claudeops/claudeops/internal/records/record"
)

func reviewCommand(a *commandLine) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "review",
		Short: "Review and merge pull requests of local repositories, as a person",
		Long: "review is for people and for repositories without a forge. No MCP tool leads here: an agent proposes, a person\n" +
			"decides. Forges have pages of their own for this.",
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(reviewListCommand(a), reviewShowCommand(a))
	for _, verb := range review.Verbs() {
		cmd.AddCommand(reviewActCommand(a, verb))
	}
	return cmd
}

func reviewActCommand(a *commandLine, verb review.Verb) *cobra.Command {
	var repo string
	var lines lineFlags
	r := review.Request{Verb: verb.Name, Provider: local.Name}
	cmd := &cobra.Command{
		Use: verb.Name + " NUMBER", Short: verb.Short, Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, number, err := reviewTarget(a, repo, args[0])
			if err != nil {
				return err
			}
			r.Owner, r.Name, r.Number = ref.Owner, ref.Name, number
			if r.Comments, err = lines.comments(); err != nil {
				return err
			}
			if verb.Name == review.LiftCooldown && !cmd.Flags().Changed("provider") {
				r.Provider = a.providerOf(ref.Owner, ref.Name)
			}
			return runReview(cmd.Context(), a, verb, r)
		},
	}
	cmd.Flags().StringVar(&repo, "repo", "", repoUsage)
	cmd.Flags().StringVar(&r.Comment, "comment", "", "what to say")
	cmd.Flags().StringVar(&r.Head, "head", "", "the head commit that you looked at: refuse if it has moved")
	if verb.Name == review.LiftCooldown {
		cmd.Flags().StringVar(&r.Provider, "provider", "", "where the repository is, if several providers are enabled")
	}
	if verb.Lines {
		lines.addFlags(cmd)
	}
	if verb.Passes {
		addAcknowledge(cmd, &r.Acknowledged)
	}
	if verb.Force {
		cmd.Flags().BoolVar(&r.Force, "force", false,
			"merge although changes were requested, or the head moved since it was approved")
	}
	return cmd
}

// review acts as the command's user, and prints what came of it.
func runReview(ctx context.Context, a *commandLine, verb review.Verb, r review.Request) error {
	p := a.program().Wire(app.Needs{})
	call, err := app.AtTerminal(ctx, p)
	if err == nil {
		err = app.MayAtTerminal(call, review.NeedsOf(verb.Name))
	}
	if err != nil {
		return err
	}
	r.By = call.Caller
	done := working(a, "review "+verb.Name)
	outcome, err := app.NewReviews(p).Do(ctx, r)
	done()
	if err != nil {
		return err
	}
	return a.print(outcome, func(w *strings.Builder) {
		fmt.Fprintf(w, "%s #%d as %s.\n", strings.ToUpper(verb.Done[:1])+verb.Done[1:], r.Number, cleanLine(r.By.String(),
			100))
		if outcome.Commit != "" {
			fmt.Fprintf(w, "  commit %s\n", outcome.Commit)
		}
		for _, warning := range outcome.Warnings {
			fmt.Fprintf(w, "warning: %s\n", warning)
		}
	})
}

func reviewTarget(a *commandLine, repo, arg string) (gitprovider.RepoRef, int, error) {
	number, err := prNumber(arg)
	if err != nil {
		return gitprovider.RepoRef{}, 0, err
	}
	ref, err := a.parseRepo(repo)
	return ref, number, err
}

// parseRepo reads --repo.
func parseRepo(repo string) (gitprovider.RepoRef, error) {
	owner, name, err := splitRepo(repo)
	if err != nil {
		return gitprovider.RepoRef{}, err
	}
	ref, problems := gitprovider.NewRepoRef(owner, name, "")
	for argument, problem := range problems {
		return ref, app.Usage(fmt.Errorf("--repo %.200q: %s %w", repo, argument, problem))
	}
	return ref, nil
}

// parseState reads the state that a listing is narrowed to; "" for all.
func parseState(state string) (gitprovider.State, error) {
	switch s := gitprovider.State(state); s {
	case gitprovider.StateOpen, gitprovider.StateClosed, gitprovider.StateMerged:
		return s, nil
	}
	if state == "all" {
		return "", nil
	}
	return "", app.Usage(errors.New("--state is open, closed, merged or all"))
}

func reviewListCommand(a *commandLine) *cobra.Command {
	var repo, state string
	cmd := &cobra.Command{
		Use: "list", Short: "List the pull requests of a local repository", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ref, err := a.parseRepo(repo)
			if err != nil {
				return err
			}
			wanted, err := parseState(state)
			if err != nil {
				return err
			}
			p := a.program().Wire(app.Needs{})
			prs, err := app.NewReviews(p).List(cmd.Context(), local.Name, ref, wanted)
			if err != nil {
				return err
			}
			entries := make([]reviewEntry, 0, len(prs))
			for _, pr := range prs {
				entries = append(entries, reviewEntryOf(pr))
			}
			tags := a.tagsOf(cmd.Context(), local.Name, ref.Owner, ref.Name)
			return a.print(listOf(entries), func(w *strings.Builder) { describeReviewList(w, entries, tags) })
		},
	}
	cmd.Flags().StringVar(&repo, "repo", "", repoUsage)
	cmd.Flags().StringVar(&state, "state", "open", "open, closed, merged or all")
	return cmd
}

// reviewEntry is a pull request in the answers of review.
type reviewEntry struct {
	Number int       `json:"number"`
	State  string    `json:"state"`
	Title  string    `json:"title"`
	URL    string    `json:"url"`
	Branch string    `json:"branch"`
	Base   string    `json:"base"`
	Head   string    `json:"head"`
	Opened time.Time `json:"created_at"`
	Files  []string  `json:"files"`
}

func reviewEntryOf(pr gitprovider.PullRequest) reviewEntry {
	return reviewEntry{
		Number: pr.Number, State: string(pr.State), Title: pr.Title, URL: pr.URL, Branch: pr.Branch, Base: pr.Base,
		Head: pr.HeadCommit, Opened: pr.CreatedAt.UTC(), Files: append([]string{}, pr.Paths...),
	}
}

func describeReviewList(w *strings.Builder, entries []reviewEntry, tags map[int]string) {
	if len(entries) == 0 {
		w.WriteString("None.\n")
		return
	}
	rows := [][]string{{"PULL", "STATE", "OPENED", "TITLE", "WOULD", "FILES"}}
	for _, e := range entries {
		rows = append(rows, []string{"#" + strconv.Itoa(e.Number), wordFor(gitprovider.State(e.State)).Text,
			operation.TimeCell(e.Opened), cleanLine(e.Title, 200), tags[e.Number], strings.Join(e.Files, ", ")})
	}
	listing(w, layout{text: []string{"TITLE", "WOULD", "FILES"}, goes: []string{"FILES", "WOULD"}}, rows)
}

func reviewShowCommand(a *commandLine) *cobra.Command {
	var repo string
	cmd := &cobra.Command{
		Use: "show NUMBER", Short: "Show a pull request with its reviews and its diff", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, number, err := reviewTarget(a, repo, args[0])
			if err != nil {
				return err
			}
			p := a.program().Wire(app.Needs{})
			detail, err := app.NewReviews(p).Show(cmd.Context(), local.Name, ref, number)
			if err != nil {
				return err
			}
			return printDetail(a, detail, a.factsOf(cmd.Context(), record.PullKey{Provider: local.Name, Owner: ref.Owner,
				Repo: ref.Name, Number: number}, detail.HeadCommit))
		},
	}
	cmd.Flags().StringVar(&repo, "repo", "", repoUsage)
	return cmd
}

func printDetail(a *commandLine, d local.Detail, known knownFacts) error {
	type comment struct {
		Path     string `json:"path"`
		Line     int    `json:"line"`
		Before   bool   `json:"before,omitempty"`
		Outdated bool   `json:"outdated,omitempty"`
		Body     string `json:"body"`
	}
	type review struct {
		Author, State, Body string
		SubmittedAt         time.Time
		Comments            []comment `json:"Comments,omitempty"`
	}
	answer := struct {
		reviewEntry
		Body      string   `json:"body"`
		Mergeable *bool    `json:"mergeable"`
		Reviews   []review `json:"reviews"`
		Diff      string   `json:"diff"`

		Facts *facts.Reading `json:"facts,omitempty"` // nil if it was not read
	}{reviewEntry: reviewEntryOf(d.PullRequest), Body: d.Body, Mergeable: d.Mergeable, Reviews: []review{}, Diff: d.Diff}
	if known.WasRead() {
		answer.Facts = &known.Reading
	}
	for _, r := range d.Reviews {
		entry := review{Author: r.Author, State: string(r.State), Body: r.Body, SubmittedAt: r.SubmittedAt.UTC()}
		for _, c := range r.Comments {
			entry.Comments = append(entry.Comments, comment{c.Path, c.Line, c.Before, c.Commit != d.HeadCommit, c.Body})
		}
		answer.Reviews = append(answer.Reviews, entry)
	}
	return a.print(answer, func(w *strings.Builder) {
		fmt.Fprintf(w, "#%d %s\n  %s into %s, %s, head %s\n\n", d.Number, cleanLine(d.Title, 200), d.Branch, d.Base, d.State,
			d.HeadCommit)
		describeFacts(w, known)
		lines(w, "  ", d.Body)
		for _, r := range answer.Reviews {
			fmt.Fprintf(w, "\n%s %s %s\n", r.SubmittedAt.Format(time.RFC3339), cleanLine(r.Author, 100), r.State)
			lines(w, "  ", r.Body)
			for _, c := range r.Comments {
				about := ""
				if c.Before {
					about = " before the change"
				}
				if c.Outdated {
					about += " (the branch has moved since)"
				}
				fmt.Fprintf(w, "  %s:%d%s\n", visible(c.Path), c.Line, about)
				lines(w, "    ", c.Body)
			}
		}
		w.WriteByte('\n')
		if d.DiffTooLarge {
			w.WriteString("[the diff is too large to show; use git]\n")
		}
		lines(w, "", d.Diff)
	})
}

// lines prints text that others wrote, each line made harmless for a terminal: a reviewer must see what is there.
func lines(w *strings.Builder, indent, text string) {
	if text == "" {
		return
	}
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		w.WriteString(indent + visible(line) + "\n")
	}
}

// visible prints a line with its control characters escaped rather than obeyed.
func visible(line string) string {
	var b strings.Builder
	for _, r := range strings.TrimSuffix(line, "\r") {
		if r != '\t' && !strconv.IsPrint(r) {
			fmt.Fprintf(&b, "\\u{%04X}", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// lineFlags are comments on lines of files.
type lineFlags struct{ after, before []string }

func (f *lineFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.after, "line", nil, "comment on a line of a file, as PATH:LINE:TEXT; may be repeated")
	cmd.Flags().StringArrayVar(&f.before, "line-before", nil,
		"comment on a line of a file as it was before the change, as PATH:LINE:TEXT; may be repeated")
}

// comments returns the comments that were given.
func (f *lineFlags) comments() (out []gitprovider.LineComment, err error) {
	for _, given := range f.after {
		if out, err = addLine(out, "--line", given, false); err != nil {
			return nil, err
		}
	}
	for _, given := range f.before {
		if out, err = addLine(out, "--line-before", given, true); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func addLine(out []gitprovider.LineComment, flag, given string, before bool) ([]gitprovider.LineComment, error) {
	path, rest, _ := strings.Cut(given, ":")
	number, text, _ := strings.Cut(rest, ":")
	line, err := strconv.Atoi(number)
	if path == "" || err != nil || line < 1 || strings.TrimSpace(text) == "" {
		return nil, app.Usage(fmt.Errorf("%s %.200q is not of the form PATH:LINE:TEXT, such as 'checks/disk.md:12:Say "+
			"which disk.'", flag, given))
	}
	return append(out, gitprovider.LineComment{Path: path, Line: line, Before: before, Body: strings.TrimSpace(text)}), nil
}
