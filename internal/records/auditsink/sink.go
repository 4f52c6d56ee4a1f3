package auditsink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/base/weborigin"
	"github.com/claudeops/claudeops/internal/records/record"
)

// sink is a destination for heads. It is safe for concurrent use.
type sink interface {
	// name tells sinks apart, in the records too; it has no secret.
	name() string
	// local sinks take heads at once; exports to others run in the background.
	local() bool
	// begin prepares an export; no other process exports to a local sink until it ends.
	begin(ctx context.Context) (delivery, error)
}

// delivery is one export to a sink.
type delivery interface {
	// last is the newest head that the sink holds; known is false for a sink that does not say.
	last() (h record.Head, known bool, err error)
	// send hands heads over. After an error some of them may have arrived.
	send(ctx context.Context, heads []record.Head) error
	end() error
}

// parse makes the sink of an address. Errors never repeat the address: it may hold a secret.
func parse(address string, o Options) (sink, error) {
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
		case !weborigin.Confidential(u):
			return nil, errors.New("a sink on another machine needs https")
		}
		return newHTTPSink(u, o.Transport), nil
	}
	return nil, fmt.Errorf("%.12q... is no sink: name an absolute path, syslog, syslog+udp://HOST:PORT, "+
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
