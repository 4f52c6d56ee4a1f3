package web_test

import (
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/claudeops/claudeops/internal/base/fault"
)

func TestPagesThatFollowSayWhereTheyStand(t *testing.T) {
	t.Parallel()
	w, id := dryWorld(t, func(w *world) { w.web.Network.BasePath = "" })
	for target, follows := range map[string]bool{
		"/": true, "/changes": true, "/proposals/" + id: true, "/changes/forges": true, "/audit": true, "/policy": false,
		"/doctor": true, "/sign-in": false,
	} {
		d := w.page(target, 200)
		body, regions := d.find("body")[0], 0
		d.each(func(n *html.Node) {
			for _, a := range n.Attr {
				if a.Key == "data-live" {
					regions++
				}
			}
		})
		want := map[bool]string{true: "audit:1,health:0", false: ""}[follows]
		if attr(body, "data-at") != want || len(d.find("script")) != 2*min(1, len(want)) || (regions > 0) != follows {
			t.Errorf("%s: at %q, %d scripts, %d regions", target, attr(body, "data-at"), len(d.find("script")), regions)
		}
	}
	if d := w.page("/proposals/nothing", 404); len(d.find("script")) != 0 {
		t.Error("an error follows")
	}
}

func TestARefreshAfterTheSessionHasEndedIsNotLedToAnotherPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers)
	a := w.get("/audit", browser, header("HX-Request", "true"))
	if a.StatusCode != 401 || a.Header.Get("Location") != "" {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
	if a := w.get("/audit", browser); a.StatusCode != 303 {
		t.Errorf("without a script: %d", a.StatusCode)
	}
	w.want(w.get("/events", header("Accept", "text/event-stream")), 401, fault.Unauthenticated)
	w.want(w.get("/events", header("Accept", "text/event-stream"), bearer(w.token("bob", 2, "propose"))), 403,
		fault.Forbidden)
}

func TestScriptsAreServedOnceAndForAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, script := range w.page("/", 200).find("script") {
		a := w.get(attr(script, "src"))
		if a.StatusCode != 200 || a.Header.Get("Content-Type") != "text/javascript; charset=utf-8" ||
			!strings.Contains(a.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %v", attr(script, "src"), a.StatusCode, a.Header)
		}
	}
}
