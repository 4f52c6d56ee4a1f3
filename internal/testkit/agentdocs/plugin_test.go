package agentdocs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

const pluginSkillFile = "plugins/claudeops/skills/propose-change/SKILL.md"

// pluginServer is the name that Claude Code gives to the plugin's MCP server, and pluginTools what the names of its
// tools begin with.
const (
	pluginServer = "plugin:claudeops:claudeops"
	pluginTools  = "mcp__plugin_claudeops_claudeops__"
)

// The plugin's skill is that of sessions, but for what somebody has who has the plugin alone: other names, and no
// prompt of a tier.
func TestThePluginsSkillIsThatOfSessionsInItsOwnWords(t *testing.T) {
	t.Parallel()
	ours := strings.NewReplacer(
		"mcp__"+serverName+"__", pluginTools, `"server": "`+serverName+`"`, `"server": "`+pluginServer+`"`,
		"The MCP server `claudeops` has three tools. Your tier's prompt says whether and when you may propose;",
		"The plugin's MCP server has three tools. Its instructions say whether you may propose, and for which files;",
		"What each code asks for is in the table of your tier's prompt. The ones",
		"The text of each says the next step. The codes",
	).Replace(oneLine(read(t, skillFile)))
	text := oneLine(read(t, pluginSkillFile))
	if text != ours {
		t.Error("the plugin's skill is not that of .claude: change both")
	}
	if strings.Contains(text, "tier's prompt") {
		t.Error("the plugin's skill names a tier's prompt, which a person's agent does not have")
	}
	for _, tool := range regexp.MustCompile(`mcp__[A-Za-z0-9_-]+`).FindAllString(text, -1) {
		if short, is := strings.CutPrefix(tool, pluginTools); !is || !slices.Contains(toolNames(), short) {
			t.Errorf("the plugin has no tool %s", tool)
		}
	}
	for _, want := range []string{`"revises"`, `"reply"`, `"replies"`, "claudeops://", "ReadMcpResourceTool",
		pluginServer} {
		if !strings.Contains(text, want) {
			t.Errorf("the plugin's skill does not know %s", want)
		}
	}
}

// commandsOf are the commands that a text tells its reader to run: in fenced blocks of a shell, and in code spans of
// prose. What stands indented is an example of a text that somebody wrote.
func commandsOf(text string) (out []string) {
	for _, language := range []string{"sh", "bash", "console"} {
		for _, block := range fenced(text, language) {
			out = append(out, strings.Split(strings.TrimSpace(block), "\n")...)
		}
	}
	prose := regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllString(text, "")
	program := regexp.MustCompile(`^[a-z][a-z0-9_.-]* [^:]`) // and not a field, as `dry_run: true` is
	for _, paragraph := range strings.Split(regexp.MustCompile(`(?m)^ {4,}.*$`).ReplaceAllString(prose, ""), "\n\n") {
		for i, span := range strings.Split(paragraph, "`") {
			if i%2 == 1 && program.MatchString(span) {
				out = append(out, strings.Join(strings.Fields(span), " "))
			}
		}
	}
	return out
}

// permitted reports whether a rule such as df * lets a command run.
func permitted(command string) bool {
	return slices.ContainsFunc(reading(), func(rule string) bool {
		begin, open := strings.CutSuffix(rule, " *")
		return command == begin || open && strings.HasPrefix(command, begin+" ")
	})
}

// A session with the permissions that we recommend can do all that prompts and skills tell it to do.
func TestPromptsAndSkillsNeedNoCommandThatIsRefused(t *testing.T) {
	t.Parallel()
	for _, name := range append(prompts(), skillFile, scriptsSkillFile, pluginSkillFile) {
		for _, command := range commandsOf(read(t, name)) {
			if !permitted(command) {
				t.Errorf("%s has its reader run %q, which the permissions of docs/guides/sessions.md refuse", name, command)
			}
		}
	}
	text := "Ask `git rev-parse HEAD`; `dry_run: true`, `df -h /`.\n\n    `dig x`\n\n```sh\nuptime\ncat a b\n```\n"
	if got := commandsOf(text); !slices.Equal(got, []string{"uptime", "cat a b", "git rev-parse HEAD", "df -h /"}) {
		t.Errorf("read are the commands %q", got)
	}
	for command, want := range map[string]bool{"git rev-parse HEAD": false, "df": true, "df -i": true, "dfx -i": false,
		"docker system df": true, "docker system df -v": false} {
		if permitted(command) != want {
			t.Errorf("%s: permitted %t", command, !want)
		}
	}
}
