//go:build e2e && linux

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// firstLoad holds what Chromium has measured while a page was loaded.
type firstLoad struct {
	Bytes int               `json:"bytes"` // over the wire, with the heads of the answers
	Own   int               `json:"own"`   // of them the page without its styles, scripts and font
	Paint float64           `json:"paint"` // first contentful one, in ms
	Files map[string]string `json:"files"`
	Font  bool              `json:"font"` // the page is drawn in ours
}

const measureLoad = `(async () => {
  await document.fonts.ready;
  const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].filter((e) => !/events/.test(e.name));
  return {
    own: all[0].transferSize,
    bytes: all.reduce((sum, e) => sum + e.transferSize, 0),
    paint: performance.getEntriesByName('first-contentful-paint')[0].startTime,
    files: Object.fromEntries(all.map((e) => [new URL(e.name).pathname, e.transferSize + ' of ' + e.decodedBodySize])),
    font: document.fonts.check('14px Inter') && [...document.fonts].some((f) => f.status === 'loaded'),
  };
})()`

// TestDashboardFirstLoad holds what a first page weighs, whichever it is. How soon it is painted on a slow line is a
// figure in the log.
func TestDashboardFirstLoad(t *testing.T) {
	const (
		maxBytes = 90_000
		maxDocs  = 60_000 // of a page of the API alone
		rate     = 50_000 // bytes a second
		latency  = 400    // ms
	)
	d := newDashboard(t)
	d.history()
	d.run(commanded(network.Enable, network.EnableParams{}),
		commanded(network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
			MatchedNetworkConditions: []*network.Conditions{{Latency: latency, DownloadThroughput: rate,
				UploadThroughput: rate}},
		}))
	for _, address := range []string{"/", "/changes", "/pulls/local/demo/home-cluster/1", "/docs", "/docs/createPR",
		"/outcomes", "/doctor?ask=forges", "/policy?tier=2&path=Dockerfile", "/audit", "/sessions", "/tokens"} {
		var got firstLoad
		d.run(commanded(network.ClearBrowserCache, cdp.Empty{}), chromedp.Navigate(d.url+address),
			evaluated(measureLoad, &got, chromedp.EvalAwaitPromise))
		t.Logf("%s: %d bytes, of them %d its own, first paint after %s: %v", address, got.Bytes, got.Own,
			time.Duration(got.Paint)*time.Millisecond, got.Files)
		if got.Bytes > maxBytes || !got.Font {
			t.Errorf("%s: %d bytes, more than %d, or not in our font: %+v", address, got.Bytes, maxBytes, got)
		}
		if strings.HasPrefix(address, "/docs") && got.Own > maxDocs {
			t.Errorf("%s: %d bytes of its own, more than %d", address, got.Own, maxDocs)
		}
	}
	d.quiet("a first load")
}
