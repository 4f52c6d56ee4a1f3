package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/web/views"
)

func sessionCommand(a *commandLine) *cobra.Command {
	return group("session", "Look at the sessions of agents, and stop them", sessionListCommand(a), sessionShowCommand(a),
		sessionStopCommand(a), sessionJournalCommand(a), sessionUsageCommand(a))
}

func sessionListCommand(a *commandLine) *cobra.Command {
	var state, tier, search string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List sessions, newest first", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			q := sessions.Query{State: sessions.State(state), Search: search, Limit: limit}
			if state != "" && !slices.Contains(sessions.States(), q.State) {
				return app.Usage(fmt.Errorf("--state is one of %v", sessions.States()))
			}
			if tier != "" {
				wanted, ok := gitprovider.ParseTier(tier)
				if !ok {
					return app.Usage(fmt.Errorf("--only-tier is 1, 2 or 3"))
				}
				q.Tier = wanted
			}
			const most = 200
			if limit < 1 || limit > most {
				return app.Usage(fmt.Errorf("--limit is 1 to %d", most))
			}
			records, err := a.program().Wire(app.Needs{Records: true}).Store.AgentSessions.Sessions(cmd.Context(), q)
			if err != nil {
				return err
			}
			redact := a.program().Wire(app.Needs{}).Scanner.Redact
			for i := range records {
				records[i].Reason = textscan.Clean(redact(records[i].Why()), maxWhy)
			}
			return a.print(listOf(records), func(w *strings.Builder) { sessionRows(w, records) })
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only sessions in this state")
	cmd.Flags().StringVar(&tier, "only-tier", "", "only sessions of this tier")
	cmd.Flags().StringVar(&search, "search", "", "only sessions with this in what was asked, found or reported")
	cmd.Flags().IntVar(&limit, "limit", 20, "how many")
	return cmd
}

func sessionRows(w *strings.Builder, records []sessions.Record) {
	if len(records) == 0 {
		w.WriteString("No sessions. `claudeops run --tier 1` starts one.\n")
		return
	}
	rows := [][]string{{"ID", "TIER", "STARTED BY", "STATE", "STARTED", "TURNS", "COST", "OPENED", "WHY"}}
	for _, r := range records {
		rows = append(rows, []string{
			r.ID, r.Tier.String(), views.Trigger(r.Trigger, r.Starter(), 0), views.Session(r.State).Text,
			operation.TimeCell(r.StartedAt),
			strconv.Itoa(r.Turns), views.Cost(r.Usage), strconv.Itoa(r.Counts.Opened), r.Reason,
		})
	}
	listing(w, layout{text: []string{"WHY"}, goes: []string{"STARTED BY", "TURNS", "OPENED", "COST", "TIER"}}, rows)
}

func sessionShowCommand(a *commandLine) *cobra.Command {
	var events bool
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a session", Args: usageArgs(cobra.ExactArgs(1)),
		Long: "show prints what is recorded of a session. What its agent and tools wrote is data, never an instruction.",
		RunE: func(cmd *cobra.Command, args []string) error {
			store := a.program().Wire(app.Needs{Records: true}).Store
			id, err := a.fullID(cmd.Context(), record.IDOfSession, args[0])
			if err != nil {
				return err
			}
			record, err := store.AgentSessions.Session(cmd.Context(), id)
			if err != nil {
				return err
			}
			answer := map[string]any{"session": record}
			var said []sessions.Event
			for page := []sessions.Event{{}}; events && len(page) > 0; said = append(said, page...) {
				if page, err = store.AgentSessions.SessionEvents(cmd.Context(), record.ID, len(said)); err != nil {
					return err
				}
			}
			if events {
				answer["events"] = append([]sessions.Event{}, said...)
			}
			return a.print(answer, func(w *strings.Builder) {
				sessionText(w, record)
				for _, e := range said {
					const runes = 2000
					fmt.Fprintf(w, "%5d %s %s %s\n", e.Seq, textscan.Clean(e.Kind, 100), textscan.Clean(e.Tool, 100),
						indented(textscan.Clean(e.Text, runes)))
				}
			})
		},
	}
	cmd.Flags().BoolVar(&events, "events", false, "with all that the agent said and did")
	return cmd
}

// sessionToolsetsFlag adds the flag of commands that start sessions. They share one value, since one of them runs.
func sessionToolsetsFlag(a *commandLine, cmd *cobra.Command) {
	const variable = "CLAUDEOPS_SESSION_TOOLSETS"
	if a.flags[variable] == nil {
		a.flags[variable] = new(string)
	}
	cmd.Flags().StringVar(a.flags[variable], "session-toolsets", "",
		"toolsets that the agent gets, such as pr,definitions ("+variable+")")
}

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
			done := watchSessions(cmd.Context(), a, p)
			out, err := a.act(cmd.Context(), session.ActRun, session.StartRequest{Tier: int(tier), Note: note})
			done()
			if err != nil {
				return err
			}
			ran := out.(session.Ran)
			return tellRun(a, ran.Records, missing, ran.Failure)
		},
	}
	sessionToolsetsFlag(a, cmd)
	cmd.Flags().StringVar(&note, "note", "", "what the agent should know, in your words; - reads standard input")
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
			a.streams.printWarning("%s: %s", f.Name, f.Told())
		}
	}
	return missing
}

// askedTier returns the tier of the session: --tier, which must be exactly one, or CLAUDEOPS_TIER.
func askedTier(a *commandLine) (gitprovider.Tier, error) {
	raw, _ := a.lookupSetting("CLAUDEOPS_TIER")
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
	fmt.Fprintf(w, "session %s: tier %s, %s\n", r.ID, r.Tier, views.Session(r.State))
	fmt.Fprintf(w, "  started %s, %s\n", r.StartedAt.UTC().Format(time.RFC3339),
		cleanLine(views.Trigger(r.Trigger, r.Starter(), 0), maxStarter))
	if why := r.Why(); why != "" {
		fmt.Fprintf(w, "  %s\n", textscan.Clean(why, maxWhy))
	}
	if r.Issue != "" {
		fmt.Fprintf(w, "  started by %s at %s\n", textscan.Clean(r.IssuePerson(), maxWhy), textscan.Clean(r.Issue, maxWhy))
	}
	fmt.Fprintf(w, "  proposals: %d opened, %d reused, %d in dry run, %d refused, %d failed\n",
		r.Counts.Opened, r.Counts.Reused, r.Counts.DryRun, r.Counts.Refused, r.Counts.Failed)
	fmt.Fprintf(w, "  %s, %s, %d denied, model %s\n", fault.Count(r.Turns, "turn", "turns"),
		fault.Count(r.ToolCalls, "tool call", "tool calls"), r.Denied, r.Model)
	if len(r.Toolsets) > 0 {
		fmt.Fprintf(w, "  toolsets: %s\n", strings.Join(r.Toolsets, ", "))
	}
	if r.Boundary != nil {
		fmt.Fprintf(w, "  boundary: %s\n", r.Boundary)
	}
	fmt.Fprintf(w, "  %s\n", usageText(r.Usage))
	for _, what := range r.LeftOut {
		fmt.Fprintf(w, "  left out: %s\n", textscan.Clean(what, 1000))
	}
	if r.Escalation != "" {
		fmt.Fprintf(w, "  %s\n", r.Escalation)
	}
	if r.HandoffProblem != "" {
		fmt.Fprintf(w, "  handoff: %s\n", textscan.Clean(r.HandoffProblem, 1000))
	}
	for _, note := range r.HandoffNotes {
		fmt.Fprintf(w, "  handoff: %s\n", textscan.Clean(note, 1000))
	}
	if h := r.Handoff; h != nil {
		for _, f := range h.Findings {
			fmt.Fprintf(w, "  found: %s (%s)\n", indented(textscan.Clean(f.Text, 2000)), textscan.Clean(f.Key, 100))
		}
	}
	if r.State != sessions.StateSucceeded && r.Stderr != "" {
		fmt.Fprintf(w, "  claude said: %s\n", indented(textscan.Clean(r.Stderr, 1000)))
	}
	if r.Report != "" {
		fmt.Fprintf(w, "  report:\n    %s\n", indented(textscan.Clean(r.Report, 16000)))
	}
}

// maxStarter bounds the name of who or what started a session, in characters.
const maxStarter = 100

// maxWhy bounds how much is shown of why a session ended, in characters.
const maxWhy = 1000

func indented(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}

// How long session stop waits for the end of a session, and how often it looks.
const (
	stopWait = 30 * time.Second
	stopLook = 200 * time.Millisecond
)

func sessionStopCommand(a *commandLine) *cobra.Command {
	return &cobra.Command{
		Use: "stop ID", Short: "End a session that runs, whatever process runs it", Args: usageArgs(cobra.ExactArgs(1)),
		Long: "stop ends the agent and everything that it started; what it has proposed stays. A session that another " +
			"process runs, such\n" +
			"as claudeops serve, is told by the record, at which that process looks every second. The command waits up to 30 seconds.",
		RunE: func(cmd *cobra.Command, args []string) error {
			p := a.program().Wire(app.Needs{Records: true})
			id, err := a.fullID(cmd.Context(), record.IDOfSession, args[0])
			if err != nil {
				return err
			}
			if _, err := a.act(cmd.Context(), session.ActStop, session.StopRequest{ID: id}); err != nil {
				return err
			}
			record, err := awaitSessionEnd(cmd.Context(), p.Store.AgentSessions, id)
			if err != nil {
				return err
			}
			return a.print(map[string]any{"session": record}, func(w *strings.Builder) {
				if record.State == sessions.StateRunning {
					fmt.Fprintf(w, "Session %s was told to end, and has not ended yet.\n", record.ID)
					return
				}
				fmt.Fprintf(w, "Session %s has ended: %s.\n", record.ID, record.State)
			})
		},
	}
}

// awaitSessionEnd returns a session when it has ended, or as it is after a while.
func awaitSessionEnd(ctx context.Context, records sessions.Records, id string) (sessions.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, stopWait)
	defer cancel()
	for {
		record, err := records.Session(ctx, id)
		if err != nil || record.State != sessions.StateRunning {
			return record, err
		}
		select {
		case <-ctx.Done():
			return record, nil
		case <-time.After(stopLook):
		}
	}
}

func sessionJournalCommand(a *commandLine) *cobra.Command {
	var of string
	cmd := &cobra.Command{
		Use: "journal", Short: "Show what agents noted for later sessions, newest first", Args: usageArgs(cobra.NoArgs),
		Long: "journal prints what is kept of it, at most 200 entries. Each session is told of them. Agents wrote them: " +
			"data, never an\n" +
			"instruction. `claudeops prune` removes old ones.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			entries, err := a.program().Wire(app.Needs{Records: true}).Store.AgentSessions.Journal(cmd.Context(),
				sessions.JournalQuery{Session: of})
			if err != nil {
				return err
			}
			return a.print(listOf(entries), func(w *strings.Builder) {
				journalRows(w, entries)
			})
		},
	}
	cmd.Flags().StringVar(&of, "session", "", "only what the session with this id noted")
	return cmd
}

func journalRows(w *strings.Builder, entries []sessions.JournalEntry) {
	rows := [][]string{{"SESSION", "NOTED", "TEXT"}}
	for _, e := range entries {
		const runes = 500
		rows = append(rows, []string{e.Session, operation.TimeCell(e.Time), cleanLine(e.Text, runes)})
	}
	listing(w, layout{folds: true}, rows)
}

// maxUsageDays limits how many days back sums reach.
const maxUsageDays = 366

func sessionUsageCommand(a *commandLine) *cobra.Command {
	var days int
	cmd := &cobra.Command{
		Use: "usage", Short: "Sum the tokens and the cost of sessions, by day and tier", Args: usageArgs(cobra.NoArgs),
		Long: "usage sums what sessions used, by the day (UTC) on which they began and by tier. A cost with \"about\" before " +
			"it is at least in part\n" +
			"our estimate by list prices, or a guess of the client's; \"and more\" says that the price of a model is not known.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if days < 1 || days > maxUsageDays {
				return app.Usage(fmt.Errorf("--days is 1 to %d", maxUsageDays))
			}
			groups, err := a.program().Wire(app.Needs{Records: true}).Store.AgentSessions.UsageByDay(cmd.Context(),
				time.Now().AddDate(0, 0, 1-days))
			if err != nil {
				return err
			}
			report := sessions.NewUsageReport(groups)
			return a.print(report, func(w *strings.Builder) {
				usageRows(w, report)
			})
		},
	}
	cmd.Flags().IntVar(&days, "days", 30, "how many days, today included")
	return cmd
}

func usageRows(w *strings.Builder, report sessions.UsageReport) {
	rows := [][]string{{"DAY", "TIER", "SESSIONS", "INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE", "COST"}}
	for _, g := range report.Days {
		rows = append(rows, usageRow(g.Day, strconv.Itoa(g.Tier), g.Sessions, g.Usage))
	}
	listing(w, layout{goes: []string{"CACHE WRITE", "CACHE READ"}},
		append(rows, usageRow("all", "", report.Total.Sessions, report.Total.Usage)))
}

func usageRow(day, tier string, sessions int, u sessions.Usage) []string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return []string{
		day, tier, strconv.Itoa(sessions), number(u.InputTokens), number(u.OutputTokens), number(u.CacheReadTokens),
		number(u.CacheWriteTokens),
		views.Cost(u),
	}
}

// usageText describes what a session used.
func usageText(u sessions.Usage) string { return u.Words() + "; cost: " + views.Cost(u) }
