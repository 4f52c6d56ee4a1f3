//go:build e2e && linux

package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// tunnel starts tinyproxy, as an HTTP proxy of the agent's network, with more lines in its settings. It finds publicName on this machine. It
// returns where it listens, and the file of its log.
func tunnel(t *testing.T, settings string) (address, log string) {
	t.Helper()
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatalf("%v: run e2e/setup.sh", err)
	}
	folder, port := t.TempDir(), freePort(t)
	log = filepath.Join(folder, "log")
	for name, text := range map[string]string{
		"hosts": "127.0.0.1 localhost " + publicName + "\n",
		"tinyproxy.conf": fmt.Sprintf("Port %d\nListen 127.0.0.1\nTimeout 600\nLogFile %q\nLogLevel Connect\nPidFile %q\n%s\n",
			port, log, filepath.Join(folder, "pid"), settings),
		"log": "",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hosts, err := filepath.EvalSymlinks("/etc/hosts")
	if err != nil {
		t.Fatal(err)
	}
	cmd := command(t, patientProgram(bwrap, folder, "--dev-bind", "/", "/", "--ro-bind", filepath.Join(folder, "hosts"), hosts,
		"--die-with-parent", "--", "/usr/bin/tinyproxy", "-d", "-c", filepath.Join(folder, "tinyproxy.conf")))
	cmd.Stderr = os.Stderr
	launch(t, cmd)
	address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	until(t, "tinyproxy listens", func() bool {
		conn, err := net.Dial("tcp", address)
		return err == nil && conn.Close() == nil
	})
	return address, log
}

const (
	ofTunnel = "ann"
	secretly = "tunnel%2Dsecret" // in an address
	secret   = "tunnel-secret"
)

// discreet holds that neither secret is in what was said or logged.
func (b *behindNginx) discreet(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, hidden := range []string{"cops_", secret, secretly, "tunnel"} {
		if strings.Contains(string(text), hidden) {
			t.Errorf("%q is in %s", hidden, text)
		}
	}
	return string(text)
}

func TestAnAgentProposesThroughATunnel(t *testing.T) {
	for name, c := range map[string]struct{ settings, user string }{
		"for everybody":   {"", ""},
		"with a password": {fmt.Sprintf("BasicAuth %s %s", ofTunnel, secret), ofTunnel + ":" + secretly + "@"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBehindNginx(t, "ssl", nginxDefaults)
			proxy, log := tunnel(t, c.settings)
			p := quieterDisk()
			s := b.connects(t, b.named(), "HTTPS_PROXY=http://"+c.user+proxy, "NO_PROXY=elsewhere.example.org")
			s.in(createPR(t, p))
			messages := assertPure(t, s.line(t), []int{2})
			assertOpened(t, decode[answer](t, string(decode[toolResult](t, string(messages[0].Result)).Structured)), p)
			b.assertProposed(t, quieterDiskBranch, p)
			if text := b.discreet(t, log); !strings.Contains(text, "CONNECT "+publicName) {
				t.Errorf("the proxy was not asked: %s", text)
			}
			b.discreet(t, filepath.Join(b.client.home, "said"))
		})
	}
}

// named is the address by name, which the proxy alone finds.
func (b *behindNginx) named() string {
	return strings.Replace(b.nginx.address(""), "127.0.0.1", publicName, 1)
}

func TestWhatATunnelRefusesIsSaidWithoutItsPassword(t *testing.T) {
	password := fmt.Sprintf("BasicAuth %s %s", ofTunnel, secret)
	for name, c := range map[string]struct {
		settings, user, noProxy, said string
		ends                          bool // for good, as another attempt would be no better
	}{
		"no password":             {password, "", "", "wants a user and a password", true},
		"another password":        {password, ofTunnel + ":x" + secretly + "@", "", "does not take the user and the password", true},
		"another port":            {"ConnectPort 1", ofTunnel + ":" + secretly + "@", "", "lets nobody through to " + publicName, true},
		"a name that is excepted": {"", ofTunnel + ":" + secretly + "@", publicName, "lookup " + publicName, false},
		"a proxy that is away":    {"away", ofTunnel + ":" + secretly + "@", "", "proxyconnect", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBehindNginx(t, "ssl", nginxDefaults)
			proxy := net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
			if c.settings != "away" {
				proxy, _ = tunnel(t, c.settings)
			}
			said := filepath.Join(b.client.home, "said")
			s := b.starts(t, b.named(), said, "HTTPS_PROXY=http://"+c.user+proxy, "NO_PROXY="+c.noProxy)
			s.in(initialize)
			if c.ends {
				if code := exitCode(t, s.cmd); code != 3 {
					t.Errorf("exit %d", code)
				}
			}
			until(t, "the connector says so", func() bool { return strings.Contains(b.discreet(t, said), c.said) })
			b.assertUntouched(t)
		})
	}
}
