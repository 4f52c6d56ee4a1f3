package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// minRetention is how short a retention may be: the rules look back on days.
const minRetention = 7 * 24 * time.Hour

// ParseRetention reads an age such as 90d or 2160h, of at least seven days; 0 is no age at all.
func ParseRetention(raw string) (time.Duration, error) {
	if raw == "0" {
		return 0, nil
	}
	age, err := time.ParseDuration(raw)
	if days, ok := strings.CutSuffix(raw, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		age = time.Duration(n) * 24 * time.Hour //nolint:gosec // 16 bits fit
	}
	if err != nil {
		return 0, fmt.Errorf("%s is no age such as 90d", shown(raw))
	}
	if age < minRetention {
		return 0, fmt.Errorf("%s is less than 7d", shown(raw))
	}
	return age, nil
}

// retention is 0, which keeps everything, for a value that cannot be understood.
func (e *env) retention() time.Duration {
	raw := e.get("CLAUDEOPS_RETENTION")
	if raw == "" {
		return 0
	}
	age, err := ParseRetention(raw)
	if err != nil {
		e.warn("CLAUDEOPS_RETENTION: %s: everything is kept", err)
	}
	return age
}
