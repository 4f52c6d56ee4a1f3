package facts

import (
	"slices"
	"strings"
	"sync"
)

// maxLine bounds the length, in bytes, of a line that is read as code. What is behind it is Opaque.
const maxLine = 4096

// codeKind is how code is read.
type codeKind int

const (
	unknownCode codeKind = iota // as commands and as a program
	shellCode
	programCode
	configCode // keys and values
)

func kindOf(language string) codeKind {
	switch language {
	case "sh", "bash", "zsh", "shell", "console", "shell-session", "terminal", "ps1", "powershell", "bat", "cmd",
		"dockerfile", "fish",
		"term", "ksh", "batch":
		return shellCode
	case "py", "python", "js", "javascript", "ts", "typescript", "go", "rb", "ruby", "java", "php", "rust", "rs", "c",
		"cpp", "csharp",
		"cs", "perl", "pl", "lua", "jsx", "tsx", "mjs", "cjs", "kotlin", "swift", "node", "python3", "r", "sql", "html",
		"css", "xml",
		"svg", "h", "scala", "vue", "svelte":
		return programCode
	case "yaml", "yml", "json", "toml", "ini", "cfg", "conf", "env", "properties", "jsonc", "json5", "jsonl", "hcl", "tf":
		return configCode
	}
	return unknownCode
}

// logicalLine is what stands on one line or, where lines are joined, on several.
type logicalLine struct {
	text        string
	first, last int // in the file
}

// logicalLines joins lines that end with a backslash and, of programs, those of a call that is not closed.
func logicalLines(u unit, plain []string, kind codeKind) []logicalLine {
	const mostJoined = 20
	brackets := kind == programCode || kind == unknownCode
	all := make([]logicalLine, 0, len(plain))
	for i := 0; i < len(plain); {
		end, text, open := i, plain[i], 0
		if brackets && end+1 < len(plain) {
			open = openBrackets(text)
		}
		for end+1 < len(plain) && end-i < mostJoined && len(text) < maxLine {
			trimmed := trimBlankRight(text)
			switch {
			case strings.HasSuffix(trimmed, `\`) && !strings.HasSuffix(trimmed, `\\`), strings.HasSuffix(trimmed, "`") &&
				kind == shellCode:
				trimmed = trimmed[:len(trimmed)-1]
			case kind == shellCode && (strings.HasSuffix(trimmed, "|") || strings.HasSuffix(trimmed, "&&")):
				trimmed += " "
			case brackets && open > 0:
				trimmed += " "
			default:
				trimmed = ""
			}
			if trimmed == "" {
				break
			}
			end++
			text = trimmed + trimBlank(plain[end])
			if brackets {
				open += openBrackets(plain[end])
			}
		}
		all = append(all, logicalLine{text[:min(len(text), maxLine)], u.lines[i].number, u.lines[end].number})
		i = end + 1
	}
	return all
}

// openBrackets counts the brackets of a line that it opens and does not close.
func openBrackets(line string) int {
	open := 0
	for i := range len(line) {
		switch line[i] {
		case '(', '[':
			open++
		case ')', ']':
			open--
		}
	}
	return open
}

// readCode adds what a unit of code does.
func readCode(found []hit, u unit, plain []string) []hit {
	kind := kindOf(u.language)
	for _, line := range logicalLines(u, plain, kind) {
		add := func(a act, words string) {
			found = append(found, hit{a.class, a.says, u.where, line.first, line.last, words})
		}
		for field := range fields(line.text, placeEnds()) {
			if isSecretPlace(field) {
				add(act{Credential, "Names a place of secrets"}, strings.TrimSpace(line.text))
				break
			}
		}
		if kind != programCode {
			readCommands(commandText(line.text, kind), kind != shellCode, add)
		}
		if kind != shellCode {
			readProgram(line.text, add)
		}
	}
	return found
}

// placeEnds are the characters that are not in the name of a place.
var placeEnds = sync.OnceValue(func() *byteSet { //nolint:gochecknoglobals // made once, never changed
	return newByteSet("\"'`=:,;()[]{}<>|&@").withSpace()
})

// commandText gives the part of a line of code that may be a command.
func commandText(line string, kind codeKind) string {
	if kind != configCode {
		return line
	}
	line = strings.TrimLeft(line, " \t-")
	for _, separator := range []string{`": `, ": ", " = "} {
		if key, value, ok := strings.Cut(line, separator); ok && !strings.Contains(key, " ") {
			line = value
			break
		}
	}
	return strings.Trim(line, ` "',[]`)
}

// readCommands reads the commands of a line. If strict, it has to look like a command.
func readCommands(text string, strict bool, add func(act, string)) {
	if strict && !isClearCommand(text) {
		return
	}
	fetched := false
	parser := parseCommands(text)
	defer parser.release()
	for i := range parser.all {
		c := &parser.all[i]
		for _, a := range actsOf(c) {
			add(a, c.text)
		}
		if fetched && startsFile(c) {
			add(act{DownloadRun, "Downloads and runs a program"}, text)
		}
		fetched = fetched || isFetcher(c.name)
	}
}

// startsFile says whether a command starts a file, or makes one that can be started.
func startsFile(c *command) bool {
	return strings.HasPrefix(c.text, "./") || c.name == "chmod" && strings.Contains(c.operand(0), "x")
}

// readProgram reads the calls of a line of a program, and the commands that it runs.
func readProgram(line string, add func(act, string)) {
	acts, commands := callsOf(line)
	trimmed := strings.TrimSpace(line)
	if strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, "//") {
		return
	}
	for _, a := range acts {
		add(a, trimmed)
	}
	for _, text := range commands {
		readCommands(text, false, add)
	}
	if len(commands) == 0 {
		for _, text := range stringLiterals(line) {
			readCommands(text, true, add)
		}
	}
	for _, a := range sqlActs(line) {
		add(a, trimmed)
	}
	if strings.Contains(line, ".request(") && (strings.Contains(line, "POST") || strings.Contains(line, "PUT")) {
		add(act{Outbound, "Sends data out"}, trimmed)
	}
	readOpened(line, add)
	if compact := strings.ReplaceAll(line, " ", ""); strings.Contains(compact, "verify=False") ||
		strings.Contains(compact, "rejectUnauthorized:false") ||
		strings.Contains(compact, "InsecureSkipVerify:true") || strings.Contains(compact, "CERT_NONE") {
		add(act{Rights, "Switches a protection off"}, trimmed)
	}
}

// readOpened reads the paths that a line of a program opens to write.
func readOpened(line string, add func(act, string)) {
	if !strings.Contains(line, "open(") && !strings.Contains(line, "riteFile") && !strings.Contains(line, "write_text(") {
		return
	}
	texts := stringLiterals(line)
	for _, text := range texts {
		for _, a := range writesOf(&command{writes: []string{text}}) {
			add(a, strings.TrimSpace(line))
		}
		if writesFile(line, texts) && secretNames().anyIn(strings.ToLower(text)) {
			add(act{Credential, "Keeps secrets in a file"}, strings.TrimSpace(line))
		}
	}
}

// writesFile says whether a line of a program opens a file to write, with texts in quotes: its name and the mode.
func writesFile(line string, texts []string) bool {
	if strings.Contains(line, "riteFile") || strings.Contains(line, "write_text(") {
		return true
	}
	return slices.ContainsFunc(texts, func(text string) bool {
		return text == "a" || text == "w" || text == "a+" || text == "w+" || text == "ab" || text == "wb"
	})
}

// secretNames are parts of the names of files for what is secret. "token" is not one: most tokens are those of a model.
var secretNames = sync.OnceValue(func() *parts { //nolint:gochecknoglobals // made once, never changed
	return newParts("payment", "credit_card", "creditcard", "card_data", "passw", "credential", "secret", "cookie",
		"apikey", "api_key", "access_token", "auth_token", "private_key")
})

// isClearCommand says whether a text is a command, and not a sentence: its first word is a program, and the words
// behind it are such as sentences do not have.
func isClearCommand(text string) bool {
	text = withoutPrompt(text)
	first, rest, ok := strings.Cut(text, " ")
	if !ok {
		return strings.HasPrefix(first, "./") || isScript(first) && strings.Contains(first, "/")
	}
	name := programName(unquoted(first))
	if programs()[name] == nil && !isProgramName(name) {
		return strings.HasPrefix(first, "./") || isScript(first)
	}
	if !isEnglishWord(name) {
		return true
	}
	return strings.Contains(" "+rest, " -") || strings.ContainsAny(rest, "/$|>~")
}

// unquoted takes quotes and backslashes out of a word, with which a shell runs it all the same.
func unquoted(text string) string {
	if strings.IndexByte(text, '\\') < 0 && strings.IndexByte(text, '\'') < 0 && strings.IndexByte(text, '"') < 0 {
		return text
	}
	return strings.NewReplacer(`\`, "", `"`, "", "'", "").Replace(text)
}

// isEnglishWord says whether the name of a program is a word that sentences have.
func isEnglishWord(name string) bool {
	switch name {
	case "at", "find", "host", "mail", "set", "env", "time", "format", "history", "source", "pass", "export", "security",
		"service", "echo",
		"cat", "go", "node", "kill", "fetch", "strings", "batch", "reg", "http", "wipe", "shred", "unlink", "op", "hf",
		"kind", "fly", "vault", "sam", "copilot", "cdk", "mc", "cf", ".", "k", "x", "tea", "move", "del", "snap", "python",
		"bun", "gem",
		"bore", "unset", "install", "flash", "poetry", "composer", "cargo", "docker", "git", "helm", "consul", "nomad":
		return true
	}
	return false
}
