//go:build e2e && linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/cdproto/page"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// wordyAgent is a CLI that says and does what a transcript may hold, and stops at its limit of money.
const wordyAgent = `#!/bin/sh
[ "$1" = --version ] && { echo "2.1.329 (Claude Code)"; exit 0; }
cat > /dev/null
cat <<'END'
{"type":"system","subtype":"init","mcp_servers":[{"name":"claudeops","status":"connected"}]}
{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"The volume fills by **4 %** an hour.\n\n- db-3: 93 %\n- eu-2: שלום 🧯"},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"df --output=pcent,target"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"Use% Mounted on\n 93% /var/lib/postgres\n 12% /"}]}}
{"type":"assistant","message":{"id":"m2","content":[{"type":"tool_use","id":"t2","name":"Read","input":{"file_path":"/repos/mail/checks/disk.md"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t2","is_error":true,"content":"no such file"}]}}
{"type":"result","subtype":"error_max_budget_usd","num_turns":3,"total_cost_usd":2.01,"usage":{"input_tokens":3000,"output_tokens":900}}
END
exit 1
`

// overlaps lists the pairs of texts whose boxes share more than a sliver: neither is in the other, and both are drawn.
const overlaps = `(() => {
	const boxes = [], known = new Map([[null, { fixed: null, clip: null }]]), walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	const around = (p) => { // what is fixed around an element, and what cuts it off
		if (known.has(p)) return known.get(p);
		const of = getComputedStyle(p);
		let { fixed, clip } = around(p.parentElement);
		if (!fixed && (of.position === "fixed" || of.position === "sticky")) fixed = p;
		if (of.overflowX !== "visible" && p !== document.body && p !== document.documentElement) {
			const c = p.getBoundingClientRect();
			clip = clip ? { left: Math.max(c.left, clip.left), right: Math.min(c.right, clip.right), top: Math.max(c.top, clip.top), bottom: Math.min(c.bottom, clip.bottom) } : c;
		}
		known.set(p, { fixed, clip });
		return known.get(p);
	};
	for (let n; n = walk.nextNode();) {
		const e = n.parentElement;
		if (!n.data.trim() || e.closest(".hidden, .skip, option, textarea") || getComputedStyle(e).visibility !== "visible" || !e.checkVisibility({ opacityProperty: true })) continue;
		const range = document.createRange();
		range.selectNodeContents(n);
		const { fixed, clip } = around(e);
		for (const r of range.getClientRects()) {
			const b = { left: r.left, right: r.right, top: r.top, bottom: r.bottom, node: n, fixed, text: n.data.trim().slice(0, 40) };
			if (clip) { b.left = Math.max(b.left, clip.left); b.right = Math.min(b.right, clip.right); b.top = Math.max(b.top, clip.top); b.bottom = Math.min(b.bottom, clip.bottom); }
			if (b.right - b.left > 1 && b.bottom - b.top > 1) boxes.push(b);
		}
	}
	boxes.sort((a, b) => a.top - b.top);
	const found = [];
	for (let i = 0; i < boxes.length && found.length < 5; i++) for (let j = i + 1; j < boxes.length && boxes[j].top < boxes[i].bottom; j++) {
		const a = boxes[i], b = boxes[j], wide = Math.min(a.right, b.right) - Math.max(a.left, b.left), high = Math.min(a.bottom, b.bottom) - b.top;
		if (a.node !== b.node && a.fixed === b.fixed && wide > 2 && high > Math.min(a.bottom - a.top, b.bottom - b.top) / 2) found.push(a.text + " / " + b.text);
	}
	const wide = document.documentElement.scrollWidth;
	if (wide > %d) found.push("the page is " + wide + " wide");
	return found.join("\n");
})()`

// onEachOther says which texts of the page that is shown lie on each other, and whether it is wider than the window.
func (d *dashboard) onEachOther(width int64) (found string) {
	d.Helper()
	d.run(evaluated(fmt.Sprintf(overlaps, width), &found))
	return found
}

// odd leaves changes whose titles, files and texts are short, long, from right to left, and of many planes.
func (d *dashboard) odd() {
	d.Helper()
	rtl, long := "בדיקת הדיסק הראשי לפני המילוי", strings.Repeat("warn-earlier-about-full-disks-of-database-hosts ", 4)
	for i, title := range []string{"Fix", long, rtl, "👩‍🚒 🧯 Try emoji 🇦🇹 in a title", strings.Repeat("x", 180)} {
		path := []string{"checks/a.md", "checks/" + strings.Repeat("a-very-long-name-of-a-check-", 5) + ".md",
			"checks/dik.md", "checks/emoji.md", "checks/x.md"}[i]
		d.propose(d.api, map[string]any{"title": title, "body": "## " + title + "\n\n" + rtl + "\n\n`" + long + "`\n",
			"files": []any{file(path, "create", "# "+title+"\n\n"+rtl+" 🧯\n"+long+"\n")}})
	}
	d.propose(d.api, map[string]any{"title": long, "files": []any{file("prompts/"+strings.Repeat("deep/", 20)+"x.md",
		"create", long)}})
}

// whole keeps pictures of the whole page, if CLAUDEOPS_LOOK names a folder.
func (d *dashboard) whole(name string) {
	d.Helper()
	folder := os.Getenv("CLAUDEOPS_LOOK")
	if folder == "" {
		return
	}
	for _, look := range []struct {
		scheme string
		width  int64
	}{{"light", 1280}, {"dark", 1280}, {"light", 390}, {"dark", 390}} {
		var shot page.CaptureScreenshotResult
		d.run(lookedAt(look.scheme, look.width, map[int64]int64{1280: 1100, 390: 1100}[look.width]),
			into(protocol(page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng}), &shot))
		picture := fmt.Sprintf("%s-%s-%d.png", name, look.scheme, look.width)
		must.Do(d, os.WriteFile(filepath.Join(folder, picture), shot.Data, 0o600))
	}
}
