//go:build e2e && linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// behindNginx is a server behind a real nginx, and an agent that knows no more than its address, its certificate and a token.
type behindNginx struct {
	*world
	nginx  *nginx
	server served
	client *world
	token  string // file
	secret string
}

func newBehindNginx(t *testing.T, listen, settings string) *behindNginx {
	t.Helper()
	b := &behindNginx{world: newWorld(t, "1"), client: &world{home: t.TempDir(), vars: map[string]string{}}}
	b.server = serve(t, b.world, "CLAUDEOPS_MAX_TIER=2", "CLAUDEOPS_HOSTS="+publicName, "CLAUDEOPS_TRUSTED_PROXIES=127.0.0.1/32")
	made := run(t, program{
		path: claudeops(t), args: []string{"token", "create", "--agent", "--tier", "2", "--name", "laptop"}, dir: b.home, env: b.environment(),
	})
	if made.code != 0 {
		t.Fatal(made.stderr)
	}
	b.secret, b.token = strings.TrimSpace(made.stdout), filepath.Join(b.client.home, "token")
	if err := os.WriteFile(b.token, []byte(made.stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	b.nginx = newNginx(t, listen, strings.ReplaceAll(settings, "SERVER", b.server.url))
	b.nginx.start(t)
	b.client.vars["SSL_CERT_FILE"] = b.nginx.authority()
	return b
}

// connects starts a connector and shakes hands.
func (b *behindNginx) connects(t *testing.T, address string, more ...string) talk {
	t.Helper()
	s := b.starts(t, address, filepath.Join(b.client.home, "said"), more...)
	s.in(initialize)
	assertPure(t, s.line(t), []int{1})
	s.in(initialized)
	return s
}

// starts starts a connector. What it says to people is in a file.
func (b *behindNginx) starts(t *testing.T, address, said string, more ...string) talk {
	t.Helper()
	p := patientProgram(claudeops(t), b.client.home, "mcp-server", "--connect", address, "--ticket-file", b.token)
	p.env = b.client.environment(more...)
	cmd := command(t, p)
	told, err := os.Create(said)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = told.Close() })
	cmd.Stderr = told
	return talkTo(t, cmd)
}

// nginxDefaults is all that nginx needs to be told.
const nginxDefaults = "location / { proxy_pass SERVER; }"

// advisedNginx is what the docs show, for the server at SERVER.
func advisedNginx(t *testing.T) string {
	t.Helper()
	for _, block := range docsBlocks(t, "explain/boundary.md", "A person's own agent") {
		if strings.Contains(block, "proxy_pass") {
			return replaceOnce(t, block, "http://127.0.0.1:8080", "SERVER")
		}
	}
	t.Fatal("the page shows no nginx")
	return ""
}

// The messages of an agent pass through nginx as it is installed, and as the docs advise.
func TestAnAgentWorksThroughNginx(t *testing.T) {
	for name, c := range map[string]struct{ listen, settings string }{
		"as it is installed":             {"ssl", nginxDefaults},
		"as the docs advise, and HTTP/2": {"ssl http2", advisedNginx(t)},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBehindNginx(t, c.listen, c.settings)
			s := b.connects(t, b.nginx.address(""))
			b.isCancelled(t, s)
			b.takesLargeMessages(t, s)
			b.isSettledAfterARestart(t, s)
			for _, log := range []string{"access.log", "error.log"} {
				if text := b.nginx.log(t, log); strings.Contains(text, "cops_") {
					t.Errorf("the token is in nginx's log: %s", text)
				}
			}
		})
	}
}

// underWay makes a call of create_pr while the turn at the repository is taken, and waits until its progress says that it writes.
func (b *behindNginx) underWay(t *testing.T, s talk, p proposal) (release func()) {
	t.Helper()
	_, release = localForge{}.hold(t, b.world)
	s.in(strings.Replace(createPR(t, p), `"params":{`, `"params":{"_meta":{"progressToken":"p"},`, 1))
	for line := ""; !strings.Contains(line, "writing the branch"); {
		if line = s.line(t); !strings.Contains(line, `"notifications/progress"`) {
			t.Fatalf("not the proposal's progress: %s", line)
		}
	}
	return release
}

// isCancelled cancels a call that writes already. It is finished, and not answered.
func (b *behindNginx) isCancelled(t *testing.T, s talk) {
	t.Helper()
	p := quieterDisk()
	p.Title, p.Files = "Ping the gateway", []fileChange{{"checks/network.md", "update", "# Network\n\nPing the gateway.\n"}}
	release := b.underWay(t, s, p)
	s.in(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	pong := func() {
		t.Helper()
		s.in(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
		if line := s.line(t); !strings.Contains(line, `"id":3`) {
			t.Errorf("after the cancellation: %s", line)
		}
	}
	pong()
	release()
	until(t, "the call ends", func() bool { return !b.isWorkedOn(t) })
	pong()
	for _, branch := range b.branches(t) {
		b.git(t, "", "branch", "--quiet", "-D", branch)
	}
}

func (b *behindNginx) takesLargeMessages(t *testing.T, s talk) {
	t.Helper()
	const most = 4 << 20
	p := quieterDisk()
	p.Body = ""
	p.Body = strings.Repeat("x", most-len(createPR(t, p)))
	s.in(createPR(t, p))
	if line := s.line(t); !strings.Contains(line, `"id":2`) || !strings.Contains(line, "invalid_argument") {
		t.Errorf("a message of 4 MiB is answered with %.300s", line)
	}
}

// isSettledAfterARestart ends nginx while a pull request is made, and starts it anew. The identical call finds what the first one did.
func (b *behindNginx) isSettledAfterARestart(t *testing.T, s talk) {
	t.Helper()
	release := b.underWay(t, s, quieterDisk())
	b.nginx.stop(t)
	if line := s.line(t); !strings.Contains(line, "upstream_error") {
		t.Errorf("the call is answered with %s", line)
	}
	b.nginx.start(t)
	release()
	p := quieterDisk()
	for {
		s.in(createPR(t, p))
		messages := assertPure(t, s.line(t), []int{2})
		got := decode[answer](t, string(decode[toolResult](t, string(messages[0].Result)).Structured))
		if code := got.Error.Code; code == "upstream_error" || code == "timeout" {
			continue // the connection was not whole yet
		}
		if !got.Reused || got.Branch != quieterDiskBranch {
			t.Errorf("the identical call is answered with %+v", got)
		}
		break
	}
	b.assertProposed(t, quieterDiskBranch, p)
}

// What nginx can be told beside that, and what the connector makes of it.
func TestAnAgentIsToldWhatNginxGetsWrong(t *testing.T) {
	for name, c := range map[string]struct{ settings, said string }{
		"it ends what is silent":   {"location / { proxy_pass SERVER; proxy_read_timeout 3s; }", "(nginx: proxy_read_timeout)"},
		"it asks for a password":   {"location / { return 401; }", "a proxy in front of it lets nobody through"},
		"it leads elsewhere":       {"location / { return 301 https://elsewhere.example.org$request_uri; }", "to https://elsewhere.example.org/api/v1/connector"},
		"it has another name":      {"server_name x; location / { proxy_pass SERVER; proxy_set_header Host other.example.org; }", "CLAUDEOPS_HOSTS"},
		"it is nothing of ours":    {"location / { return 404; }", "is it served there"},
		"it takes hardly anything": {"location / { proxy_pass SERVER; client_max_body_size 1k; }", "(nginx: client_max_body_size)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBehindNginx(t, "ssl", c.settings)
			said := filepath.Join(b.client.home, "said")
			s := b.starts(t, b.nginx.address(""), said)
			s.in(initialize)
			if name == "it takes hardly anything" {
				p := quieterDisk()
				p.Body = strings.Repeat("x", 64<<10)
				s.in(createPR(t, p))
			}
			until(t, "the connector says so", func() bool {
				text, err := os.ReadFile(said)
				if strings.Contains(string(text), "cops_") {
					t.Errorf("the token is in %s", text)
				}
				return err == nil && strings.Contains(string(text), c.said)
			})
			b.assertUntouched(t)
		})
	}
}

func TestANginxThatTakesSmallBodiesIsSentSmallOnes(t *testing.T) {
	b := newBehindNginx(t, "ssl", "location / { proxy_pass SERVER; client_max_body_size 5k; }")
	s := b.connects(t, b.nginx.address(""))
	p := quieterDisk()
	p.Files[0].Content = strings.Repeat("# A check that is long\n", 8<<10)
	s.in(createPR(t, p))
	messages := assertPure(t, s.line(t), []int{2})
	assertOpened(t, decode[answer](t, string(decode[toolResult](t, string(messages[0].Result)).Structured)), p)
	b.assertProposed(t, quieterDiskBranch, p)
}
