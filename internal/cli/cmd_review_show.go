package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
)

func reviewListCommand(a *commandLine) *cobra.Command {
	var repo, state string
	cmd := &cobra.Command{
		Use: "list", Short: "List the pull requests of a local repository", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ref, err := parseRepo(repo)
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
			return a.print(listOf(entries), func(w *strings.Builder) { describeReviewList(w, entries) })
		},
	}
	cmd.Flags().StringVar(&repo, "repo", "", "repository as owner/name")
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

func describeReviewList(w *strings.Builder, entries []reviewEntry) {
	if len(entries) == 0 {
		w.WriteString("None.\n")
		return
	}
	var rows [][]string
	for _, e := range entries {
		rows = append(rows, []string{"#" + strconv.Itoa(e.Number), e.State, e.Opened.Format(time.RFC3339), shown(e.Title, 72),
			strings.Join(e.Files, ", ")})
	}
	columns(w, rows)
}

func reviewShowCommand(a *commandLine) *cobra.Command {
	var repo string
	cmd := &cobra.Command{
		Use: "show NUMBER", Short: "Show a pull request with its reviews and its diff", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, number, err := reviewTarget(repo, args[0])
			if err != nil {
				return err
			}
			p := a.program().Wire(app.Needs{})
			detail, err := app.NewReviews(p).Show(cmd.Context(), local.Name, ref, number)
			if err != nil {
				return err
			}
			return printDetail(a, detail)
		},
	}
	cmd.Flags().StringVar(&repo, "repo", "", "repository as owner/name")
	return cmd
}

func printDetail(a *commandLine, d local.Detail) error {
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
	}{reviewEntry: reviewEntryOf(d.PullRequest), Body: d.Body, Mergeable: d.Mergeable, Reviews: []review{}, Diff: d.Diff}
	for _, r := range d.Reviews {
		entry := review{Author: r.Author, State: string(r.State), Body: r.Body, SubmittedAt: r.SubmittedAt.UTC()}
		for _, c := range r.Comments {
			entry.Comments = append(entry.Comments, comment{c.Path, c.Line, c.Before, c.Commit != d.HeadCommit, c.Body})
		}
		answer.Reviews = append(answer.Reviews, entry)
	}
	return a.print(answer, func(w *strings.Builder) {
		fmt.Fprintf(w, "#%d %s\n  %s into %s, %s, head %s\n\n", d.Number, shown(d.Title, 200), d.Branch, d.Base, d.State,
			d.HeadCommit)
		lines(w, "  ", d.Body)
		for _, r := range answer.Reviews {
			fmt.Fprintf(w, "\n%s %s %s\n", r.SubmittedAt.Format(time.RFC3339), shown(r.Author, 100), r.State)
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
