package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/ops/admin"
	"github.com/claudeops/claudeops/internal/web/dashboard"
	"github.com/claudeops/claudeops/internal/web/views"
)

// statusAnswer is the answer of claudeops status, as JSON.
type statusAnswer struct {
	dashboard.Front
	Paused  []admin.PauseEntry  `json:"paused"`
	Servers []app.RunningServer `json:"servers"` // on this machine, with this state folder
}

func statusCommand(a *commandLine) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Say what waits, what is broken, what runs and what is paused",
		Long: "status answers in ten lines what the overview of the dashboard answers: what waits for a person, the most\n" +
			"urgent first, what is broken, which sessions run, what is paused, and where the dashboard is. It asks no forge.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runStatus(cmd.Context(), a) },
	}
}

func runStatus(ctx context.Context, a *commandLine) error {
	p := a.program().Wire(app.Needs{Records: true})
	front, err := app.Front(ctx, a.program(), p)
	if err != nil {
		return err
	}
	last, err := p.Store.Pauses().Pauses(ctx)
	if err != nil {
		return err
	}
	answer := statusAnswer{front, admin.PauseEntries(last), app.RunningServers(p)}
	return a.print(answer, func(w *strings.Builder) { describeFront(w, answer, p.Store.Now()) })
}

// maxStatusItems bounds the items that wait and are named, so that the answer has ten lines at most.
const maxStatusItems = 4

func describeFront(w *strings.Builder, s statusAnswer, now time.Time) {
	rows := [][]string{{"Waiting", waitingText(s.Waiting, now)}}
	for _, i := range s.Waiting.First[:min(len(s.Waiting.First), maxStatusItems)] {
		rows = append(rows, []string{"", "- " + itemText(i)})
	}
	broken := "nothing"
	if n := len(s.Broken); n > 0 {
		broken = s.Broken[0].Title + ": " + cleanLine(s.Broken[0].Why, 160) + moreOf(n-1)
	}
	running := "no session"
	if n := len(s.Running); n > 0 {
		running = fmt.Sprintf("%s, %s (%s)%s", s.Running[0].Title, views.Age(now.Sub(s.Running[0].Since)), s.Running[0].Why,
			moreOf(n-1))
	}
	paused := "nothing"
	if n := len(s.Paused); n > 0 {
		paused = fmt.Sprintf("%s by %s: %q%s", s.Paused[0].Scope(), cleanLine(s.Paused[0].By, 60),
			cleanLine(s.Paused[0].Why, 100), moreOf(n-1))
	}
	where := "no server runs on this machine: claudeops serve starts one"
	if n := len(s.Servers); n > 0 {
		where = s.Servers[0].URL + "/" + moreOf(n-1) + "; claudeops dashboard prints an address to sign in"
	}
	rows = append(rows, []string{"Broken", broken}, []string{"Running", running}, []string{"Paused", paused},
		[]string{"Mode", s.Mode}, []string{"Dashboard", where})
	sentences(w, rows)
}

func waitingText(s dashboard.FrontWaiting, now time.Time) string {
	if s.All == 0 {
		return "nothing"
	}
	out := fmt.Sprintf("%d: %d broken, %d to merge, %d to review, %s", s.All, s.Broken, s.Merge, s.Review,
		fault.Count(int(s.DryRuns), "dry run", "dry runs"))
	if !s.Oldest.IsZero() {
		out += "; oldest " + views.Age(now.Sub(s.Oldest))
	}
	return out
}

func itemText(i dashboard.FrontItem) string {
	out := cleanLine(i.Title, 60)
	if i.Repo != "" {
		out += " (" + cleanLine(i.Repo, 60)
		if i.Number > 0 {
			out += fmt.Sprintf(" #%d", i.Number)
		}
		out += ")"
	}
	if why := cleanLine(i.Why, 80); why != "" {
		out += ": " + why
	}
	return out
}

// moreOf names what is not named.
func moreOf(n int) string {
	if n < 1 {
		return ""
	}
	return fmt.Sprintf(", and %d more", n)
}

func dashboardCommand(a *commandLine) *cobra.Command {
	return &cobra.Command{
		Use:   "dashboard",
		Short: "Print an address that signs your browser in once",
		Long: "dashboard asks the claudeops serve that runs on this machine with the same state folder for an address that\n" +
			"signs a browser in once, within ten minutes. It asks over a socket. The server answers the user who runs it, and\n" +
			"root, if the calling process can read the state folder: an agent within a boundary cannot.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runDashboard(cmd.Context(), a) },
	}
}

func runDashboard(ctx context.Context, a *commandLine) error {
	p := a.program().Wire(app.Needs{})
	var err error = plainFailure{fmt.Errorf("no server runs on this machine with the state folder %s; start one with "+
		"`claudeops serve`, or name its folder with --state-dir", p.Cfg.Records.Dir), fault.ExitInternal}
	for _, s := range app.RunningServers(p) {
		var address app.SignInAddress
		if address, err = app.NewSignInAddress(ctx, s); err == nil {
			return a.print(address, func(w *strings.Builder) {
				fmt.Fprintf(w, "Sign in once, until %s, at %s\n", address.Until.Local().Format("15:04"), address.URL)
			})
		}
	}
	return err
}
