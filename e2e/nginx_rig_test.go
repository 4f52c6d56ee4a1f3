//go:build e2e && linux

package e2e

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// publicName is the name that certificates of the tests are for, beside 127.0.0.1. No name server knows it.
const publicName = "ops.example.org"

// nginx is a real one with TLS in front of a server.
type nginx struct {
	port    int
	folder  string // its configuration, log and temporary files
	running *exec.Cmd
}

// certificate writes a certificate for publicName and 127.0.0.1 and its key, and returns the two files. It is
// self-signed, so a client needs the file.
func certificate(t *testing.T, folder string) (chain, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	subject := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: publicName}, DNSNames: []string{publicName},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, subject, subject, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	chain, key = filepath.Join(folder, "chain.pem"), filepath.Join(folder, "key.pem")
	for file, block := range map[string]*pem.Block{chain: {Type: "CERTIFICATE", Bytes: signed},
		key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return chain, key
}

// newNginx configures one: server is the part of its `server` block beside address and certificate. It is not started.
func newNginx(t *testing.T, listen, server string) *nginx {
	t.Helper()
	n := &nginx{port: freePort(t), folder: t.TempDir()}
	chain, key := certificate(t, n.folder)
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
	if err := os.WriteFile(filepath.Join(n.folder, "nginx.conf"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
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

// address is that of a path there.
func (n *nginx) address(path string) string {
	return "https://127.0.0.1:" + strconv.Itoa(n.port) + path
}

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
	if err := n.running.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := n.running.Wait(); err != nil {
		t.Fatalf("nginx: %v", err)
	}
}

// log returns the text of one of its logs.
func (n *nginx) log(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// patientProgram is one that runs as long as a test with several clients takes on a busy machine.
func patientProgram(path, dir string, args ...string) program {
	const longest = 5 * time.Minute
	return program{path: path, args: args, dir: dir, env: []string{"PATH=" + os.Getenv("PATH")}, may: longest}
}
