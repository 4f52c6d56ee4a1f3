package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// sinks says how far the heads of the audit were exported.
func (d *Doctor) sinks(ctx context.Context) Finding {
	const name = "sinks of the audit"
	required := d.Rules.Policy.Server.RequireSink
	exports, err := d.Audit.Exports(ctx)
	switch {
	case err != nil:
		return Finding{Name: name, Status: Warning, Detail: fault.From(err).Message}
	case len(exports) == 0 && required:
		return blocks(name,
			"the policy requires one (audit.require_sink), and CLAUDEOPS_AUDIT_SINK names none that can be used",
			"name one in CLAUDEOPS_AUDIT_SINK")
	case len(exports) == 0 && len(d.Config.Records.AuditSinks) > 0:
		return Finding{Name: name, Status: Warning, Detail: "CLAUDEOPS_AUDIT_SINK names none that can be used"}
	case len(exports) == 0:
		return Finding{Name: name, Status: Off,
			Detail: "CLAUDEOPS_AUDIT_SINK is not set",
			Do:     "name a sink: without one, anyone who can write the database could replace the whole audit unnoticed"}
	}
	f := Finding{Name: name, Status: OK}
	var parts []string
	for _, e := range exports {
		switch {
		case e.Problem != "":
			f.Status = Warning
			parts = append(parts, fmt.Sprintf("%s (since %s)", e.Problem, e.ProblemAt.UTC().Format(time.RFC3339)))
		case e.Last.Seq == 0:
			parts = append(parts, e.Sink+": nothing yet")
		default:
			parts = append(parts, fmt.Sprintf("%s: up to row %d", e.Sink, e.Last.Seq))
		}
	}
	f.Detail = strings.Join(parts, "; ")
	if f.Status == Warning && required {
		return blocks(name, f.Detail, "")
	}
	return f
}
