//go:build e2e && linux

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// publicName is the name that the certificates of proxies are for, beside 127.0.0.1. No name server knows it.
const publicName = "ops.example.org"

// proxying is a program with TLS in front of a server.
type proxying struct {
	port    int
	folder  string // its configuration, certificates, logs and temporary files
	running *exec.Cmd
}

// address is that of a path there.
func (p *proxying) address(path string) string {
	return fmt.Sprintf("https://127.0.0.1:%d%s", p.port, path)
}

// log returns the text of one of its logs.
func (p *proxying) log(t *testing.T, name string) string {
	t.Helper()
	return readFile(t, filepath.Join(p.folder, name))
}

// nginx is a real one.
type nginx struct{ proxying }

// certificate writes a certificate for names and 127.0.0.1 and its key, and returns the two files. It is self-signed,
// so a client needs the file.
func certificate(t *testing.T, folder string, names ...string) (chain, key string) {
	t.Helper()
	private := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	subject := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed := must.Get(x509.CreateCertificate(rand.Reader, subject, subject, &private.PublicKey, private))(t)
	secret := must.Get(x509.MarshalPKCS8PrivateKey(private))(t)
	chain, key = filepath.Join(folder, "chain.pem"), filepath.Join(folder, "key.pem")
	for file, block := range map[string]*pem.Block{chain: {Type: "CERTIFICATE", Bytes: signed},
		key: {Type: "PRIVATE KEY", Bytes: secret}} {
		must.Do(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	return chain, key
}

// newNginx configures one: server is the part of its `server` block beside address and certificate. It is not started.
func newNginx(t *testing.T, listen, server string) *nginx {
	t.Helper()
	n := &nginx{proxying{port: freePort(t), folder: t.TempDir()}}
	chain, key := certificate(t, n.folder, publicName)
	var b strings.Builder
	if os.Geteuid() == 0 {
		b.WriteString("user root root;\n") // another user could not enter the folder
	}
	fmt.Fprintf(&b,
		"daemon off;\nworker_processes 1;\npid %[1]s/pid;\nerror_log %[1]s/error.log;\nevents {}\nhttp {\naccess_log "+
			"%[1]s/access.log;\n", n.folder)
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&b, "%s_temp_path %s/%s;\n", kind, n.folder, kind)
	}
	fmt.Fprintf(&b, "server {\nlisten 127.0.0.1:%d %s;\nssl_certificate %s;\nssl_certificate_key %s;\n%s\n}\n}\n", n.port,
		listen, chain, key, server)
	must.Do(t, os.WriteFile(filepath.Join(n.folder, "nginx.conf"), []byte(b.String()), 0o600))
	return n
}

// behindNginx makes one that passes on all that settings say; SERVER there is the server's address.
func behindNginx(listen, settings string) func(*testing.T, string) front {
	return func(t *testing.T, server string) front {
		t.Helper()
		return newNginx(t, listen, strings.ReplaceAll(settings, "SERVER", server))
	}
}

// authority returns the file of the certificate that a client needs.
func (n *nginx) authority() string { return filepath.Join(n.folder, "chain.pem") }

// start starts it, and waits until it answers.
func (n *nginx) start(t *testing.T) {
	t.Helper()
	program, err := exec.LookPath("/usr/sbin/nginx")
	if err != nil {
		t.Fatalf("%v: run e2e/setup.sh", err)
	}
	n.running = command(t, patientProgram(program, n.folder, "-p", n.folder, "-c", filepath.Join(n.folder, "nginx.conf")))
	var said bytes.Buffer
	n.running.Stderr = &said
	launch(t, n.running)
	until(t, "nginx answers", func() bool { return answersTLS(n.port) })
}

// answersTLS reports whether something speaks TLS at a port.
func answersTLS(port int) bool {
	// #nosec G402: it is looked whether it is there
	conn, err := tls.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// stop ends it, with all connections through it.
func (n *nginx) stop(t *testing.T) {
	t.Helper()
	must.Do(t, n.running.Process.Signal(syscall.SIGTERM))
	if err := n.running.Wait(); err != nil {
		t.Fatalf("nginx: %v", err)
	}
}

// patientProgram is one that runs as long as a test with several clients takes on a busy machine.
func patientProgram(path, dir string, args ...string) program {
	const longest = 5 * time.Minute
	return program{path: path, args: args, dir: dir, env: []string{"PATH=" + os.Getenv("PATH")}, may: longest}
}

// caddy is a real one, which makes its certificate itself.
type caddy struct{ proxying }

// behindCaddy makes one whose site says, beside its certificate, what settings say; SERVER there is the server's
// address.
func behindCaddy(settings string) func(*testing.T, string) front {
	return func(t *testing.T, server string) front {
		t.Helper()
		c := &caddy{proxying{port: freePort(t), folder: t.TempDir()}}
		// what a test needs beside it: no other ports, and nothing outside of the folder
		text := fmt.Sprintf("{\nadmin off\nauto_https disable_redirects\nskip_install_trust\nstorage file_system %[1]s\n"+
			"log {\noutput file %[1]s/error.log\n}\n}\nhttps://127.0.0.1:%[2]d {\nbind 127.0.0.1\ntls internal\n%[3]s\n}\n",
			c.folder, c.port, strings.ReplaceAll(settings, "SERVER", server))
		must.Do(t, os.WriteFile(filepath.Join(c.folder, "Caddyfile"), []byte(text), 0o600))
		return c
	}
}

func (c *caddy) authority() string {
	return filepath.Join(c.folder, "pki", "authorities", "local", "root.crt")
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
	must.Do(t, c.running.Process.Kill())
	_ = c.running.Wait() // it was killed
}

// nginxDefaults is all that nginx needs to be told.
const nginxDefaults = "location / { proxy_pass SERVER; }"

// advised returns the docs' configuration of a proxy, found by one of its directives, for the server at SERVER.
func advised(t *testing.T, directive string) string {
	t.Helper()
	for _, block := range docsBlocks(t, "guides/rest.md", "Behind a proxy") {
		if strings.Contains(block, directive) {
			return replaceOnce(t, block, "http://127.0.0.1:8080", "SERVER")
		}
	}
	t.Fatalf("the page shows no %s", directive)
	return ""
}

func advisedNginx(t *testing.T) string { t.Helper(); return advised(t, "proxy_pass") }

// fronts are the proxies that the docs show, as they are installed from Debian's packages.
func fronts(t *testing.T) map[string]func(*testing.T, string) front {
	t.Helper()
	return map[string]func(*testing.T, string) front{
		"nginx": behindNginx("ssl http2", advisedNginx(t)), "Caddy": behindCaddy(advised(t, "reverse_proxy")),
	}
}

// addressed is an MCP client that speaks HTTP itself, so that a test can cut its connections.
type addressed struct {
	*elsewhere
	http    *http.Client
	session string
}

func (e *elsewhere) begins(t *testing.T) *addressed {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(readFile(t, e.front.authority())))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	a := &addressed{elsewhere: e, http: &http.Client{Transport: transport}}
	answer, err := a.post(t.Context(), initialize)
	must.Do(t, err)
	defer func() { _ = answer.Body.Close() }()
	if a.session = answer.Header.Get("Mcp-Session-Id"); a.session == "" {
		t.Fatalf("initialize: %s", answer.Status)
	}
	return a
}

func (a *addressed) post(ctx context.Context, message string) (*http.Response, error) {
	return a.request(ctx, http.MethodPost, message, "")
}

func (a *addressed) request(ctx context.Context, method, message, event string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.address+"/mcp", strings.NewReader(message))
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " +
			a.secret,
		"Mcp-Session-Id": a.session, "Last-Event-ID": event,
	} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	return a.http.Do(req)
}

// result is the answer to a call of a tool.
func (a *addressed) result(t *testing.T, message string) answer {
	t.Helper()
	response, err := a.post(t.Context(), message)
	must.Do(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	must.Do(t, err)
	return resultIn(t, string(text))
}

// resultIn is the answer in a body of either kind.
func resultIn(t *testing.T, body string) answer {
	t.Helper()
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "data: "))
		if strings.HasPrefix(line, "{") && strings.Contains(line, `"result"`) {
			got := decode[struct{ Result toolResult }](t, line)
			return decode[answer](t, string(got.Result.Structured))
		}
	}
	t.Fatalf("no answer in %.500s", body)
	return answer{}
}

// progressing is a call whose progress is asked for, so that its stream says something before its answer.
func progressing(message string) string {
	return strings.Replace(message, `"params":{`, `"params":{"_meta":{"progressToken":"p"},`, 1)
}

// A connection is cut before, while and after the answer comes, 12 times. Each proposal becomes one pull request, and
// the identical call finds it.
func TestACreationWhoseConnectionIsCutBecomesOnePullRequest(t *testing.T) {
	for name, proxy := range fronts(t) {
		t.Run(name, func(t *testing.T) { cutCreations(t, proxy) })
	}
}

func cutCreations(t *testing.T, proxy func(*testing.T, string) front) {
	t.Helper()
	e := newElsewhereBehind(t, proxy, policyOf(t, "caps: {open_prs: 50, creations_per_hour: 100}\n"))
	a := e.begins(t)
	const rounds = 12
	reused := 0
	for i := range rounds {
		p := quieterDisk()
		p.Title = fmt.Sprintf("Watch the disk of machine %d", i)
		p.Files = []fileChange{{fmt.Sprintf("checks/machine-%d.md", i), "create", "# Machine\n"}}
		message := strings.Replace(progressing(createPR(t, p)), `"id":2`, fmt.Sprintf(`"id":%d`, 100+2*i), 1)
		ctx, cut := context.WithCancel(t.Context())
		switch i % 4 {
		case 0: // before anything is answered, at any moment
			time.AfterFunc(time.Duration(i)*4*time.Millisecond, cut)
		case 3: // by the proxy
			time.AfterFunc(20*time.Millisecond, func() { e.front.stop(t); cut() })
		}
		response, err := a.post(ctx, message)
		if err == nil {
			lines := bufio.NewReader(response.Body)
			if i%4 == 2 { // after all of it
				_, _ = io.ReadAll(lines)
			} else { // while it comes
				_, _ = lines.ReadString('\n')
			}
		}
		if i%4 == 3 {
			<-ctx.Done()
			e.front.start(t)
		}
		cut()
		if err == nil {
			_ = response.Body.Close()
		}
		until(t, "the call ends", func() bool { return !e.isWorkedOn(t) })
		again := a.result(t, strings.Replace(message, fmt.Sprintf(`"id":%d`, 100+2*i), fmt.Sprintf(`"id":%d`, 101+2*i), 1))
		if again.Number != i+1 || again.Error.Code != "" {
			t.Errorf("round %d: the identical call is answered with %+v", i, again)
		}
		if again.Reused {
			reused++
		}
	}
	if got := e.branches(t); len(got) != rounds {
		t.Errorf("%d branches: %v", len(got), got)
	}
	if list := a.result(t,
		`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"list_prs","arguments":{"repo_owner":"demo","repo_name":"home-cluster","limit":50}}}`); len(list.PRs) != rounds {
		t.Errorf("%d pull requests are open", len(list.PRs))
	}
	t.Logf("%d of %d cut calls had gone on to their end", reused, rounds)
}

// An answer that a cut kept from its client is asked for again, behind nginx as it is installed.
func TestAnAnswerIsAskedForAgainBehindNginx(t *testing.T) {
	e := newElsewhere(t, "ssl", nginxDefaults)
	a := e.begins(t)
	_, release := localForge{}.hold(t, e.world)
	ctx, cut := context.WithCancel(t.Context())
	response, err := a.post(ctx, progressing(createPR(t, quieterDisk())))
	must.Do(t, err)
	lines, event := bufio.NewReader(response.Body), ""
	for line := ""; !strings.Contains(line, "writing the branch"); {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if id, found := strings.CutPrefix(line, "id: "); found {
			event = strings.TrimSpace(id)
		}
	}
	cut()
	_ = response.Body.Close()
	release()
	rest, err := a.request(t.Context(), http.MethodGet, "", event)
	must.Do(t, err)
	defer func() { _ = rest.Body.Close() }()
	text, err := io.ReadAll(rest.Body)
	must.Do(t, err)
	assertOpened(t, resultIn(t, string(text)), quieterDisk())
	e.assertProposed(t, quieterDiskBranch, quieterDisk())
}

func TestAMessageOfFourMebibytesPasses(t *testing.T) {
	for name, proxy := range fronts(t) {
		t.Run(name, func(t *testing.T) { passFourMebibytes(t, newElsewhereBehind(t, proxy)) })
	}
}

func passFourMebibytes(t *testing.T, e *elsewhere) {
	t.Helper()
	a := e.begins(t)
	const most = 4 << 20
	p := quieterDisk()
	p.Body = ""
	p.Body = strings.Repeat("x", most-len(createPR(t, p)))
	if got := a.result(t, createPR(t, p)); got.Error.Code != "invalid_argument" {
		t.Errorf("a message of 4 MiB is answered with %+v", got)
	}
	e.assertUntouched(t)
}

// What says nothing for longer than a proxy's patience with buffers is kept alive: the stream of a session, and that of
// a call that waits. nginx is as it is installed, without a line of ours.
func TestStreamsThatSayNothingLiveThroughProxies(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for name, proxy := range map[string]func(*testing.T, string) front{
		"nginx": behindNginx("ssl", nginxDefaults), "Caddy": behindCaddy(advised(t, "reverse_proxy")),
	} {
		e := newElsewhereBehind(t, proxy)
		a := e.begins(t)
		_, release := localForge{}.hold(t, e.world)
		general, err := a.request(t.Context(), http.MethodGet, "", "")
		must.Do(t, err)
		call, err := a.post(t.Context(), progressing(createPR(t, quieterDisk())))
		must.Do(t, err)
		all.Go(func() { // both proxies at once: it takes the time between two comments
			defer func() { _, _ = general.Body.Close(), call.Body.Close() }()
			lines := bufio.NewReader(call.Body)
			for _, stream := range []*bufio.Reader{bufio.NewReader(general.Body), lines} {
				for line := ""; line != ": still here\n"; {
					if line, err = stream.ReadString('\n'); err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
				}
			}
			release()
			if rest, err := io.ReadAll(lines); err != nil || !strings.Contains(string(rest), `"number":1`) {
				t.Errorf("%s: %.500s, %v", name, rest, err)
			}
		})
	}
	all.Wait()
}
