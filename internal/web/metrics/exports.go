package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/records"
)

// exports tells how far the heads of the audit were exported, by whatever process.
type exports struct {
	head  int64
	sinks []record.AuditExport
}

func (e *exports) read(ctx context.Context, audit records.Audit) error {
	sinks, err := audit.Exports(ctx)
	if err != nil {
		return err
	}
	head, _, err := audit.Head(ctx)
	if err != nil {
		return err
	}
	e.sinks, e.head = sinks, head
	return nil
}

func (exports) waiting() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_audit_export_waiting_rows",
		"Rows of the audit whose heads a sink has not taken yet.", []string{"sink"}, nil)
}

func (exports) failing() *prometheus.Desc {
	return prometheus.NewDesc("claudeops_audit_export_failing",
		"1 while the heads of the audit cannot be exported to a sink, else 0.", []string{"sink"}, nil)
}

func (e exports) collect(send sender) {
	for _, sink := range e.sinks {
		send(e.waiting(), prometheus.GaugeValue, float64(max(e.head-sink.Last.Seq, 0)), sink.Sink)
		send(e.failing(), prometheus.GaugeValue, number(sink.Problem != ""), sink.Sink)
	}
}
