package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

func runCommand(a *commandLine) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   "run --tier N",
		Short: "Run an agent session at a tier",
		Long: "run starts the Claude CLI with the tier's prompt and this binary as its MCP server, and waits for its end and for\n" +
			"that of the sessions it escalates to. The agent gets an environment of its own that holds none of our tokens.\n" +
			"One session runs at a time in a state folder. The exit code is 0 if every session succeeded.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			tier, err := askedTier(a)
			if err != nil {
				return err
			}
			if note == "-" {
				if note, err = readNote(a.streams.In); err != nil {
					return err
				}
			}
			p := a.program().Wire(app.Needs{})
			missing := tellMissing(a, p)
			out, err := a.act(cmd.Context(), session.ActRun, session.StartRequest{Tier: int(tier), Note: note})
			if err != nil {
				return err
			}
			ran := out.(session.Ran)
			return tellRun(a, ran.Records, missing, ran.Failure)
		},
	}
	sessionToolsetsFlag(a, cmd)
	cmd.Flags().StringVar(&note, "note", "", "what the agent shall know, in your words; - reads standard input")
	return cmd
}

// tellMissing says, before money is spent, what the agent lacks to do its work: on standard error, or with --json in
// what it returns.
func tellMissing(a *commandLine, p *app.Parts) (missing []string) {
	for _, f := range app.NewDoctor(p).Agents() {
		if f.Status != doctor.Warning {
			continue
		}
		missing = append(missing, f.Name+": "+f.Told())
		if !a.json {
			a.streams.warn("%s: %s", f.Name, f.Told())
		}
	}
	return missing
}

// askedTier returns the tier of the session: --tier, which must be exactly one, or CLAUDEOPS_TIER.
func askedTier(a *commandLine) (gitprovider.Tier, error) {
	raw, _ := a.environment("CLAUDEOPS_TIER")
	tier, ok := gitprovider.ParseTier(raw)
	if !ok || strings.TrimSpace(raw) == "" {
		return 0, app.Usage(errors.New("say the tier: --tier 1, 2 or 3"))
	}
	return tier, nil
}

func readNote(in io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(in, session.MaxNote+1))
	if err != nil {
		return "", err
	}
	if !utf8.Valid(text) {
		return "", app.Usage(errors.New("the note is not UTF-8"))
	}
	return string(text), nil
}

// tellRun prints the recorded sessions and, as part of the same answer, why there are no more. Its error is what
// remains to be reported.
func tellRun(a *commandLine, records []sessions.Record, missing []string, err error) error {
	answer := map[string]any{"items": append([]sessions.Record{}, records...)}
	if len(missing) > 0 {
		answer["missing"] = missing
	}
	if err != nil && a.json {
		answer["error"] = problemOf(err)
		err = silentExit(exitCode(err))
	}
	if printErr := a.print(answer, func(w *strings.Builder) { sessionsText(w, records) }); printErr != nil {
		return printErr
	}
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.State != sessions.StateSucceeded {
			return silentExit(fault.ExitInternal)
		}
	}
	return nil
}

// sessionsText shows sessions to people.
func sessionsText(w *strings.Builder, records []sessions.Record) {
	for i, r := range records {
		if i > 0 {
			w.WriteString("\n")
		}
		sessionText(w, r)
	}
}

func sessionText(w *strings.Builder, r sessions.Record) {
	fmt.Fprintf(w, "session %s: tier %s, %s\n", r.ID, r.Tier, r.State)
	if why := r.Why(); why != "" {
		fmt.Fprintf(w, "  %s\n", content.Clean(why, maxWhy))
	}
	fmt.Fprintf(w, "  proposals: %d opened, %d reused, %d in dry run, %d refused, %d failed\n",
		r.Counts.Opened, r.Counts.Reused, r.Counts.DryRun, r.Counts.Refused, r.Counts.Failed)
	fmt.Fprintf(w, "  %d turns, %d tool calls, %d denied, model %s\n", r.Turns, r.ToolCalls, r.Denied, r.Model)
	if len(r.Toolsets) > 0 {
		fmt.Fprintf(w, "  toolsets: %s\n", strings.Join(r.Toolsets, ", "))
	}
	if r.Boundary != nil {
		fmt.Fprintf(w, "  boundary: %s\n", r.Boundary)
	}
	fmt.Fprintf(w, "  %s\n", usageText(r.Usage))
	for _, what := range r.LeftOut {
		fmt.Fprintf(w, "  left out: %s\n", content.Clean(what, 1000))
	}
	if r.Escalation != "" {
		fmt.Fprintf(w, "  %s\n", r.Escalation)
	}
	if r.HandoffProblem != "" {
		fmt.Fprintf(w, "  handoff: %s\n", content.Clean(r.HandoffProblem, 1000))
	}
	for _, note := range r.HandoffNotes {
		fmt.Fprintf(w, "  handoff: %s\n", content.Clean(note, 1000))
	}
	if h := r.Handoff; h != nil {
		for _, f := range h.Findings {
			fmt.Fprintf(w, "  found: %s (%s)\n", indented(content.Clean(f.Text, 2000)), content.Clean(f.Key, 100))
		}
	}
	if r.State != sessions.StateSucceeded && r.Stderr != "" {
		fmt.Fprintf(w, "  claude said: %s\n", indented(content.Clean(r.Stderr, 1000)))
	}
	if r.Report != "" {
		fmt.Fprintf(w, "  report:\n    %s\n", indented(content.Clean(r.Report, 16000)))
	}
}

// maxWhy bounds how much is shown of why a session ended, in characters.
const maxWhy = 1000

func indented(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}
