package auditsink

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// sink is a destination for heads. It is safe for concurrent use.
type sink interface {
	// name tells sinks apart, in the records too; it has no secret.
	name() string
	// local sinks take heads at once; exports to others run in the background.
	local() bool
	// openDelivery prepares an export; no other process exports to a local sink until it ends.
	openDelivery(ctx context.Context) (delivery, error)
}

// delivery is one export to a sink.
type delivery interface {
	// last is the newest head that the sink holds; known is false for a sink that does not say.
	last() (h record.Head, known bool, err error)
	// send hands heads over. After an error some of them may have arrived.
	send(ctx context.Context, heads []record.Head) error
	close() error
}

// parseSink makes the sink of an address. Errors never repeat the address: it may hold a secret.
func parseSink(address string, o Options) (sink, error) {
	scheme, rest, _ := strings.Cut(address, ":")
	switch {
	case filepath.IsAbs(address):
		return fileSink{address}, nil
	case scheme == "file":
		path := strings.TrimPrefix(rest, "//")
		if !filepath.IsAbs(path) {
			return nil, errors.New("a sink of the form file:PATH needs an absolute path")
		}
		return fileSink{path}, nil
	case address == "syslog":
		return syslogSink{network: "unixgram", host: o.Host}, nil
	case scheme == "syslog+udp", scheme == "syslog+tcp":
		host := strings.TrimPrefix(rest, "//")
		if _, _, err := net.SplitHostPort(host); err != nil {
			return nil, errors.New("a sink of syslog is syslog, syslog+udp://HOST:PORT or syslog+tcp://HOST:PORT")
		}
		return syslogSink{network: strings.TrimPrefix(scheme, "syslog+"), address: host, host: o.Host}, nil
	case scheme == "https", scheme == "http":
		u, err := url.Parse(address)
		switch {
		case err != nil || u.Host == "":
			return nil, errors.New("a sink over https has an address that cannot be understood")
		case !transport.IsConfidential(u):
			return nil, errors.New("a sink on another machine needs https")
		}
		return newHTTPSink(u, o.Transport), nil
	}
	return nil, fmt.Errorf("%.12q... is not a sink: name an absolute path, syslog, syslog+udp://HOST:PORT, "+
		"syslog+tcp://HOST:PORT or https://HOST/PATH", scheme)
}

// Options configure an Exporter. All are required but Transport and Host.
type Options struct {
	Addresses []string
	Audit     Audit
	// Warn tells the operator; problem has no secret. It is called once for each new problem, and with an empty problem
	// when a sink works again.
	Warn func(ctx context.Context, sink, problem string)
	// Transport carries requests to sinks over https; a transport.Pool; nil: one that uses no proxy.
	Transport http.RoundTripper
	Host      string // how this machine is named in syslog; "": not at all
}

// Audit is the audit that is exported. internal/records/store implements it; errors are faults.
type Audit interface {
	HeadsAfter(ctx context.Context, seq int64, limit int) ([]record.Head, error)
	HashesOf(ctx context.Context, seqs []int64) (map[int64]string, error)
	Head(ctx context.Context) (seq int64, hash string, err error)
	Export(ctx context.Context, sink string) (record.AuditExport, error)
	Exported(ctx context.Context, sink string, last record.Head) error
	ExportFailed(ctx context.Context, sink, problem string) error
}

// fileSink is a file that only grows, one line for each row of the audit, from the first.
type fileSink struct{ path string }

func (s fileSink) name() string { return "file " + s.path }
func (fileSink) local() bool    { return true }

const (
	fileMode  = 0o600
	tailBytes = 4 << 10 // the last line is within it
)

func (s fileSink) openDelivery(ctx context.Context) (delivery, error) {
	f, err := files.OpenAppend(s.path, fileMode)
	if errors.Is(err, files.ErrNotRegular) {
		return nil, errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, reasonOf(err)
	}
	if err = files.Lock(ctx, f, true); err != nil && errors.Is(err, ctx.Err()) {
		err = errors.New("another process holds it")
	}
	if err != nil {
		return nil, errors.Join(reasonOf(err), f.Close())
	}
	return &fileDelivery{file: f}, nil
}

// reasonOf returns an error of a file without its path, which the sink's name has.
func reasonOf(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

type fileDelivery struct {
	file *os.File
	torn bool // the last line has no end: its writer was killed
}

func (d *fileDelivery) last() (record.Head, bool, error) {
	size, err := d.file.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return record.Head{}, true, reasonOf(err)
	}
	tail := make([]byte, min(size, tailBytes))
	if _, err := d.file.ReadAt(tail, size-int64(len(tail))); err != nil {
		return record.Head{}, false, reasonOf(err)
	}
	d.torn = tail[len(tail)-1] != '\n'
	all := bytes.Split(tail, []byte("\n"))
	complete := all[:len(all)-1] // what follows the last line break is torn, or empty
	for i := len(complete) - 1; i >= 0; i-- {
		h, err := parseLine(complete[i])
		if err == nil {
			return h, true, nil
		}
		if !isTorn(complete[i]) {
			return record.Head{}, false, fmt.Errorf("its last line is not one that claudeops has written")
		}
	}
	return record.Head{}, len(tail) == int(size), nil
}

// isTorn reports whether a line is the beginning of one of ours, whose writer was killed.
func isTorn(text []byte) bool {
	const begins = `{"seq":`
	if len(text) < len(begins) {
		return bytes.HasPrefix([]byte(begins), text)
	}
	return bytes.HasPrefix(text, []byte(begins)) && !bytes.HasSuffix(text, []byte("}"))
}

func (d *fileDelivery) send(_ context.Context, heads []record.Head) error {
	text := lines(heads)
	if d.torn {
		text = append([]byte("\n"), text...)
	}
	if _, err := d.file.Write(text); err != nil {
		return reasonOf(err)
	}
	d.torn = false
	return reasonOf(d.file.Sync())
}

func (d *fileDelivery) close() error { return d.file.Close() }

// httpSink posts heads, one JSON object a line.
type httpSink struct {
	to     *url.URL // may hold secrets
	client *transport.Client
}

// newHTTPSink follows no redirect: it would carry our credentials to a place that was not configured.
func newHTTPSink(to *url.URL, over http.RoundTripper) httpSink {
	return httpSink{to, transport.NewClient(transport.ClientOptions{
		Over: over, Timeout: remoteBound, Host: transport.Only(to, trust.Said(transport.Host{Private: true})),
	})}
}

// name has the host, and a digest of the whole address that tells two at one host apart.
func (s httpSink) name() string {
	sum := sha256.Sum256([]byte(s.to.String()))
	return s.to.Scheme + "://" + s.to.Host + " (" + hex.EncodeToString(sum[:4]) + ")"
}

func (httpSink) local() bool { return false }

func (s httpSink) openDelivery(context.Context) (delivery, error) { return s, nil }

func (httpSink) last() (record.Head, bool, error) { return record.Head{}, false, nil }

func (s httpSink) send(ctx context.Context, heads []record.Head) error {
	answer, err := s.client.Do(ctx, transport.Request{
		Method: http.MethodPost, URL: s.to, Header: http.Header{"Content-Type": {"application/x-ndjson"}}, Body: lines(heads),
	})
	if err != nil {
		return errors.New(reasonOfRequest(err))
	}
	if answer.Status < 200 || answer.Status > 299 {
		return fmt.Errorf("it answered %d", answer.Status)
	}
	return nil
}

func reasonOfRequest(err error) string {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return "it did not answer in time"
	}
	return "it could not be reached"
}

func (httpSink) close() error { return nil }

// syslogSink sends each head as a message of RFC 5424. Over UDP and to a local socket its arrival is not confirmed.
type syslogSink struct {
	network string // unixgram for this machine's, udp or tcp
	address string
	host    string
}

func (s syslogSink) name() string {
	if s.address == "" {
		return "syslog"
	}
	return "syslog+" + s.network + "://" + s.address
}

func (syslogSink) local() bool { return false }

func (s syslogSink) openDelivery(ctx context.Context) (delivery, error) {
	addresses := []string{s.address}
	if s.address == "" {
		addresses = []string{"/dev/log", "/var/run/syslog", "/var/run/log"}
	}
	var problem error
	for _, address := range addresses {
		conn, err := transport.Dial(ctx, s.network, address)
		if err == nil {
			return syslogDelivery{s, conn}, nil
		}
		problem = err
	}
	return nil, fmt.Errorf("it cannot be reached: %w", problem)
}

type syslogDelivery struct {
	syslogSink
	conn net.Conn
}

func (syslogDelivery) last() (record.Head, bool, error) { return record.Head{}, false, nil }

// syslogPriority is facility 13, log audit, with the severity notice.
const syslogPriority = 13*8 + 5

func (d syslogDelivery) send(ctx context.Context, heads []record.Head) error {
	if deadline, ok := ctx.Deadline(); ok {
		if err := d.conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	for _, h := range heads {
		if _, err := d.conn.Write(d.formatMessage(h)); err != nil {
			return errors.New("the message could not be sent")
		}
	}
	return nil
}

func (d syslogDelivery) formatMessage(h record.Head) []byte {
	host := d.host
	if host == "" {
		host = "-"
	}
	message := fmt.Appendf(nil, "<%d>1 %s %s claudeops - audit-head - %s", syslogPriority,
		h.Time.UTC().Format(time.RFC3339Nano), host, bytes.TrimSuffix(formatHead(h), []byte("\n")))
	if d.network == "tcp" { // octet counting of RFC 6587
		return append([]byte(strconv.Itoa(len(message))+" "), message...)
	}
	return message
}

func (d syslogDelivery) close() error { return d.conn.Close() }
