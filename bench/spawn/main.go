// Command spawn measures what a client waits for when it spawns an MCP server: the time from the spawn to the answer of
// tools/list, the processor time of the server until it has ended, and its largest resident memory. It runs the named
// commands in turn, so that their ratio holds on a noisy machine.
//
//	spawn [-n ROUNDS] [-env NAME=VALUE] NAME=COMMAND...
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

const (
	hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"bench","version":"1"}}}` + "\n"
	listRequest = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n"
)

// sample is one spawn.
type sample struct {
	answered time.Duration
	used     time.Duration // processor time
	rssKB    int64
	bytes    int
}

func main() {
	rounds := flag.Int("n", 100, "rounds")
	env := flag.String("env", "", "a variable of the servers' environment, as NAME=VALUE")
	flag.Parse()
	samples := map[string][]sample{}
	var names []string
	for _, arg := range flag.Args() {
		name, _, _ := strings.Cut(arg, "=")
		names = append(names, name)
	}
	for range *rounds {
		for _, arg := range flag.Args() {
			name, command, _ := strings.Cut(arg, "=")
			s, err := spawn(strings.Fields(command), *env)
			if err != nil {
				fmt.Fprintf(os.Stderr, "spawn: %s: %v\n", name, err)
				os.Exit(1)
			}
			samples[name] = append(samples[name], s)
		}
	}
	fmt.Printf("%-12s %12s %12s %12s %12s %12s %12s\n", "server", "min ms", "median ms", "p90 ms", "CPU ms", "RSS MB",
		"list bytes")
	for _, name := range names {
		report(name, samples[name])
	}
}

func report(name string, list []sample) {
	slices.SortFunc(list, func(a, b sample) int { return int(a.answered - b.answered) })
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	rss, used := make([]int64, len(list)), make([]time.Duration, len(list))
	for i, s := range list {
		rss[i], used[i] = s.rssKB, s.used
	}
	slices.Sort(rss)
	slices.Sort(used)
	fmt.Printf("%-12s %12.1f %12.1f %12.1f %12.1f %12.1f %12d\n", name, ms(list[0].answered),
		ms(list[len(list)/2].answered),
		ms(list[len(list)*9/10].answered), ms(used[len(used)/2]), float64(rss[len(rss)/2])/1024, list[0].bytes)
}

// peak is the largest resident memory of a process that runs, in KiB. What wait(2) says has in it what this process had
// when it forked.
func peak(pid int) (size int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	_, err = fmt.Sscan(rest, &size)
	return size, err
}

func spawn(command []string, env string) (sample, error) {
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // a measured child; it ends when its input ends
	cmd.Env = []string{"HOME=" + os.TempDir(), env}
	in, err := cmd.StdinPipe()
	if err != nil {
		return sample{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return sample{}, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return sample{}, err
	}
	if _, err := io.WriteString(in, hello+listRequest); err != nil {
		return sample{}, err
	}
	reader := bufio.NewReaderSize(out, 1<<16)
	var answer []byte
	for !bytes.Contains(answer, []byte(`"id":2`)) {
		if answer, err = reader.ReadBytes('\n'); err != nil {
			return sample{}, err
		}
	}
	s := sample{answered: time.Since(began), bytes: len(answer)}
	if s.rssKB, err = peak(cmd.Process.Pid); err != nil {
		return s, err
	}
	if err := in.Close(); err != nil {
		return s, err
	}
	if err := cmd.Wait(); err != nil {
		return s, err
	}
	s.used = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return s, nil
}
