package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// deployCommand holds what only people ask of deployments; the commands of the tools are added to it.
func deployCommand(a *commandLine) *cobra.Command {
	return group(deploy.ToolsetName, "Put procedures in place for the agents of this machine, see drift, roll back",
		deployInitCommand(a), deploySnapshotsCommand(a))
}

func deployInitCommand(a *commandLine) *cobra.Command {
	var user bool
	cmd := &cobra.Command{
		Use: "init", Short: "Make the first configuration from what agents read here already", Args: usageArgs(cobra.NoArgs),
		Example: "  claudeops deploy init",
		Long: "init makes AGENTPACK_HOME/repo/agentpack.yaml and a module for each file that agents read in this project: " +
			"AGENTS.md,\n" +
			"commands, skills and prompts of Codex, Claude Code and VS Code. It changes none of them; a plan shows no change " +
			"afterwards.",
		RunE: func(*cobra.Command, []string) error {
			made, err := a.program().Wire(app.Needs{}).Tools.Deploy().Init(user)
			if err != nil {
				return deploy.Failure(err)
			}
			return a.print(made, func(w *strings.Builder) {
				fmt.Fprintf(w, "%s: %d modules\n", made.Path, len(made.Modules))
				for _, id := range made.Modules {
					fmt.Fprintf(w, "  %s\n", textscan.Clean(id, maxCell))
				}
				for _, why := range made.LeftOut {
					fmt.Fprintf(w, "left out: %s\n", textscan.Clean(why, maxCell))
				}
			})
		},
	}
	cmd.Flags().BoolVar(&user, "user", false, "take the files of the user's folders instead of the project's")
	return cmd
}

// snapshotEntry is a snapshot in the answers of deploy snapshots.
type snapshotEntry struct {
	ID           string               `json:"id"`
	Kind         string               `json:"kind"`
	CreatedAt    time.Time            `json:"created_at"`
	Owner        fileset.Owner        `json:"owner"`
	Project      string               `json:"project"`
	Targets      []fileset.TargetName `json:"targets"`
	Changes      int                  `json:"changes"`
	RolledBackTo string               `json:"rolled_back_to,omitempty"`
}

func deploySnapshotsCommand(a *commandLine) *cobra.Command {
	var most int
	cmd := &cobra.Command{
		Use: "snapshots", Short: "List what was deployed and rolled back, the newest first", Args: usageArgs(cobra.NoArgs),
		Example: "  claudeops deploy snapshots",
		RunE: func(*cobra.Command, []string) error {
			list, err := a.program().Wire(app.Needs{}).Tools.Deploy().Snapshots(most)
			if err != nil {
				return deploy.Failure(err)
			}
			entries := []snapshotEntry{}
			rows := [][]string{{"ID", "WHEN", "WHAT", "OF", "TARGETS", "CHANGES", "PROJECT"}}
			for _, s := range list {
				entries = append(entries, snapshotEntry{s.ID, s.Kind, s.CreatedAt, s.Owner, s.Project, s.Targets, len(s.Steps),
					s.RolledBackTo})
				what := s.Kind
				if s.RolledBackTo != "" {
					what += " to " + s.RolledBackTo
				}
				rows = append(rows, []string{
					s.ID, operation.TimeCell(s.CreatedAt), what, string(s.Owner), strings.Trim(fmt.Sprint(s.Targets), "[]"),
					fmt.Sprint(len(s.Steps)),
					textscan.Clean(s.Project, maxCell),
				})
			}
			return a.print(listOf(entries), func(w *strings.Builder) { snapshotRows(w, rows) })
		},
	}
	cmd.Flags().IntVar(&most, "limit", 50, "at most so many")
	return cmd
}

// personal writes an answer for a person; ok is false if it has only the general form.
func personal(a *commandLine, w *strings.Builder, answer any) (ok bool) {
	paint := painter(a)
	switch v := answer.(type) {
	case deploy.Envelope[deploy.PlanData]:
		describeChanges(w, paint, v.Data.Changes, v.Data.Summary, v.Warnings)
	case deploy.Envelope[deploy.DiffData]:
		for _, f := range v.Data.Files {
			if f.Unified != nil {
				describeDiff(w, paint, *f.Unified)
			}
		}
		describeChanges(w, paint, v.Data.Changes, v.Data.Summary, v.Warnings)
	case deploy.Envelope[deploy.ApplyData]:
		describeChanges(w, paint, v.Data.Changes, v.Data.Summary, v.Warnings)
		switch {
		case v.Data.Applied:
			fmt.Fprintf(w, "Deployed: snapshot %s. To go back to what was there before: claudeops deploy rollback --to %s\n",
				v.Data.SnapshotID, v.Data.Previous)
		case v.Data.Reason == "":
			fmt.Fprintln(w, "This was a dry run: nothing was changed.")
		}
	case deploy.Envelope[deploy.StatusData]:
		describeDrift(w, paint, v)
	case deploy.Envelope[deploy.DoctorData]:
		writeStruct(w, "", reflect.ValueOf(v.Data))
		describeWarnings(w, paint, v.Warnings)
	case deploy.Envelope[deploy.ExplainData]:
		describeOrigins(w, paint, v)
	case deploy.Envelope[deploy.UpdateData]:
		describeUpdate(w, paint, v)
	case deploy.Envelope[deploy.Proposed]:
		describeProposed(w, paint, v)
	case deploy.Envelope[deploy.RollbackData]:
		if v.Data.Summary != nil {
			describeChanges(w, paint, v.Data.Changes, *v.Data.Summary, v.Warnings)
			break
		}
		fmt.Fprintf(w, "Back to %s. To undo this, roll back to the snapshot before it: claudeops deploy snapshots\n",
			v.Data.RolledBackTo)
		describeWarnings(w, paint, v.Warnings)
	default:
		return false
	}
	return true
}

func describeChanges(w *strings.Builder, paint func(int, string) string, changes []fileset.Change, sum fileset.Summary,
	warnings []string) {
	target, adopted := fileset.TargetName(""), 0
	for _, c := range changes {
		if c.Target != target {
			target = c.Target
			fmt.Fprintf(w, "%s\n", target)
		}
		line, colour := "+ create  ", green
		switch {
		case c.Op == fileset.Delete:
			line, colour = "- delete  ", red
		case c.Adopts():
			line, colour = "! adopt   ", yellow
			adopted++
		case c.Op == fileset.Update:
			line, colour = "~ update  ", cyan
		}
		fmt.Fprintf(w, "  %s %s\n", paint(colour, line+textscan.Clean(c.Path, maxCell)), "("+c.Reason+")")
	}
	describeWarnings(w, paint, warnings)
	if len(changes) == 0 {
		fmt.Fprintln(w, "Everything is as it should be: nothing to change.")
		return
	}
	fmt.Fprintf(w, "%d to create, %d to update, %d to delete", sum.Create, sum.Update, sum.Delete)
	if adopted > 0 {
		fmt.Fprintf(w, "; %s", paint(yellow,
			fmt.Sprintf("%d of the updates replace files that were not deployed, and need --adopt", adopted)))
	}
	fmt.Fprintln(w)
}

func describeWarnings(w *strings.Builder, paint func(int, string) string, warnings []string) {
	for _, text := range warnings {
		fmt.Fprintf(w, "%s %s\n", paint(yellow, "warning:"), textscan.Clean(text, maxCell))
	}
}

func describeDiff(w *strings.Builder, paint func(int, string) string, unified string) {
	for line := range strings.Lines(unified) {
		text := textscan.Clean(strings.TrimRight(line, "\n"), maxCell)
		switch {
		case strings.HasPrefix(line, "+"):
			text = paint(green, text)
		case strings.HasPrefix(line, "-"):
			text = paint(red, text)
		case strings.HasPrefix(line, "@@"):
			text = paint(cyan, text)
		}
		fmt.Fprintln(w, text)
	}
}

func describeDrift(w *strings.Builder, paint func(int, string) string, v deploy.Envelope[deploy.StatusData]) {
	for _, item := range v.Data.Drift {
		colour := map[fileset.DriftKind]int{fileset.Modified: yellow, fileset.Missing: red, fileset.Extra: cyan}[item.Kind]
		fmt.Fprintf(w, "%-11s  %s  %s\n", item.Target, paint(colour, fmt.Sprintf("%-8s", item.Kind)),
			textscan.Clean(item.Path, maxCell))
	}
	describeWarnings(w, paint, v.Warnings)
	sum := v.Data.Summary
	if sum.Modified+sum.Missing+sum.Extra == 0 {
		fmt.Fprintln(w, "No drift.")
		return
	}
	fmt.Fprintf(w, "%d modified, %d missing, %d extra\n", sum.Modified, sum.Missing, sum.Extra)
}

// describeUpdate says which modules are newer, and what a deployment would change with them.
func describeUpdate(w *strings.Builder, paint func(int, string) string, v deploy.Envelope[deploy.UpdateData]) {
	newer := 0
	for _, m := range v.Data.Modules {
		name := textscan.Clean(m.Module, maxCell)
		switch {
		case !m.Newer():
			fmt.Fprintf(w, "  %s is at the newest commit, %.12s\n", name, m.To)
			continue
		case m.From == "":
			fmt.Fprintf(w, "  %s\n", paint(cyan, fmt.Sprintf("%s follows %s, and would be locked to %.12s", name,
				textscan.Clean(m.Ref, maxCell), m.To)))
		default:
			fmt.Fprintf(w, "  %s\n", paint(cyan, fmt.Sprintf("%s %.12s -> %.12s", name, m.From, m.To)))
		}
		newer++
	}
	if len(v.Data.Modules) == 0 {
		fmt.Fprintln(w, "No module of another repository follows a branch or a tag.")
		return
	}
	describeChanges(w, paint, v.Data.Changes, v.Data.Summary, v.Warnings)
	switch {
	case v.Data.Written:
		fmt.Fprintf(w, "%s names these commits now. To deploy them: claudeops deploy apply\n", v.Data.Lock)
	case newer > 0:
		fmt.Fprintln(w, "Nothing was written: --yes writes the lock file.")
	}
}

// describeOrigins says which modules and overlays give a file. What decides has a mark.
func describeOrigins(w *strings.Builder, paint func(int, string) string, v deploy.Envelope[deploy.ExplainData]) {
	for _, f := range v.Data.Files {
		drift := ""
		if f.Drift != "" {
			drift = paint(yellow, fmt.Sprintf(" (%s since it was deployed)", f.Drift))
		}
		fmt.Fprintf(w, "%s %s%s\n", f.Target, textscan.Clean(f.Path, maxCell), drift)
		for _, p := range f.Parts {
			fmt.Fprintf(w, "  lines %d-%d: %s of the module %s\n", p.First, p.Last, textscan.Clean(p.File, maxCell),
				textscan.Clean(p.Module, maxCell))
			for _, l := range p.Layers {
				text := fmt.Sprintf("%-8s %s %s", l.Level, l.How, textscan.Clean(l.File, maxCell))
				if l.Line > 0 {
					text += fmt.Sprintf(", line %d", l.Line)
				}
				if l.Repository != "" {
					text += fmt.Sprintf(" of %s at %.12s", textscan.Clean(l.Repository, maxCell), l.Commit)
				}
				mark := "   "
				if l.Gives {
					mark, text = "-> ", paint(green, text)
				}
				fmt.Fprintf(w, "    %s%s\n", mark, text)
			}
		}
	}
	describeWarnings(w, paint, v.Warnings)
}

func snapshotRows(w *strings.Builder, rows [][]string) {
	if len(rows) == 1 {
		w.WriteString("Nothing was deployed yet.\n")
		return
	}
	listing(w, layout{text: []string{"TARGETS", "PROJECT"}, goes: []string{"OF", "CHANGES", "TARGETS"}}, rows)
}

// describeProposed says what was proposed of a deployment.
func describeProposed(w *strings.Builder, paint func(int, string) string, v deploy.Envelope[deploy.Proposed]) {
	for _, name := range v.Data.Files {
		fmt.Fprintf(w, "  %s\n", textscan.Clean(name, maxCell))
	}
	describeWarnings(w, paint, v.Warnings)
	title := textscan.Clean(v.Data.Title, maxCell)
	switch {
	case v.Data.DryRun:
		fmt.Fprintf(w, "This was a dry run. It would propose to %s, on the branch %s: %s\n", v.Data.Repository, v.Data.Branch,
			title)
	case v.Data.Reused:
		fmt.Fprintf(w, "Proposed already: #%d of %s, %s\n", v.Data.Number, v.Data.Repository, v.Data.URL)
	default:
		fmt.Fprintf(w, "Proposed: #%d of %s, %s\n  %s\n", v.Data.Number, v.Data.Repository, v.Data.URL, title)
	}
}

// planFirst has the command of deploy update ask after it has shown what it would do, and that of the tool rollback,
// without --yes, show what would change, and ask the person at the terminal; where there is none, the tool refuses the
// call, as it does for everybody who does not agree. Commands of other operations stay as they are.
func planFirst(a *commandLine, o operation.Operation, cmd *cobra.Command) *cobra.Command {
	do := cmd.RunE
	switch o.Name {
	case deploy.NameUpdate:
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := do(cmd, args)
			if flags := cmd.Flags(); err == nil && !flags.Changed("yes") && !flags.Changed("from") && !a.json &&
				agreed(a, "Write the lock file?") {
				if err = flags.Set("yes", "true"); err == nil {
					err = do(cmd, args)
				}
			}
			return err
		}
		return cmd
	case deploy.ToolRollback:
	default:
		return cmd
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		flags := cmd.Flags()
		to := flags.Lookup("to").Value.String()
		if flags.Changed("yes") || flags.Changed("from") || to == "" || a.json {
			return do(cmd, args)
		}
		p, err := a.program().Wire(app.Needs{}).Tools.Deploy().PlanRollback(cmd.Context(), to)
		if err != nil {
			return deploy.Failure(err)
		}
		err = a.print(nil, func(w *strings.Builder) { describeChanges(w, painter(a), p.Changes, p.Summary(), p.Warnings) })
		if err != nil {
			return err
		}
		if agreed(a, "Put the files of this snapshot back?") {
			if err := flags.Set("yes", "true"); err != nil {
				return err
			}
		}
		return do(cmd, args)
	}
	return cmd
}

// agreed asks the person at the terminal; false where there is none.
func agreed(a *commandLine, question string) bool {
	file, isFile := a.streams.In.(*os.File)
	return isFile && term.IsTerminal(int(file.Fd())) && answersYes(file, a.streams.Err, question)
}

// answersYes reads a line; only y and yes agree.
func answersYes(in io.Reader, out io.Writer, question string) bool {
	fmt.Fprintf(out, "%s [y/N] ", question)
	line, _ := bufio.NewReader(io.LimitReader(in, 16)).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true
	}
	return false
}
