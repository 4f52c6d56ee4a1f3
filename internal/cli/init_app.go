package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

// Variables of a GitHub App.
const (
	appIDVariable  = "GITHUB_APP_ID"
	appKeyVariable = "GITHUB_APP_PRIVATE_KEY_FILE"
)

// githubAccess asks how Claude Ops signs in at GitHub: as an app, by the token of gh, or by another token, for which
// the result is "". isApp says that the settings have an app now.
func (i *interview) githubAccess(ctx context.Context, s *initSettings) (token string, isApp bool, err error) {
	delete(s.values, appIDVariable)
	delete(s.values, appKeyVariable)
	const made, gh, paste = "app", "gh", "token"
	options := []option{{value: made, text: "a new GitHub App: your browser opens, and you can approve what it proposes"}}
	usual, kept := made, i.keptApps()
	for id, key := range kept {
		options = append(options, option{value: id, text: "the GitHub App " + id + ", whose key is in " + key})
		usual = id
	}
	if i.found.gh != "" && s.values["GITHUB_API_URL"] == "" {
		options = append(options, option{value: gh,
			text: "the token of gh: pull requests are in your own name, and you cannot approve them"})
	}
	options = append(options, option{value: paste, text: "a token that you paste"})
	how, err := i.ask.pick(ctx, "", question{text: "How does Claude Ops sign in at GitHub?", usual: usual}, options)
	switch {
	case err != nil:
		return "", false, err
	case how == made:
		return "", true, i.makeApp(ctx, s)
	case how == gh:
		if token, err = i.found.ghToken(ctx); err != nil {
			fmt.Fprintf(i.ask.out, "  gh gave no token: %s.\n", err)
		}
		return token, false, nil
	case how == paste:
		return "", false, nil
	}
	s.useApp(how, kept[how])
	return "", true, nil
}

func (s *initSettings) useApp(id, key string) {
	delete(s.values, "GITHUB_TOKEN")
	s.values[appIDVariable], s.values[appKeyVariable] = id, key
}

// keptApps returns the private keys that an earlier init has kept, by the ID of their app.
func (i *interview) keptApps() map[string]string {
	kept := map[string]string{}
	for _, path := range files.Glob(i.place.settingsFolder(), appKeyName("*")) {
		if id := regexp.MustCompile(`-(\d+)\.pem$`).FindStringSubmatch(path); id != nil {
			kept[id[1]] = path
		}
	}
	return kept
}

// appKeyName returns the file of an app's private key, beside the environment file. It says whose the key is.
func appKeyName(id string) string { return "github-app-" + id + ".pem" }

// makeApp has the person make an app in the browser. If it does not come to an end, they choose anew.
func (i *interview) makeApp(ctx context.Context, s *initSettings) error {
	owner, _, err := splitRepo(s.repo)
	if err != nil {
		return err
	}
	whose, err := i.ask.pick(ctx, "", question{text: "Whose is " + s.repo + "? The app must belong to the same.",
		usual: "mine"}, []option{
		{value: "mine", text: "it is in my own account", names: []string{"own", "me", owner}},
		{value: "organisation", text: owner + " is an organisation", names: []string{"organization", "org"}},
	})
	if err != nil {
		return err
	}
	trial := s.commandLine(i.a, false, "")
	err = app.MakeGitHubApp(ctx, trial.program().Wire(app.Needs{}), app.NewGitHubApp{
		Owner: owner, Organisation: whose == "organisation",
		Show: func(address, what string) { i.openBrowser(ctx, address, what) },
		Keep: func(id, key string) error { return i.keepApp(s, id, key) },
	})
	err = errors.Join(err, trial.program().Close())
	switch {
	case ctx.Err() != nil:
		return app.Usage(errInterrupted)
	case err == nil:
		fmt.Fprint(i.ask.out, "  The app is installed.\n\n")
		return nil
	case s.values[appIDVariable] != "": // the trial says what is still missing
		fmt.Fprintf(i.ask.out, "  %s.\n\n", capital(inAnswersWords(fault.From(err).Message)))
		return nil
	}
	fmt.Fprintf(i.ask.out, "  %s.\n\n", capital(inAnswersWords(fault.From(err).Message)))
	token, isApp, err := i.githubAccess(ctx, s)
	if err == nil && !isApp {
		return i.askToken(ctx, s, token)
	}
	return err
}

// keepApp keeps the private key of an app beside the environment file, since GitHub gives it once.
func (i *interview) keepApp(s *initSettings, id, key string) error {
	path := filepath.Join(i.place.settingsFolder(), appKeyName(id))
	err := files.MkdirAll(i.place.settingsFolder(), 0o700)
	if err == nil {
		err = files.Create(path, []byte(key), 0o600)
	}
	if err != nil {
		return fault.Wrap(err, fault.Misconfigured, "the app was made, and its key cannot be kept in %s: %s; make the "+
			"folder writable, and have GitHub make another key in the app's settings", path, err)
	}
	s.useApp(id, path)
	fmt.Fprintf(i.ask.out, "  The app is made. Its private key is in %s; only you can read it.\n", path)
	return nil
}

// openBrowser names an address that the person has to open, and opens it if there is a browser.
func (i *interview) openBrowser(ctx context.Context, address, what string) {
	fmt.Fprintf(i.ask.out, "\nOpen this address in a browser of this machine; %s (Ctrl-C stops):\n\n  %s\n\n", what, address)
	program, found := i.browser()
	if !found {
		return
	}
	cmd := processtree.Cmd(context.WithoutCancel(ctx), processtree.Command{Path: program[0],
		Args: append(slices.Clone(program), address)})
	for _, name := range append(config.HomeVariables(), "PATH", "LANG", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY",
		"XDG_RUNTIME_DIR", "XDG_CURRENT_DESKTOP", "XDG_DATA_DIRS", "DBUS_SESSION_BUS_ADDRESS", "SystemRoot") {
		if value, ok := i.a.process(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	if cmd.Start() == nil { // if no browser starts, the person can open the printed address
		go func() { _ = cmd.Wait() }()
	}
}

// browser returns the program that opens an address for the person: that of BROWSER, or the system's. On a machine
// without a screen there is none.
func (i *interview) browser() (program []string, found bool) {
	candidates := map[string][]string{
		"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}, "linux": {"xdg-open"},
	}[runtime.GOOS]
	if named := i.a.explicitSetting("BROWSER"); named != "" {
		candidates = []string{named}
	} else if runtime.GOOS == "linux" && i.a.explicitSetting("DISPLAY") == "" &&
		i.a.explicitSetting("WAYLAND_DISPLAY") == "" {
		return nil, false
	}
	if len(candidates) == 0 {
		return nil, false
	}
	path, err := processtree.Find(candidates[0])
	return append([]string{path}, candidates[1:]...), err == nil
}
