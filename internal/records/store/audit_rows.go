package store

import (
	"context"
	"database/sql"
	"sync"

	"github.com/claudeops/claudeops/internal/records/record"
)

// Bounds of the rows of the audit that are kept in memory, in rows and in bytes of what they hold. Beyond them, all are
// given up.
const (
	maxRowsInMemory     = 1000
	maxRowBytesInMemory = 4 << 20
)

// rowMemory caches decoded rows of the audit in memory. It finds them by their hash, which covers all that they hold
// and all rows before, so a cached row equals the stored one. Callers must not change the slices of a row.
type rowMemory struct {
	mu    sync.Mutex
	rows  map[string]record.RecordedAttempt
	bytes int
}

func (m *rowMemory) find(hash string) (record.RecordedAttempt, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	row, found := m.rows[hash]
	return row, found
}

func (m *rowMemory) keep(row auditRow) {
	size := 0
	for _, c := range row.columns {
		if s, ok := c.value.(string); ok {
			size += len(s)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows == nil || len(m.rows) >= maxRowsInMemory || m.bytes+size > maxRowBytesInMemory {
		m.rows, m.bytes = map[string]record.RecordedAttempt{}, 0
	}
	if _, has := m.rows[row.Hash]; !has && size <= maxRowBytesInMemory {
		m.rows[row.Hash], m.bytes = row.RecordedAttempt, m.bytes+size
	}
}

// auditRows returns the rows that were found, by their hashes. Those that are not in memory are read.
func (d *database) auditRows(ctx context.Context, tx *sql.Tx, found []foundAttempt) (map[string]record.RecordedAttempt,
	error) {
	rows := make(map[string]record.RecordedAttempt, len(found))
	var missing []any
	for _, f := range found {
		row, known := d.rows.find(f.hash)
		if !known {
			missing = append(missing, f.seq)
			continue
		}
		rows[f.hash] = row
	}
	if len(missing) == 0 {
		return rows, nil
	}
	read, err := d.selectAuditRows(ctx, tx, "WHERE seq IN ("+placeholders(1, len(missing))+")", missing...)
	for _, row := range read {
		rows[row.Hash] = row.RecordedAttempt
		d.rows.keep(row)
	}
	return rows, err
}
