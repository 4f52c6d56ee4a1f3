package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/ops/places"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/system/files"
)

// initSettings are the answers given to init.
type initSettings struct {
	forge, repo, client string
	called              string            // how a shell calls this program
	standard            string            // the environment file that is read without a flag
	values              map[string]string // variables of the environment file

	looked       string         // the repository whose places were looked for; "" before that
	scope        []places.Place // that the person chose; none leaves the default rules
	writesPolicy bool           // a policy file is written for them, which values name
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

// interview finds out what to write: flags first, then the environment, then the person at the terminal.
type interview struct {
	a     *commandLine
	ask   questions
	o     initOptions
	found found
	place initPaths
	again map[string]bool // steps that a person wants to answer differently: flags and environment count no more
}

// The steps of an interview that a person can go back to.
const (
	stepAddress = "address"
	stepRepo    = "repository"
	stepToken   = "token"
	stepTier    = "tier"
)

func newInterview(ctx context.Context, a *commandLine, o initOptions, to initPaths) *interview {
	i := &interview{a: a, o: o, place: to, again: map[string]bool{},
		ask: questions{in: a.streams.In, out: a.streams.Err, fromInput: o.tokenFile == "-"}}
	if i.ask.canAsk() {
		i.found = lookAround(ctx, a)
		i.found.describe(a.streams.Err)
	}
	return i
}

// askAll asks for everything.
func (i *interview) askAll(ctx context.Context) (initSettings, error) {
	s := initSettings{
		client:   i.o.client,
		called:   typedName(os.Args[0]),
		standard: standardFile(i.a),
		values:   map[string]string{},
	}
	var err error
	if s.forge, err = i.forge(ctx); err != nil {
		return s, err
	}
	for _, name := range []string{stepAddress, stepRepo, stepToken, stepTier} {
		if err := i.askStep(ctx, &s, name); err != nil {
			return s, err
		}
	}
	return s, s.copyEnvironment(i.a)
}

func (i *interview) askStep(ctx context.Context, s *initSettings, name string) error {
	vars := forgesOfInit()[s.forge]
	switch name {
	case stepAddress:
		return i.askAddress(ctx, s, vars)
	case stepToken:
		return i.askForToken(ctx, s, vars)
	case stepRepo:
		return i.repo(ctx, s)
	}
	return i.tier(ctx, s)
}

// retry lets the person change one answer after a trial that failed. It returns false if they would rather stop.
func (i *interview) retry(ctx context.Context, s *initSettings) (bool, error) {
	vars := forgesOfInit()[s.forge]
	options := []option{{value: stepRepo, text: "another repository than " + s.repo}}
	switch {
	case s.forge == "github":
		options = append(options, option{value: stepToken, text: "another token or app"})
	case vars.token != "":
		options = append(options, option{value: stepToken, text: "another token"})
	}
	if address := s.values[vars.url] + s.values[vars.root]; address != "" {
		options = append(
			options,
			option{value: stepAddress, text: "another address than " + address, names: []string{"folder"}},
		)
	}
	options = append(options, option{value: stepTier, text: "another tier than " + s.values["CLAUDEOPS_TIER"]},
		option{value: "retry", text: "nothing: try the same again"}, option{value: "stop", text: "stop, and write nothing"})
	name, err := i.ask.pick(ctx, "", question{text: "What do you want to change?"}, options)
	if err != nil || name == "stop" {
		return false, err
	}
	if name == "retry" {
		return true, nil
	}
	i.again[name] = true
	return true, i.askStep(ctx, s, name)
}

// before returns an earlier answer to a step, unless the person wants to answer it again.
func (i *interview) before(step string, said ...string) string {
	if i.again[step] {
		return ""
	}
	return cmp.Or(said...)
}

func (i *interview) forge(ctx context.Context) (string, error) {
	return i.ask.pick(ctx, i.o.forge,
		question{flag: "--forge", text: "Where are your repositories?", usual: i.found.forge}, []option{
			{value: "github", text: "GitHub", names: []string{"github.com", "gh"}},
			{value: "gitea", text: "Gitea or Forgejo", names: []string{"forgejo", "codeberg"}},
			{value: "local", text: "Git repositories in a folder of this machine", names: []string{"folder", "git"}},
		})
}

func (i *interview) askAddress(ctx context.Context, s *initSettings, vars forgeVariables) (err error) {
	switch s.forge {
	case "local":
		s.values[vars.root], err = i.ask.promptFor(ctx, i.before(stepAddress, i.a.explicitSetting(vars.root)), question{
			flag: "--local-root", text: "Which folder holds the repositories, as owner/name.git?",
			usual: s.values[vars.root], check: i.absoluteFolder,
		})
		return err
	case "gitea":
		said, _ := i.a.process(vars.url)
		address, err := i.ask.promptFor(ctx, i.before(stepAddress, i.o.url, said), question{
			flag: "--url", text: "Its address, such as https://git.example.org?",
			usual: cmp.Or(s.values[vars.url], i.found.address), check: forgeAddress,
		})
		if err != nil {
			return err
		}
		s.values[vars.url] = address
		return i.plainHTTP(ctx, s, address)
	}
	said, _ := i.a.process(vars.url)
	if address := cmp.Or(i.o.url, said); address != "" { // github.com needs none
		s.values[vars.url] = address
	}
	return nil
}

// plainHTTP asks whether the token may cross the network unencrypted.
func (i *interview) plainHTTP(ctx context.Context, s *initSettings, address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || i.a.explicitSetting(plainHTTP) != "" || isLoopbackHost(u.Hostname()) {
		return nil //nolint:nilerr // what is wrong with an address is said by the trial
	}
	yes, err := i.ask.agree(
		ctx,
		"Everybody on the way to "+u.Host+" can read the token, since the address is plain http. "+
			"Use it all the same?",
		false,
	)
	if yes {
		s.values[plainHTTP] = "true"
	}
	return err
}

const plainHTTP = "CLAUDEOPS_FORGE_PLAIN_HTTP"

func isLoopbackHost(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// forgeAddress completes an address that lacks its scheme.
func forgeAddress(answer string) (string, error) {
	if !strings.Contains(answer, "://") {
		answer = "https://" + answer
	}
	u, err := url.Parse(answer)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", errors.New("give an address such as https://git.example.org")
	}
	return answer, nil
}

// absoluteFolder expands ~ and makes a path absolute.
func (i *interview) absoluteFolder(answer string) (string, error) {
	if rest, ok := strings.CutPrefix(answer, "~"); ok && (rest == "" || rest[0] == '/') {
		answer = filepath.Join(config.FoldersOf(i.a.process).Home(), rest)
	}
	path, err := filepath.Abs(answer)
	if err != nil {
		return "", err
	}
	info, err := files.Stat(path)
	if err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s is not a folder that can be read", path)
	}
	return path, nil
}

func (i *interview) askForToken(ctx context.Context, s *initSettings, vars forgeVariables) error {
	if vars.token == "" {
		if i.o.tokenFile != "" {
			return app.Usage(errors.New("--token-file goes with github and gitea: local repositories need no token"))
		}
		return nil
	}
	token, _ := i.a.process(vars.token)
	if i.o.tokenFile != "" {
		text, err := i.a.readInput(i.o.tokenFile)
		if err != nil {
			return err
		}
		token = strings.TrimSpace(string(text))
	}
	token = i.before(stepToken, token)
	if id, key := i.before(stepToken, i.a.explicitSetting(appIDVariable)),
		i.a.explicitSetting(appKeyVariable); s.forge == "github" &&
		token == "" && id != "" && key != "" {
		key, err := filepath.Abs(key)
		s.useApp(id, key)
		return err
	}
	if token == "" && s.forge == "github" && i.ask.canAsk() {
		found, isApp, err := i.githubAccess(ctx, s)
		if err != nil || isApp {
			return err
		}
		token = found
	}
	if token == "" && !i.again[stepToken] {
		var err error
		if token, err = i.found.offeredToken(ctx, i.ask, s.forge, s.values[vars.url]); err != nil {
			return err
		}
	}
	return i.askToken(ctx, s, token)
}

// askToken takes the token that is known, or asks for one.
func (i *interview) askToken(ctx context.Context, s *initSettings, known string) error {
	token, err := i.ask.promptFor(ctx, known, question{
		flag: "--token-file", text: "A token that may write contents and pull requests there (it is not shown):",
		check: oneWord, hidden: true,
	})
	s.values[forgesOfInit()[s.forge].token] = token
	return err
}

func oneWord(token string) (string, error) {
	if strings.ContainsAny(token, " \t\r\n'\"") {
		return "", errors.New("the token must be one word")
	}
	return token, nil
}

func (i *interview) repo(ctx context.Context, s *initSettings) (err error) {
	usual := s.repo
	if usual == "" && s.forge == i.found.forge {
		usual = i.found.repo
	}
	s.repo, err = i.ask.promptFor(ctx, i.before(stepRepo, i.o.repo), question{
		flag: "--repo", text: "Which repository may agents propose changes to, as owner/name?", usual: usual,
		check: func(answer string) (string, error) {
			if _, err := parseRepo(answer); err != nil {
				return "", errors.New("give it as owner/name, such as joe/home-cluster")
			}
			return answer, nil
		},
	})
	s.values["CLAUDEOPS_REPOS"] = s.forge + ":" + s.repo
	return err
}

func (i *interview) tier(ctx context.Context, s *initSettings) (err error) {
	said := i.before(stepTier, i.a.explicitSetting("CLAUDEOPS_TIER"))
	if said == "" && !i.ask.canAsk() {
		said = "2"
	}
	s.values["CLAUDEOPS_TIER"], err = i.ask.pick(ctx, said,
		question{flag: "--tier", text: "What may agents do?", usual: cmp.Or(s.values["CLAUDEOPS_TIER"], "2")}, []option{
			{value: "1", text: "look, and propose nothing"},
			{value: "2", text: "propose changes of at most 3 files"},
			{value: "3", text: "propose changes of at most 100 files"},
		})
	return err
}

// copyEnvironment copies settings of the forge and of files from the environment, since commands in another folder need
// them.
func (s initSettings) copyEnvironment(a *commandLine) (err error) {
	if value := a.explicitSetting(plainHTTP); value != "" {
		s.values[plainHTTP] = value
	}
	for _, name := range []string{"CLAUDEOPS_CA_FILE", "CLAUDEOPS_POLICY", "CLAUDEOPS_STATE_DIR"} {
		value := a.explicitSetting(name)
		if value == "" {
			continue
		}
		if s.values[name], err = filepath.Abs(value); err != nil {
			return err
		}
	}
	return nil
}

// commandLine returns a command line that reads what would be written, instead of an environment file. stateDir
// replaces the state folder if it is not empty.
func (s initSettings) commandLine(a *commandLine, dryRun bool, stateDir string) *commandLine {
	lookup := func(name string) (string, bool) {
		switch {
		case name == "CLAUDEOPS_DRY_RUN" && dryRun:
			return "true", true
		case name == "CLAUDEOPS_STATE_DIR" && stateDir != "":
			return stateDir, true
		}
		if value, ok := s.values[name]; ok {
			return value, true
		}
		return a.process(name)
	}
	return &commandLine{streams: a.streams, process: lookup, lookup: lookup, args: a.args, cmd: a.cmd}
}

// environmentText returns the text of the environment file.
func (s initSettings) environmentText() []byte {
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

// firstChange returns a request of create_pr: of a file in the folders that were chosen, or else one that any
// repository can take.
func (s initSettings) firstChange(ctx context.Context, caller *commandLine) ([]byte, error) {
	if len(s.scope) > 0 {
		return s.changeOfScope(ctx, caller)
	}
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

// questions asks a person at a terminal for what flags did not say.
type questions struct {
	in        io.Reader
	out       io.Writer
	fromInput bool // standard input holds something else
}

var errInterrupted = errors.New("interrupted; no settings were written")

func (q questions) terminal() (fd int, ok bool) {
	file, isFile := q.in.(*os.File)
	if !isFile || q.fromInput || !term.IsTerminal(int(file.Fd())) {
		return 0, false
	}
	return int(file.Fd()), true
}

func (q questions) canAsk() bool {
	_, ok := q.terminal()
	return ok
}

// question is one thing that init has to know.
type question struct {
	flag  string // that answers it beforehand
	intro string // printed once, before the first answer
	text  string
	usual string // what Enter answers; "" if there is nothing usual
	// check returns the value that an answer means, or why it cannot be taken.
	check func(answer string) (string, error)
	// hidden keeps the answer off the screen.
	hidden bool
}

// promptFor takes what was said beforehand, else what the person answers. A wrong answer is asked again, with the
// reason. Without a terminal the error names the flag.
func (q questions) promptFor(ctx context.Context, said string, one question) (string, error) {
	if said != "" {
		value, err := one.check(said)
		if err != nil {
			return "", app.Usage(fmt.Errorf("%s: %w", one.flag, err))
		}
		return value, nil
	}
	if !q.canAsk() {
		return "", app.Usage(fmt.Errorf("%s is missing, and there is no terminal to ask at", one.flag))
	}
	fmt.Fprint(q.out, one.intro)
	for {
		answer, err := q.promptLine(ctx, one)
		if err != nil {
			return "", err
		}
		if answer = cmp.Or(strings.TrimSpace(answer), one.usual); answer == "" {
			fmt.Fprint(q.out, "  This needs an answer (Ctrl-C stops).\n")
			continue
		}
		value, err := one.check(answer)
		if err == nil {
			return value, nil
		}
		fmt.Fprintf(q.out, "  %s.\n", capital(err.Error()))
	}
}

// promptLine prints a question with its usual answer, and reads one line.
func (q questions) promptLine(ctx context.Context, one question) (string, error) {
	fmt.Fprint(q.out, one.text)
	if one.usual != "" {
		fmt.Fprintf(q.out, " [%s]", one.usual)
	}
	fmt.Fprint(q.out, " ")
	fd, _ := q.terminal()
	text, err := interruptible(ctx, fd, func() (string, error) {
		if one.hidden {
			secret, err := term.ReadPassword(fd)
			fmt.Fprintln(q.out)
			return string(secret), err
		}
		return readLine(fd, q.in)
	})
	if err != nil {
		fmt.Fprintln(q.out)
	}
	return text, err
}

// option is a line of a menu.
type option struct {
	value string
	text  string
	names []string // other answers that mean it, in lower case
}

// pick asks a question with a menu. Number, value and names are answers, in any letter case.
func (q questions) pick(ctx context.Context, said string, one question, options []option) (string, error) {
	values := make([]string, len(options))
	var menu strings.Builder
	for i, o := range options {
		values[i] = o.value
		fmt.Fprintf(&menu, "\n  %d  %s", i+1, o.text)
		if o.value == one.usual {
			one.usual = strconv.Itoa(i + 1)
		}
	}
	one.intro, one.text = one.text+menu.String()+"\n", fmt.Sprintf("Choose 1 to %d", len(options))
	one.check = func(answer string) (string, error) {
		answer = strings.ToLower(answer)
		for i, o := range options {
			if answer == o.value || answer == strconv.Itoa(i+1) && said == "" || slices.Contains(o.names, answer) {
				return o.value, nil
			}
		}
		choose := ""
		if said == "" {
			choose = fmt.Sprintf("; choose 1 to %d", len(options))
		}
		return "", fmt.Errorf("%.20q is not one of %s%s", answer, strings.Join(values, ", "), choose)
	}
	return q.promptFor(ctx, said, one)
}

// agree asks a question of yes or no. Without a terminal the answer is no.
func (q questions) agree(ctx context.Context, text string, usual bool) (bool, error) {
	if !q.canAsk() {
		return false, nil
	}
	one := question{text: text + " (y/n)", usual: "n", check: func(answer string) (string, error) {
		switch answer = strings.ToLower(answer); answer {
		case "y", "yes", "n", "no":
			return answer[:1], nil
		}
		return "", errors.New("answer y or n")
	}}
	if usual {
		one.usual = "y"
	}
	answer, err := q.promptFor(ctx, "", one)
	return answer == "y", err
}

// capital begins a sentence.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// interruptible reads until ctx is done, and leaves the terminal as it was: a read that waits cannot be ended
// otherwise.
func interruptible(ctx context.Context, fd int, read func() (string, error)) (string, error) {
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	type answer struct {
		text string
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		text, err := read()
		done <- answer{text, err}
	}()
	select {
	case <-ctx.Done():
		_ = term.Restore(fd, before)
		return "", app.Usage(errInterrupted)
	case a := <-done:
		if errors.Is(a.err, io.EOF) {
			return "", app.Usage(errInterrupted)
		}
		return a.text, a.err
	}
}

// readLine reads one line and nothing behind it, since others read from the same terminal.
func readLine(_ int, in io.Reader) (string, error) {
	var line []byte
	one := make([]byte, 1)
	for len(line) < maxLine {
		n, err := in.Read(one)
		switch {
		case n == 1 && one[0] == '\n':
			return string(line), nil
		case n == 1:
			line = append(line, one[0])
		case err != nil:
			return string(line), err
		}
	}
	return "", app.Usage(errors.New("the answer is too long"))
}

// maxLine bounds an answer, in bytes.
const maxLine = 4096
