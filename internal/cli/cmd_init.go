package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/mcpconfig"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/git"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

// initName is the command that writes the environment file.
const initName = "init"

// initOptions are the answers that a person gave by flags; init asks for those that are "", where there is a terminal.
type initOptions struct {
	forge, url, tokenFile, repo, scope, client string
	replace                                    bool
}

func initCommand(a *commandLine) *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use:   initName,
		Short: "Set up Claude Ops: forge, token, repository, tier and the agent's configuration",
		Long: "init asks where your repositories are, which one agents may propose changes to, how Claude Ops signs in there, and the\n" +
			"tier of your agents. At GitHub it can make a GitHub App: your browser opens, and no token is pasted. It looks where the\n" +
			"repository has procedures, and asks which of them agents may change. It tries all of it and shows a first change as a\n" +
			"dry run. Only then it writes the environment file, which every claudeops command reads, a policy file if you chose\n" +
			"folders, and a configuration for Claude Code, which names that file and holds no token. Flags answer questions beforehand; without a terminal they have to answer all of them.",
		Example: "  claudeops init\n" +
			"  claudeops init --forge local --local-root /srv/git --repo joe/home-cluster --scope docs/runbooks,.claude/skills\n" +
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
	f.StringVar(&o.scope, "scope", "",
		"folders of the repository that agents may change, with commas between; auto: those of known kinds (writes policy.yaml)")
	f.StringVar(&o.client, "client", "claude", "the agent's program: "+clientNames())
	f.BoolVar(&o.replace, "replace", false, "replace the files of an earlier init")
	return cmd
}

func runInit(ctx context.Context, a *commandLine, o initOptions) error {
	place, err := placeOf(a, o)
	if err != nil {
		return err
	}
	i := newInterview(ctx, a, o, place)
	s, err := i.askAll(ctx)
	if err != nil {
		return err
	}
	tried, err := i.tryUntilItWorks(ctx, &s)
	if err != nil {
		return err
	}
	if err := place.writeSettings(s); err != nil {
		return err
	}
	opened, err := i.firstPullRequest(ctx, s, &tried)
	answer := map[string]any{
		"findings": tried.findings, "environment_file": place.environment, "client_file": place.client,
		"preview": tried.preview, "skipped": tried.skipped,
	}
	return errors.Join(err, a.print(answer, func(w *strings.Builder) {
		if !tried.shown {
			describeTry(w, tried.findings, tried.preview, tried.skipped)
		}
		place.describe(w, s, tried.preview, opened)
	}))
}

// trial is the result of trying the settings.
type trial struct {
	findings []doctor.Finding
	preview  *prflow.CreateResult // of a first change in a dry run; nil if there was none
	skipped  string               // why there was none
	shown    bool                 // a person has seen it before they were asked whether to open it
}

// tryUntilItWorks tries the settings, and has a person change what does not work. Nothing that was answered is lost.
func (i *interview) tryUntilItWorks(ctx context.Context, s *initSettings) (trial, error) {
	for {
		if err := i.chooseScope(ctx, s); err != nil {
			return trial{}, err
		}
		fmt.Fprintf(i.a.streams.Err, "\nTrying it (no settings are written yet) ...\n")
		tried, err := tryOut(ctx, i.a, *s)
		switch {
		case ctx.Err() != nil:
			return tried, fault.New(fault.Timeout, "interrupted; no settings were written")
		case err == nil || !i.ask.canAsk():
			return tried, err
		}
		i.showFailure(capital(inAnswersWords(fault.From(err).Message)))
		again, askErr := i.retry(ctx, s)
		if askErr != nil {
			return tried, askErr
		}
		if !again {
			return tried, err
		}
	}
}

// showFailure prints why a trial failed, in lines that fit the terminal.
func (i *interview) showFailure(message string) {
	var text strings.Builder
	for line := range strings.SplitSeq(message, "\n") {
		if part, indented := strings.CutPrefix(line, "  "); indented {
			sentences(&text, [][]string{{"", part}})
			continue
		}
		text.WriteString(line + "\n")
	}
	fmt.Fprintf(i.a.streams.Err, "\n%s\n", surfaceOf(i.a, i.a.streams.Err).lay(harmless(text.String())))
}

// inAnswersWords replaces names of variables, which the person did not type, by the terms of init's questions.
func inAnswersWords(message string) string {
	return strings.NewReplacer(
		"GITHUB_APP_PRIVATE_KEY", "the app's key", "GITHUB_APP_ID", "the app's ID",
		"GITHUB_TOKEN", "the token", "GITEA_TOKEN", "the token", "GITHUB_API_URL", "the address", "GITEA_URL", "the address",
		"CLAUDEOPS_LOCAL_ROOT", "the folder", "CLAUDEOPS_REPOS", "the repository", "CLAUDEOPS_TIER", "the tier",
	).Replace(message)
}

// tryOut asks what would stop a pull request, the forge included, and for a first change in a dry run. Its records are
// in a folder that is removed afterwards.
func tryOut(ctx context.Context, a *commandLine, s initSettings) (t trial, err error) {
	folder, err := files.MakeTemporary("", "claudeops-init-")
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()
	if s, err = s.withPolicyIn(folder.Path); err != nil {
		return t, err
	}
	if t.findings, err = tryDoctor(ctx, a, s, folder.Path); err != nil {
		return t, err
	}
	if t.preview, t.skipped, err = s.propose(ctx, a, true, folder.Path); err != nil {
		return t, fmt.Errorf("the first change would be refused, so no settings were written: %w", err)
	}
	return t, nil
}

func tryDoctor(ctx context.Context, a *commandLine, s initSettings, stateDir string) ([]doctor.Finding, error) {
	trial := s.commandLine(a, false, stateDir)
	findings, err := findingsOf(ctx, trial, doctorOptions{online: true})
	err = errors.Join(err, trial.program().Close())
	var told strings.Builder
	stops := func(f doctor.Finding) bool {
		return f.Blocks && (f.Name != "tier" || s.values["CLAUDEOPS_TIER"] != "1") // which a person may choose
	}
	noForge := slices.ContainsFunc(findings, func(f doctor.Finding) bool {
		return stops(f) && strings.HasPrefix(f.Name, "provider ")
	})
	for _, f := range findings {
		if stops(f) && (!noForge || !strings.HasPrefix(f.Name, "repository ")) { // which fails for the same reason
			fmt.Fprintf(&told, "\n  %s: %s", f.Name, f.Told())
		}
	}
	if err == nil && told.Len() > 0 {
		return nil, fault.New(fault.Misconfigured, "pull requests would be stopped, so no settings were written:%s",
			inAnswersWords(told.String()))
	}
	return findings, err
}

// propose asks for a first change. skipped says why it did not, "" if it did.
func (s initSettings) propose(ctx context.Context, a *commandLine, dryRun bool, stateDir string) (
	result *prflow.CreateResult, skipped string, err error) {
	if s.values["CLAUDEOPS_TIER"] == "1" {
		return nil, "tier 1 may only look; agents at tier 2 may propose changes", nil
	}
	caller := s.commandLine(a, dryRun, stateDir)
	request, err := s.firstChange(ctx, caller)
	if err != nil || request == nil {
		return nil, "the folders have no file that agents of this tier may change", errors.Join(err, caller.program().Close())
	}
	created, err := askFor[prflow.CreateResult](ctx, caller, prflow.ToolCreatePR, request)
	closed := caller.program().Close()
	switch code := fault.CodeOf(err); {
	case err != nil && (code == fault.Conflict || code == fault.DuplicatePR || code == fault.NoChange ||
		code == fault.CooldownActive):
		return nil, "the repository has had this first change before", closed
	case err != nil:
		return nil, "", err
	}
	return &created, "", closed
}

// firstPullRequest opens the first change if the person wants it. Otherwise it is kept as a dry run, which a person can
// promote later.
func (i *interview) firstPullRequest(
	ctx context.Context,
	s initSettings,
	tried *trial,
) (opened *prflow.CreateResult, err error) {
	if tried.preview == nil {
		return nil, nil
	}
	if i.ask.canAsk() {
		var text strings.Builder
		describeTry(&text, tried.findings, tried.preview, "")
		text.WriteString("\n")
		fmt.Fprint(i.a.streams.Err, surfaceOf(i.a, i.a.streams.Err).lay(harmless(text.String())))
		tried.shown = true
	}
	yes, err := i.ask.agree(ctx, "Open this first pull request now?", true)
	if err != nil {
		return nil, err
	}
	result, skipped, err := s.propose(ctx, i.a, !yes, "")
	switch {
	case err != nil:
		return nil, fmt.Errorf("the settings are written; the first change was refused: %w", err)
	case result == nil:
		tried.preview, tried.skipped = nil, skipped
	case yes:
		return result, nil
	default:
		tried.preview = result
	}
	return nil, nil
}

func describeTry(w *strings.Builder, findings []doctor.Finding, preview *prflow.CreateResult, skipped string) {
	var rows [][]string
	for _, f := range findings {
		if strings.HasPrefix(f.Name, "agents' ") { // sessions of `claudeops run`, which doctor reports
			continue
		}
		if f.Status == doctor.Warning || strings.HasPrefix(f.Name, "repository ") {
			rows = append(rows, findingRows(f)...)
		}
	}
	sentences(w, rows)
	w.WriteString("\n")
	if preview == nil {
		fmt.Fprintf(w, "No first change was tried: %s.\n", skipped)
		return
	}
	w.WriteString("A first change, as an agent would propose it:\n\n")
	describeCreated(w, *preview)
}

// initPaths holds the paths that init writes.
type initPaths struct{ environment, client string }

// settingsFolder returns the folder of the environment file, and of what belongs to it.
func (p initPaths) settingsFolder() string { return filepath.Dir(p.environment) }

// placeOf refuses files that are there already, before anything is asked.
func placeOf(a *commandLine, o initOptions) (initPaths, error) {
	var p initPaths
	if _, err := findClient(o.client); err != nil {
		return p, err
	}
	p.environment, _ = a.environmentPath(a.process)
	if p.environment == "" {
		return p, app.Usage(errors.New("neither HOME (on Windows APPDATA) nor XDG_CONFIG_HOME is set; " +
			"name the file to write with --env-file"))
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

// writeSettings writes both files, each whole or not at all; the one that the other names comes first.
func (p initPaths) writeSettings(s initSettings) error {
	if err := files.MkdirAll(filepath.Dir(p.environment), 0o700); err != nil {
		return fault.Wrap(err, fault.Misconfigured, "the folder of %s cannot be made: %s", p.environment, err)
	}
	if s.writesPolicy {
		if err := files.Replace(p.policyFile(), s.policyText(), 0o600); err != nil {
			return fault.Wrap(err, fault.Misconfigured, "%s cannot be written: %s", p.policyFile(), err)
		}
	}
	if err := files.Replace(p.environment, s.environmentText(), 0o600); err != nil {
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
func (p initPaths) clientText() (string, error) {
	server, err := ourServer([]string{"mcp-server"})
	if err != nil {
		return "", err
	}
	server.Args = append(server.Args, "--env-file", p.environment)
	entry := entryOf(mcpClient{always: true}, server, nil, true)
	delete(entry, "env")
	return indentedJSON(map[string]any{"mcpServers": map[string]any{app.OurName: entry}})
}

func (p initPaths) describe(w *strings.Builder, s initSettings, preview, opened *prflow.CreateResult) {
	id := ""
	switch {
	case opened != nil:
		w.WriteString("\n")
		describeCreated(w, *opened)
	case preview != nil:
		id = preview.RequestID
	}
	fmt.Fprintf(w, "\nWrote %s (only you can read it; every claudeops command reads it)\n", p.environment)
	if s.writesPolicy {
		fmt.Fprintf(w, "Wrote %s (what agents may change)\n", p.policyFile())
	}
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

// standardFile returns the path of the environment file that is read without a flag.
func standardFile(a *commandLine) string { return config.EnvironmentFile(a.process) }

// found holds the defaults that init offers: the repository that the working folder was cloned from, and logins of
// other programs for the forges.
type found struct {
	forge   string // "github", "gitea"; "" if nothing was found
	address string // of Gitea or Forgejo; the scheme is a guess
	repo    string // owner/name

	gh  string            // the path of GitHub's command line; "" if it is not installed
	tea map[string]string // tokens of Gitea's command line by host
	env func(string) (string, bool)
}

// Bounds of looking around.
const (
	lookTime    = 5 * time.Second
	maxTeaFile  = 64 << 10
	maxGHAnswer = 4 << 10
)

// lookAround never fails: what cannot be read is not offered. No token is asked for here.
func lookAround(ctx context.Context, a *commandLine) found {
	f := found{env: a.process, tea: map[string]string{}}
	path, _ := a.process("PATH")
	runner := &git.Runner{Env: []string{"PATH=" + path}}
	result, err := runner.Run(ctx, git.Call{Dir: ".", Args: []string{"config", "--get", "remote.origin.url"}},
		git.Limits{Time: lookTime, Output: 4 << 10})
	if err == nil && result.Code == 0 {
		f.clonedFrom(strings.TrimSpace(string(result.Out)))
	}
	f.gh, _ = processtree.Find("gh")
	f.readTea()
	return f
}

// clonedFrom takes forge and repository from a clone URL. A user name or token in it is left out.
func (f *found) clonedFrom(address string) {
	if u, err := url.Parse(address); err == nil && u.User != nil && u.Scheme != "ssh" {
		u.User = nil
		address = u.String()
	}
	remote, err := gitprovider.ParseRemote(address)
	if err != nil || remote.Host == gitprovider.HostLocal {
		return
	}
	parts := strings.Split(remote.Path, "/")
	if len(parts) < 2 {
		return
	}
	f.forge, f.repo = "gitea", strings.Join(parts[len(parts)-2:], "/")
	if remote.Host == "github.com" {
		f.forge = "github"
		return
	}
	host, _, _ := strings.Cut(remote.Host, ":") // a port of ssh is not that of the pages
	scheme := "https"
	if strings.HasPrefix(address, "http") {
		host = remote.Host
		scheme, _, _ = strings.Cut(address, ":")
	}
	f.address = scheme + "://" + strings.Join(append([]string{host}, parts[:len(parts)-2]...), "/")
}

func (f *found) describe(w io.Writer) {
	if f.repo == "" {
		return
	}
	where := f.address
	if f.forge == "github" {
		where = "https://github.com"
	}
	fmt.Fprintf(w, "This folder was cloned from %s at %s: Enter takes what it says.\n\n", f.repo, where)
}

// teaConfig is the file of Gitea's command line, as far as it is read here.
type teaConfig struct {
	Logins []struct {
		URL   string `yaml:"url"`
		Token string `yaml:"token"`
	} `yaml:"logins"`
}

func (f *found) readTea() {
	folder := config.FoldersOf(f.env).Config()
	if folder == "" {
		return
	}
	text, _, err := files.ReadPath(filepath.Join(folder, "tea", "config.yml"), maxTeaFile)
	var tea teaConfig
	if err != nil || yaml.Unmarshal(text, &tea) != nil {
		return
	}
	for _, login := range tea.Logins {
		if u, err := url.Parse(login.URL); err == nil && login.Token != "" {
			f.tea[u.Host] = login.Token
		}
	}
}

// offeredToken offers the login of tea; "" if there is none, or the person would rather give another one.
func (f *found) offeredToken(ctx context.Context, ask questions, forge, address string) (string, error) {
	u, err := url.Parse(address)
	if forge != "gitea" || err != nil || f.tea[u.Host] == "" {
		return "", nil
	}
	yes, err := ask.agree(ctx, "Use the token that tea, Gitea's command line, has for "+u.Host+
		"? Pull requests are then opened in your own name, and you cannot approve them.", false)
	if err != nil || !yes {
		return "", err
	}
	return f.tea[u.Host], nil
}

func (f *found) ghToken(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	cmd := processtree.Cmd(ctx, processtree.Command{Path: f.gh, Args: []string{"gh", "auth", "token"}})
	for _, name := range append(config.HomeVariables(), "PATH", "XDG_CONFIG_HOME", "GH_CONFIG_DIR",
		"DBUS_SESSION_BUS_ADDRESS") {
		if value, ok := f.env(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("run gh auth login first (%w)", err)
	}
	return strings.TrimSpace(string(out[:min(len(out), maxGHAnswer)])), nil
}
