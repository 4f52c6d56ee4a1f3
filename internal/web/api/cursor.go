package api

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/web/handler"
)

// Sizes of a page of any listing.
const (
	defaultLimit = 50
	maxLimit     = 200
)

// page selects a part of a listing.
type page struct {
	before int64 // rows with a lower number; 0: from the newest
	limit  int
}

// pageOf reads cursor and limit. A cursor is valid for the listing that made it; its form may change.
func pageOf(listing, cursor string, limit int) (page, error) {
	p := page{limit: min(limit, maxLimit)}
	if limit == 0 {
		p.limit = defaultLimit
	}
	if cursor == "" {
		return p, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	number, ours := strings.CutPrefix(string(text), listing+":")
	before, numberErr := strconv.ParseInt(number, 10, 64)
	if err != nil || !ours || numberErr != nil || before < 1 {
		return p, badCursor()
	}
	p.before = before
	return p, nil
}

// cursorAfter returns the cursor of what follows the row with the number.
func cursorAfter(listing string, seq int64) string {
	return base64.RawURLEncoding.EncodeToString([]byte(listing + ":" + strconv.FormatInt(seq, 10)))
}

// cut drops the row beyond the page that was read to see whether there is more, and says where the next page begins.
func cut[T any](listing string, p page, rows []T, seq func(T) int64) (kept []T, next string) {
	if len(rows) <= p.limit {
		return rows, ""
	}
	kept = rows[:p.limit]
	return kept, cursorAfter(listing, seq(kept[p.limit-1]))
}

func badCursor() error {
	return handler.Invalid([]fault.Violation{handler.BadParameter("cursor", "is none that this listing has given")})
}
