//go:build e2e && linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// caddy is a real one in front of a server, which makes its certificate itself.
type caddy struct {
	port    int
	folder  string // its configuration, certificates and log
	running *exec.Cmd
}

// behindCaddy makes one whose site says, beside its certificate, what settings say; SERVER there is the server's
// address.
func behindCaddy(settings string) func(*testing.T, string) front {
	return func(t *testing.T, server string) front {
		t.Helper()
		c := &caddy{port: freePort(t), folder: t.TempDir()}
		// what a test needs beside it: no other ports, and nothing outside of the folder
		text := fmt.Sprintf("{\nadmin off\nauto_https disable_redirects\nskip_install_trust\nstorage file_system %[1]s\n"+
			"log {\noutput file %[1]s/error.log\n}\n}\nhttps://127.0.0.1:%[2]d {\nbind 127.0.0.1\ntls internal\n%[3]s\n}\n",
			c.folder, c.port, strings.ReplaceAll(settings, "SERVER", server))
		if err := os.WriteFile(filepath.Join(c.folder, "Caddyfile"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return c
	}
}

func (c *caddy) authority() string {
	return filepath.Join(c.folder, "pki", "authorities", "local", "root.crt")
}

func (c *caddy) address(path string) string {
	return "https://127.0.0.1:" + strconv.Itoa(c.port) + path
}

func (c *caddy) start(t *testing.T) {
	t.Helper()
	program, err := exec.LookPath("/usr/bin/caddy")
	if err != nil {
		t.Fatalf("%v: run e2e/setup.sh", err)
	}
	p := patientProgram(program, c.folder, "run", "--adapter", "caddyfile", "--config",
		filepath.Join(c.folder, "Caddyfile"))
	p.env = append(p.env, "HOME="+c.folder)
	c.running = command(t, p)
	launch(t, c.running)
	until(t, "Caddy answers", func() bool { return answersTLS(c.port) })
}

// stop kills it: told to end, it waits for its connections.
func (c *caddy) stop(t *testing.T) {
	t.Helper()
	if err := c.running.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.running.Wait() // it was killed
}

func (c *caddy) log(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
