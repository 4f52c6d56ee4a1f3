package demo

import (
	"fmt"
	"io"
	"strings"
)

// transcript is the output of the demo.
type transcript struct {
	out  io.Writer
	step int // number of the last heading
}

func (t *transcript) say(format string, args ...any) { fmt.Fprintf(t.out, format, args...) }

func (t *transcript) heading(title string) {
	t.step++
	t.say("\n=== %d. %s\n", t.step, title)
}

// indent prints a block, each line behind two spaces.
func (t *transcript) indent(text string) {
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		t.say("  %s\n", line)
	}
}

// asked prints a tool call in short: file contents are cut to their size.
func (t *transcript) asked(tool string, arguments map[string]any) {
	t.say("agent> %s %v/%v\n", tool, arguments["repo_owner"], arguments["repo_name"])
	if title, ok := arguments["title"]; ok {
		t.say("         title: %v\n", title)
	}
	files, _ := arguments["files"].([]map[string]any)
	for _, f := range files {
		content, _ := f["content"].(string)
		t.say("         %v %v (%d bytes)\n", f["action"], f["path"], len(content))
	}
}
