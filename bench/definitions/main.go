// Command definitions measures tools of the toolset definitions over a project of 10,000 agents, half of them in YAML
// and half in Markdown: the first call of a server that has just started, and the median of later ones, with the
// server's largest resident memory. With the command of Forge's own server, it is measured in the same run.
//
//	definitions [-n CALLS] CLAUDEOPS [NODE FORGE.js]
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const agents = 10_000

func main() {
	rounds := flag.Int("n", 10, "calls of each kind")
	flag.Parse()
	if err := run(*rounds, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "definitions:", err)
		os.Exit(1)
	}
}

func run(rounds int, args []string) error {
	if len(args) == 0 || rounds < 2 {
		return errors.New("name the program, and at least 2 calls")
	}
	root, err := os.MkdirTemp("", "definitions")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(root) }()
	if err := fill(root); err != nil {
		return err
	}
	fmt.Printf("%-10s %-28s %10s %10s %8s\n", "server", "call", "first ms", "median ms", "RSS MB")
	ours := []string{args[0], "mcp-server", "--as", "fractary-forge"}
	if err := measure("ours", ours, root, rounds); err != nil || len(args) == 1 {
		return err
	}
	return measure("original", args[1:], root, rounds)
}

// fill writes the agents, and a registry of as many plugins.
func fill(root string) error {
	plugins := make([]map[string]any, agents)
	for i := range agents {
		name := fmt.Sprintf("agent-%05d", i)
		header := "name: " + name +
			"\ntype: agent\ndescription: Reviews code of one kind\nllm: {provider: anthropic, model: claude-sonnet}\n" +
			"tools: []\nversion: 1.0.0\ntags: [demo]\n"
		file, text := name+".yaml", header+"system_prompt: Review it.\n"
		if i%2 == 1 {
			file, text = filepath.Join(name, "agent.md"), "---\n"+header+"---\nReview it.\n"
		}
		if err := writeFile(filepath.Join(root, ".fractary", "agents", file), text); err != nil {
			return err
		}
		plugins[i] = map[string]any{
			"name": fmt.Sprintf("@demo/plugin-%05d", i), "version": "1.0.0", "description": "One of many",
			"manifest_url": "plugin.json", "tags": []string{"demo"},
		}
	}
	index, err := json.Marshal(map[string]any{"name": "demo", "version": "1.0.0", "description": "Many",
		"updated": "2026-01-01T00:00:00Z", "plugins": plugins})
	if err != nil {
		return err
	}
	config := fmt.Sprintf(`{"registries":[{"name":"demo","type":"manifest","url":%q,"priority":1}]}`,
		"file://"+filepath.Join(root, "registry.json"))
	return errors.Join(writeFile(filepath.Join(root, "registry.json"), string(index)),
		writeFile(filepath.Join(root, ".fractary", "config.json"), config))
}

func writeFile(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o600)
}

// server speaks with an MCP server over its standard input and output.
type server struct {
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
	id  int
}

func measure(name string, command []string, root string, rounds int) error {
	// #nosec G204: the operator names the program
	cmd := exec.CommandContext(context.Background(), command[0], command[1:]...)
	cmd.Dir, cmd.Env = root, append(cmd.Environ(), "HOME="+root, "CLAUDEOPS_STATE_DIR="+filepath.Join(root, "state"))
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		return err
	}
	s := &server{cmd: cmd, in: in, out: bufio.NewReader(out)}
	defer func() { _ = in.Close(); _ = cmd.Wait() }()
	hello := `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`
	if _, err := s.roundTrip("initialize", hello); err != nil {
		return err
	}
	file := filepath.Join(root, ".fractary", "agents", "agent-05001", "agent.md")
	// tool, arguments, what is special; the original has location in place of source, and passes over what it does not
	// know
	for _, c := range [][3]string{
		{"agent_list", `{"source":"local","limit":100}`},
		{"agent_list", `{"source":"local","tags":["demo"],"limit":100}`, "with a tag"},
		{"agent_info", `{"name":"agent-05001"}`}, {"agent_validate", fmt.Sprintf(`{"path":%q}`, file)},
		{"plugin_search", `{"query":"plugin-0500"}`},
		{"agent_list", `{"limit":100}`, "and registry"},
	} {
		if err := s.time(name, c, rounds); err != nil {
			return err
		}
	}
	return nil
}

// time calls a tool again and again, and prints what that took.
func (s *server) time(name string, call [3]string, rounds int) error {
	took, failed := make([]float64, rounds), ""
	for i := range took {
		start := time.Now()
		answer, err := s.roundTrip("tools/call", fmt.Sprintf(`{"name":"fractary_forge_%s","arguments":%s}`, call[0], call[1]))
		if err != nil {
			return err
		}
		took[i] = float64(time.Since(start).Microseconds()) / 1000
		if strings.Contains(answer, `"isError":true`) {
			failed = "fails: " + answer[:min(len(answer), 120)]
		}
	}
	later := slices.Sorted(slices.Values(took[1:]))
	fmt.Printf("%-10s %-28s %10.1f %10.1f %8.1f %s\n", name, call[0]+" "+call[2], took[0], later[len(later)/2], s.memory(),
		failed)
	return nil
}

// roundTrip sends a request and returns its answer. Lines that are not an answer are passed over.
func (s *server) roundTrip(method, params string) (string, error) {
	s.id++
	if _, err := fmt.Fprintf(s.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", s.id, method,
		params); err != nil {
		return "", err
	}
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			return "", err
		}
		var answer struct{ ID int }
		if json.Unmarshal([]byte(line), &answer) == nil && answer.ID == s.id {
			return line, nil
		}
	}
}

// memory is the largest resident memory of the server until now, in MB; 0 where the system does not say.
func (s *server) memory() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kB float64
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kB); n == 1 {
			return kB / 1024
		}
	}
	return 0
}
