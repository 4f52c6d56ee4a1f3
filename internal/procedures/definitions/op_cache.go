package definitions

import (
	"context"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
)

// CachedIndexes says what is kept of registries' indexes.
type CachedIndexes struct {
	Count       int    `json:"count"`
	Size        string `json:"size"`
	OldestEntry string `json:"oldestEntry" doc:"RFC 3339; empty without entries"`
	NewestEntry string `json:"newestEntry"`
}

// CachedDownloads says what is kept of registries' contents.
type CachedDownloads struct {
	Count int    `json:"count"`
	Size  string `json:"size"`
}

// CacheStatsAnswer says what the cache holds.
type CacheStatsAnswer struct {
	Manifests CachedIndexes   `json:"manifests"`
	Downloads CachedDownloads `json:"downloads"`
	TotalSize string          `json:"totalSize"`
	Location  string          `json:"location"`
	Notes     []string        `json:"notes,omitempty" doc:"What files say that is not used, and why"`
}

func (s set) cacheStats() operation.Operation {
	return reading(s, named("cache_stats", "cache stats", "Look at the cache", "Show what the cache holds",
		"Say how much is cached of registries: manifests are their indexes, downloads what was fetched by checksum; and where."), nil,
		func(_ context.Context, v *view, _ NoArguments) (CacheStatsAnswer, error) {
			stats, err := v.cache.stats()
			if err != nil {
				return CacheStatsAnswer{}, cacheError(v.config.CacheDir, err)
			}
			return CacheStatsAnswer{
				Manifests: CachedIndexes{stats.Indexes, sizeText(stats.IndexBytes), moment(stats.OldestIndex),
					moment(stats.NewestIndex)},
				Downloads: CachedDownloads{stats.Downloads, sizeText(stats.DownloadBytes)},
				TotalSize: sizeText(stats.IndexBytes + stats.DownloadBytes), Location: stats.Location,
				Notes: v.notes(nil, nil),
			}, nil
		})
}

// CacheClearRequest says what to remove from the cache.
type CacheClearRequest struct {
	Type      string `json:"type,omitempty" enum:"manifests,downloads,all" default:"all" doc:"manifests: indexes of registries; downloads: what was fetched by checksum"`
	OlderThan int    `json:"olderThan,omitempty" minimum:"0" maximum:"36500" doc:"Only what is older than so many days"`
}

// ClearedEntries says what was removed.
type ClearedEntries struct {
	Manifests int    `json:"manifests"`
	Downloads int    `json:"downloads"`
	TotalSize string `json:"totalSize"`
}

// CacheClearAnswer says what was removed, or would have been.
type CacheClearAnswer struct {
	Success bool           `json:"success"`
	Cleared ClearedEntries `json:"cleared"`
	DryRun  bool           `json:"dry_run,omitempty" doc:"Nothing was removed"`
}

func (s set) cacheClear() operation.Operation {
	o := named("cache_clear", "cache clear", "Clear the cache", "Remove what is cached of registries",
		"Remove what is cached of registries; it is fetched again when it is needed. Needs tier 2. With dry_run in the "+
			"answer nothing was removed.")
	o.Effect, o.Needs = operation.Write, operation.Needs{Tier: gitprovider.TierInvestigate, Harmless: true,
		Dry: operation.DryTried}
	o.Tool.Destructive, o.Tool.Repeatable = true, true
	way := operation.Way[CacheClearRequest]{Roots: func(CacheClearRequest) []string { return s.service().cacheDirs() }}
	return operation.Define(s.kernel, ToolsetName, o, way,
		func(_ context.Context, call operation.Call, in CacheClearRequest) (CacheClearAnswer, error) {
			v, err := s.service().open()
			if err != nil {
				return CacheClearAnswer{}, faultOf(err)
			}
			cleared, err := v.cache.clear(CacheClearing{
				Indexes: in.Type != "downloads", Downloads: in.Type != "manifests",
				OlderThan: time.Duration(in.OlderThan) * 24 * time.Hour,
			}, call.DryRun)
			if err != nil {
				return CacheClearAnswer{}, faultOf(cacheError(v.config.CacheDir, err))
			}
			return CacheClearAnswer{
				Success: true, DryRun: call.DryRun,
				Cleared: ClearedEntries{cleared.Indexes, cleared.Downloads, sizeText(cleared.Bytes)},
			}, nil
		})
}

func cacheError(dir string, err error) *Error {
	e := newError(PermissionDenied, "the cache %s %s", dir, reason(err)).With("path", dir)
	e.Cause = err
	return e.Suggest("correct the rights of the folder, or point FRACTARY_CACHE_DIR to another")
}

// sizeText returns a size for people, such as 1.5 KB, which is 1536 bytes.
func sizeText(bytes int64) string {
	if bytes < 1<<10 {
		return fmt.Sprintf("%d B", bytes)
	}
	size, units := float64(bytes)/(1<<10), []string{"KB", "MB", "GB"}
	for size >= 1<<10 && len(units) > 1 {
		size, units = size/(1<<10), units[1:]
	}
	return fmt.Sprintf("%.1f %s", size, units[0])
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
