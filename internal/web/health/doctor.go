package health

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/ops/doctor"
)

// doctorAge is how old an answer of doctor may be: finding it out reads the whole record.
const doctorAge = 10 * time.Second

// Diagnosis is what doctor said, and when.
type Diagnosis struct {
	Findings []doctor.Finding
	At       time.Time
}

// CanOpen reports whether nothing would stop a pull request.
func (d Diagnosis) CanOpen() bool {
	for _, f := range d.Findings {
		if f.Blocks {
			return false
		}
	}
	return true
}

// Diagnose is what doctor says now, or said less than doctorAge ago.
func (c *Checker) Diagnose(ctx context.Context) (Diagnosis, error) {
	done, err := c.heavy.Wait(ctx)
	if err != nil {
		return Diagnosis{}, err
	}
	defer done()
	if now := c.env.Now(); c.diagnosis.At.IsZero() || now.Sub(c.diagnosis.At) >= doctorAge {
		c.diagnosis = Diagnosis{c.doctor(context.WithoutCancel(ctx)), now.UTC()}
	}
	return c.diagnosis, nil
}
