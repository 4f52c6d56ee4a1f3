package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
)

// settings are what init has been told.
type settings struct {
	forge, repo, client string
	called              string            // how a shell calls this program
	standard            string            // the environment file that is read without a flag
	values              map[string]string // variables of the environment file
}

// forgeVariables are the variables of a forge that init asks for; "" where it needs none.
type forgeVariables struct{ token, url, root string }

func forgesOfInit() map[string]forgeVariables {
	return map[string]forgeVariables{
		"github": {token: "GITHUB_TOKEN", url: "GITHUB_API_URL"},
		"gitea":  {token: "GITEA_TOKEN", url: "GITEA_URL"},
		"local":  {root: "CLAUDEOPS_LOCAL_ROOT"},
	}
}

// settle finds out what to write: flags first, then the environment, then the person.
func settle(ctx context.Context, a *commandLine, o initOptions) (settings, error) {
	ask := questions{in: a.streams.In, out: a.streams.Err, fromInput: o.tokenFile == "-"}
	s := settings{client: o.client, called: typedName(os.Args[0]), standard: standardFile(a), values: map[string]string{}}
	var err error
	if s.forge, err = ask.choice(ctx, o.forge, "--forge",
		"Where are your repositories: github, gitea (also Forgejo) or local?", "github", "gitea", "local"); err != nil {
		return s, err
	}
	vars := forgesOfInit()[s.forge]
	for _, step := range []func() error{
		func() error { return s.settleAddress(ctx, a, ask, o, vars) },
		func() error { return s.settleToken(ctx, a, ask, o, vars) },
		func() error { return s.settleRepo(ctx, ask, o) },
		func() error { return s.settleTier(ctx, a, ask) },
	} {
		if err := step(); err != nil {
			return s, err
		}
	}
	s.values["CLAUDEOPS_REPOS"] = s.forge + ":" + s.repo
	return s, s.keep(a)
}

// keep takes over what the environment says of the forge and of files, which commands in another folder have to find.
func (s settings) keep(a *commandLine) (err error) {
	if value := a.said("CLAUDEOPS_FORGE_PLAIN_HTTP"); value != "" {
		s.values["CLAUDEOPS_FORGE_PLAIN_HTTP"] = value
	}
	for _, name := range []string{"CLAUDEOPS_CA_FILE", "CLAUDEOPS_POLICY", "CLAUDEOPS_STATE_DIR"} {
		value := a.said(name)
		if value == "" {
			continue
		}
		if s.values[name], err = filepath.Abs(value); err != nil {
			return err
		}
	}
	return nil
}

func (s settings) settleAddress(ctx context.Context, a *commandLine, ask questions, o initOptions,
	vars forgeVariables) error {
	switch s.forge {
	case "local":
		root, err := ask.text(ctx, a.said(vars.root), "--local-root",
			"Which folder holds the repositories, as owner/name.git?")
		if err == nil {
			root, err = filepath.Abs(root)
		}
		s.values[vars.root] = root
		return err
	case "gitea":
		said, _ := a.process(vars.url)
		address, err := ask.text(ctx, cmp.Or(o.url, said), "--url", "Its address, such as https://git.example.org?")
		s.values[vars.url] = address
		return err
	}
	said, _ := a.process(vars.url)
	if address := cmp.Or(o.url, said); address != "" { // github.com needs none
		s.values[vars.url] = address
	}
	return nil
}

func (s settings) settleToken(ctx context.Context, a *commandLine, ask questions, o initOptions,
	vars forgeVariables) error {
	if vars.token == "" {
		if o.tokenFile != "" {
			return app.Usage(errors.New("--token-file goes with github and gitea: local repositories need no token"))
		}
		return nil
	}
	token, _ := a.process(vars.token)
	if o.tokenFile != "" {
		text, err := a.readInput(o.tokenFile)
		if err != nil {
			return err
		}
		token = strings.TrimSpace(string(text))
	}
	token, err := ask.secret(ctx, token, "--token-file",
		"A token that may write contents and pull requests there (it is not shown):")
	if err == nil && (token == "" || strings.ContainsAny(token, " \t\r\n'\"")) {
		return app.Usage(errors.New("the token must be one word"))
	}
	s.values[vars.token] = token
	return err
}

func (s *settings) settleRepo(ctx context.Context, ask questions, o initOptions) (err error) {
	s.repo, err = ask.text(ctx, o.repo, "--repo", "Which repository may agents propose changes to, as owner/name?")
	if err == nil {
		_, err = parseRepo(s.repo)
	}
	return err
}

func (s settings) settleTier(ctx context.Context, a *commandLine, ask questions) error {
	said := a.said("CLAUDEOPS_TIER")
	if said == "" && !ask.canAsk() {
		said = "2"
	}
	tier, err := ask.choice(ctx, said, "--tier",
		"What may agents do: 1 look, 2 propose changes of at most 3 files, 3 of at most 100?", "1", "2", "3")
	s.values["CLAUDEOPS_TIER"] = tier
	return err
}

// commandLine is one that reads what would be written, instead of an environment file.
func (s settings) commandLine(a *commandLine, dryRun bool) *commandLine {
	lookup := func(name string) (string, bool) {
		if name == "CLAUDEOPS_DRY_RUN" && dryRun {
			return "true", true
		}
		if value, ok := s.values[name]; ok {
			return value, true
		}
		return a.process(name)
	}
	return &commandLine{streams: a.streams, process: lookup, lookup: lookup, args: a.args, cmd: a.cmd}
}

// file is the text of the environment file.
func (s settings) file() []byte {
	var b strings.Builder
	b.WriteString(
		"# Written by claudeops init. Every claudeops command of this user reads it; variables of the environment win.\n" +
			"# docs/reference/configuration.md lists what may stand here.\n")
	names := make([]string, 0, len(s.values))
	for name := range s.values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "%s=%s\n", name, s.values[name])
	}
	return []byte(b.String())
}

// firstChange is a request of create_pr that any repository can take.
func (s settings) firstChange() ([]byte, error) {
	owner, name, err := splitRepo(s.repo)
	if err != nil {
		return nil, err
	}
	content := "# Disk space\n\n- Run `df -h`.\n- Warn when a file system is more than 80 % full.\n"
	return json.Marshal(prflow.CreateRequest{
		RepoOwner: owner, RepoName: name, ChangeType: "check", Title: "Check disk space", Preview: prflow.PreviewFull,
		Body: "A first check. Agents find out before a disk is full.",
		Files: []prflow.FileRequest{{Path: "checks/disk-space.md", Action: string(gitprovider.ActionCreate),
			Content: &content}},
	})
}
