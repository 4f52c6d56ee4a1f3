//go:build e2e && linux

package e2e

import (
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// firstLoad holds what Chromium has measured while a page was loaded.
type firstLoad struct {
	Bytes int               `json:"bytes"` // over the wire, with the heads of the answers
	Paint float64           `json:"paint"` // first contentful one, in ms
	Files map[string]string `json:"files"`
	Font  bool              `json:"font"` // the page is drawn in ours
}

const measureLoad = `(async () => {
  await document.fonts.ready;
  const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].filter((e) => !/events/.test(e.name));
  return {
    bytes: all.reduce((sum, e) => sum + e.transferSize, 0),
    paint: performance.getEntriesByName('first-contentful-paint')[0].startTime,
    files: Object.fromEntries(all.map((e) => [new URL(e.name).pathname, e.transferSize + ' of ' + e.decodedBodySize])),
    font: document.fonts.check('14px Inter') && [...document.fonts].some((f) => f.status === 'loaded'),
  };
})()`

// TestDashboardFirstLoad holds what a first page weighs. How soon it is painted on a slow line is a figure in the log.
func TestDashboardFirstLoad(t *testing.T) {
	const (
		maxBytes = 90_000
		rate     = 50_000 // bytes a second
		latency  = 400    // ms
	)
	d := newDashboard(t)
	d.history()
	var got firstLoad
	d.run(commanded(network.Enable, network.EnableParams{}), commanded(network.ClearBrowserCache, cdp.Empty{}),
		commanded(network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
			MatchedNetworkConditions: []*network.Conditions{{Latency: latency, DownloadThroughput: rate,
				UploadThroughput: rate}},
		}), chromedp.Navigate(d.url+"/"), evaluated(measureLoad, &got, chromedp.EvalAwaitPromise))
	t.Logf("%d bytes, first paint after %s: %v", got.Bytes, time.Duration(got.Paint)*time.Millisecond, got.Files)
	if got.Bytes > maxBytes || !got.Font {
		t.Errorf("%d bytes, more than %d, or not in our font: %+v", got.Bytes, maxBytes, got)
	}
	d.quiet("a first load")
}
