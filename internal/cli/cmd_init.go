package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/mcpconfig"
	"github.com/claudeops/claudeops/internal/system/files"
)

// initName is the command that writes the environment file.
const initName = "init"

// initOptions are what a person said by flags; "" is asked for, where there is a terminal.
type initOptions struct {
	forge, url, tokenFile, repo, client string
	replace                             bool
}

func initCommand(a *commandLine) *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use:   initName,
		Short: "Set up Claude Ops: forge, token, repository, tier and the agent's configuration",
		Long: "init asks where your repositories are, which token to use, which repository agents may propose changes to, and the\n" +
			"tier of your agents. It tries all of it and shows a first change as a dry run. Only then it writes the " +
			"environment\n" +
			"file, which every claudeops command reads, and a configuration for Claude Code, which names that file and holds no\n" +
			"token. Flags answer questions beforehand; without a terminal they have to answer all of them.",
		Example: "  claudeops init\n" +
			"  claudeops init --forge gitea --url https://git.example.org --token-file token.txt --repo joe/home-cluster --tier 2\n" +
			"  claudeops init --forge github --token-file - --repo joe/home-cluster < token.txt\n" +
			"  claudeops init --forge local --local-root /srv/git --repo joe/home-cluster --client codex",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runInit(cmd.Context(), a, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.forge, "forge", "", "where the repositories are: github, gitea (also Forgejo) or local")
	f.StringVar(&o.url, "url", "", "address of Gitea or Forgejo, or of the API of GitHub Enterprise")
	f.StringVar(&o.tokenFile, "token-file", "",
		"file with the forge's token; - reads standard input (default: GITHUB_TOKEN or GITEA_TOKEN)")
	f.StringVar(&o.repo, "repo", "", "repository that agents may propose changes to, as owner/name")
	f.StringVar(&o.client, "client", "claude", "the agent's program: "+clientNames())
	f.BoolVar(&o.replace, "replace", false, "replace the environment file of an earlier init")
	return cmd
}

func runInit(ctx context.Context, a *commandLine, o initOptions) error {
	place, err := placeOf(a, o)
	if err != nil {
		return err
	}
	s, err := settle(ctx, a, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.streams.Err, "\nTrying it (nothing is written yet) ...\n")
	findings, err := tryDoctor(ctx, a, s)
	if err != nil {
		return err
	}
	preview, skipped, err := tryProposal(ctx, a, s)
	if err != nil {
		return fmt.Errorf("the first change would be refused, so nothing was written: %w", err)
	}
	if ctx.Err() != nil {
		return fault.New(fault.Timeout, "interrupted; nothing was written")
	}
	if err := place.write(s); err != nil {
		return err
	}
	answer := map[string]any{
		"findings": findings, "environment_file": place.environment, "client_file": place.client, "preview": preview,
		"skipped": skipped,
	}
	return a.print(answer, func(w *strings.Builder) {
		describeTry(w, findings, preview, skipped)
		place.describe(w, s, preview)
	})
}

// tryDoctor asks what would stop a pull request, the forge included.
func tryDoctor(ctx context.Context, a *commandLine, s settings) (findings []doctor.Finding, err error) {
	trial := s.commandLine(a, false)
	findings, err = findingsOf(ctx, trial, doctorOptions{online: true})
	err = errors.Join(err, trial.program().Close())
	var told strings.Builder
	for _, f := range findings {
		if f.Blocks && (f.Name != "tier" || s.values["CLAUDEOPS_TIER"] != "1") { // which a person may choose
			fmt.Fprintf(&told, "\n  %s: %s", f.Name, f.Detail)
		}
	}
	if err == nil && told.Len() > 0 {
		return nil, fault.New(fault.Misconfigured, "pull requests would be stopped, so nothing was written:%s", told.String())
	}
	return findings, err
}

// tryProposal asks for a first change in a dry run. skipped says why it did not, "" if it did.
func tryProposal(ctx context.Context, a *commandLine, s settings) (preview *prflow.CreateResult, skipped string,
	err error) {
	if s.values["CLAUDEOPS_TIER"] == "1" {
		return nil, "tier 1 may only look; agents at tier 2 may propose changes", nil
	}
	request, err := s.firstChange()
	if err != nil {
		return nil, "", err
	}
	trial := s.commandLine(a, true)
	result, err := askFor[prflow.CreateResult](ctx, trial, prflow.ToolCreatePR, request)
	closed := trial.program().Close()
	switch code := fault.CodeOf(err); {
	case err != nil && (code == fault.Conflict || code == fault.DuplicatePR || code == fault.NoChange ||
		code == fault.CooldownActive):
		return nil, "the repository has had this first change before", closed
	case err != nil:
		return nil, "", err
	}
	return &result, "", closed
}

func describeTry(w *strings.Builder, findings []doctor.Finding, preview *prflow.CreateResult, skipped string) {
	var rows [][]string
	for _, f := range findings {
		if strings.HasPrefix(f.Name, "agents' ") { // those that `claudeops run` starts, which doctor tells of
			continue
		}
		if f.Status == doctor.Warning || strings.HasPrefix(f.Name, "repository ") {
			rows = append(rows, []string{f.Status, f.Name, f.Detail})
		}
	}
	columns(w, rows)
	w.WriteString("\n")
	if preview == nil {
		fmt.Fprintf(w, "No first change was tried: %s.\n", skipped)
		return
	}
	w.WriteString("A first change, as an agent would propose it:\n\n")
	describeCreated(w, *preview)
}

// place is where init writes.
type place struct{ environment, client string }

// placeOf refuses files that are there already, before anything is asked.
func placeOf(a *commandLine, o initOptions) (place, error) {
	var p place
	if _, err := findClient(o.client); err != nil {
		return p, err
	}
	p.environment, _ = a.environmentPath(a.process)
	if p.environment == "" {
		return p, app.Usage(errors.New("neither HOME nor XDG_CONFIG_HOME is set; name the file to write with --env-file"))
	}
	path, err := filepath.Abs(p.environment)
	if err != nil {
		return p, err
	}
	p.environment = path
	if o.client == "claude" {
		p.client = filepath.Join(filepath.Dir(p.environment), "mcp.json")
	}
	for _, name := range []string{p.environment, p.client} {
		if _, err := files.Lstat(name); name != "" && err == nil && !o.replace {
			return p, app.Usage(fmt.Errorf("%s is there already; look at it with claudeops doctor, or replace it with --replace",
				name))
		}
	}
	return p, nil
}

// write writes both files, each whole or not at all; the one that the other names comes first.
func (p place) write(s settings) error {
	if err := files.MkdirAll(filepath.Dir(p.environment), 0o700); err != nil {
		return fault.Wrap(err, fault.Misconfigured, "the folder of %s cannot be made: %s", p.environment, err)
	}
	if err := files.Replace(p.environment, s.file(), 0o600); err != nil {
		return fault.Wrap(err, fault.Misconfigured, "%s cannot be written: %s", p.environment, err)
	}
	if p.client == "" {
		return nil
	}
	text, err := p.clientText()
	if err == nil {
		err = files.Replace(p.client, []byte(text), 0o600)
	}
	if err != nil {
		return fault.Wrap(err, fault.Misconfigured, "%s was written, and %s cannot be: %s", p.environment, p.client, err)
	}
	return nil
}

// clientText is Claude Code's configuration: it names the environment file and holds no variable.
func (p place) clientText() (string, error) {
	server, err := ourServer()
	if err != nil {
		return "", err
	}
	server.Args = append(server.Args, "--env-file", p.environment)
	entry := entryOf(mcpClient{always: true}, server, nil, true)
	delete(entry, "env")
	return indentedJSON(map[string]any{"mcpServers": map[string]any{app.OurName: entry}})
}

func (p place) describe(w *strings.Builder, s settings, preview *prflow.CreateResult) {
	id := ""
	if preview != nil {
		id = preview.RequestID
	}
	fmt.Fprintf(w, "\nWrote %s (only you can read it; every claudeops command reads it)\n", p.environment)
	name := s.called
	if p.environment != s.standard {
		name += " " + mcpconfig.ShellLine([]string{"--env-file", p.environment})
	}
	w.WriteString("\nNext:\n\n")
	if p.client != "" {
		fmt.Fprintf(w, "  claude --mcp-config %s --strict-mcp-config --allowedTools 'mcp__claudeops__*'\n",
			mcpconfig.ShellLine([]string{p.client}))
	} else {
		fmt.Fprintf(w, "  %s mcp-config --client %s    # prints what to put into the client's configuration\n", name,
			s.client)
	}
	if id != "" {
		fmt.Fprintf(w, "  %s pr promote %s    # opens the first change as a pull request\n", name, id)
	}
	fmt.Fprintf(w, "  %s serve    # the dashboard; prints an address that signs you in\n", name)
}

// standardFile is where the environment file is read without a flag.
func standardFile(a *commandLine) string { return config.EnvironmentFile(a.process) }
