//go:build e2e && linux

package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// firstLoad holds what Chromium has measured while a page was loaded.
type firstLoad struct {
	Bytes int               `json:"bytes"` // over the wire, with the heads of the answers
	Own   int               `json:"own"`   // of them the page without its styles, scripts and font
	Files map[string]string `json:"files"`
	Font  bool              `json:"font"` // the page is drawn in ours
}

const measureLoad = `(async () => {
  await document.fonts.ready;
  const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].filter((e) => !/events/.test(e.name));
  return {
    own: all[0].transferSize,
    bytes: all.reduce((sum, e) => sum + e.transferSize, 0),
    files: Object.fromEntries(all.map((e) => [new URL(e.name).pathname, e.transferSize + ' of ' + e.decodedBodySize])),
    font: document.fonts.check('14px Inter') && [...document.fonts].some((f) => f.status === 'loaded'),
  };
})()`

// TestDashboardFirstLoad holds what a first page weighs, whichever it is.
func TestDashboardFirstLoad(t *testing.T) {
	const (
		maxBytes = 90_000
		maxDocs  = 60_000 // of a page of the API alone
	)
	d := newDashboard(t)
	d.history()
	for _, address := range []string{"/", "/changes", "/pulls/local/demo/home-cluster/1", "/docs", "/docs/createPR",
		"/outcomes", "/doctor?ask=forges", "/policy?tier=2&path=Dockerfile", "/audit", "/sessions", "/tokens"} {
		var got firstLoad
		d.run(commanded(network.ClearBrowserCache, cdp.Empty{}), chromedp.Navigate(d.url+address),
			evaluated(measureLoad, &got, chromedp.EvalAwaitPromise))
		t.Logf("%s: %d bytes, of them %d its own: %v", address, got.Bytes, got.Own, got.Files)
		if got.Bytes > maxBytes || !got.Font {
			t.Errorf("%s: %d bytes, more than %d, or not in our font: %+v", address, got.Bytes, maxBytes, got)
		}
		if strings.HasPrefix(address, "/docs") && got.Own > maxDocs {
			t.Errorf("%s: %d bytes of its own, more than %d", address, got.Own, maxDocs)
		}
	}
	d.quiet("a first load")
}
