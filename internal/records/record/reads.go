package record

import "context"

type shortReadsKey struct{}

// ShortReads returns a context whose reads of the records are many and take microseconds. SQLite does not watch in each
// of them whether the caller goes away: that takes longer than the read. A server of PostgreSQL may stop answering, so
// there they are watched as all others.
func ShortReads(ctx context.Context) context.Context {
	return context.WithValue(ctx, shortReadsKey{}, true)
}

// AreShortReads reports whether a context was made by ShortReads.
func AreShortReads(ctx context.Context) bool { return ctx.Value(shortReadsKey{}) != nil }
