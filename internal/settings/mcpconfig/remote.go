package mcpconfig

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/weborigin"
)

func (r Rules) checkRemote(e entry) error {
	switch {
	case e.URL == "" || e.Command != "" || len(e.Args) > 0 || len(e.Env) > 0:
		return fmt.Errorf("a server of type %s has a url and neither command, args nor env", e.Type)
	case strings.ContainsAny(e.URL, "${}"):
		return errors.New("a url may not be expanded from the environment")
	}
	u, err := url.Parse(e.URL)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("the url is not of the form https://host/path")
	case u.User != nil:
		return errors.New("the url carries a user name or password")
	case u.Fragment != "":
		return errors.New("the url has a fragment")
	}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		if err := r.checkHeader(name, e.Headers[name]); err != nil {
			return err
		}
		if strings.Contains(e.Headers[name], "${") && !weborigin.Confidential(u) {
			return fmt.Errorf("the header %s would send a variable over plain http to another machine", name)
		}
	}
	return nil
}

func (r Rules) checkHeader(name, value string) error {
	if !regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`).MatchString(name) {
		return fmt.Errorf("headers has %s, which is no name of a header", quote(name))
	}
	if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }) {
		return fmt.Errorf("the header %s has a character that is not printable ASCII", name)
	}
	isCredential := slices.Contains([]string{"authorization", "proxy-authorization", "cookie"}, strings.ToLower(name))
	if isCredential && !strings.Contains(value, "${") {
		return fmt.Errorf("the header %s has its secret written out; name a variable of CLAUDEOPS_MOUNTED_ENV instead", name)
	}
	return r.checkExpansion(value)
}

// variableForm is a variable's name as Claude Code expands it.
const variableForm = `[A-Za-z_][A-Za-z0-9_]*`

// checkExpansion reports a "${" that Claude Code would expand to anything but a variable that the operator admits. It
// expands ${NAME} and ${NAME:-default}, and never $NAME. A "${" of any other form is refused as well.
func (r Rules) checkExpansion(text string) error {
	form := regexp.MustCompile(`^\$\{(` + variableForm + `)(?::-[^${}]*)?\}`)
	for {
		at := strings.Index(text, "${")
		if at < 0 {
			return nil
		}
		match := form.FindStringSubmatch(text[at:])
		if match == nil {
			return errors.New("it has a ${ that is neither ${NAME} nor ${NAME:-default}")
		}
		if IsOurs(match[1], r.Forges) || slices.Contains(r.Blank, match[1]) {
			return fmt.Errorf("it asks for the variable %s, which no repository may have", quote(match[1]))
		}
		if !slices.Contains(r.Env, match[1]) {
			return fmt.Errorf("it asks for the variable %s, which CLAUDEOPS_MOUNTED_ENV does not name", quote(match[1]))
		}
		text = text[at+len(match[0]):]
	}
}

// IsOurs reports whether a variable belongs to Claude Ops, to a forge that it holds tokens of (forges are the prefixes
// of the names of their variables), or to the agent's own account. No repository may read or set one, whatever the
// operator admits.
func IsOurs(variable string, forges []string) bool {
	variable = strings.ToUpper(variable)
	return slices.ContainsFunc(append([]string{"CLAUDEOPS_", "ANTHROPIC_", "CLAUDE_"}, forges...),
		func(prefix string) bool {
			return strings.HasPrefix(variable, prefix)
		})
}
