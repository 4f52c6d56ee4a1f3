package demo

import (
	"fmt"
	"strings"
)

func (r *run) say(format string, args ...any) { fmt.Fprintf(r.Out, format, args...) }

func (r *run) heading(title string) {
	r.step++
	r.say("\n=== %d. %s\n", r.step, title)
}

// indent prints a block, each line behind two spaces.
func (r *run) indent(text string) {
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		r.say("  %s\n", line)
	}
}

// asked prints a tool call in short: file contents are cut to their size.
func (r *run) asked(tool string, arguments map[string]any) {
	r.say("agent> %s %v/%v\n", tool, arguments["repo_owner"], arguments["repo_name"])
	if title, ok := arguments["title"]; ok {
		r.say("         title: %v\n", title)
	}
	files, _ := arguments["files"].([]map[string]any)
	for _, f := range files {
		content, _ := f["content"].(string)
		r.say("         %v %v (%d bytes)\n", f["action"], f["path"], len(content))
	}
}
