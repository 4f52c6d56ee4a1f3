package facts

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// command is a simple command of a shell.
type command struct {
	name      string   // the program's name, without its folder; "" if there are only redirections
	args      []string // without quotes
	text      string   // as it is written, from the name on
	writes    []string // where its output is redirected to
	reads     bool     // its input comes from a file or a command before it
	piped     bool     // the command before it writes to it
	before    []string // the names of the commands before it in the pipe
	discarded bool     // its output is thrown away
	tolerated bool     // its failure is: || true
	depth     int      // in how many commands it stands
	noOptions []string // see operands
}

const (
	// maxDepth bounds commands within commands.
	maxDepth = 4
	// maxCommands bounds the commands of one line.
	maxCommands = 200
)

// parseCommands reads the commands of a line of a shell, and those in their arguments that other programs run. The
// caller releases the parser, and keeps nothing of it.
func parseCommands(line string) *shellParser {
	p := shellParsers.Get().(*shellParser)
	p.parse(withoutPrompt(line), 0)
	return p
}

// shellParsers holds the memory of parsers that are not in use.
var shellParsers = sync.Pool{New: func() any { return new(shellParser) }} //nolint:gochecknoglobals // holds no state

// release empties the parser for another line.
func (p *shellParser) release() {
	clear(p.all)
	clear(p.args)
	clear(p.words)
	p.all, p.args, p.words = p.all[:0], p.args[:0], p.words[:0]
	shellParsers.Put(p)
}

// withoutPrompt takes off the prompt that documentation puts before commands.
func withoutPrompt(line string) string {
	line = trimBlank(line)
	if line == "" || line[0] > '[' && line[0] != 'r' {
		return line
	}
	for _, prompt := range []string{"$ ", "% ", "> ", "- ", "RUN ", "PS> ", "!"} {
		if rest, ok := strings.CutPrefix(line, prompt); ok {
			return trimBlank(rest)
		}
	}
	if strings.HasPrefix(line, "[") || strings.HasPrefix(line, "root@") || strings.HasPrefix(line, "PS ") {
		for _, end := range []string{"]# ", "]$ ", ":~# ", "> "} {
			if _, rest, ok := strings.Cut(line, end); ok {
				return rest
			}
		}
	}
	return line
}

// shellParser collects commands.
type shellParser struct {
	all   []command
	args  []string    // of all commands
	words []shellWord // of the current command of the outermost text
}

// shellWord is a word of a command, and where it begins.
type shellWord struct {
	text  string
	start int
}

// shellText is a text whose commands are read, which pipes and operators join.
type shellText struct {
	*shellParser
	text     string
	depth    int
	closes   map[int]int // see closings
	words    []shellWord // of the current command
	current  command
	pipe     []string // the names of the commands before it in the pipe
	redirect string   // the sign before the next word that says where input or output goes
}

// parse reads the commands of a text.
func (p *shellParser) parse(text string, depth int) {
	if depth > maxDepth {
		return
	}
	t := shellText{shellParser: p, text: text, depth: depth, closes: closings(text), current: command{depth: depth}}
	if depth == 0 {
		t.words = p.words
		defer func() { p.words = t.words }()
	}
	for at := 0; at < len(text) && len(p.all) < maxCommands; {
		c := text[at]
		if c == '#' && (len(t.words) == 0 || text[at-1] == ' ') { // a comment
			t.end(at, "")
			return
		}
		operator := operatorAt(text, at)
		switch {
		case operator != "":
			t.end(at, operator)
			at += len(operator)
		case c == ' ' || c == '\t':
			at++
		case c == '<' && t.closes[at+1] > 0:
			next := p.substitution(text, at, depth, t.closes)
			t.words = append(t.words, shellWord{text[at:next], at})
			at = next
		case c == '>' || c == '<' || c == '&':
			at += t.redirection(at)
		default:
			word, next := p.word(text, at, depth, t.closes)
			t.add(word, at)
			at = max(next, at+1)
		}
	}
	t.end(len(text), "")
}

// end ends a command at an offset where an operator stands, or at the end of the text.
func (t *shellText) end(at int, operator string) {
	t.finish(at)
	t.current.tolerated = operator == "||" && isTrue(t.text[min(at+2, len(t.text)):])
	t.take(&t.current)
	if operator == "|" && t.current.name != "" {
		t.pipe = append(slices.Clip(t.pipe), t.current.name)
	} else {
		t.pipe = nil
	}
	t.current = command{depth: t.depth, piped: operator == "|", before: t.pipe, reads: operator == "|"}
	t.words, t.redirect = t.words[:0], ""
}

// redirection reads a sign that says where input or output goes, and returns its length.
func (t *shellText) redirection(at int) (size int) {
	size = 1
	for at+size < len(t.text) && strings.IndexByte("><&-", t.text[at+size]) >= 0 {
		size++
	}
	t.redirect = t.text[at : at+size]
	if last := len(t.words) - 1; last >= 0 && t.text[at-1] == '2' && t.words[last].text == "2" {
		t.words, t.redirect = t.words[:last], "2"+t.redirect
	}
	return size
}

// add adds a word to the command, or to where its input or output goes.
func (t *shellText) add(word string, at int) {
	if t.redirect == "" {
		t.words = append(t.words, shellWord{word, at})
		return
	}
	t.current.redirect(t.redirect, word)
	t.redirect = ""
}

func isTrue(text string) bool {
	rest := strings.TrimLeft(text, " ")
	return strings.HasPrefix(rest, "true") || strings.HasPrefix(rest, ":") || strings.HasPrefix(rest, "exit 0")
}

// operatorAt returns the operator between commands that stands at an offset, or "".
func operatorAt(text string, at int) string {
	switch text[at] {
	case ';', '\n', '(', ')', '{', '}':
		return text[at : at+1]
	case '|', '&':
		if at+1 < len(text) && text[at+1] == text[at] {
			return text[at : at+2]
		}
		if text[at] == '&' && at+1 < len(text) && text[at+1] == '>' {
			return ""
		}
		return text[at : at+1]
	}
	return ""
}

// redirect notes where input or output goes.
func (c *command) redirect(operator, target string) {
	switch {
	case strings.HasPrefix(operator, "<"):
		c.reads = true
	case strings.HasSuffix(operator, "&"), operator[0] == '2':
	case target == "/dev/null" || strings.EqualFold(target, "$null") || strings.EqualFold(target, "nul"):
		c.discarded = true
	default:
		c.writes = append(c.writes, target)
	}
}

// finish makes a command of its words: variables before it are skipped.
func (t *shellText) finish(end int) {
	words, c := t.words, &t.current
	for len(words) > 0 && isAssignment(words[0].text) {
		words = words[1:]
	}
	if len(words) == 0 {
		return
	}
	c.name = programName(words[0].text)
	first := len(t.args)
	for _, w := range words[1:] {
		t.args = append(t.args, w.text)
	}
	c.args = t.args[first:len(t.args):len(t.args)]
	c.text = strings.TrimSpace(t.text[words[0].start:end])
}

func programName(text string) string {
	return strings.TrimSuffix(strings.ToLower(path.Base(text)), ".exe")
}

func isAssignment(text string) bool {
	name, _, ok := strings.Cut(text, "=")
	if !ok || name == "" || strings.HasPrefix(name, "-") {
		return false
	}
	for i := range len(name) {
		if c := name[i]; c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// wordSigns are the characters that end a word of a command, or mean something in it.
var wordSigns = sync.OnceValue(func() *byteSet { //nolint:gochecknoglobals // made once, never changed
	return newByteSet(" \t;|><()\n&\\'\"`$")
})

// word reads a word, with the parts in quotes, and the commands within it. It returns the word without quotes, and
// where it ends.
func (p *shellParser) word(text string, at, depth int, closes map[int]int) (word string, end int) {
	start, signs := at, wordSigns()
	for at < len(text) && !signs[text[at]] {
		at++
	}
	if at == len(text) || strings.IndexByte(" \t;|><()\n&", text[at]) >= 0 {
		return text[start:at], at
	}
	var b strings.Builder
	b.WriteString(text[start:at])
	for at < len(text) {
		c := text[at]
		switch {
		case c == ' ' || c == '\t' || c == ';' || c == '|' || c == '>' || c == '<' || c == '(' || c == ')' || c == '\n' ||
			c == '&':
			return b.String(), at
		case c == '\\' && at+1 < len(text):
			b.WriteByte(text[at+1])
			at += 2
		case c == '\'' || c == '"':
			inner, next := quotedText(text, at)
			if c == '"' {
				p.substitutions(inner, depth)
			}
			b.WriteString(inner)
			at = next
		case c == '`' || c == '$' && at+1 < len(text) && text[at+1] == '(':
			next := p.substitution(text, at, depth, closes)
			b.WriteString(text[at:next])
			at = next
		case c == '$' && strings.HasPrefix(text[at:], "${IFS}"):
			return b.String(), at + len("${IFS}")
		case c == '$' && strings.HasPrefix(text[at:], "$IFS"):
			return b.String(), at + len("$IFS")
		default:
			b.WriteByte(c)
			at++
		}
	}
	return b.String(), at
}

// quotedText returns the text in quotes that begins at an offset, and where it ends. A quote that is not closed stands
// for itself.
func quotedText(text string, at int) (inner string, end int) {
	quote := text[at]
	for i := at + 1; i < len(text); i++ {
		if text[i] == '\\' && quote == '"' {
			i++
			continue
		}
		if text[i] == quote {
			return text[at+1 : i], i + 1
		}
	}
	return "", at + 1
}

// closings maps the offset of each parenthesis that opens and is closed to that of the one which closes it.
func closings(text string) map[int]int {
	if !strings.Contains(text, "$(") && !strings.Contains(text, "<(") {
		return nil
	}
	closes := map[int]int{}
	var open []int
	for i := range len(text) {
		switch last := len(open) - 1; {
		case text[i] == '(':
			open = append(open, i)
		case text[i] == ')' && last >= 0:
			closes[open[last]] = i
			open = open[:last]
		}
	}
	return closes
}

// substitution reads the commands of $(...) or `...` that begins at an offset, and returns where it ends.
func (p *shellParser) substitution(text string, at, depth int, closes map[int]int) (end int) {
	if text[at] == '`' {
		inner, rest, ok := strings.Cut(text[at+1:], "`")
		if !ok {
			return at + 1
		}
		p.parse(inner, depth+1)
		return len(text) - len(rest)
	}
	if end, ok := closes[at+1]; ok {
		p.parse(text[at+2:end], depth+1)
		return end + 1
	}
	return at + 1
}

// substitutions reads the commands in a text in double quotes.
func (p *shellParser) substitutions(text string, depth int) {
	if strings.IndexByte(text, '`') < 0 && !strings.Contains(text, "$(") {
		return
	}
	closes := closings(text)
	for at := 0; at < len(text); {
		if text[at] == '`' || text[at] == '$' && at+1 < len(text) && text[at+1] == '(' {
			at = p.substitution(text, at, depth, closes)
			continue
		}
		at++
	}
}

// take keeps a command, and reads the commands that it runs: those behind sudo, in quotes behind bash -c, behind --.
func (p *shellParser) take(c *command) {
	if c.name == "" && len(c.writes) == 0 {
		return
	}
	p.all = append(p.all, *c)
	for _, inner := range c.inner() {
		if isShellText(inner) {
			p.parse(inner, c.depth+1)
			continue
		}
	}
	if rest := c.wrapped(); len(rest) > 0 && c.depth < maxDepth {
		next := *c
		next.name, next.args, next.depth, next.noOptions = programName(rest[0]), rest[1:], c.depth+1, nil
		if i := strings.Index(c.text, rest[0]); i >= 0 {
			next.text = c.text[i:]
		}
		if isAssignment(rest[0]) {
			return
		}
		p.take(&next)
	}
}

func isShellText(text string) bool { return strings.ContainsAny(text, " \t") }

// inner gives the arguments that hold commands.
func (c *command) inner() []string {
	switch c.name {
	case "bash", "sh", "zsh", "dash", "ksh", "su", "cmd", "powershell", "pwsh":
		for i, arg := range c.args {
			lower := strings.ToLower(arg)
			if (lower == "-c" || lower == "-lc" || lower == "-ec" || lower == "-command" || lower == "/c") && i+1 < len(c.args) {
				return c.args[i+1 : i+2]
			}
		}
	case "ssh", "eval", "watch", "parallel", "trap", "rsh":
		return c.args
	case "echo", "printf":
		if len(c.args) > 0 {
			return nil
		}
	}
	return nil
}

// wrapped gives the words of the command that a program such as sudo runs; none for other programs.
func (c *command) wrapped() []string {
	switch c.name {
	case "sudo", "doas", "env", "nohup", "time", "timeout", "nice", "ionice", "exec", "command", "xargs", "watch",
		"setsid",
		"stdbuf", "pkexec", "then", "do", "else", "if", "while", "until", "!", "chroot", "strace", "unbuffer", "builtin",
		"yes":
		return behindOptions(c.name, c.args)
	case "ssh":
		return behindOptions(c.name, c.args)
	case "find":
		for i, arg := range c.args {
			if arg == "-exec" || arg == "-execdir" || arg == "-ok" {
				return c.args[i+1:]
			}
		}
	}
	if !isRunner(c.name) {
		return nil
	}
	for i, arg := range c.args { // kubectl exec pod -- command, docker exec container command
		if arg == "--" {
			return c.args[i+1:]
		}
	}
	if len(c.args) > 2 && (c.args[0] == "exec" || c.args[0] == "rsh") {
		return behindOptions("ssh", c.args[1:])
	}
	return nil
}

func isRunner(name string) bool {
	switch name {
	case "kubectl", "oc", "docker", "podman", "k", "nerdctl", "crictl", "lxc", "vagrant", "flatpak-spawn", "npx", "dotenv":
		return true
	}
	return false
}

// behindOptions gives the words behind the options of a program that runs another.
func behindOptions(name string, args []string) []string {
	takesValue := map[string]string{"sudo": "-u -g -U -p -C -h", "timeout": "-s -k", "nice": "-n",
		"xargs": "-I -n -P -L -d -a -s",
		"ssh":   "-i -p -l -o -L -R -D -F -J -c -n", "watch": "-n", "env": "-u -C", "stdbuf": "-o -e -i"}[name]
	positional := map[string]int{"timeout": 1, "ssh": 1, "chroot": 1}[name]
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
		case strings.HasPrefix(arg, "-"):
			if len(arg) == 2 && strings.Contains(takesValue+" ", arg+" ") {
				i++
			}
		case name == "env" && isAssignment(arg), name == "sudo" && isAssignment(arg):
		case positional > 0:
			positional--
		default:
			return args[i:]
		}
	}
	return nil
}

// flag says whether a command has one of some options; those of a letter also stand among others, as in -rf.
func (c *command) flag(options ...string) bool {
	for _, arg := range c.args {
		if arg == "" || arg[0] != '-' {
			continue
		}
		for _, option := range options {
			switch {
			case strings.HasPrefix(option, "--"):
				if strings.HasPrefix(arg, option) && (len(arg) == len(option) || arg[len(option)] == '=') {
					return true
				}
			case len(option) == 2 && option[0] == '-':
				if len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && strings.IndexByte(arg, option[1]) > 0 {
					return true
				}
			case arg == option:
				return true
			}
		}
	}
	return false
}

// operands gives the arguments without options.
func (c *command) operands() []string {
	if c.noOptions == nil {
		c.noOptions = make([]string, 0, len(c.args))
		for _, arg := range c.args {
			if arg != "" && arg[0] != '-' {
				c.noOptions = append(c.noOptions, arg)
			}
		}
	}
	return c.noOptions
}

// operand returns an operand by its place, from 0; "" if there are not as many.
func (c *command) operand(at int) string {
	for _, arg := range c.args {
		if arg == "" || arg[0] == '-' {
			continue
		}
		if at == 0 {
			return arg
		}
		at--
	}
	return ""
}
