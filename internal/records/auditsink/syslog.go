package auditsink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/transport"
)

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

func (s syslogSink) begin(ctx context.Context) (delivery, error) {
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
		if _, err := d.conn.Write(d.message(h)); err != nil {
			return errors.New("the message could not be sent")
		}
	}
	return nil
}

func (d syslogDelivery) message(h record.Head) []byte {
	host := d.host
	if host == "" {
		host = "-"
	}
	message := fmt.Appendf(nil, "<%d>1 %s %s claudeops - audit-head - %s", syslogPriority,
		h.Time.UTC().Format(time.RFC3339Nano), host, bytes.TrimSuffix(line(h), []byte("\n")))
	if d.network == "tcp" { // octet counting of RFC 6587
		return append([]byte(strconv.Itoa(len(message))+" "), message...)
	}
	return message
}

func (d syslogDelivery) end() error { return d.conn.Close() }
